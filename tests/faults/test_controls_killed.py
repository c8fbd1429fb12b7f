"""What a person decides at the hub survives kill -9 of receiver and hub between every two steps, and is done once."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support_faults import CrashWorld, crash_world
from support_time import WITHIN

from relay_receiver.client import profiles
from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.processes.tree import gone
from relay_receiver.receiver import verbs
from relay_receiver.testing.trial_place import until
from relay_receiver.testing.trials import group

RECEIVER = [
    "journal.store.before",
    "journal.store.after",
    "acknowledge.before",
    "control.apply.before",
    "journal.apply.before",
    "journal.apply.after",
    "call.post-controls.before",
    "call.post-controls.after",
    "journal.tell.before",
    "journal.tell.after",
]
HUB = [
    "hub.create.before",
    "hub.create.after",
    "hub.tell.before",
    "hub.tell.after",
    "hub.changed.before",
    "hub.changed.after",
]


@pytest.fixture(scope="module")
def crashing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashWorld]:
    with crash_world(tmp_path_factory.mktemp("controls") / "w") as made:
        yield made


@pytest.fixture(autouse=True)
def at_home(crashing: CrashWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """One world for all cases of this file."""
    monkeypatch.setenv("RELAY_HOME", str(crashing.place.home))
    monkeypatch.setenv("RELAY_FAULTS", str(crashing.faults.folder))


def _asking(c: CrashWorld, call: Callable[[Any], Any]) -> Any:
    """Ask the hub as its owner, again and again while it is away."""
    end = time.monotonic() + WITHIN
    while True:
        try:
            return c.place.do("owner", call)
        except (HubAway, HubError):
            if time.monotonic() > end:
                raise
            c.revive()


def _unknown(c: CrashWorld, name: str) -> str:
    """A request whose receiver, keeper and program were all killed while it was worked on."""
    message = c.ask(c.held(name))
    until(lambda: c.starts()[message], what="the start of the program")
    c.kill(*group(c))
    c.revive()
    until(lambda: c.person.stage(message) == "unknown", what="a job whose outcome is unknown")
    return message


def _decide(c: CrashWorld, action: str, **arguments: Any) -> str:
    agent = profiles.load(c.target.profile).agent
    said = {"channel": c.target.channel, "agent": agent, "action": action, "arguments": arguments}
    operation = f"op-{time.monotonic_ns()}"
    made = _asking(c, lambda hub: hub.create_control(operation=operation, **said))
    return str(made["id"])


def _outcome(c: CrashWorld, control: str) -> Any:
    return until(
        lambda: (found := _asking(c, lambda hub: hub.control(control)))["outcome"] and found, what="an outcome"
    )


def _whos(c: CrashWorld, message: str) -> list[str]:
    return [each["who"] for each in verbs.job(c.target, c.job(message))["history"] if "in the console" in each["who"]]


@pytest.mark.parametrize("point", RECEIVER + HUB)
def test_killed_at_each_point_a_decision_is_done_once_and_its_outcome_is_told(crashing: CrashWorld, point: str) -> None:
    c = crashing
    message = _unknown(c, point)
    plan = c.faults.plan(point)
    control = _decide(c, "settle", job=c.job(message), attempt=1, verb="retry")
    _, pid, _ = until(lambda: c.faults.hit(plan), what=point)
    until(lambda: gone(pid), what=f"the end of {pid}")
    c.faults.clear()
    c.revive()
    told = _outcome(c, control)
    assert (told["outcome"], told["sentence"]) == ("done", "It is run again, as attempt 2.")
    until(lambda: c.starts()[message] == 2, what="the second attempt")
    c.release(point)
    until(lambda: c.person.stage(message) == "answered", what="the answer")
    assert len(_whos(c, message)) == 1
    assert c.starts()[message] == 2
    listed = _asking(c, lambda hub: hub.controls(agent=profiles.load(c.target.profile).agent))
    assert [each["id"] for each in listed if each["arguments"]["job"] == c.job(message)] == [control]


def test_a_decision_waits_for_a_receiver_that_is_away_and_does_not_surprise_it(crashing: CrashWorld) -> None:
    c = crashing
    late = _unknown(c, "late")
    verbs.stop(c.target, now=True)
    control = _decide(c, "settle", job=c.job(late), verb="abandon", reason="it takes too long")
    assert _asking(c, lambda hub: hub.control(control))["arguments"]["attempt"] == 1
    verbs.settle(c.target, c.job(late), "abandon", reason="settled here meanwhile")
    verbs.start(c.target)
    told = _outcome(c, control)
    assert (told["outcome"], "only a job whose outcome is unknown" in told["sentence"]) == ("refused", True)
    until(lambda: c.person.stage(late) == "failed", what="the end")
    assert _whos(c, late) == []
    fine = _unknown(c, "fine")
    verbs.stop(c.target, now=True)
    control = _decide(c, "settle", job=c.job(fine), verb="abandon", reason="it takes too long")
    verbs.start(c.target)
    assert _outcome(c, control)["outcome"] == "done"
    until(lambda: c.person.stage(fine) == "failed", what="the end")
    assert len(_whos(c, fine)) == 1


def test_what_the_hub_settled_while_the_receiver_was_away_stands(crashing: CrashWorld) -> None:
    c = crashing
    message = _unknown(c, "settled")
    verbs.stop(c.target, now=True)
    control = _decide(c, "settle", job=c.job(message), verb="retry")
    agent = profiles.load(c.target.profile).agent
    _asking(
        c, lambda hub: hub.settle(agent=agent, request_id=message, outcome="abandoned", reason="its machine is gone")
    )
    assert _outcome(c, control)["outcome"] == "refused"
    verbs.start(c.target)
    until(lambda: verbs.job(c.target, c.job(message))["state"] == "abandoned", what="the end here too")
    assert c.starts()[message] == 1
    assert c.person.stage(message) == "failed"


def test_a_running_job_is_stopped_from_the_hub_and_the_report_shows_it(crashing: CrashWorld) -> None:
    c = crashing
    message = c.ask(c.held("long"))
    until(lambda: c.starts()[message], what="the start of the program")

    def reported() -> Any:
        found = [each for each in _asking(c, lambda hub: hub.receivers()) if each["agent"]["name"] == "bob"]
        job = (found[0]["report"] or {}).get("job") if found else None
        return job is not None and job["id"] == c.job(message) and found[0]

    seen = until(reported, what="a report with the job in hand")
    assert (seen["state"], seen["report"]["program"].startswith("python")) == ("busy", True)
    control = _decide(c, "cancel", job=c.job(message))
    assert _outcome(c, control)["outcome"] == "done"
    until(lambda: c.person.stage(message) == "cancelled", what="the end")
    assert len(_whos(c, message)) == 1


def test_a_decision_older_than_the_journal_is_answered_too(crashing: CrashWorld) -> None:
    c = crashing
    agent = profiles.load(c.target.profile).agent
    verbs.stop(c.target, now=True)
    control = _decide(c, "settle", job="of-a-lost-journal", attempt=1, verb="retry")
    place = c.place
    (c.target.folder / "journal.sqlite3").rename(c.target.folder / "lost.sqlite3")
    for each in c.target.folder.glob("journal.sqlite3-*"):
        each.unlink()
    place.bind(c.target.profile)
    verbs.start(c.target)
    told = _outcome(c, control)
    assert (told["agent"], told["outcome"], told["sentence"]) == (
        agent,
        "refused",
        "There is no job of-a-lost-journal here.",
    )
