"""The long-poll transport: one held request at a time."""

from collections.abc import Sequence
from typing import ClassVar

from relay_receiver.client.errors import HubError
from relay_receiver.client.hub import Hub
from relay_receiver.client.stream import RESETS, Batch, Reset, is_event, last_event

HELD_SECONDS = 25


class LongPoll:
    """Asks for what came after a cursor."""

    SOON: ClassVar[float] = 0.5
    """Seconds: a hub holds an empty poll longer than this."""

    def __init__(self, hub: Hub, *, channel: str | None, types: Sequence[str]) -> None:
        self._hub, self._channel, self._types = hub, channel, types

    async def once(self, cursor: str | None, watermark: int, *, most: float) -> Batch:
        """The next batch; empty after at most `most` seconds (whole ones, 1 to 25).

        Without a cursor the hub answers soon with where now is.

        Raises:
            Reset: heal first.
            HubAway, HubError: as a call does.
        """
        wait = 1 if cursor is None else int(min(max(most, 1), HELD_SECONDS))
        try:
            answer = await self._hub.updates(cursor=cursor, channel=self._channel, types=self._types, wait=wait)
        except HubError as error:
            if error.status == 409 and error.code in RESETS:
                raise Reset(error.code) from error
            raise
        events = [each for each in answer.get("events") or () if is_event(each)]
        found = answer.get("cursor")
        if not isinstance(found, str | int) or found is True:
            raise HubError("The hub's answer has no cursor.", status=200, code="not_a_hub")
        return Batch(events=events, cursor=str(found), watermark=last_event(events, watermark))
