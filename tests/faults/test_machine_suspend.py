"""The machine sleeps for an hour: what the hub had allowed is asked again, and nothing is taken in on an old lease."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from support_parts import Bench, message, refused

from relay_receiver.receiver.handover import FRESH_SECONDS
from relay_receiver.wire import faultpoint

HOUR = 3600.0
assert HOUR > FRESH_SECONDS


def sleeps_once(bench: Bench, point: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An hour passes the first time that the receiver is at a point; where it slept."""
    slept: list[str] = []

    def handler(name: str) -> None:
        if name == point and not slept:
            slept.append(name)
            bench.clock += HOUR

    monkeypatch.setattr(faultpoint, "_handlers", [handler])
    return slept


def run(tmp_path: Path, case: Callable[[Bench], object]) -> None:
    async def main() -> None:
        async with Bench(tmp_path) as b:
            await case(b)  # type: ignore[misc]  # a coroutine function

    asyncio.run(main())


def test_between_begin_and_hand_over_the_run_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def case(b: Bench) -> None:
        slept = sleeps_once(b, "journal.submit.after", monkeypatch)
        b.adapter.on_submit = lambda _: b.hub.log.append(("handed over", {}))
        b.arrive(message(1))
        await b.until(lambda: b.jobs() == {"m1": "done"})
        assert slept
        assert b.hub.names() == ["begin", "begin", "handed over", "post"]
        assert len({said["claim"] for name, said in b.hub.log if name == "begin"}) == 1

    run(tmp_path, case)


def test_what_the_hub_allows_no_more_afterwards_is_not_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def case(b: Bench) -> None:
        slept = sleeps_once(b, "journal.submit.after", monkeypatch)
        b.hub.fail["begin"] = [None, refused("fenced"), refused("expired")]
        b.arrive(message(1))
        await b.until(lambda: b.jobs() == {"m1": "expired"})
        assert slept
        assert b.adapter.works == []

    run(tmp_path, case)
