"""Which process is which: by pid, start time and boot, since a pid alone is soon another's."""

import ctypes
import json
import os
import platform
import sys
import time
import uuid
from dataclasses import asdict, dataclass
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import Self

import psutil

PLATFORM: str = sys.platform
JOB = "RELAY_JOB"
NONCE = "RELAY_NONCE"
_TOLERANCE = 0.02
"""Seconds that two readings of one start time may differ by."""


class Life(Enum):
    """What is known of a process."""

    ALIVE = auto()
    GONE = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessIdentity:
    """One process of one boot.

    `started` is in seconds since that boot, 0 where it is not known; `nonce` is in its environment, or empty.
    """

    pid: int
    started: float
    boot: str
    nonce: str = ""

    def to_json(self) -> str:
        """As one line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read it back.

        Raises:
            ValueError: it is none.
        """
        try:
            found = json.loads(text)
            return cls(
                pid=int(found["pid"]),
                started=float(found["started"]),
                boot=str(found["boot"]),
                nonce=str(found.get("nonce", "")),
            )
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"this names no process: {error}") from error


def identify(pid: int, nonce: str = "") -> ProcessIdentity | None:
    """The identity of a living process; None where it is gone."""
    started = _started(pid)
    return None if started is None else ProcessIdentity(pid=pid, started=started, boot=boot_id(), nonce=nonce)


def life(identity: ProcessIdentity) -> Life:
    """Whether that very process still lives. A zombie is gone: it runs nothing any more."""
    if identity.boot != boot_id():
        return Life.GONE
    try:
        started = _started(identity.pid)
    except (OSError, psutil.Error):
        return Life.UNKNOWN
    if started is not None and not identity.started:
        return Life.UNKNOWN
    if started is None or abs(started - identity.started) > _TOLERANCE:
        return Life.GONE
    return Life.ALIVE


def _started(pid: int) -> float | None:
    """Seconds after boot at which a process started; no clock step and no time zone moves it."""
    if PLATFORM == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in {b"Z", b"X"} else int(fields[19]) / os.sysconf("SC_CLK_TCK")
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.create_time() - psutil.boot_time()
    except psutil.NoSuchProcess:
        return None


@cache
def boot_id() -> str:
    """Names the time since the machine was last booted."""
    if PLATFORM == "linux":
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return f"boot-{psutil.boot_time():.0f}"


def boot_seconds() -> float:
    """A clock that no one sets and that counts while the machine sleeps, in seconds."""
    if PLATFORM == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if PLATFORM == "darwin":
        return _mach_continuous()
    return time.monotonic()


def _mach_continuous() -> float:
    libc = ctypes.CDLL(None)
    libc.clock_gettime_nsec_np.restype = ctypes.c_uint64
    return float(libc.clock_gettime_nsec_np(4)) / 1e9


@cache
def machine_id() -> str:
    """Names this machine, as its operating system does."""
    for path in (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")):
        try:
            if text := path.read_text("ascii").strip():
                return text
        except (OSError, ValueError):
            continue
    hardware = uuid.getnode()
    made_up = hardware >> 40 & 1
    return f"host-{platform.node()}" if made_up else f"node-{hardware:012x}"


def started_by(nonce: str) -> list[int]:
    """Living processes whose environment carries that nonce, wherever they went."""
    wanted = f"{NONCE}={nonce}".encode()
    return [pid for pid in psutil.pids() if wanted in _environment(pid) and _started(pid) is not None]


def descends_from_job() -> bool:
    """Whether this process, or one above it, was given a job."""
    if JOB in os.environ:
        return True
    wanted = f"{JOB}=".encode()
    try:
        above = psutil.Process().parents()
    except psutil.Error:
        return False
    return any(entry.startswith(wanted) for process in above for entry in _environment(process.pid))


def _environment(pid: int) -> frozenset[bytes]:
    """The environment that a process started with; empty where it may not be read."""
    if PLATFORM == "linux":
        try:
            return frozenset(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
        except OSError:
            return frozenset()
    try:
        return frozenset(f"{name}={value}".encode() for name, value in psutil.Process(pid).environ().items())
    except psutil.Error:
        return frozenset()
