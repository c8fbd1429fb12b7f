"""Who a keeper and its child are, as the keeper wrote it down."""

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from relay_receiver.processes.identity import Life, ProcessIdentity, life

LOOK_SECONDS = 0.01
"""Between looks at a keeper that is about to answer, or to end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """Keeper and child; the child is None where it had not started yet, or that could not be written."""

    keeper: ProcessIdentity
    child: ProcessIdentity | None

    @classmethod
    def read(cls, spool: Path, key: str) -> Self | None:
        """What the keeper of that key wrote down; None where it is not there or cannot be read.

        The first line is written before the child starts, the second after it: half a line counts as none.
        """
        try:
            *whole, _ = (spool / f"{key}.keeper").read_bytes().split(b"\n")
            keeper = ProcessIdentity.from_json(whole[0])
            told = json.loads(whole[-1])
            pid, started = told["child"], float(told["childStarted"] or 0.0)
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            return None
        if pid is None:
            return cls(keeper=keeper, child=None)
        child = ProcessIdentity(pid=int(pid), started=started, boot=keeper.boot, nonce=keeper.nonce)
        return cls(keeper=keeper, child=child)

    def keeper_gone(self) -> bool:
        """Whether the keeper certainly does not live any more."""
        return life(self.keeper) is Life.GONE

    async def ends(self, *, within: float) -> bool:
        """Wait until the keeper is gone; False where it still lives after so many seconds."""
        until = time.monotonic() + within
        while not self.keeper_gone():
            if time.monotonic() >= until:
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return True
