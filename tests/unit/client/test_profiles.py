import json
import stat
from pathlib import Path

import pytest

from relay_receiver.client import profiles
from relay_receiver.client.profiles import JobCredential, Profile
from relay_receiver.wire.errors import RelayError

TOKEN = "the-token-of-bob"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RELAY_PROFILE", raising=False)
    monkeypatch.delenv("RELAY_JOB", raising=False)


def profile(name: str = "bob") -> Profile:
    return Profile(
        name=name,
        url="http://127.0.0.1:7423",
        workspace="w1",
        workspace_name="Lab",
        agent="a1",
        agent_name="Bób",
        role="agent",
        channels=(("c1", "lab"),),
    )


def stored(name: str = "bob") -> Profile:
    made = profile(name)
    profiles.save(made, token=TOKEN, identity="the-identity")
    return made


def test_a_profile_comes_back_as_it_was() -> None:
    made = stored()
    assert profiles.load("bob") == made
    assert (made.token(), made.identity()) == (TOKEN, "the-identity")


def test_its_facts_change_without_its_secrets() -> None:
    stored()
    profiles.save(profile())
    assert profiles.load("bob").token() == TOKEN


def test_secrets_are_in_private_files_and_nowhere_else() -> None:
    made = stored()
    for path in made.directory.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (TOKEN in path.read_text()) == (path.name == "secrets.json")
    assert stat.S_IMODE(made.directory.stat().st_mode) == 0o700
    assert TOKEN not in f"{made!r} {profiles.secrets_of('bob')!r}"


def test_secrets_that_others_could_read_are_refused() -> None:
    made = stored()
    (made.directory / "secrets.json").chmod(0o644)
    with pytest.raises(RelayError):
        made.token()


@pytest.mark.parametrize("name", ["profile.json", "secrets.json"])
@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"url": 7, "channels": [], "token": []}', b"[" * 100_000]
)
def test_a_damaged_file_is_named(name: str, content: bytes) -> None:
    path = stored().directory / name
    path.write_bytes(content)
    with pytest.raises(RelayError) as caught:
        profiles.load("bob").token()
    assert caught.value.code == "bad_profile"
    assert str(path) in caught.value.sentence
    assert TOKEN not in caught.value.sentence


def test_fields_of_a_newer_version_are_left_alone() -> None:
    path = stored().directory / "profile.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "red"}))
    assert profiles.load("bob") == profile()


class TestResolve:
    """The given one, else RELAY_PROFILE, else the only one, else `default`."""

    def test_none_yet(self) -> None:
        with pytest.raises(RelayError) as caught:
            profiles.resolve()
        assert caught.value.code == "no_profile"
        assert "relay connect" in str(caught.value.hint)

    def test_the_only_one(self) -> None:
        stored("bob")
        assert profiles.resolve().name == "bob"

    def test_default_among_many(self) -> None:
        stored("bob")
        stored("default")
        assert profiles.resolve().name == "default"

    def test_many_and_no_default(self) -> None:
        stored("bob")
        stored("ann")
        with pytest.raises(RelayError) as caught:
            profiles.resolve()
        assert "ann, bob" in caught.value.sentence

    def test_the_environment_and_what_is_said_before_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stored("bob")
        stored("ann")
        monkeypatch.setenv("RELAY_PROFILE", "ann")
        assert profiles.resolve().name == "ann"
        assert profiles.resolve("bob").name == "bob"

    def test_an_unknown_one_names_the_others(self) -> None:
        stored("bob")
        with pytest.raises(RelayError) as caught:
            profiles.resolve("carl")
        assert "bob" in caught.value.sentence


@pytest.mark.parametrize("name", ["", ".", "..", "../bob", "a/b", "-x", ".x", "x" * 65, "a\nb"])
def test_a_name_that_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(RelayError):
        profiles.load(name)


def test_an_enrolment_that_was_begun_is_no_profile() -> None:
    profiles.save_pending("bob", profiles.Secrets(url="http://hub", token=TOKEN, identity="i"))
    assert profiles.names() == []
    assert profiles.pending("bob") == profiles.Secrets(url="http://hub", token=TOKEN, identity="i")
    profiles.forget_pending("bob")
    assert profiles.pending("bob") is None


def test_a_removed_profile_leaves_no_secret() -> None:
    directory = stored().directory
    profiles.remove("bob")
    assert profiles.names() == []
    assert list(directory.iterdir()) == []
    profiles.remove("bob")


class TestJobCredential:
    """What one job may use."""

    credential = JobCredential(
        url="http://hub",
        workspace="w1",
        agent="a1",
        agent_name="Bob",
        channel="c1",
        job="j1",
        message="m1",
        token=TOKEN,
        expires="2027-01-01T00:00:00.000Z",
    )

    def test_there_is_none_outside_a_job(self) -> None:
        assert JobCredential.from_environment() is None

    def test_it_is_read_anew_each_time(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "job.json"
        monkeypatch.setenv("RELAY_JOB", str(path))
        self.credential.write(path)
        assert JobCredential.from_environment() == self.credential
        assert json.loads(path.read_text())["agentName"] == "Bob"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.unlink()
        with pytest.raises(RelayError):
            JobCredential.from_environment()

    def test_it_hides_its_token(self) -> None:
        assert TOKEN not in repr(self.credential)

    @pytest.mark.parametrize("content", ["", "{}", "[]", '{"agentName": "Bob"}'])
    def test_a_damaged_one_is_said(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
        path = tmp_path / "job.json"
        path.write_text(content)
        path.chmod(0o600)
        monkeypatch.setenv("RELAY_JOB", str(path))
        with pytest.raises(RelayError):
            JobCredential.from_environment()
