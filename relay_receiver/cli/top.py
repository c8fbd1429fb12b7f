"""`relay top`: the receivers of this machine, live on the terminal."""

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from relay_receiver.cli import frame as picture
from relay_receiver.cli.frame import Line, frame
from relay_receiver.cli.options import DURATION, Command
from relay_receiver.cli.output import as_json, write_json
from relay_receiver.cli.status import silent
from relay_receiver.cli.terminal import Screen
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.message import iso

EVERY_SECONDS = 1.0
STOPPED_SECONDS = 15.0
"""Between two looks into the journal of a receiver that does not run."""
SILENT_SECONDS = 3.0
"""A process that does not answer for so long is shown as silent."""
ONCE_SECONDS = 4.0
"""How long a single picture waits for the last receiver."""


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
        _print(looks.once())
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


@dataclass(kw_only=True, slots=True)
class _Known:
    """What is known of one receiver; times are monotonic."""

    told: dict[str, Any]
    at: float
    asking: bool = False
    asked: float = 0.0


@dataclass(slots=True)
class Looks:
    """Asks every receiver, each in a thread of its own: one that hangs holds up nothing but its own line."""

    status: Callable[[Target], dict[str, Any]] = verbs.status
    listed: Callable[[], dict[str, Any]] = verbs.list_all
    clock: Callable[[], float] = time.monotonic
    _known: dict[Target, _Known] = field(default_factory=dict)

    def ask(self) -> None:
        """Ask those whose last answer is old."""
        found = {
            Target(each["profile"], each["workspace"], each["channel"]): each for each in self.listed()["receivers"]
        }
        self._known = {target: each for target, each in self._known.items() if target in found}
        for target, facts in found.items():
            known = self._known.setdefault(target, _Known(told={**facts, "state": "asked"}, at=self.clock()))
            changed = facts["pid"] != known.told.get("pid")
            resting = facts["state"] == "stopped" and not changed and known.told.get("state") == "stopped"
            if known.asking or (resting and self.clock() - known.asked < STOPPED_SECONDS):
                continue
            known.asking, known.asked = True, self.clock()
            threading.Thread(target=self._ask, args=(target, facts, known), daemon=True).start()

    def _ask(self, target: Target, facts: Mapping[str, Any], known: _Known) -> None:
        try:
            told = {**facts, **self.status(target)}
        except RelayError as error:
            told = {**facts, "state": "silent", "lastError": error.sentence, "needsPerson": [silent(error)]}
        except OSError as error:
            told = {**facts, "state": "silent", "lastError": str(error)}
        known.told, known.at, known.asking = told, self.clock(), False

    def now(self) -> list[dict[str, Any]]:
        """What is known of each now."""
        return aimed([self._shown(each) for each in self._known.values()])

    def _shown(self, known: _Known) -> dict[str, Any]:
        waited = self.clock() - known.asked if known.asking else 0.0
        if waited < SILENT_SECONDS:
            return known.told
        return {**known.told, "state": "silent", "detail": f"it has not answered for {waited:.0f} s"}

    def once(self) -> list[dict[str, Any]]:
        """Ask all, and wait for their answers, though not for ever."""
        self.ask()
        end = self.clock() + ONCE_SECONDS
        while any(each.asking for each in self._known.values()) and self.clock() < end:
            time.sleep(0.01)
        return self.now()


def aimed(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The receivers with lines that can be typed as they stand: with profile and channel where there are several."""
    owners = [each.get("profile") for each in found]
    return [
        {**each, "needsPerson": [_aimed(need, each, owners) for need in each.get("needsPerson") or ()]}
        for each in found
    ]


def _aimed(need: Mapping[str, Any], receiver: Mapping[str, Any], owners: list[Any]) -> dict[str, Any]:
    line, owner = str(need.get("next")), receiver.get("profile")
    if line.startswith("relay receiver ") and owners.count(owner) > 1 and "--channel" not in line:
        line += f" --channel {shlex.quote(str(receiver.get('channelName')))}"
    if line.startswith("relay ") and len(set(owners)) > 1 and "--profile" not in line:
        line += f" --profile {shlex.quote(str(owner))}"
    return {**need, "next": line}


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
