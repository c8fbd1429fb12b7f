"""More than one process with the same profile, copied state, and what a receiver does while the hub is away."""

import shutil
import sys
from pathlib import Path

import pytest
from support_world import World, until, world

from relay_receiver.client import profiles
from relay_receiver.receiver import verbs
from relay_receiver.testing import trial_program
from relay_receiver.wire.errors import RelayError


def second_machine(w: World, monkeypatch: pytest.MonkeyPatch, name: str) -> Path:
    """The same profile in another home, with a journal of its own."""
    other = w.home.parent / "other-home"
    for file in ("profile.json", "secrets.json"):
        (other / "profiles" / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copy2(w.home / "profiles" / name / file, other / "profiles" / name / file)
    for folder in (other, other / "profiles", other / "profiles" / name):
        folder.chmod(0o700)
    monkeypatch.setenv("RELAY_HOME", str(other))
    return other


def test_a_second_machine_stands_by_and_a_message_run_by_one_is_never_run_by_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        verbs.start(bob)
        second_machine(w, monkeypatch, "bob")
        profile = profiles.load("bob")
        verbs.configure(
            profile,
            channel=w.channel,
            channel_name="lab",
            adapter="command",
            argv=("/bin/sh", "-c", 'echo >> second; cat > /dev/null; echo \'{"text": "second"}\''),
            directory=w.project,
        )
        try:
            verbs.start(bob)
            until(lambda: verbs.status(bob)["state"] == "standby", what="standby")
            monkeypatch.setenv("RELAY_HOME", str(w.home))
            first = w.ask(bob, "task=one")
            w.until_stage(first["id"], "answered")
            verbs.stop(bob)
            monkeypatch.setenv("RELAY_HOME", str(w.home.parent / "other-home"))
            until(lambda: verbs.status(bob)["state"] == "ready", what="the lease")
            monkeypatch.setenv("RELAY_HOME", str(w.home))
            second = w.ask(bob, "task=two")
            w.until_stage(second["id"], "answered")
            assert [r["content"] for r in w.results(first["id"])] == ["did one"]
            assert [r["content"] for r in w.results(second["id"])] == ["second"]
            assert len((w.project / "second").read_text()) == 1
        finally:
            monkeypatch.setenv("RELAY_HOME", str(w.home.parent / "other-home"))
            verbs.stop(bob, now=True)
            monkeypatch.setenv("RELAY_HOME", str(w.home))


def test_a_copied_state_refuses_to_start_until_it_is_adopted(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        journal = bob.folder / "journal.sqlite3"
        shutil.copy2(journal, journal.with_name("copy"))
        journal.with_name("copy").replace(journal)
        with pytest.raises(RelayError) as refused:
            verbs.start(bob)
        assert "adopt" in str(refused.value.hint)
        before = verbs.adopt(bob)["holder"]
        assert before.startswith("h")
        assert verbs.start(bob)["state"] == "ready"
        asked = w.ask(bob, "task=after")
        w.until_stage(asked["id"], "answered")


def test_it_starts_while_the_hub_is_away_says_offline_and_works_once_it_is_back(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        w.kill_hub()
        assert verbs.start(bob)["state"] == "ready"
        assert verbs.status(bob)["state"] == "offline"
        w.start_hub()
        asked = w.ask(bob, "task=back")
        w.until_stage(asked["id"], "answered")


def test_a_hub_that_dies_in_the_middle_of_a_job_gets_its_one_result_later(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        verbs.start(bob)
        asked = w.ask(bob, "task=through hold=a")
        until(w.starts, what="the start of the job")
        w.kill_hub()
        w.release("a")
        until(lambda: verbs.status(bob)["job"] and verbs.status(bob)["job"]["state"] == "output", what="output")
        w.start_hub()
        w.until_stage(asked["id"], "answered")
        assert len(w.results(asked["id"])) == 1
        assert len(w.starts()) == 1


def test_restart_leaves_the_job_with_its_keeper(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        first = verbs.start(bob)["pid"]
        asked = w.ask(bob, "task=long hold=a")
        until(w.starts, what="the start of the job")
        assert verbs.restart(bob)["pid"] != first
        w.release("a")
        w.until_stage(asked["id"], "answered")
        assert len(w.starts()) == 1


def test_stop_now_interrupts_tells_the_requester_and_leaves_no_process(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        pid = verbs.start(bob)["pid"]
        asked = w.ask(bob, "hold=never")
        until(w.starts, what="the start of the job")
        verbs.stop(bob, now=True)
        assert w.stage(asked["id"]) == "failed"
        assert not Path(f"/proc/{pid}").exists() or _zombie(pid)
        assert _processes_with(str(w.project)) == []


def test_a_missing_program_keeps_the_order_and_is_shown(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        runner = w.home.parent / "runner"
        program = Path(trial_program.__file__).resolve()
        runner.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{program}" "{w.project}"\n')
        runner.chmod(0o755)
        bob = w.agent("bob", argv=(str(runner),))
        verbs.start(bob)
        runner.rename(runner.with_name("away"))
        first, second = w.ask(bob, "task=one"), w.ask(bob, "task=two")
        told = until(lambda: verbs.status(bob)["refused"], what="the refusal")
        assert "could not be started" in told["why"]
        assert verbs.status(bob)["state"] == "refused"
        runner.with_name("away").rename(runner)
        w.until_stage(first["id"], "answered")
        w.until_stage(second["id"], "answered")
        events = [w.results(m["id"])[0]["event"] for m in (first, second)]
        assert events == sorted(events)


def test_a_persons_profile_cannot_be_a_receiver(tmp_path: Path) -> None:
    with world(tmp_path) as w, pytest.raises(RelayError, match="only an agent"):
        verbs.configure(profiles.load("owner"), channel=w.channel, channel_name="lab", adapter="command")


@pytest.mark.parametrize(
    ("wishes", "code"),
    [
        ({"adapter": "command"}, "missing"),
        ({"adapter": "command", "argv": ("/nope",)}, "missing"),
        ({"adapter": "nope"}, "missing"),
        ({"adapter": "command", "argv": ("/bin/true",), "directory": Path("/nope")}, "no_directory"),
        ({"adapter": "command", "argv": ("/bin/true",), "directory": Path("/")}, "directory_holds_state"),
    ],
)
def test_a_binding_that_cannot_work_is_refused_and_can_be_mended(
    tmp_path: Path, wishes: dict[str, object], code: str
) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        shutil.rmtree(bob.folder)
        profile = profiles.load("bob")
        with pytest.raises(RelayError) as refused:
            verbs.configure(profile, channel=w.channel, channel_name="lab", **{"directory": w.project, **wishes})
        assert refused.value.code == code
        assert (
            verbs.configure(
                profile,
                channel=w.channel,
                channel_name="lab",
                adapter="command",
                argv=("/bin/true",),
                directory=w.project,
            )["state"]
            == "configured"
        )


def test_a_flood_of_agents_while_paused_loses_nothing_and_shuts_no_person_out(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob", chain_limit=1)
        carol = w.agent("carol")
        me = profiles.load("bob").agent
        verbs.start(bob)
        w.do("carol", lambda hub: _flood(hub, w.channel, me, 270))
        until(lambda: verbs.status(bob)["chain"]["paused"], what="the pause")
        until(lambda: verbs.status(bob)["queue"]["received"] > 0, what="wakes that wait for room")
        person = w.ask(bob, "task=mine")
        w.until_stage(person["id"], "answered")
        status = until(lambda: (now := verbs.status(bob))["chain"]["paused"] and now["job"] is None and now, what="it")
        assert status["queue"]["queued"] + status["queue"]["received"] + len(w.starts()) == 271
        assert carol.profile == "carol"


async def _flood(hub: object, channel: str, to: str, count: int) -> None:
    for number in range(count):
        await hub.post_message({"channel": channel, "kind": "request", "to": to, "content": f"task=n{number}"})


def _zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def _processes_with(word: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found
