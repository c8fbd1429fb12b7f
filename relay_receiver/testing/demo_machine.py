"""One machine of the demo: a temporary home in which the real command line is typed."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from relay_receiver.wire.errors import RelayError

LINE_SECONDS = 60.0
"""How long one command line may take."""


class Machine:
    """Types `relay` lines with `home` as RELAY_HOME, each in a process of its own.

    Args:
        show: called with each line before it is typed.
    """

    def __init__(self, home: Path, show: Callable[[str], None]) -> None:
        self.home = home
        self._show = show
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RELAY_")},
            "RELAY_HOME": str(home),
        }

    async def relay(self, *words: str, as_: str | None = None, shown: str | None = None) -> dict[str, Any]:
        """Type one line and return its JSON.

        Args:
            as_: the profile to type it with.
            shown: what to show in place of the line; nothing where it is empty.

        Raises:
            RelayError: it failed, with its own sentence.
        """
        line = (*(("--profile", as_) if as_ else ()), *words)
        said = " ".join(("relay", *line)) if shown is None else shown
        if said:
            self._show(f"$ {said}")
        typed = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "relay_receiver.cli.main",
            "--output",
            "json",
            *line,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
        )
        try:
            async with asyncio.timeout(LINE_SECONDS):
                out, err = await typed.communicate()
        except BaseException:
            if typed.returncode is None:
                typed.kill()
                await typed.wait()
            raise
        return _answer(said or " ".join(line), out, err)


def _answer(line: str, out: bytes, err: bytes) -> dict[str, Any]:
    try:
        value = json.loads(out)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    text = err.decode("utf-8", "replace").strip()
    try:
        told = json.loads(text.splitlines()[-1])
        raise RelayError(str(told["error"]), code=str(told.get("code", "error")), hint=told.get("hint"))
    except (ValueError, LookupError, TypeError):
        raise RelayError(f"`{line}` gave no answer: {text or 'nothing at all'}.", code="internal") from None
