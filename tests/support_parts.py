"""A receiver's parts in one process: a real journal, a hub that remembers calls, an adapter that does as it is told."""

import asyncio
import contextlib
import itertools
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Self

from support_time import WITHIN

from relay_receiver.adapters.base import (
    Accepted,
    AdapterEvent,
    Finished,
    NeverStarted,
    Proofs,
    Recovery,
    Refused,
    Result,
    Work,
)
from relay_receiver.adapters.base import Binding as AdapterBinding
from relay_receiver.client.errors import HubError
from relay_receiver.client.profiles import Profile
from relay_receiver.journal import binding as bindings
from relay_receiver.journal import messages
from relay_receiver.journal.binding import Binding
from relay_receiver.journal.journal import Journal
from relay_receiver.receiver.approvals import Approvals
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.runner import Runner
from relay_receiver.receiver.situation import LeaseState, Situation
from relay_receiver.testing.adapter import ScriptedAdapter, ScriptedAgent
from relay_receiver.wire.action import action_hash
from relay_receiver.wire.message import Author, Message

BINDING = Binding(
    agent="a_me",
    agent_name="me",
    workspace="w",
    channel="c",
    channel_name="lab",
    wake="addressed",
    adapter="command",
    argv=("/bin/true",),
    directory="/",
    network=False,
    tools=False,
    env=(),
    approvals="ask",
    approvers=(),
    approval_time=86400.0,
    chain_limit=3,
    ceiling=3600.0,
    stall=900.0,
    keep_messages=1000,
    keep_days=0,
    session=None,
    holder="h1",
    subscription="s1",
    chain_count=0,
    cursor="0",
    watermark=0,
    configured_at=0.0,
)


def message(number: int, *, by_agent: bool = False, kind: str = "request", **more: Any) -> Message:
    values: dict[str, Any] = {
        "id": f"m{number}",
        "event": number,
        "channel": "c",
        "author": Author(id="a_other" if by_agent else "p_1", name="other", kind="agent" if by_agent else "human"),
        "kind": kind,
        "content": f"do {number}",
        "to": "a_me",
        "mentions": (),
        "reply_to": None,
        "operation_id": None,
        "outcome": None,
        "root": f"m{number}",
        "hop": 1 if by_agent else 0,
        "attachments": (),
        "created_at": "2026-01-01T00:00:00.000Z",
        "expires_at": None,
        "notice": False,
    }
    return Message(**{**values, **more})


NOWHERE = AdapterBinding(settings={}, directory=Path("/"), environment={}, spool=Path("/"), runtime=Path("/"))


