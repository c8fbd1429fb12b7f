"""Presence: a declaration that someone set with `relay status set` is renewed while the receiver runs."""

import asyncio
import json
from pathlib import Path

from relay_receiver.processes import files
from relay_receiver.receiver.parts import Parts
from relay_receiver.wire.errors import RelayError

DECLARATION = "declaration.json"
RENEW_SECONDS = 45.0
"""A declaration lasts 90 s."""


async def renew(parts: Parts, folder: Path) -> None:
    """Renew the declaration of this channel until cancelled; without one, do nothing at all."""
    path = folder / DECLARATION
    while True:
        if path.exists():
            await _ping(parts, path)
        await asyncio.sleep(RENEW_SECONDS)


async def _ping(parts: Parts, path: Path) -> None:
    try:
        declared = json.loads(files.read_private(path))
        answer = await parts.hub.ping(parts.binding.channel, rev=int(declared["rev"]))
        if not answer.get("renewed"):
            answer = await parts.hub.declare(
                parts.binding.channel, rev=int(answer.get("rev", 0)), mode=declared["mode"], text=declared["text"]
            )
            files.write_private(path, json.dumps({**declared, "rev": answer["rev"]}).encode())
    except (RelayError, OSError, ValueError, KeyError, TypeError) as error:
        parts.log.info("declaration not renewed", extra={"why": str(error)})
