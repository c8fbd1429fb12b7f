"""The flat directory of keepers' files, named `KEY.WHAT`: claims, what cannot be read, and what may go."""

import contextlib
import json
import os
import re
import secrets
import time
from collections.abc import Collection
from pathlib import Path

from relay_receiver.processes import files
from relay_receiver.processes.identity import boot_id

_SOCKET = re.compile(r"[0-9a-f]{16}\.sock")
_GIVEN_UP = "givenUp"


def give_up(spool: Path, key: str) -> bool:
    """Claim an attempt, so that no keeper ever starts it. False where a keeper has claimed it; True again and again.

    Raises:
        OSError: it could not be written durably; nothing is decided.
    """
    files.private_dir(spool)
    claim = spool / f"{key}.claim"
    beside = spool / f"{key}.claim.{secrets.token_hex(6)}"
    files.write_private(beside, json.dumps({_GIVEN_UP: boot_id()}).encode())
    try:
        os.link(beside, claim)
    except FileExistsError:
        return _given_up_in(claim) is not None
    finally:
        beside.unlink(missing_ok=True)
    files.fsync_dir(spool)
    return True


def quarantine(path: Path) -> None:
    """Put a file that cannot be read aside, under a name that says so; nothing looks at it again."""
    with contextlib.suppress(OSError):
        path.rename(path.with_name(f"{path.name}.unreadable-{time.time_ns()}"))


def unreadable(spool: Path, key: str) -> list[str]:
    """Names of files of that key that were put aside."""
    return sorted(path.name for path in spool.glob(f"{key}.*.unreadable-*"))


def sweep(spool: Path, runtime: Path, keep: Collection[str] = ()) -> int:
    """Remove the files of other keys than those in `keep`; how many went.

    A claim by which an attempt was given up stays until the machine has been booted anew: a launcher that was held
    up meanwhile may still fork the keeper of that attempt.
    """
    sockets = {socket_path(runtime, key) for key in keep}
    gone = 0
    with contextlib.suppress(FileNotFoundError):
        for path in spool.iterdir():
            if not any(path.name.startswith(f"{key}.") for key in keep) and _given_up_in(path) != boot_id():
                gone += _remove(path)
    with contextlib.suppress(FileNotFoundError):
        for path in runtime.iterdir():
            if _SOCKET.fullmatch(path.name) and path not in sockets:
                gone += _remove(path)
    return gone


def socket_path(runtime: Path, key: str) -> Path:
    """Where the keeper of that key listens: short, whatever the key."""
    return runtime / f"{files.short(key)}.sock"


def _remove(path: Path) -> int:
    try:
        path.unlink()
    except OSError:
        return 0
    return 1


def _given_up_in(path: Path) -> str | None:
    """The boot in which an attempt was given up by this file; None for any other file."""
    if path.suffix != ".claim":
        return None
    try:
        found = json.loads(path.read_bytes())
        return str(found[_GIVEN_UP])
    except (OSError, ValueError, KeyError, TypeError):
        return None
