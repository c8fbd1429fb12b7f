"""What a requester is shown: real hub, real receivers, and each reason for which a request waits."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from support_time import WITHIN
from support_world import World, until, world

from relay_receiver.cli import exchange
from relay_receiver.cli.acting import of
from relay_receiver.client import profiles
from relay_receiver.client.errors import HubError
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target


def delivery(w: World, message: dict[str, Any]) -> dict[str, Any]:
    found = w.do("owner", lambda hub: hub.message(message["id"]))["delivery"]
    assert isinstance(found, dict)
    return found


def waits_for(w: World, message: dict[str, Any], reason: str | None) -> dict[str, Any]:
    """The delivery once it names that reason."""
    return until(
        lambda: (now := delivery(w, message))["reason"] == reason and now,
        seconds=WITHIN,
        what=f"{reason} as the reason",
    )


def rehearse(w: World, to: Target) -> dict[str, Any]:
    """What a dry run tells of whom it is to."""
    agent = profiles.load(to.profile).agent
    body = {"channel": w.channel, "kind": "request", "to": agent, "content": "x", "dryRun": True}
    [told] = w.do("owner", lambda hub: hub.post_message(body))["wakes"]
    assert isinstance(told, dict)
    return told


def test_offline_busy_and_paused_are_named_with_what_is_before_it(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob", chain_limit=1)
        w.agent("carol")
        assert rehearse(w, bob)["detail"] == "it has no receiver yet"
        first = w.ask(bob, "hold=a", by="carol")
        assert waits_for(w, first, "offline")["detail"] == "it has no receiver yet"
        verbs.start(bob)
        w.until_stage(first["id"], "running")
        second, people = w.ask(bob, "task=second", by="carol"), w.ask(bob, "hold=b")
        for each, ahead in ((second, 1), (people, 2)):
            w.until_stage(each["id"], "received")
            told = waits_for(w, each, "busy")
            assert (told["stage"], told["position"]) == ("received", ahead)
            assert "since" in told["detail"]
        assert (rehearse(w, bob)["reason"], rehearse(w, bob)["position"]) == ("busy", 3)
        w.release("a")
        # A person's request goes first while agents' wait, whatever their order.
        w.until_stage(people["id"], "running")
        w.release("b")
        w.until_stage(second["id"], "answered")
        third, fourth = w.ask(bob, "task=third", by="carol"), w.ask(bob, "task=fourth", by="carol")
        assert "until a person" in waits_for(w, third, "paused")["detail"]
        assert waits_for(w, fourth, "paused")["position"] == 1
        verbs.stop(bob)
        assert waits_for(w, fourth, "offline")["detail"] == "its receiver is stopped"
        assert rehearse(w, bob)["runs"] is False


def test_manual_and_having_left_the_channel_are_named(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob", wake="manual")
        verbs.start(bob)
        asked = w.ask(bob, "task=one")
        told = waits_for(w, asked, "manual")
        assert "runs nothing by itself" in told["detail"]
        dry = until(lambda: (now := rehearse(w, bob))["reason"] == "manual" and now, what="the dry run")
        assert (dry["wakes"], dry["wake"], dry["runs"]) == (False, "manual", True)
        w.do("bob", lambda hub: hub.leave_channel(w.channel))
        assert waits_for(w, asked, "unauthorized")["detail"] == "it has left the channel"


def test_a_program_that_is_missing_is_refused_with_its_reason_and_the_next_try(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        program = w.project / "runner"
        program.write_text('#!/bin/sh\necho \'{"text": "done"}\'\n')
        program.chmod(0o700)
        bob = w.agent("bob", argv=(str(program),))
        verbs.start(bob)
        program.rename(w.project / "away")
        asked = w.ask(bob, "x")
        told = waits_for(w, asked, "refused")
        assert "could not be started" in told["detail"]
        assert told["nextTry"]
        assert told["stage"] == "received"
        (w.project / "away").rename(program)
        w.until_stage(asked["id"], "answered", seconds=WITHIN)


def test_waiting_shows_each_move_and_each_reason_once(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        asked, behind = w.ask(bob, "hold=a"), w.ask(bob, "hold=b")
        seen: list[tuple[str, str | None, int | None]] = []

        async def follow() -> tuple[dict[str, Any], int]:
            def progress(now: Any) -> None:
                seen.append((now["stage"], now["reason"], now["position"]))

            who = of(profiles.load("owner"))
            waiting = asyncio.ensure_future(
                who.converse(lambda hub: exchange.wait(who, hub, behind["id"], timeout=WITHIN, progress=progress))
            )
            await _till(lambda: ("stored", "offline", 1) in seen)
            await asyncio.to_thread(verbs.start, bob)
            await asyncio.to_thread(w.until_stage, asked["id"], "running")
            await _till(lambda: ("received", "busy", 1) in seen)
            w.release("a")
            await _till(lambda: ("running", None, None) in seen)
            w.release("b")
            return await waiting

        answer, code = asyncio.run(follow())
        assert (code, answer["result"]["content"]) == (0, "did it")
        assert seen[-1] == ("answered", None, None)
        assert all(one != other for one, other in itertools.pairwise(seen))


async def _till(condition: Any) -> None:
    async with asyncio.timeout(WITHIN):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_request_is_taken_back_at_each_stage(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        bob = w.agent("bob")
        stored = w.ask(bob, "task=never")
        taken = w.do("owner", lambda hub: hub.withdraw(stored["id"]))
        assert (taken["withdrawn"], taken["delivery"]["stage"]) == (True, "withdrawn")
        verbs.start(bob)
        running, received = w.ask(bob, "hold=a"), w.ask(bob, "task=neither")
        w.until_stage(running["id"], "running")
        w.until_stage(received["id"], "received")
        taken = w.do("owner", lambda hub: hub.withdraw(received["id"]))
        assert (taken["withdrawn"], taken["delivery"]["stage"]) == (True, "withdrawn")
        taken = w.do("owner", lambda hub: hub.withdraw(running["id"]))
        assert taken["withdrawn"] is False
        w.until_stage(running["id"], "cancelled", "withdrawn")
        done = w.ask(bob, "task=done")
        w.until_stage(done["id"], "answered")
        with pytest.raises(HubError) as refused:
            w.do("owner", lambda hub: hub.withdraw(done["id"]))
        assert (refused.value.status, refused.value.code) == (409, "ended")
        for message in (stored, received):
            assert w.do("owner", lambda hub, it=message: hub.withdraw(it["id"]))["withdrawn"] is True
        assert len(w.starts()) == 2
