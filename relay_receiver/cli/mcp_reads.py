"""The tools of `relay mcp` that read what is written down; long texts come in pieces."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from relay_receiver.cli.acting import Actor
from relay_receiver.cli.exchange import place

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations

    from relay_receiver.client.hub import Hub

PIECE_CHARS = 48 * 1024
"""Characters of a text that one call gives."""

Json = dict[str, Any]


def add(
    tools: "MCPServer", reads: "ToolAnnotations", speaking: Callable[[], AbstractAsyncContextManager[Actor]]
) -> None:
    """Add the tools to a server.

    Args:
        speaking: whom a call acts as; it tells what goes wrong to the agent.
    """
    tool = tools.tool(annotations=reads, structured_output=False)

    @tool
    async def docs(before: str | None = None) -> Json:
        """List the shared documents of your channel, the last changed first; `before` is the last id of a page."""
        async with speaking() as who:
            return await who.converse(lambda hub: _docs(who, hub, before))

    @tool
    async def doc(id: str, rev: int | None = None, offset: int = 0) -> Json:  # noqa: A002 - the tool's word
        """Read a document in Markdown; `doc:ID` in a text names one. Where `next` is set, go on with it as `offset`."""
        async with speaking() as who:
            found = await who.converse(lambda hub: hub.doc(id, rev=rev))
            return {**found, **_piece(found["content"], offset, name="content")}

    @tool
    async def tasks(state: str = "active", before: str | None = None) -> Json:
        """List the tasks of your channel: `state` is active, all, open, doing, done or dropped."""
        async with speaking() as who:
            return await who.converse(lambda hub: _tasks(who, hub, state, before))

    @tool
    async def search(words: str, before: int | None = None) -> Json:
        """Find messages, documents, tasks and requests of your channel that have all the words, the newest first."""
        async with speaking() as who:
            return await who.converse(lambda hub: hub.search(words, before=before))

    @tool
    async def attachment(id: str, offset: int = 0) -> Json:  # noqa: A002 - the tool's word
        """Read an attachment that is text, by the `id` in a message's `attachments`; go on with `next` as `offset`."""
        async with speaking() as who:
            return _read(id, await who.converse(lambda hub: hub.attachment(id)), offset)


async def _docs(who: Actor, hub: "Hub", before: str | None) -> Json:
    where, _ = await place(who, hub, None)
    return await hub.docs(where, before=before)


async def _tasks(who: Actor, hub: "Hub", state: str, before: str | None) -> Json:
    where, _ = await place(who, hub, None)
    return await hub.tasks(where, state=state, before=before)


def _read(wanted: str, data: bytes, offset: int) -> Json:
    told = {"id": wanted, "size": len(data)}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or "\0" in text:
        return {**told, "text": None, "note": f"It is no text: relay messages fetch {wanted} --save FILE"}
    return {**told, **_piece(text, offset, name="text")}


def _piece(text: str, offset: int, *, name: str) -> Json:
    """What one call gives of a text from `offset` on, and where the next goes on; nothing is cut silently."""
    start = max(0, offset)
    end = start + PIECE_CHARS
    return {name: text[start:end], "offset": start, "next": end if end < len(text) else None}
