"""Shared documents of a member's channels."""

import uuid
from typing import Any

from relay_receiver.client.calls import Calls, Json, items, part


class Docs(Calls):
    """The calls of `/docs`."""

    async def create_doc(self, channel: str, *, title: str, content: str, operation: str | None = None) -> Json:
        """Make a document: `{id, channel, rev, title, content, ...}`; under one operation id it is made once."""
        named = operation or f"client:{uuid.uuid4().hex}"
        body = {"channel": channel, "title": title, "content": content, "operationId": named}
        return await self._call("POST", "/docs", body, idempotent=True)

    async def docs(
        self,
        channel: str | None = None,
        *,
        archived: bool = False,
        before: str | None = None,
        limit: int | None = None,
    ) -> Json:
        """`{docs, more}` without their content, the last changed first; `before` is the id of a document."""
        params = {"channel": channel, "archived": "true" if archived else None, "before": before, "limit": limit}
        return await self._call("GET", "/docs", params=params)

    async def doc(self, doc: str, *, rev: int | None = None) -> Json:
        """A document with its content, as it is or as it was."""
        return await self._call("GET", f"/docs/{part(doc)}", params={"rev": rev})

    async def change_doc(self, doc: str, *, rev: int, **changes: Any) -> Json:  # noqa: ANN401 - title, content, archived
        """Make the next revision of what was read at `rev`; the same change again is the same as once.

        Raises:
            HubError: 409 `stale_rev`, somebody changed it since; `data["current"]` is the document as it is now.
        """
        return await self._call("PATCH", f"/docs/{part(doc)}", {"rev": rev, **changes}, idempotent=True)

    async def doc_revisions(self, doc: str, *, before: int | None = None, limit: int | None = None) -> list[Json]:
        """Revisions, the newest first: `{rev, title, by, at, bytes}` each."""
        params = {"before": before, "limit": limit}
        return items(await self._any("GET", f"/docs/{part(doc)}/revisions", params=params), "revisions")
