"""The receiver's side of launcher and keepers: orders out, a connection to each keeper back."""

import asyncio
import contextlib
import hashlib
import json
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay_receiver.processes import files
from relay_receiver.processes.identity import Life, ProcessIdentity, boot_id, life
from relay_receiver.wire.errors import RelayError

LINE_BYTES = 64 * 1024 * 1024
"""A line between receiver and keeper is at most this long; escaped JSON of a 20 MiB line fits."""
OUTPUT_BYTES = 20 * 1024 * 1024
"""What one job may say."""
_PROGRAM = Path(__file__).with_name("launcher.py")
_SEND_SECONDS = 10.0


class LauncherLost(RelayError):  # noqa: N818 - it says what happened
    """The launcher is gone; nothing was started."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What a keeper is to hold. `key` names the files of the child; `nonce` finds its processes again."""

    kind: str
    key: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    spool: Path
    runtime: Path
    stdin: str = ""
    leave: bool = False
    """What the child leaves running may live on."""

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
                "leave": self.leave,
                "nonce": secrets.token_hex(16),
                "boot": boot_id(),
                "output": OUTPUT_BYTES,
            }
        ).encode()


def socket_path(runtime: Path, key: str) -> Path:
    """Where the keeper of that key listens."""
    return runtime / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.sock"


class Line:
    """A connection to a keeper: JSON lines both ways."""

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

    async def hear(self) -> dict[str, Any] | None:
        """The next line; None when the keeper is gone."""
        try:
            line = await self._reader.readline()
        except (ConnectionError, ValueError):
            return None
        if not line.endswith(b"\n"):
            return None
        told: dict[str, Any] = json.loads(line)
        return told

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
                env={},
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
        if self._process is None or self._process.poll() is not None:
            await self.close()
            await self.start()
        files.private_dir(order.spool)
        files.private_dir(order.runtime)
        body = order.to_json()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._send(len(body).to_bytes(4, "big"), body, theirs)
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=LINE_BYTES)
        except OSError as error:
            ours.close()
            raise LauncherLost(f"The launcher of keepers is gone: {error}.", code="launcher_lost") from error
        return Line(reader, writer)

    def _send(self, head: bytes, body: bytes, descriptor: socket.socket) -> None:
        if self._socket is None:
            raise ConnectionError("it was never started")
        socket.send_fds(self._socket, [head], [descriptor.fileno()])
        self._socket.sendall(body)

    async def close(self) -> None:
        """End it; keepers live on."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            try:
                await asyncio.to_thread(self._process.wait, 5.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                await asyncio.to_thread(self._process.wait)
            self._process = None


async def connect(runtime: Path, key: str) -> Line | None:
    """A line to a keeper that was started before; None where nobody listens."""
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket_path(runtime, key)), limit=LINE_BYTES)
    except OSError:
        return None
    return Line(reader, writer)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """Who a keeper and its child are, as the keeper wrote it down."""

    keeper: ProcessIdentity
    child: ProcessIdentity | None

    @classmethod
    def read(cls, spool: Path, key: str) -> "Kept | None":
        """What the keeper of that key wrote down; None where it is not there or cannot be read."""
        try:
            text = (spool / f"{key}.keeper").read_bytes()
            keeper = ProcessIdentity.from_json(text)
            told = json.loads(text)
            child = told["child"]
        except (OSError, ValueError, KeyError):
            return None
        if child is None:
            return cls(keeper=keeper, child=None)
        started = float(told["childStarted"] or 0.0)
        return cls(
            keeper=keeper,
            child=ProcessIdentity(pid=int(child), started=started, boot=keeper.boot, nonce=keeper.nonce),
        )

    def keeper_gone(self) -> bool:
        """Whether the keeper certainly does not live any more."""
        return life(self.keeper) is Life.GONE
