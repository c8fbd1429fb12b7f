"""Writes that nobody waits for: committed with the next other one, or alone after a moment."""

import asyncio
from pathlib import Path
from typing import Any

from relay_receiver.hub import events, members
from relay_receiver.hub.store import Store


def test_what_nobody_waits_for_is_committed_with_the_next_write_and_before_it(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    space = store.write_now(members.make_workspace, "lab", at=0.0)
    commits: list[list[Any]] = []

    async def main() -> None:
        store.on_commit(commits.append)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(store.write_soon(events.append, space, "soon", {}, at=0.0))
            await asyncio.sleep(0)
            tasks.create_task(store.write(events.append, space, "now", {}, at=0.0))

    asyncio.run(main())
    store.close()
    assert [[row.type for row in rows] for rows in commits] == [["soon", "now"]]


def test_it_is_committed_alone_when_nothing_else_is_written_and_when_the_store_closes(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    space = store.write_now(members.make_workspace, "lab", at=0.0)

    async def main() -> int:
        number = await store.write_soon(events.append, space, "x", {}, at=0.0)
        last = asyncio.ensure_future(store.write_soon(events.append, space, "x", {}, at=0.0))
        await asyncio.sleep(0)
        await asyncio.to_thread(store.close)
        assert await last == number + 1
        return number

    number = asyncio.run(main())
    again = Store.open(tmp_path)
    assert again.read_now(events.head, space).number == number + 1
    again.close()
