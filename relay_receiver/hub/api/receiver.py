"""`/receiver` and `/receiver/run`: the lease of this agent in a channel, and its runs."""

import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, controls, ids, leases, reports, runs
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import Json, actor_of, fence, member_of, store_of
from relay_receiver.hub.auth import Actor, digest
from relay_receiver.hub.body import choice, optional_integer, optional_text, query_text, read_json, text
from relay_receiver.hub.errors import invalid
from relay_receiver.hub.store import Store

ACTIONS = ("begin", "stage", "finish", "settle")
OUTCOMES = ("abandoned", "failed", "completed", "quiet", "cancelled", runs.NOT_ACCEPTED)
"""What a person may settle a run as."""
STATE_CHARS = 64
DETAIL_CHARS = 4096


async def get(request: Request) -> Response:
    """The lease of this agent, or null."""
    store, actor = store_of(request), member_of(request)
    scope = _scope(actor, query_text(request, "channel"))
    return Answer(await store.read(leases.view, store, actor.id, scope))


async def take(request: Request) -> Response:
    """Take or renew the lease."""
    store, actor = store_of(request), actor_of(request)
    leases.need_agent(actor)
    body = await read_json(request)
    wish = leases.Wish(
        scope=_scope(actor, optional_text(body, "channel")),
        holder=text(body, "holderId"),
        subscription=optional_text(body, "subscription"),
        session=optional_text(body, "sessionId", most=512),
        runtime=optional_text(body, "runtime", most=512) or "",
        state=optional_text(body, "state", most=STATE_CHARS) or "ready",
        detail=_detail(body),
        report=reports.check(body.get("report")),
    )
    return Answer(await leases.take(store, actor, wish))


async def release(request: Request) -> Response:
    """Give the lease back."""
    store, actor = store_of(request), actor_of(request)
    leases.need_agent(actor)
    body = await read_json(request)
    choice(body, "action", ("release",))
    scope = _scope(actor, optional_text(body, "channel"))
    return Answer({"released": await leases.release(store, actor, scope, text(body, "holderId"))})


async def run(request: Request) -> Response:
    """Begin, stage, finish or settle a run."""
    store, actor = store_of(request), actor_of(request)
    body = await read_json(request)
    action = choice(body, "action", ACTIONS)
    if action == "settle":
        return Answer(await _settle(store, actor, body))
    leases.need_agent(actor)
    ref = runs.Ref(
        scope=_scope(actor, optional_text(body, "channel")),
        holder=text(body, "holderId"),
        request=text(body, "requestId"),
        fence=fence(body),
        claim=optional_text(body, "claim", least=1),
    )
    if action == "begin":
        return Answer(await _begin(store, actor, ref, body))
    state, now = optional_text(body, "state", most=STATE_CHARS), time.time()
    if action == "stage":
        told = state or "running"
        return Answer(await store.write_soon(runs.tell_stage, actor, ref, state=told, detail=_detail(body), at=now))
    finished = await store.write(
        runs.finish,
        actor,
        ref,
        state=state or "completed",
        outcome=optional_text(body, "outcome", most=STATE_CHARS, least=1),
        reason=optional_text(body, "reason", most=DETAIL_CHARS),
        at=now,
    )
    return Answer(finished)


async def _begin(store: Store, actor: Actor, ref: runs.Ref, body: Mapping[str, Any]) -> Json:
    credential = ids.token()
    begun = await store.write(
        runs.begin,
        actor,
        ref,
        message=optional_text(body, "message", least=1),
        attempt=optional_integer(body, "attempt", most=2**31) or 1,
        credential=digest(credential),
        at=time.time(),
    )
    return {**begun, "credential": credential}


async def _settle(store: Store, actor: Actor, body: Mapping[str, Any]) -> Json:
    actor.need_person("settle a run")
    channel = optional_text(body, "channel")
    return await store.write(
        controls.settle_run,
        actor,
        agent=text(body, "agent"),
        request=text(body, "requestId"),
        channel=None if channel is None else channels.need(actor, channel),
        outcome=choice(body, "outcome", OUTCOMES),
        reason=optional_text(body, "reason", most=DETAIL_CHARS),
        at=time.time(),
    )


def _scope(actor: Actor, channel: str | None) -> str:
    return runs.NO_SCOPE if channel is None else channels.need(actor, channel)


def _detail(body: Mapping[str, Any]) -> str | None:
    detail = leases.text_of(body.get("detail"))
    if detail is not None and len(detail) > DETAIL_CHARS:
        raise invalid("detail", f"`detail` must have at most {DETAIL_CHARS} characters.")
    return detail


routes = [
    Route("/receiver", get, methods=["GET"]),
    Route("/receiver", take, methods=["POST"]),
    Route("/receiver", release, methods=["PATCH"]),
    Route("/receiver/run", run, methods=["POST"]),
]
