"""What people decide about receivers, and how receivers are."""

import uuid
from collections.abc import Mapping
from typing import Any

from relay_receiver.client.calls import Calls, Json, items, part


class Controls(Calls):
    """The calls of `/controls` and `/receivers`."""

    async def create_control(
        self, *, channel: str, agent: str, action: str, arguments: Mapping[str, Any], operation: str | None = None
    ) -> Json:
        """Decide as a person: `settle`, `resume` or `cancel`. Repeated under the same operation it is decided once."""
        body = {
            "channel": channel,
            "agent": agent,
            "action": action,
            "arguments": dict(arguments),
            "operationId": operation or f"client:{uuid.uuid4().hex}",
        }
        return await self._call("POST", "/controls", body, idempotent=True)

    async def controls(
        self, *, channel: str | None = None, agent: str | None = None, waiting: bool = False
    ) -> list[Json]:
        """Decisions, newest first; `waiting`: only those of which the receiver has told nothing yet."""
        params = {"channel": channel, "agent": agent, "state": "waiting" if waiting else None}
        return items(await self._any("GET", "/controls", params=params), "controls")

    async def control(self, control: str) -> Json:
        """One decision."""
        return await self._call("GET", f"/controls/{part(control)}")

    async def tell_control(self, control: str, *, outcome: str, sentence: str) -> Json:
        """Tell what became of a decision, as the receiver that it is about. Twice is fine."""
        body = {"outcome": outcome, "sentence": sentence}
        return await self._call("POST", f"/controls/{part(control)}/outcome", body, idempotent=True)

    async def receivers(self, *, channel: str | None = None) -> list[Json]:
        """`{agent: {id, name}, channel, state, detail, report}` of each receiver in this member's channels."""
        return items(await self._any("GET", "/receivers", params={"channel": channel}), "receivers")
