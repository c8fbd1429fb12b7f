"""A hub that keeps the rules of protocol 1 for one agent in one channel, in memory: for simulations."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from relay_receiver.client.errors import HubError
from relay_receiver.testing.sim_asks import SimAsks
from relay_receiver.wire.fingerprint import fingerprint
from relay_receiver.wire.limits import LEASE_SECONDS, REQUEST_EXPIRY_SECONDS
from relay_receiver.wire.message import iso, seconds
from relay_receiver.wire.stage import ENDS, Stage, may_follow, stage_of_result

AGENT = "a_me"
CHANNEL = "c"
NOT_ACCEPTED = "not-accepted"
_STAGES = {
    "failed": Stage.FAILED,
    "abandoned": Stage.FAILED,
    "quiet": Stage.QUIET,
    "cancelled": Stage.CANCELLED,
    "withdrawn": Stage.WITHDRAWN,
    "expired": Stage.EXPIRED,
}
_IN_LINE = frozenset({Stage.STORED, Stage.RECEIVED})

Json = dict[str, Any]


@dataclass(kw_only=True)
class Run:
    """One for each message that was begun."""

    message: str
    request: str
    attempt: int
    claim: str | None
    holder: str
    fence: str
    state: str = "open"
    """`open`, `freed`, `finished` or `settled`."""
    outcome: str | None = None
    reason: str | None = None
    settled: bool = False
    cancel: bool = False
    freed_claim: str | None = None

    def view(self) -> Json:
        """It, as lease and begin tell it."""
        return {
            "requestId": self.request,
            "message": self.message,
            "attempt": self.attempt,
            "claim": self.claim,
            "holderId": self.holder,
            "fence": int(self.fence),
            "state": self.state,
            "cancelRequested": self.cancel,
        }


@dataclass(kw_only=True)
class Stored:
    """What a backup holds."""

    head: int = 0
    tags: dict[int, str] = field(default_factory=dict)
    events: list[Json] = field(default_factory=list)
    forgotten: int = 0
    pruned: int = 0
    messages: dict[str, Json] = field(default_factory=dict)
    operations: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The message of an operation, and what it pins."""
    stages: dict[str, Stage] = field(default_factory=dict)
    """Of requests to the agent."""
    withdrawn: set[str] = field(default_factory=set)
    runs: dict[str, Run] = field(default_factory=dict)
    """By message."""
    holder: str | None = None
    fence: str = ""
    subscription: str | None = None
    acknowledged: dict[str, int] = field(default_factory=dict)
    """By subscription."""
    asks: dict[str, Json] = field(default_factory=dict)
    """Requests to people, by operation."""


