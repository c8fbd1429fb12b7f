"""Forgetting by policy: what is old or too much leaves the journal, and its file shrinks. Never what is open (P8)."""

import asyncio

from relay_receiver.journal import binding as bindings
from relay_receiver.journal import messages, space
from relay_receiver.receiver.parts import Parts

EVERY_MESSAGES = 500
"""Messages between two looks for what may go."""
EVERY_SECONDS = 3600.0
"""Between two looks of a receiver to which nothing comes. Where nothing may go, nothing is written."""
DAY = 86400.0


class Pruning:
    """Looks at the start, after so many messages, and every hour; by the binding's settings of that moment."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._arrived = 0

    async def run(self) -> None:
        """Look now and then until cancelled."""
        while True:
            await self.forget()
            await asyncio.sleep(EVERY_SECONDS)

    async def arrived(self, count: int) -> None:
        """So many messages more are stored."""
        self._arrived += count
        if self._arrived >= EVERY_MESSAGES:
            await self.forget()

    async def forget(self) -> None:
        """Forget all that may go, a part at a time, and give its space back."""
        parts = self._parts
        self._arrived = 0
        binding = parts.binding
        keep_age = binding.keep_days * DAY or None
        gone = 1
        while gone:
            gone = await parts.write(
                messages.prune, keep_count=binding.keep_messages, keep_age=keep_age, at=parts.now()
            )
            if gone and (stored := await parts.journal.read(bindings.get)) is not None:
                parts.binding = parts.binding.evolve(configured_at=stored.configured_at)
        while await parts.write(space.give_back):
            pass
