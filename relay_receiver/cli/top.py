"""`relay top`: the receivers of this machine, live on the terminal."""

import os
import sys
import time
from typing import Any

import click

from relay_receiver.cli import frame as picture
from relay_receiver.cli.frame import Line, frame
from relay_receiver.cli.looks import Looks
from relay_receiver.cli.options import DURATION, Command
from relay_receiver.cli.output import as_json, write_json
from relay_receiver.cli.terminal import Screen
from relay_receiver.wire.message import iso

EVERY_SECONDS = 1.0


@click.command(cls=Command)
@click.option("--once", is_flag=True, help="Print one picture and end; so it is where stdout is no terminal.")
@click.option("--every", type=DURATION, default=EVERY_SECONDS, metavar="1s", help="Look this often.")
@click.option("--seconds", type=DURATION, metavar="N", help="End after this time.")
def top(*, once: bool, every: float, seconds: float | None) -> None:
    """Show all receivers of this machine, live: state, queue, chain, transport, the job in hand, what needs you.

    Keys: up and down scroll, q or Ctrl-C ends.
    """
    looks = Looks()
    if as_json() or once or not sys.stdout.isatty():
        looks.ask()
        _print(looks.wait())
        return
    Live(looks, every=max(0.1, every), seconds=seconds).run()


def _print(found: list[dict[str, Any]]) -> None:
    if as_json():
        write_json({"at": iso(time.time()), "receivers": found}, sys.stdout)
        return
    width = _columns()
    for line in frame(found, width=width, height=None, now=time.time(), clock=_clock(), more=ellipsis()):
        sys.stdout.write(line.text + "\n")
    sys.stdout.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        given = os.environ.get("COLUMNS", "")
        return int(given) if given.isdecimal() and int(given) else 80


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def ellipsis() -> str:
    """What stands where a line was cut, as stdout can show it."""
    return "…" if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8" else "~"


class Live:
    """Draws until ended."""

    def __init__(self, looks: Looks, *, every: float, seconds: float | None) -> None:
        self._looks, self._every = looks, every
        self._end = None if seconds is None else time.monotonic() + seconds
        self._first = 0

    def run(self) -> None:
        """Draw until q, Ctrl-C, a signal, or the end of the time."""
        with Screen() as screen:
            while self._end is None or time.monotonic() < self._end:
                self._looks.ask()
                if not self._until_next(screen):
                    return

    def _until_next(self, screen: Screen) -> bool:
        """Draw and listen until the next look; False where it is to end."""
        due = time.monotonic() + self._every
        if self._end is not None:
            due = min(due, self._end)
        # Answers come within milliseconds: the picture is drawn once they are there, and again at each key and resize.
        pause = min(0.05, self._every)
        while True:
            key = screen.key(min(pause, max(0.0, due - time.monotonic())))
            if key in {"q", "Q", "\x03", "\x04"}:
                return False
            self._scroll(key)
            self._draw(screen)
            if time.monotonic() >= due:
                return True
            pause = self._every

    def _scroll(self, key: str) -> None:
        step = {"j": 1, "k": -1, "\x1b[B": 1, "\x1b[A": -1, "\x1bOB": 1, "\x1bOA": -1}.get(key, 0)
        self._first = max(0, min(self._first + step, len(self._looks.now()) - 1))

    def _draw(self, screen: Screen) -> None:
        width, height = screen.size()
        lines = frame(
            self._looks.now(),
            width=width,
            height=height,
            now=time.time(),
            clock=_clock(),
            first=self._first,
            more=ellipsis(),
        )
        screen.draw([_toned(line, colours=screen.colours) for line in lines])


def _toned(line: Line, *, colours: bool) -> str:
    if line.tone == picture.PLAIN or not colours:
        return line.text
    return f"\x1b[{line.tone}m{line.text}\x1b[0m"