class SimHub:
    """Calls are synchronous, and each is one transaction. Refusals are `HubError`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.stored = Stored()
        self.lease_until = 0.0
        self.told: Callable[[], None] = lambda: None
        """Called after each event."""
        self.acknowledged: Callable[[str, int], None] = lambda _subscription, _number: None
        """Called after each acknowledgement that moved."""
        self._numbers = 0
        self.asks = SimAsks(author=AGENT, channel=CHANNEL, clock=clock, tell=self._tell)

    # A person at the hub's side.

    def backup(self) -> Stored:
        """What could be restored later."""
        return copy.deepcopy(self.stored)

    def restore(self, backup: Stored) -> None:
        """Yesterday's hub: what came after it never was. Leases lived in memory."""
        self.stored = copy.deepcopy(backup)
        self.lease_until = 0.0
        self.told()

    def say(self, author: str, *, agent: bool, kind: str, content: str, **more: Any) -> Json:  # noqa: ANN401 - JSON
        """Somebody else posts a message."""
        return self._store(author, agent=agent, kind=kind, content=content, operation=f"{author}:{self._new()}", **more)

    def withdraw(self, message: str) -> str:
        """Its author takes a request back: `withdrawn`, `asked` or `ended`."""
        stored = self.stored
        run = stored.runs.get(message)
        if run is not None and run.state == "open":
            if not run.cancel:
                run.cancel = True
                self._tell("message.cancel", {"message": message, "jobs": [run.request]})
            return "asked"
        self.expire()
        if stored.stages.get(message) in ENDS:
            return "ended"
        stored.withdrawn.add(message)
        self._show(message, Stage.WITHDRAWN)
        return "withdrawn"

    def settle(self, message: str, outcome: str) -> bool:
        """A person ends a run; `not-accepted` lets the message be run again."""
        run = self.stored.runs.get(message)
        if run is None or run.state != "open":
            return False
        self._close(run, state=outcome, outcome=outcome, reason="a person", settled=True)
        return True

    def forget(self, through: int, *, history: bool = False) -> None:
        """Keep no events up to there; with `history` no messages either."""
        stored = self.stored
        stored.forgotten = max(stored.forgotten, through)
        stored.events = [each for each in stored.events if each["id"] > through]
        if history:
            stored.pruned = max(stored.pruned, through)

    def expire(self) -> None:
        """End requests whose time has passed and which no run holds."""
        stored, now = self.stored, self.clock()
        for message, stage in list(stored.stages.items()):
            run = stored.runs.get(message)
            held = run is not None and run.state == "open"
            if stage in _IN_LINE and not held and seconds(stored.messages[message]["expiresAt"]) <= now:
                self._show(message, Stage.EXPIRED)

    # What a receiver calls.

    def take_lease(self, *, holder: str, subscription: str | None) -> Json:
        """Take or renew."""
        stored, now = self.stored, self.clock()
        if stored.holder not in {None, holder} and self.lease_until > now:
            raise _refusal("lease_held")
        if stored.holder != holder:
            stored.fence = str(self._new() * 7919 % 100_003)
        stored.holder, stored.subscription = holder, subscription
        self.lease_until = now + LEASE_SECONDS
        run = self.open_run()
        return {
            "fence": int(stored.fence),
            "expires": round(self.lease_until * 1000),
            "requestId": run and run.request,
            "run": None if run is None else run.view(),
        }

    def release(self, *, holder: str) -> Json:
        """Give it back; an open run stays open."""
        if self.stored.holder == holder:
            self.stored.holder = None
            self.lease_until = 0.0
        return {}

    def begin(self, *, holder: str, fence: Any, request: str, message: str, attempt: int, claim: str) -> Json:  # noqa: ANN401 - opaque
        """The run guard."""
        stored = self.stored
        asked = stored.messages.get(message)
        if asked is None:
            raise _refusal("not_found", status=404)
        run = stored.runs.get(message)
        if run is not None and run.state in {"finished", "settled"}:
            raise _refusal("run_finished", outcome=run.outcome)
        if stored.holder != holder or str(fence) != stored.fence:
            raise _refusal("fenced")
        if run is not None and run.state == "open":
            if (run.claim, run.holder, run.request) != (claim, holder, request):
                raise _refusal("run_unresolved")
            return run.view()
        if run is not None and run.freed_claim == claim:
            raise _refusal("claim_freed")
        self.expire()
        if message in stored.withdrawn:
            raise _refusal("withdrawn")
        if stored.stages.get(message) is Stage.EXPIRED or self._overdue(asked):
            raise _refusal("expired")
        if self.open_run() is not None:
            raise _refusal("run_unresolved")
        opened = Run(message=message, request=request, attempt=attempt, claim=claim, holder=holder, fence=stored.fence)
        stored.runs[message] = opened
        self._show(message, Stage.STARTING)
        return opened.view()

    def stage(self, *, holder: str, fence: Any, request: str, state: str, claim: str | None) -> Json:  # noqa: ANN401 - opaque
        """How far a run is."""
        run = self._named(request)
        if run is None or run.state != "open":
            over = run is not None and run.settled
            settled = {"outcome": run.outcome, "reason": run.reason, "by": "p_1"} if run and over else None
            return {"open": False, "outcome": run and run.outcome, "settled": settled}
        if self._is(run, holder, fence, claim) and state in {"running", "waiting", "unknown"}:
            self._show(run.message, Stage(state))
        return {"open": True, "cancelRequested": run.cancel, "settled": None}

    def finish(
        self,
        *,
        holder: str,
        fence: Any,  # noqa: ANN401 - opaque
        request: str,
        claim: str | None,
        state: str,
        outcome: str | None,
    ) -> Json:
        """Close a run without a message."""
        run = self._named(request)
        if run is None:
            raise _refusal("unknown_run", status=404)
        if run.settled:
            raise _refusal("run_settled", outcome=run.outcome)
        if run.state != "open":
            return {"open": False, "outcome": run.outcome}
        if claim not in {None, run.claim}:
            raise _refusal("unknown_run", status=404)
        if not self._is(run, holder, fence, claim):
            raise _refusal("fenced")
        self._close(run, state=state, outcome=outcome, reason=None)
        return {"open": False, "outcome": outcome}

    def post(self, body: Mapping[str, Any]) -> Json:
        """The agent posts."""
        stored = self.stored
        operation = f"{AGENT}:{body['operationId']}"
        pinned = fingerprint(
            channel=body["channel"],
            to=body.get("to"),
            kind=body["kind"],
            reply_to=body.get("replyTo"),
            mentions=tuple(body.get("mentions") or ()),
            content=body["content"],
            attachments=[each["id"] for each in body.get("attachments") or ()],
        )
        if operation in stored.operations:
            found, before = stored.operations[operation]
            if before != pinned:
                raise _refusal("operation_reused")
            return stored.messages[found]
        answered = self._answered(body)
        if body.get("replyTo") not in stored.messages:
            raise _refusal("invalid", status=422)
        said = self._store(
            AGENT, agent=True, kind=body["kind"], content=body["content"], operation=body["operationId"], pinned=pinned,
            reply_to=body["replyTo"], outcome=body.get("outcome"), notice="notice" in body,
        )  # fmt: skip
        if said["notice"]:
            if answered is not None:
                self._show(answered.message, Stage.UNKNOWN)
        elif body["kind"] == "result":
            self.expire()
            self._show(body["replyTo"], stage_of_result(body.get("outcome")))
        if answered is not None and not said["notice"]:
            self._close(answered, state=body.get("outcome") or "completed", outcome=body.get("outcome"), reason=None)
        return said

    def acknowledge(self, subscription: str, cursor: str) -> int:
        """All up to there is stored by that consumer; where it is now."""
        stored = self.stored
        number = int(cursor.partition(".")[0])
        if subscription not in stored.acknowledged:
            raise _refusal("not_found", status=404)
        before = stored.acknowledged[subscription]
        if number <= before:
            return before
        if self.reset_reason(cursor) == "diverged":
            raise _refusal("diverged", status=422)
        stored.acknowledged[subscription] = number
        if subscription == stored.subscription:
            for message, stage in list(stored.stages.items()):
                if stage is Stage.STORED and stored.messages[message]["event"] <= number:
                    self._show(message, Stage.RECEIVED)
        self.acknowledged(subscription, number)
        return number

    def subscribe(self, cursor: str) -> Json:
        """A new consumer that begins there."""
        made = f"s_{self._new()}"
        self.stored.acknowledged[made] = int(cursor.partition(".")[0])
        return {"id": made}

    def history(self, *, after: int | None, before: int | None, limit: int) -> Json:
        """A page of messages, ascending."""
        stored = self.stored
        found = [each for each in stored.messages.values() if each["event"] > stored.pruned]
        found.sort(key=lambda each: each["event"])
        if after is not None:
            found = [each for each in found if each["event"] > after]
            page = found[:limit]
        else:
            found = [each for each in found if before is None or each["event"] < before]
            page = found[-limit:]
        more = len(found) > limit
        at = page[-1]["event"] if page and more else stored.head
        return {"messages": page, "cursor": self.cursor(at), "more": more, "prunedThrough": stored.pruned}

    def message(self, message: str) -> Json:
        """One message with its delivery."""
        found = self.stored.messages.get(message)
        if found is None:
            raise _refusal("not_found", status=404)
        self.expire()
        return {**found, "delivery": {"stage": self.stored.stages.get(message)}}

    def ask(self, body: Mapping[str, Any]) -> Json:
        """The agent asks people."""
        run = self._named(str(body["job"]))
        return self.asks.create(
            self.stored.asks, body, name=f"req_{self._new()}", open_run=run is None or run.state == "open"
        )

    def cursor(self, number: int) -> str:
        """The position after an event."""
        tag = self.stored.tags.get(number)
        return f"{number}.{tag}" if tag else str(number)

    def reset_reason(self, cursor: str) -> str | None:
        """Why the stream cannot go on there."""
        stored = self.stored
        number = int(cursor.partition(".")[0])
        if number > stored.head or ("." in cursor and number > stored.forgotten and cursor != self.cursor(number)):
            return "diverged"
        return "cursor_expired" if number < stored.forgotten else None

    def after(self, number: int) -> list[Json]:
        """The events that a receiver asks for."""
        return [each for each in self.stored.events if each["id"] > number and each["type"] != "message.stage"]

    def open_run(self) -> Run | None:
        """The one that is open."""
        return next((each for each in self.stored.runs.values() if each.state == "open"), None)

    # Within a transaction.

    def _store(
        self,
        author: str,
        *,
        agent: bool,
        kind: str,
        content: str,
        operation: str,
        pinned: str = "",
        to: str | None = None,
        mentions: tuple[str, ...] = (),
        reply_to: str | None = None,
        outcome: str | None = None,
        expires_in: float | None = None,
        notice: bool = False,
    ) -> Json:
        stored, now = self.stored, self.clock()
        made = f"m{self._new()}"
        origin = stored.messages.get(reply_to or "")
        chain = (
            {"root": made, "hop": int(agent)}
            if origin is None
            else {"root": origin["chain"]["root"], "hop": origin["chain"]["hop"] + 1}
        )
        expires_in = REQUEST_EXPIRY_SECONDS if expires_in is None else expires_in
        said = {
            "id": made,
            "event": stored.head + 1,
            "channel": CHANNEL,
            "authorId": author if agent else "human",
            "author": {"id": author, "name": author, "kind": "agent" if agent else "human"},
            "kind": kind,
            "content": content,
            "to": to,
            "mentions": list(mentions),
            "replyTo": reply_to,
            "operationId": operation,
            "outcome": outcome,
            "chain": chain,
            "attachments": [],
            "createdAt": iso(now),
            "expiresAt": iso(now + expires_in) if kind == "request" else None,
            "notice": notice,
        }
        stored.messages[made] = said
        stored.operations[f"{author}:{operation}"] = (made, pinned)
        self._tell("message.created", {"message": said})
        if kind == "request" and to == AGENT:
            stored.stages[made] = Stage.STORED
        return said

    def _answered(self, body: Mapping[str, Any]) -> Run | None:
        ref = body.get("run") or body.get("notice")
        if ref is None:
            return None
        run = self._named(ref["requestId"])
        if run is None or (run.state == "freed" and not run.settled):
            raise _refusal("unknown_run", status=404)
        if run.state != "open":
            raise _refusal("run_settled" if run.settled else "run_finished", outcome=run.outcome)
        if "run" in body and (run.holder != ref["holderId"] or str(ref["fence"]) != run.fence):
            raise _refusal("fenced")
        return run

    def _close(self, run: Run, *, state: str, outcome: str | None, reason: str | None, settled: bool = False) -> None:
        self.asks.supersede(self.stored.asks, run.request)
        freed = NOT_ACCEPTED in {state, outcome}
        run.state = "freed" if freed else "settled" if settled else "finished"
        run.outcome = NOT_ACCEPTED if freed else outcome or state
        run.reason, run.settled = reason, settled
        if freed:
            run.claim, run.freed_claim = None, run.claim
        if freed and run.cancel and not settled:
            self.stored.withdrawn.add(run.message)
            self._show(run.message, Stage.WITHDRAWN)
            return
        word = outcome or state
        self._show(run.message, Stage.RECEIVED if freed else _STAGES.get(word) or stage_of_result(word))

    def _show(self, message: str, stage: Stage) -> None:
        now = self.stored.stages.get(message)
        if now is not None and may_follow(now, stage):
            self.stored.stages[message] = stage
            self._tell("message.stage", {"message": message, "stage": stage.value})

    def _tell(self, type_: str, data: Json) -> None:
        stored = self.stored
        stored.head += 1
        stored.tags[stored.head] = f"{self._new():x}"
        stored.events.append({"type": type_, "id": stored.head, "at": iso(self.clock()), "data": data})
        self.told()

    def _named(self, request: str) -> Run | None:
        return next((each for each in self.stored.runs.values() if each.request == request), None)

    def _overdue(self, asked: Json) -> bool:
        return asked["expiresAt"] is not None and seconds(asked["expiresAt"]) <= self.clock()

    def _new(self) -> int:
        self._numbers += 1
        return self._numbers

    @staticmethod
    def _is(run: Run, holder: str, fence: Any, claim: str | None) -> bool:  # noqa: ANN401 - opaque
        return run.holder == holder and str(fence) in {"None", run.fence} and claim in {None, run.claim}


def _refusal(code: str, *, status: int = 409, outcome: str | None = None) -> HubError:
    data = {} if outcome is None else {"outcome": outcome}
    return HubError(f"The hub refuses: {code}.", status=status, code=code, data=data)
