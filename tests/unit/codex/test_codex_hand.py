import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from relay_receiver.adapters.base import AdapterEvent, Finished, Result
from relay_receiver.adapters.codex_hand import Hand
from relay_receiver.adapters.codex_server import AppServer, ServerEnded
from relay_receiver.adapters.codex_turn import Turn

if TYPE_CHECKING:
    from relay_receiver.adapters.codex_thread import Thread


class Silent:
    """A thread that cannot be read any more."""

    async def turns(self, server: AppServer, thread: str) -> Any:
        raise ServerEnded(f"{server} {thread}")


def a_hand(ended: dict[str, Any]) -> tuple[Hand, list[AdapterEvent]]:
    told: list[AdapterEvent] = []
    return Hand(Turn(key="j.1", thread="T", id="U", ended=ended), told.append), told


def test_a_silence_that_cannot_be_verified_is_no_quiet_answer() -> None:
    hand, told = a_hand({"id": "U", "status": "completed", "items": []})
    with pytest.raises(ServerEnded):
        asyncio.run(hand.conclude(cast("AppServer", None), cast("Thread", Silent())))
    assert told == []
    assert hand.end is None


def test_an_answer_needs_no_second_look_and_the_first_end_counts() -> None:
    said = {"type": "agentMessage", "text": "yes"}
    hand, told = a_hand({"id": "U", "status": "completed", "items": [said]})
    asyncio.run(hand.conclude(cast("AppServer", None), cast("Thread", Silent())))
    hand.finish(Finished(key="j.1", result=Result.UNKNOWN))
    assert [event.text for event in told if isinstance(event, Finished)] == ["yes"]
    assert hand.over.is_set()
