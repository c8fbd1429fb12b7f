"""Signing in and out."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import ids
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.auth import digest
from relay_receiver.hub.console import login, session
from relay_receiver.hub.console.form import Form, form
from relay_receiver.hub.console.go import go, local
from relay_receiver.hub.console.render import bare
from relay_receiver.hub.console.session import COOKIE
from relay_receiver.hub.errors import Refusal, forbidden
from relay_receiver.hub.middleware_auth import caller

STRICT = {"referrer-policy": "strict-origin"}
"""Of the page whose address holds a code: its address goes nowhere, not even to this hub's style sheet."""


def asked(request: Request, *, following: str, code: str | None = None, sentence: str | None = None) -> dict[str, Any]:
    """What the sign-in page needs.

    Args:
        following: the page that was asked for, shown after the sign-in.
        sentence: why the last try failed.
    """
    # A link on another site brings no cookie along, being SameSite=Strict: from this page on, the same link does.
    elsewhere = request.headers.get("sec-fetch-site") == "cross-site" and not code
    return {"following": following, "code": code, "sentence": sentence, "elsewhere": elsewhere}


async def page(request: Request) -> Response:
    """The sign-in; with a code it shows a button, and only that uses the code."""
    code = request.query_params.get("code") or None
    following = local(request.query_params.get("next"))
    answer = bare(request, "sign_in.html", **asked(request, following=following, code=code))
    answer.headers.update(STRICT)
    return answer


async def sign_in(request: Request) -> Response:
    """Sign in with a code or a token; the browser's sign-in until now ends."""
    given = await form(request)
    tries, address = request.app.state.console.rates.sign_ins, caller(request.scope)
    tries.take(address)
    token = ids.token()
    try:
        await _begin(request, given, token)
    except Refusal as refusal:
        if refusal.status != 403:
            raise
        following = local(given.get("next"))
        told = asked(request, following=following, sentence=refusal.sentence)
        answer = bare(request, "sign_in.html", status=403, **told)
        answer.headers.update(STRICT)
        return answer
    tries.give_back(address)
    answer = go(local(given.get("next")))
    answer.set_cookie(
        COOKIE,
        token,
        max_age=session.SECONDS,
        path="/",
        secure=_is_secure(request),
        httponly=True,
        samesite="strict",
    )
    return answer


async def _begin(request: Request, given: Form, token: str) -> None:
    store, before = store_of(request), request.cookies.get(COOKIE)
    new: dict[str, Any] = {
        "token": token,
        "csrf": ids.token(),
        "before": digest(before) if before else None,
        "at": time.time(),
    }
    if code := given.filled("code"):
        await store.write(login.by_link, code, **new)
    elif secret := given.filled("token"):
        await store.write(login.by_token, secret, **new)
    else:
        raise forbidden("A sign-in needs a one-time link or a token.", "nothing_given")


def _is_secure(request: Request) -> bool:
    """Whether the browser came over TLS: to this hub, or to a proxy before it."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


async def sign_out(request: Request) -> Response:
    """End the sign-in, here and at the hub."""
    await store_of(request).write(session.end, session.session_of(request).digest)
    answer = go("/sign-in", said="signed-out")
    answer.delete_cookie(COOKIE, path="/", secure=_is_secure(request), httponly=True, samesite="strict")
    return answer


routes = [
    Route("/sign-in", page, methods=["GET"]),
    Route("/sign-in", sign_in, methods=["POST"]),
    Route("/sign-out", sign_out, methods=["POST"]),
]
