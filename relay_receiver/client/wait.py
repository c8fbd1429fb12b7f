"""Waiting for the end of a request: one look, then events, and a look again when one of them is about it."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from relay_receiver.client import retry
from relay_receiver.client.errors import HubAway, HubError, Unauthorized
from relay_receiver.client.hub import Hub, Json
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.limits import PAGE_MESSAGES
from relay_receiver.wire.stage import ENDS, Stage

POLL_SECONDS = 25
RESETS = frozenset({"cursor_expired", "diverged"})
TYPES = ("message.created", "message.stage", "receiver.updated", "request.created", "request.updated")
_OVER = ENDS | {Stage.UNKNOWN}
_IN_LINE = frozenset({Stage.STORED, Stage.RECEIVED})
_WITH_RESULT = frozenset({Stage.ANSWERED, Stage.QUIET, Stage.FAILED, Stage.CANCELLED})
_RETRY_CEILING = 15.0
FIRST_LOOK_SECONDS = 10.0
"""How long the first answer may take where less than that was to be waited."""


async def wait(
    hub: Hub,
    message: str,
    timeout: float,  # noqa: ASYNC109 - it ends with an answer of its own, not with an exception
    *,
    progress: Callable[[Mapping[str, Any]], None] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> dict[str, Any]:
    """Wait until a request ended or its outcome is unknown, at most `timeout` seconds.

    Returns:
        `{request, delivery, result}`, whatever the stage is by then; `result` is None where there is none.

    Raises:
        RelayError: it is not a request.
        HubAway: the hub was never reached.
        HubError: the hub refuses to tell.
    """
    waiting = _Waiting(hub, message, progress or (lambda _: None), sleep)
    try:
        async with asyncio.timeout(timeout):
            await waiting.run()
    except TimeoutError:
        if waiting.request is None and waiting.trouble is None:
            # Told to wait for less than one answer takes: how far it is, is still told.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_LOOK_SECONDS):
                    await waiting.look()
        if waiting.request is None:
            raise waiting.trouble or HubAway("The hub did not answer in time.", sent=True) from None
    return waiting.answer()


class _Waiting:
    def __init__(
        self,
        hub: Hub,
        message: str,
        progress: Callable[[Mapping[str, Any]], None],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._hub, self._message, self._progress, self._sleep = hub, message, progress, sleep
        self._cursor: str | None = None
        self._failures = 0
        self.request: Json | None = None
        self.delivery: Json = {}
        self.result: Json | None = None
        self.trouble: HubAway | HubError | None = None

    def answer(self) -> dict[str, Any]:
        return {"request": self.request, "delivery": self.delivery, "result": self.result}

    async def run(self) -> None:
        look = self.look
        while True:
            try:
                await look()
                if self.delivery.get("stage") in _OVER:
                    if self.delivery["stage"] in _WITH_RESULT:
                        await self._find_result()
                    return
                look = self._listen
            except Unauthorized:
                raise
            except (HubAway, HubError) as error:
                if getattr(error, "code", "") in RESETS:
                    self._cursor = None
                elif not retry.retryable(error):
                    raise
                self.trouble = error
                self._failures += 1
                look = self.look
                await self._sleep(
                    retry.pause(error, self._failures, jitter=random.random(), first=0.5, ceiling=_RETRY_CEILING)  # noqa: S311 - spreads load
                )
            else:
                self._failures = 0

    async def look(self) -> None:
        """Ask once how far it is."""
        found = await self._hub.message(self._message)
        delivery = found.pop("delivery", None)
        if found.get("kind") != "request" or not isinstance(delivery, dict):
            raise RelayError(
                f"{self._message} is a {found.get('kind')}, not a request: nothing ends it.",
                code="usage",
                hint=f"relay messages show {self._message}",
            )
        if self.request is None:
            # A bare number is a cursor too: everything since the request, so nothing can fall between look and poll.
            self._cursor = str(found["event"])
        self.request = found
        if delivery != self.delivery:
            self.delivery = delivery
            self._progress(delivery)

    async def _listen(self) -> None:
        start = self._cursor is None
        answer = await self._hub.updates(
            cursor=self._cursor,
            channel=str((self.request or {}).get("channel")),
            types=TYPES,
            wait=1 if start else POLL_SECONDS,
        )
        self._cursor = str(answer["cursor"])
        events = answer.get("events") or []
        for event in events:
            said = (event.get("data") or {}).get("message")
            if isinstance(said, dict) and self._answers(said):
                self.result = said
        if start or not events or any(self._concerns(event) for event in events):
            await self.look()

    def _answers(self, message: Mapping[str, Any]) -> bool:
        return message.get("kind") == "result" and message.get("replyTo") == self._message

    def _concerns(self, event: Mapping[str, Any]) -> bool:
        """Whether an event may have changed how far it is, why it waits, or what is before it."""
        data = event.get("data") or {}
        said, asked = data.get("message"), data.get("request")
        if self._message in data.values() or (isinstance(said, dict) and self._answers(said)):
            return True
        if isinstance(asked, dict):
            return asked.get("message") == self._message
        to, waits = (self.request or {}).get("to"), self.delivery.get("stage") in _IN_LINE
        if event.get("type") == "receiver.updated":
            return waits and data.get("agent") == to
        return waits and data.get("to") == to and data.get("stage") in ENDS

    async def _find_result(self) -> None:
        """Read the channel from the request on, where the result was not among the events."""
        request = self.request or {}
        after = int(request["event"])
        while self.result is None:
            page = await self._hub.history(str(request["channel"]), after=after, limit=PAGE_MESSAGES)
            messages = page.get("messages") or []
            self.result = next((each for each in messages if self._answers(each)), None)
            if not messages or not page.get("more"):
                return
            after = int(messages[-1]["event"])
