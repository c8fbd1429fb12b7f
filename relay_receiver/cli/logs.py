"""The end of a log file, and what is added to it."""

import sys
import time
from pathlib import Path

_BLOCK = 64 * 1024
_PAUSE_SECONDS = 0.3


def tail(path: Path, count: int) -> list[str]:
    """The last lines of a log; none where it does not exist yet."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            data, at = b"", size
            while at > 0 and data.count(b"\n") <= count:
                step = min(_BLOCK, at)
                at -= step
                file.seek(at)
                data = file.read(step) + data
    except FileNotFoundError:
        return []
    return data.decode("utf-8", "replace").splitlines()[-count:]


def follow(path: Path, count: int) -> None:
    """Print the last lines and go on as the log grows, also over its rotation; until interrupted."""
    for line in tail(path, count):
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
    at, inode = _place(path)
    while True:
        size, now = _place(path)
        if now != inode or size < at:
            at, inode = 0, now
        if size > at:
            with path.open("rb") as file:
                file.seek(at)
                data = file.read(size - at)
            whole = data[: data.rfind(b"\n") + 1]
            at += len(whole)
            sys.stdout.write(whole.decode("utf-8", "replace"))
            sys.stdout.flush()
        time.sleep(_PAUSE_SECONDS)


def _place(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except FileNotFoundError:
        return 0, 0
    return facts.st_size, facts.st_ino
