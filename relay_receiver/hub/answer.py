"""Answers: JSON in one form, over HTTP and in place of a socket's opening."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from relay_receiver.hub.errors import Refusal


class Raw(Response):
    """JSON that is made already; nobody on the way keeps it."""

    media_type = "application/json"

    def __init__(self, content: str | bytes, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(content, status_code, {"cache-control": "no-store", **(headers or {})})


class Json(Raw):
    """A JSON answer, compact."""

    def __init__(
        self,
        content: Any,  # noqa: ANN401 - JSON
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(dumps(content), status_code, headers)


def dumps(value: Any) -> str:  # noqa: ANN401 - JSON
    """A value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def refused(refusal: Refusal) -> Json:
    """The answer that tells a refusal."""
    return Json(refusal.to_json(), refusal.status, refusal.headers)


async def send_refusal(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    """Tell a refusal, whether a request or the opening of a socket is refused."""
    if scope["type"] == "http":
        await refused(refusal)(scope, receive, send)
        return
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.code})
        return
    answer = refused(refusal)
    await send({"type": "websocket.http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
    await send({"type": "websocket.http.response.body", "body": answer.body})
