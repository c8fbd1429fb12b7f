"""The control socket of a running receiver: one JSON line asks, one JSON line answers, on a unix socket (0600)."""

import asyncio
import json
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from relay_receiver.jobs.text import clean
from relay_receiver.processes import files
from relay_receiver.wire.errors import RelayError

SOCKET = "control.sock"
LINE_BYTES = 1024 * 1024
ANSWER_SECONDS = 120.0
"""How long a caller waits for an answer: `stop` waits for the job in hand."""

Verb = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class NotRunning(RelayError):  # noqa: N818 - it names the situation
    """No receiver answers on this socket."""


class Control:
    """Serves the verbs of a receiver until closed."""

    def __init__(self, runtime: Path, verbs: Mapping[str, Verb], log: logging.Logger) -> None:
        self._path = runtime / SOCKET
        self._verbs = verbs
        self._log = log
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen; a stale socket of a process that died is replaced (the instance lock says that it is stale)."""
        files.private_dir(self._path.parent)
        self._path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, str(self._path), limit=LINE_BYTES)
        finally:
            os.umask(before)

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._answer(await reader.readline())
            writer.write(json.dumps(answer, default=str).encode() + b"\n")
            await writer.drain()
        except (ConnectionError, ValueError) as error:
            self._log.info("control connection lost", extra={"why": str(error)})
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            asked = {name: clean(said) if isinstance(said, str) else said for name, said in json.loads(line).items()}
            verb = self._verbs[asked.pop("verb")]
        except (ValueError, KeyError, AttributeError, TypeError):
            return {"error": "the receiver does not know this call", "code": "unknown_call"}
        try:
            return {"ok": await verb(asked)}
        except RelayError as error:
            return {"error": error.sentence, "code": error.code, "hint": error.hint, "data": error.data}
        except Exception as error:  # noqa: BLE001 - logged whole; the caller is told, the receiver goes on
            self._log.exception("control verb failed")
            return {"error": f"the receiver failed to answer: {error}", "code": "internal"}


def call(runtime: Path, verb: str, *, timeout: float = ANSWER_SECONDS, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Ask a running receiver, from any process of the same user.

    Args:
        timeout: seconds to wait for the answer.

    Raises:
        NotRunning: nobody listens.
        RelayError: the receiver refused, in its own words.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(str(runtime / SOCKET))
            connection.sendall(json.dumps({"verb": verb, **arguments}).encode() + b"\n")
            answer = _line(connection)
        except TimeoutError:
            raise RelayError(
                "The receiver did not answer in time.", code="timed_out", hint="relay receiver logs"
            ) from None
        except OSError as error:
            raise NotRunning("The receiver is not running.", code="not_running", hint="relay receiver start") from error
    if not answer:
        raise NotRunning("The receiver ended before it answered.", code="not_running", hint="relay receiver status")
    told: dict[str, Any] = json.loads(answer)
    if "ok" not in told:
        raise RelayError(told["error"], code=told["code"], hint=told.get("hint"), **(told.get("data") or {}))
    result: dict[str, Any] = told["ok"]
    return result


def _line(connection: socket.socket) -> bytes:
    parts: list[bytes] = []
    while chunk := connection.recv(65536):
        parts.append(chunk)
        if chunk.endswith(b"\n"):
            break
    return b"".join(parts)
