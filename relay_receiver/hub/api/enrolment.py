"""Joining: `/enroll`, `/invites`, and the agent's own `/agent-identity`."""

import time
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import enrolment, members
from relay_receiver.hub.answer import Json as Answer
from relay_receiver.hub.api.given import Json, member_of, name, store_of
from relay_receiver.hub.auth import digest
from relay_receiver.hub.body import flag, integer, optional_text, read_json, text
from relay_receiver.hub.errors import invalid
from relay_receiver.hub.middleware_auth import bearer

SECRET_CHARS = 32
"""A secret has at least 32 bytes of randomness, so its text has at least as many characters."""


async def enroll(request: Request) -> Response:
    """Join with a code; repeated with the same secrets it gives the same membership."""
    body = await read_json(request)
    joined = await store_of(request).write(
        enrolment.enroll,
        code=text(body, "invite"),
        client_secret=text(body, "clientSecret", least=SECRET_CHARS, most=512),
        identity_secret=text(body, "identitySecret", least=SECRET_CHARS, most=512),
        name=name(body),
        at=time.time(),
    )
    return Answer(joined)


async def invite(request: Request) -> Response:
    """Make a code for one channel: for an agent, or with `person` for a person."""
    actor = member_of(request)
    body = await read_json(request)
    channel, person = text(body, "channel"), flag(body, "person")
    made = await store_of(request).write(enrolment.invite, actor, channel, person=person, at=time.time())
    return Answer({**made.to_json(), "channel": channel}, 201)


async def get_identity(request: Request) -> Response:
    """The global profile behind an identity secret."""
    return Answer({"identity": await store_of(request).read(members.get_identity, digest(bearer(request.scope)))})


async def patch_identity(request: Request) -> Response:
    """Change the global profile; a stale `rev` is refused."""
    secret = digest(bearer(request.scope))
    body = await read_json(request)
    changes: Json = {}
    if "name" in body:
        changes["name"] = name(body)
    if "avatarUrl" in body:
        changes["avatarUrl"] = _url(optional_text(body, "avatarUrl", most=2048))
    if "signature" in body:
        changes["signature"] = optional_text(body, "signature", most=1024)
    store = store_of(request)
    if not changes:
        return Answer({"identity": await store.read(members.get_identity, secret)})
    changed = await store.write(
        members.change_identity, secret, rev=integer(body, "rev"), changes=changes, at=time.time()
    )
    return Answer({"identity": changed})


def _url(given: str | None) -> str | None:
    if not given:
        return None
    try:
        scheme = urlsplit(given).scheme
    except ValueError:
        scheme = ""
    if scheme not in {"http", "https"}:
        raise invalid("avatarUrl", "`avatarUrl` must be an http or https address.")
    return given


routes = [
    Route("/enroll", enroll, methods=["POST"]),
    Route("/invites", invite, methods=["POST"]),
    Route("/agent-identity", get_identity, methods=["GET"]),
    Route("/agent-identity", patch_identity, methods=["PATCH"]),
]
