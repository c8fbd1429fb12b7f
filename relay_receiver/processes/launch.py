"""The receiver's side of launcher and keepers: orders out, a connection to each keeper back."""

import asyncio
import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay_receiver.processes import files, keeper_faults
from relay_receiver.processes.identity import boot_id
from relay_receiver.processes.spool import socket_path
from relay_receiver.wire.errors import RelayError

OUTPUT_BYTES = 20 * 1024 * 1024
"""What one job may say."""
LINE_BYTES = OUTPUT_BYTES + 64 * 1024
"""A line between receiver and keeper is at most this long."""
ANSWER_SECONDS = 10.0
"""How long a keeper may take to answer a receiver that comes back to it."""
_PROGRAM = Path(__file__).with_name("launcher.py")
_SEND_SECONDS = 10.0


class LauncherLost(RelayError):  # noqa: N818 - it says what happened
    """The launcher is gone; nothing was started."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What a keeper is to hold. `key` names the files of the child; a nonce finds its processes again."""

    kind: str
    key: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    spool: Path
    runtime: Path
    stdin: str = ""

    def to_json(self) -> bytes:
        """As the launcher reads it."""
        return json.dumps(
            {
                "kind": self.kind,
                "key": self.key,
                "argv": list(self.argv),
                "environment": dict(self.environment),
                "directory": str(self.directory),
                "spool": str(self.spool),
                "socket": str(socket_path(self.runtime, self.key)),
                "stdin": self.stdin,
                "nonce": secrets.token_hex(16),
                "boot": boot_id(),
                "output": OUTPUT_BYTES,
            }
        ).encode()


class Line:
    """A connection to a keeper: JSON lines out; JSON lines and records of the spool in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def say(self, **message: Any) -> None:  # noqa: ANN401 - JSON
        """Send one line.

        Raises:
            ConnectionError: the keeper is gone.
        """
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()

    async def hear(self) -> dict[str, Any] | bytes | None:
        """The next message, or the next record of the spool as bytes; None when the keeper is gone."""
        try:
            line = await self._reader.readline()
        except (ConnectionError, ValueError):
            return None
        if not line.endswith(b"\n"):
            return None
        if line[:1].isdigit():
            return line[:-1]
        told: dict[str, Any] = json.loads(line)
        return told

    async def answer(self, *kinds: str) -> dict[str, Any] | None:
        """The first message of one of these kinds; None where the keeper is gone or does not answer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                while (told := await self.hear()) is not None:
                    if isinstance(told, dict) and told["t"] in kinds:
                        return told
        return None

    async def close(self) -> None:
        """Let go; the keeper goes on."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class Launcher:
    """Starts keepers. One small program, started once, and again should it have died."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        """Start the program; a hand-over does not have to wait for it then."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - about a millisecond, once
                [sys.executable, "-I", "-S", str(_PROGRAM), str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in (keeper_faults.VARIABLE,) if name in os.environ},
                cwd="/",
                start_new_session=True,
            )
        ours.settimeout(_SEND_SECONDS)
        self._socket = ours

    async def launch(self, order: Order) -> Line:
        """Have a keeper forked, and a line to it.

        Raises:
            LauncherLost: nothing was started.
        """
        try:
            files.private_dir(order.spool)
            files.private_dir(order.runtime)
        except (OSError, files.NotPrivate) as error:
            raise LauncherLost(f"Nothing can be started: {error}", code="not_prepared") from error
        body = order.to_json()
        async with self._lock:
            try:
                return await self._launch(body)
            except OSError:
                await self.close()
            try:
                return await self._launch(body)
            except OSError as error:
                await self.close()
                raise LauncherLost(f"The launcher of keepers is gone: {error}.", code="launcher_lost") from error

    async def _launch(self, body: bytes) -> Line:
        """Send one whole frame. One that was sent in part is never carried out, since the launcher then hears EOF."""
        if self._socket is None or self._process is None or self._process.poll() is not None:
            await self.close()
            await self.start()
        if self._socket is None:
            raise ConnectionError("it did not start")
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=LINE_BYTES)
            try:
                socket.send_fds(self._socket, [len(body).to_bytes(4, "big")], [theirs.fileno()])
                self._socket.sendall(body)
            except BaseException:
                writer.close()
                raise
        return Line(reader, writer)

    async def distrust(self) -> None:
        """An order had no answer: end it at once, so that the next order goes to another one."""
        async with self._lock:
            if self._process is not None:
                self._process.kill()
            await self.close()

    async def close(self) -> None:
        """End it; keepers live on."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            process, self._process = self._process, None
            try:
                await asyncio.to_thread(process.wait, 5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                await asyncio.to_thread(process.wait)


async def started(launcher: Launcher, order: Order) -> tuple[Line, dict[str, Any]] | None:
    """Have a keeper start its child: the line to it, and whether it `started` or is `refused`. None without an answer.

    Raises:
        LauncherLost: nothing was started.
    """
    line = await launcher.launch(order)
    told = await line.answer("started", "refused")
    if told is not None:
        return line, told
    await line.close()
    await launcher.distrust()
    return None


async def connect(runtime: Path, key: str) -> Line | None:
    """A line to a keeper that was started before; None where nobody listens."""
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket_path(runtime, key)), limit=LINE_BYTES)
    except OSError:
        return None
    return Line(reader, writer)
