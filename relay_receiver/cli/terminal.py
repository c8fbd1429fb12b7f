"""The terminal as a picture that is drawn over and over; whatever happens, it is given back as it was."""

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
LEAST = (20, 4)
"""Columns and lines that are drawn for at the least."""
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Screen:
    """A context manager: the alternate screen, keys one by one, and a redraw at each change of size."""

    def __init__(self) -> None:
        self._out = sys.stdout.fileno()
        self._in = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        self._before: list[Any] | None = None
        self._handlers: dict[signal.Signals, Any] = {}
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self.colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> Self:
        for number in (signal.SIGWINCH, signal.SIGCONT, *_ENDING):
            self._handlers[number] = signal.signal(number, self._hear)
        self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._rest)
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()
        for number, before in self._handlers.items():
            signal.signal(number, before)
        os.close(self._woken)
        os.close(self._wake)

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            found = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        # A terminal that does not know its size says 0.
        return max(LEAST[0], found.columns or 80), max(LEAST[1], found.lines or 24)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines, from the top, and nothing else."""
        self._write("\x1b[H" + "\x1b[K\r\n".join(lines) + "\x1b[K\x1b[J")

    def key(self, seconds: float) -> str:
        """The next key within so many seconds; empty where none came, or the picture has to be drawn again."""
        listening = [self._woken, *([] if self._in is None else [self._in])]
        ready, _, _ = select.select(listening, [], [], seconds)
        if self._woken in ready:
            os.read(self._woken, 1024)
            return ""
        if self._in is None or self._in not in ready:
            return ""
        # A key that sends a sequence sends it at once. The end of the terminal is the end of the picture.
        return os.read(self._in, 16).decode("utf-8", "replace") or "q"

    def _take(self) -> None:
        if self._in is not None:
            self._before = termios.tcgetattr(self._in)
            tty.setcbreak(self._in)
        self._write(_ENTER)

    def _give_back(self) -> None:
        with contextlib.suppress(OSError):
            self._write(_LEAVE)
        if self._in is not None and self._before is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)

    def _hear(self, number: int, _: FrameType | None) -> None:
        if number in _ENDING:
            raise KeyboardInterrupt
        if number == signal.SIGCONT:
            self._take()
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake, b".")

    def _rest(self, *_: object) -> None:
        """Ctrl-Z: the terminal is given back before this process is stopped."""
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)

    def _write(self, text: str) -> None:
        data = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._out, data) :]
