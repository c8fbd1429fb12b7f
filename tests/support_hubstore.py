"""A hub's store without a server: members, a channel, and the calls of a receiver as plain functions."""

import asyncio
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import select

from relay_receiver.hub import channels, enrolment, ids, leases, messages, receipts, runs
from relay_receiver.hub.auth import Actor, digest, find
from relay_receiver.hub.store import Store
from relay_receiver.hub.subscriptions import acknowledge, create
from relay_receiver.hub.tables import event
from relay_receiver.wire.cursor import Cursor

Json = dict[str, Any]


class Desk:
    """Time stands still at `now` unless a test moves it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = 1_000_000.0
        self.tokens: dict[str, str] = {}
        code = store.write_now(enrolment.owner_code, at=self.now).code
        self.join(code, "owner")
        self.workspace = self.actor("owner").workspace
        self.lab = str(self.do(channels.create, self.actor("owner"), "lab")["id"])

    def do(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        return self.store.write_now(fn, *args, at=self.now, **kwargs)

    def join(self, code: str, name: str) -> str:
        token = self.tokens.setdefault(name, secrets.token_urlsafe(32))
        made = self.do(
            enrolment.enroll, code=code, client_secret=token, identity_secret=f"identity-of-{name:>32}", name=name
        )
        return str(made["agentId"])

    def agent(self, name: str, *, channel: str | None = None, person: bool = False) -> str:
        code = self.do(enrolment.invite, self.actor("owner"), channel or self.lab, person=person).code
        return self.join(code, name)

    def actor(self, name: str) -> Actor:
        return self.bearer(self.tokens[name])

    def bearer(self, token: str) -> Actor:
        found = self.store.read_now(find, digest(token))
        assert found is not None
        return found

    def post(self, name: str | Actor, content: str = "hello", **more: Any) -> Json:
        actor = self.actor(name) if isinstance(name, str) else name
        said = {"channel": self.lab, "kind": "message", "operation": secrets.token_hex(8), **more}
        return dict(self.do(messages.post, actor, messages.Draft(content=content, **said)))

    def ask(self, to: str, *, by: str | Actor = "owner", **more: Any) -> Json:
        return self.post(by, "do it", kind="request", to=to, **more)

    def stage(self, message: str) -> str:
        return str(self.delivery(message)["stage"])

    def delivery(self, message: str) -> Json:
        found = self.store.read_now(receipts.delivery, message, at=self.now)
        assert found is not None
        return found[0]

    def take(self, name: str, holder: str = "h", **more: Any) -> Json:
        said = {
            "scope": self.lab,
            "subscription": None,
            "session": None,
            "runtime": "test",
            "state": "ready",
            "detail": None,
        }
        wish = leases.Wish(holder=holder, **{**said, **more})
        return asyncio.run(leases.take(self.store, self.actor(name), wish))

    def ref(self, request: str, *, holder: str = "h", fence: Any = None, claim: str | None = None) -> runs.Ref:
        said = None if fence is None else str(fence)
        return runs.Ref(scope=self.lab, holder=holder, request=request, fence=said, claim=claim)

    def begin(self, name: str, message: str | None, ref: runs.Ref) -> tuple[Json, str]:
        """The answer and the job credential."""
        token = ids.token()
        told = self.do(runs.begin, self.actor(name), ref, message=message, attempt=1, credential=digest(token))
        return told, token

    def finish(self, name: str, ref: runs.Ref, state: str = "completed", **more: Any) -> Json:
        said = {"outcome": None, "reason": None, **more}
        return dict(self.do(runs.finish, self.actor(name), ref, state=state, **said))

    def answer(self, name: str, message: str, **more: Any) -> Json:
        return self.post(name, "done", kind="result", reply_to=message, to="human", **more)

    def subscribe(self, name: str) -> str:
        return str(self.do(create, self.actor(name), self.lab, Cursor(0)))

    def acknowledge(self, name: str, subscription: str, number: int) -> None:
        self.do(acknowledge, self.actor(name), subscription, Cursor(number))

    def events(self, kind: str) -> list[Any]:
        wanted = select(event.c.payload).where(event.c.type == kind).order_by(event.c.number)
        return [json.loads(each) for each in self.store.read_now(lambda conn: conn.execute(wanted).scalars().all())]


@contextmanager
def desk(path: Path) -> Iterator[Desk]:
    store = Store.open(path)
    try:
        yield Desk(store)
    finally:
        store.close()
