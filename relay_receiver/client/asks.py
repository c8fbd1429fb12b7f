"""Requests to people, as their authors make them and as people answer."""

import uuid
from collections.abc import Mapping
from typing import Any

from relay_receiver.client.calls import Calls, Json, items, part


class Asks(Calls):
    """The calls of `/requests`."""

    async def create_request(self, body: Mapping[str, Any]) -> Json:
        """Ask people; a lost answer is asked for again under the same operation id, so it is asked once."""
        named = {"operationId": f"client:{uuid.uuid4().hex}", **body}
        return await self._call("POST", "/requests", named, idempotent=True)

    async def requests(
        self, channel: str | None = None, state: str = "open", *, limit: int | None = None
    ) -> list[Json]:
        """Requests of this member's channels, newest first; `state` is open, ended or all."""
        params = {"channel": channel, "state": state, "limit": limit}
        return items(await self._any("GET", "/requests", params=params), "requests")

    async def request(self, request: str, *, wait: int | None = None) -> Json:
        """One request; with `wait` held for so many seconds (at most 30), or until it is no longer open."""
        timeout = None if wait is None else wait + 10.0
        return await self._call("GET", f"/requests/{part(request)}", params={"wait": wait}, timeout=timeout)

    async def respond(self, request: str, answer: Mapping[str, Any], action_hash: str | None = None) -> Json:
        """Answer as a person, for the action that was shown. The same answer again is the same as once."""
        body = {"answer": dict(answer), "actionHash": action_hash}
        return await self._call("POST", f"/requests/{part(request)}/respond", body, idempotent=True)

    async def close_request(self, request: str, state: str, reason: str | None = None) -> Json:
        """End one's own request: `applied` once its answer is used, else `expired` or `superseded`. Twice is fine."""
        body = {"state": state, "reason": reason}
        return await self._call("POST", f"/requests/{part(request)}/close", body, idempotent=True)
