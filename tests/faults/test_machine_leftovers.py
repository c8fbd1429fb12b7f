"""A keeper dies with its job: what the program left running is shown, and ended before anything else begins."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from support_time import ENDLESS
from support_world import World, until, world

from relay_receiver.client import profiles
from relay_receiver.jobs.job import job_id
from relay_receiver.processes import ending
from relay_receiver.processes.identity import identify
from relay_receiver.processes.kept import Kept
from relay_receiver.processes.tree import gone
from relay_receiver.receiver import leftovers, verbs
from relay_receiver.receiver.target import Target
from relay_receiver.wire.errors import RelayError

PROGRAM = f"""
echo >> starts
(trap '' TERM; setsid sh -c 'trap "" TERM; echo $$ > far; while :; do sleep {ENDLESS}; done' &)
if [ -e once ]; then echo '{{"text": "done at last"}}'; else touch once; echo $$ > near; exec sleep {ENDLESS}; fi
"""
"""The first start leaves two processes: one in its group, and one that left its session and ignores TERM."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Target]]:
    """A hub, and bob."""
    with world(tmp_path_factory.mktemp("left")) as w:
        yield w, w.agent("bob", argv=("/bin/sh", "-c", PROGRAM))


@pytest.fixture
def lost(place: tuple[World, Target], monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """A request whose keeper was killed, and what its program left running."""
    w, bob = place
    monkeypatch.setenv("RELAY_HOME", str(w.home))
    for name in ("starts", "once", "near", "far"):
        (w.project / name).unlink(missing_ok=True)
    verbs.start(bob)
    asked = w.ask(bob, "anything")
    left = [pid_in(w, name) for name in ("near", "far")]
    kept = Kept.read(bob.folder / "spool", f"{job(bob, asked)}.1")
    assert kept is not None
    os.kill(kept.keeper.pid, signal.SIGKILL)
    w.until_stage(asked["id"], "unknown")
    yield asked, left
    for pid in left:
        if not gone(pid):
            os.kill(pid, signal.SIGKILL)


def pid_in(w: World, name: str) -> int:
    path = w.project / name
    until(lambda: path.exists() and path.read_text().endswith("\n"), what=name)
    return int(path.read_text())


def job(bob: Target, asked: dict[str, Any]) -> str:
    return job_id(bob.workspace, profiles.load(bob.profile).agent, bob.channel, asked["id"])


def why(bob: Target, asked: dict[str, Any]) -> str:
    return " ".join(str(each["why"]) for each in verbs.job(bob, job(bob, asked))["history"])


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
@pytest.mark.parametrize(
    ("how", "end"), [("retry", "done at last"), ("abandon", "nothing came of it"), ("accept", "it was done")]
)
def test_settling_shows_ends_and_tells_what_is_left_before_the_next_job_begins(
    place: tuple[World, Target], lost: tuple[dict[str, Any], list[int]], how: str, end: str, *, stopped: bool
) -> None:
    w, bob = place
    asked, left = lost
    following = w.ask(bob, "the next one")
    if stopped:
        verbs.stop(bob)
    shown = verbs.job(bob, job(bob, asked))["now"]["processes"]
    assert set(left) <= {each["pid"] for each in shown}
    text = {"text": end} if how == "accept" else {}
    told = verbs.settle(bob, job(bob, asked), how, reason=end if how == "abandon" else None, **text)
    assert set(left) <= set(told["ended"])
    assert all(gone(pid) for pid in left)
    verbs.start(bob)
    w.until_stage(asked["id"], "failed" if how == "abandon" else "answered")
    w.until_stage(following["id"], "answered")
    assert end in w.results(asked["id"])[0]["content"]
    assert f"{left[0]}" in why(bob, asked)
    assert "ends what it left running" in why(bob, asked)
    assert (w.project / "starts").read_text().count("\n") == (3 if how == "retry" else 2)


def test_a_person_who_settles_it_at_the_hub_has_it_ended_too(
    place: tuple[World, Target], lost: tuple[dict[str, Any], list[int]]
) -> None:
    w, bob = place
    asked, left = lost
    agent = profiles.load("bob").agent
    w.do(
        "owner",
        lambda hub: hub.settle(
            channel=w.channel, agent=agent, request_id=job(bob, asked), outcome="abandoned", reason="enough"
        ),
    )
    until(lambda: verbs.job(bob, job(bob, asked))["state"] == "abandoned", what="the word from the hub")
    assert all(gone(pid) for pid in left)
    assert "ends what it left running" in why(bob, asked)


def test_what_cannot_be_ended_keeps_the_job_unknown_and_the_next_one_waiting(
    place: tuple[World, Target], lost: tuple[dict[str, Any], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    w, bob = place
    asked, left = lost
    verbs.stop(bob)
    monkeypatch.setattr(leftovers, "end_child", lambda *_, **__: False)
    with pytest.raises(RelayError) as refused:
        verbs.settle(bob, job(bob, asked), "retry")
    assert refused.value.code == "still_running"
    assert str(left[0]) in refused.value.sentence
    assert verbs.job(bob, job(bob, asked))["state"] == "unknown"
    monkeypatch.undo()
    monkeypatch.setenv("RELAY_HOME", str(w.home))
    verbs.settle(bob, job(bob, asked), "abandon", reason="enough")
    assert all(gone(pid) for pid in left)
    verbs.start(bob)
    w.until_stage(asked["id"], "failed")


def test_what_is_refused_anyway_ends_nothing(
    place: tuple[World, Target], lost: tuple[dict[str, Any], list[int]]
) -> None:
    w, bob = place
    asked, left = lost
    with pytest.raises(RelayError, match="say what was done"):
        verbs.settle(bob, job(bob, asked), "accept")
    assert not any(gone(pid) for pid in left)
    verbs.settle(bob, job(bob, asked), "abandon", reason="enough")
    w.until_stage(asked["id"], "failed")


def test_an_agent_that_serves_many_jobs_is_nobodys_leftover_while_its_keeper_lives(
    place: tuple[World, Target], lost: tuple[dict[str, Any], list[int]]
) -> None:
    w, bob = place
    asked, _ = lost
    spool = bob.folder / "spool"
    kept = Kept.read(spool, f"{job(bob, asked)}.1")
    assert kept is not None
    living = Kept(keeper=identify(os.getpid(), kept.keeper.nonce), child=None)  # type: ignore[arg-type]  # it lives
    assert ending.left_by(spool, "of another key", living.keeper.to_json()) is None
    found = ending.left_by(spool, "of another key", kept.keeper.to_json())
    assert found is not None
    assert ending.living(found)
    verbs.settle(bob, job(bob, asked), "abandon", reason="enough")
    w.until_stage(asked["id"], "failed")