class RememberingHub:
    """Answers as a hub does; `log` has every call in order, `fail` makes the next calls of a name fail."""

    def __init__(self) -> None:
        self.log: list[tuple[str, dict[str, Any]]] = []
        self.requests_made: dict[str, dict[str, Any]] = {}
        """Requests to people, by operation id; a test changes them as people would."""
        self.fail: dict[str, list[Exception | None]] = {}
        self._numbers = itertools.count(1)
        self.on_call: Callable[[str], None] = lambda _: None

    def _call(self, name: str, said: dict[str, Any]) -> None:
        self.on_call(name)
        self.log.append((name, said))
        if self.fail.get(name) and (error := self.fail[name].pop(0)) is not None:
            raise error

    async def begin(self, **said: Any) -> dict[str, Any]:
        self._call("begin", said)
        return {"credential": None}

    async def stage(self, **said: Any) -> dict[str, Any]:
        self._call("stage", said)
        return {"open": True, "settled": None}

    async def finish(self, **said: Any) -> dict[str, Any]:
        self._call("finish", said)
        return {"open": False}

    async def post_message(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self._call("post", dict(body))
        number = next(self._numbers)
        return {"id": f"r{number}", "event": 1000 + number}

    async def upload(self, data: bytes, **said: Any) -> dict[str, Any]:
        self._call("upload", {"size": len(data), **said})
        return {}

    async def message(self, message: str) -> dict[str, Any]:
        self._call("message", {"message": message})
        return {"id": message}

    async def acknowledge(self, subscription: str, cursor: str) -> None:
        self._call("acknowledge", {"subscription": subscription, "cursor": cursor})

    async def subscribe(self, **said: Any) -> dict[str, Any]:
        self._call("subscribe", said)
        return {"id": f"s{next(self._numbers)}"}

    async def create_request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self._call("ask", dict(body))
        made = self.requests_made.setdefault(str(body["operationId"]), request_of(body, f"req_{len(self.log)}"))
        return dict(made)

    async def request(self, request: str) -> dict[str, Any]:
        self._call("look", {"request": request})
        found = [each for each in self.requests_made.values() if each["id"] == request]
        if not found:
            raise HubError("no such request", status=404, code="not_found")
        return dict(found[0])

    async def requests(self, channel: str | None = None, state: str = "open") -> list[dict[str, Any]]:
        self._call("requests", {"channel": channel, "state": state})
        return [dict(each) for each in self.requests_made.values() if each["state"] == state]

    async def close_request(self, request: str, state: str, reason: str | None = None) -> dict[str, Any]:
        self._call("close", {"request": request, "state": state, "reason": reason})
        for each in self.requests_made.values():
            if each["id"] == request:
                each["state"] = state
        return {}

    def names(self) -> list[str]:
        return [name for name, _ in self.log]

    def posts(self) -> list[dict[str, Any]]:
        return [said for name, said in self.log if name == "post"]


def request_of(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An open request as the hub tells it."""
    return {
        **body,
        "id": name,
        "author": {"id": "a_me", "name": "me", "kind": "agent"},
        "actionHash": action_hash(body["action"]),
        "state": "open",
        "answer": None,
        "answeredBy": None,
    }


class ToldAdapter:
    """Answers each hand-over by `answers`, the default an immediate success."""

    proves = Proofs(never_started=True, finished=True, survives_receiver=False, note="a fake")
    long_lived = False

    def __init__(self) -> None:
        self.works: list[Work] = []
        self.answers: list[Any] = []
        self.recovery: Recovery = NeverStarted(proof="told so")
        self.queue: asyncio.Queue[AdapterEvent] = asyncio.Queue()
        self.interrupts = True
        self.on_submit: Callable[[Work], None] = lambda _: None

    def rebind(self, binding: object) -> None: ...

    async def open(self, session: str | None) -> str | None:
        return session

    async def submit(self, work: Work) -> Accepted | Refused:
        self.on_submit(work)
        self.works.append(work)
        answer = self.answers.pop(0) if self.answers else "done"
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Refused):
            return answer
        if isinstance(answer, str):
            self.queue.put_nowait(Finished(key=work.key, result=Result.COMPLETED, text=answer))
        elif isinstance(answer, Finished):
            self.queue.put_nowait(answer)
        return Accepted(execution=work.key)

    async def events(self) -> AsyncIterator[AdapterEvent]:
        while True:
            yield await self.queue.get()

    async def answer(self, question: str, decision: Mapping[str, Any]) -> None: ...

    async def interrupt(self, execution: str) -> bool:
        return self.interrupts

    async def recover(self, execution: str | None, work: Work) -> Recovery:
        return self.recovery

    async def recorded(self, key: str) -> None: ...

    async def close(self, *, detach: bool = False) -> None: ...


class Bench:
    """A runner at work on a real journal. Use as an async context manager."""

    def __init__(
        self, folder: Path, *, agent: ScriptedAgent | None = None, hub: RememberingHub | None = None, **binding: Any
    ) -> None:
        self.folder = folder
        self.journal = Journal.open(folder / "journal.sqlite3")
        if self.journal.read_now(bindings.get) is None:
            self.journal.write_now(bindings.create, BINDING.evolve(**binding))
        self.hub = hub or RememberingHub()
        self.adapter = ToldAdapter()
        self.clock = 1_000_000.0
        found = self.journal.read_now(bindings.get)
        assert found is not None
        self.parts = Parts(
            profile=Profile(
                name="me",
                url="http://127.0.0.1:1",
                workspace="w",
                workspace_name="w",
                agent="a_me",
                agent_name="me",
                role="agent",
            ),
            binding=found,
            journal=self.journal,
            hub=self.hub,  # type: ignore[arg-type]  # the calls that a receiver makes
            adapter=self.adapter if agent is None else ScriptedAdapter(NOWHERE, agent),
            situation=Situation(lease=LeaseState.HELD, reconciled=True, fence="7", lease_until=float("inf")),
            log=logging.getLogger("relay_receiver.test"),
            folder=folder,
            now=lambda: self.clock,
            boot=lambda: self.clock + time.monotonic(),
        )
        self._tasks = asyncio.TaskGroup()
        self._loops: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self.runner = Runner(self.parts, self._tasks)
        self.approvals = Approvals(self.parts, changed=self.runner.kick)
        self._loops = [
            self._tasks.create_task(self.approvals.run()),
            self._tasks.create_task(self.runner.run()),
            self._tasks.create_task(self._pump()),
        ]
        return self

    async def _pump(self) -> None:
        async for event in self.parts.adapter.events():
            self.runner.take(event)

    async def __aexit__(self, *_: object) -> None:
        for task in self._loops:
            task.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self.runner.close()
        await self._tasks.__aexit__(None, None, None)
        self.journal.close()

    def arrive(self, *arrived: Message) -> None:
        self.journal.write_now(messages.intake, arrived, cursor=None, watermark=None, at=self.clock)
        if hasattr(self, "runner"):
            self.runner.kick()

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(WITHIN):
            while not (found := condition()):
                await asyncio.sleep(0.001)
        return found

    def jobs(self) -> dict[str, str]:
        """The state of each job by its message."""
        with contextlib.closing(sqlite3.connect(self.folder / "journal.sqlite3")) as found:
            return dict(found.execute("select message, state from job order by event").fetchall())


def refused(code: str, *, status: int = 409, sentence: str = "no") -> HubError:
    return HubError(sentence, status=status, code=code)
