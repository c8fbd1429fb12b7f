"""The end of a log file, and what is added to it."""

import sys
import time
from pathlib import Path

from relay_receiver.jobs.text import printable

_BLOCK = 64 * 1024
_PAUSE_SECONDS = 0.3


def tail(path: Path, count: int) -> list[str]:
    """The last whole lines of a log; none where it does not exist yet."""
    return _end(path, count)[0]


def follow(path: Path, count: int) -> None:
    """Print the last lines and go on as the log grows, also over its rotation; until interrupted."""
    lines, at, inode = _end(path, count)
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
    sys.stdout.flush()
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
            sys.stdout.write(printable(whole.decode("utf-8", "replace")))
            sys.stdout.flush()
        time.sleep(_PAUSE_SECONDS)


def _end(path: Path, count: int) -> tuple[list[str], int, int]:
    """The last whole lines, the position after them, and which file it was."""
    size, inode = _place(path)
    if not size:
        return [], 0, inode
    data, at = b"", size
    with path.open("rb") as file:
        while at > 0 and data.count(b"\n") <= count:
            step = min(_BLOCK, at)
            at -= step
            file.seek(at)
            data = file.read(step) + data
    whole = data[: data.rfind(b"\n") + 1]
    return whole.decode("utf-8", "replace").splitlines()[-count:], size - len(data) + len(whole), inode


def _place(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except FileNotFoundError:
        return 0, 0
    return facts.st_size, facts.st_ino
