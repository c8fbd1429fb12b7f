"""The socket transport: one connection, from its greeting to its end."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NoReturn

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from relay_receiver.client import retry
from relay_receiver.client.address import is_loopback
from relay_receiver.client.errors import Displaced, Unauthorized
from relay_receiver.client.rest import BASE, Rest, tls
from relay_receiver.client.stream import RESETS, Batch, Cut, Reset, is_event, last_event
from relay_receiver.wire.limits import CURSOR_SECONDS, HELLO_SECONDS, PING_SECONDS

OPEN_SECONDS = 5.0
"""While a socket connects nothing else listens, so it must not take long."""
SILENCE_SECONDS = 2.5 * CURSOR_SECONDS
"""A hub sends at least a cursor in this time."""
CLOSE_SECONDS = 2.0
FRAME_BYTES = 2 * 1024 * 1024
OPEN_EVENTS = 10_000
"""Events that may wait for their cursor."""

DISPLACED = 4000
CREDENTIAL_ENDED = 4001
_ENDS = {
    4002: "the hub could not read what was sent",
    4003: "the hub is going away",
    4004: "the hub found this reader too slow",
}


class Socket:
    """A greeted connection."""

    def __init__(self, connection: ClientConnection, cursor: str) -> None:
        self._connection = connection
        self.cursor = cursor
        """Where it resumed."""

    @classmethod
    async def open(
        cls,
        rest: Rest,
        *,
        cursor: str | None,
        channel: str | None,
        types: Sequence[str],
        holder: str | None,
        fence: Any,  # noqa: ANN401 - opaque
    ) -> "Socket":
        """Connect and greet.

        Raises:
            Cut: no socket, for now or for good.
            Reset: heal first.
            Unauthorized: the credential does not count.
            Displaced: somebody newer has this holder's place.
        """
        connection = await _connect(rest)
        hello = {"t": "hello", "resume": cursor, "channel": channel, "types": list(types) or None}
        hello |= {"holder": holder, "fence": fence}
        kept = {key: value for key, value in hello.items() if value is not None or key == "resume"}
        said = ""
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                await connection.send(json.dumps(kept))
                while (frame := await _frame(connection)).get("t") not in {"ready", "reset"}:
                    said = _said(frame) or said
            _check(frame)
            return cls(connection, str(frame["cursor"]))
        except TimeoutError as error:
            await _close(connection)
            raise Cut("the hub did not greet back") from error
        except ConnectionClosed as error:
            _ended(error, said)
        except KeyError as error:
            await _close(connection)
            raise Cut("the hub's greeting has no cursor") from error
        except BaseException:
            await _close(connection)
            raise

    async def batches(self, watermark: int) -> AsyncIterator[Batch]:
        """What arrives, each batch closed by its cursor; raises as `open` does at the end."""
        events: list[dict[str, Any]] = []
        said = ""
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    frame = await _frame(self._connection)
            except TimeoutError as error:
                raise Cut("the hub fell silent") from error
            except ConnectionClosed as error:
                _ended(error, said)
            _check(frame)
            said = _said(frame) or said
            if frame.get("t") == "event" and is_event(frame.get("event")):
                events.append(frame["event"])
                if len(events) > OPEN_EVENTS:
                    raise Cut("the hub sends events without a cursor")
            elif frame.get("t") == "cursor" and isinstance(frame.get("cursor"), str):
                watermark = last_event(events, watermark)
                yield Batch(events=events, cursor=frame["cursor"], watermark=watermark)
                events = []

    async def acknowledge(self, subscription: str, cursor: str) -> bool:
        """Say that all up to `cursor` is stored here; False where the connection is gone."""
        try:
            await self._connection.send(json.dumps({"t": "ack", "subscription": subscription, "cursor": cursor}))
        except ConnectionClosed:
            return False
        return True

    async def close(self) -> None:
        """Close it; never takes long, never fails."""
        await _close(self._connection)


async def _connect(rest: Rest) -> ClientConnection:
    url = rest.url + BASE + "/ws"
    # Below INFO the library writes the headers of the upgrade, and with them the token, whoever listens.
    log = logging.getLogger("relay_receiver.client.websocket")
    log.setLevel(logging.INFO)
    try:
        return await connect(
            "ws" + url.removeprefix("http"),
            additional_headers=rest.headers(),
            compression=None,
            proxy=None if is_loopback(rest.url) else True,
            ssl=tls(rest.url),
            open_timeout=OPEN_SECONDS,
            close_timeout=CLOSE_SECONDS,
            ping_interval=PING_SECONDS,
            ping_timeout=2 * PING_SECONDS,
            max_size=FRAME_BYTES,
            logger=log,
        )
    except InvalidStatus as error:
        _refused(error)
    except TimeoutError as error:
        raise Cut("the socket did not open in time") from error
    except OSError as error:
        raise Cut("the hub cannot be reached") from error
    except (WebSocketException, ImportError, ValueError) as error:
        raise Cut(f"the socket did not open ({type(error).__name__})") from error


def _refused(error: InvalidStatus) -> NoReturn:
    status = error.response.status_code
    if status == 401:
        raise Unauthorized(
            "The hub does not take this credential (any more).", status=401, code="unauthorized"
        ) from error
    wait = retry.retry_after(error.response.headers.get("Retry-After"), time.time)
    why = "the hub serves no sockets" if status == 404 else f"the hub refused the socket with status {status}"
    raise Cut(why, never=status == 404, retry_after=wait) from error


def _ended(error: ConnectionClosed, said: str) -> NoReturn:
    """What a close means; `said` is the sentence of an error frame before it."""
    code = error.rcvd.code if error.rcvd else None
    if code == DISPLACED:
        raise Displaced("A newer connection of this receiver took over.", status=409, code="displaced") from error
    if code == CREDENTIAL_ENDED:
        raise Unauthorized("The hub ended this credential.", status=401, code="unauthorized") from error
    why = said or _ENDS.get(code or 0) or (f"the hub closed the socket ({code})" if code else "the connection was cut")
    raise Cut(why) from error


async def _frame(connection: ClientConnection) -> dict[str, Any]:
    """The next frame; one that cannot be read ends the connection, since what it said is lost."""
    data = await connection.recv()
    try:
        frame = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Cut("the hub sent what cannot be read") from error
    if not isinstance(frame, dict):
        raise Cut("the hub sent what cannot be read")
    return frame


def _said(frame: Mapping[str, Any]) -> str:
    """The sentence of an error frame, as a clause; else nothing."""
    message = frame.get("message") if frame.get("t") == "error" else None
    return f"the hub says: {message.rstrip('.')}" if isinstance(message, str) else ""


def _check(frame: Mapping[str, Any]) -> None:
    if frame.get("t") == "reset":
        reason = frame.get("reason")
        raise Reset(reason if reason in RESETS else "diverged")


async def _close(connection: ClientConnection) -> None:
    with contextlib.suppress(OSError, WebSocketException, TimeoutError):
        await connection.close()
