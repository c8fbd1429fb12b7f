"""Answers: JSON in one form, over HTTP and in place of a socket's opening."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from relay_receiver.hub.errors import Refusal


class Json(Response):
    """A JSON answer, compact, that nobody on the way keeps."""

    media_type = "application/json"

    def __init__(
        self,
        content: Any,  # noqa: ANN401 - JSON
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(content, status_code, {"cache-control": "no-store", **(headers or {})})

    def render(self, content: Any) -> bytes:  # noqa: ANN401 - JSON
        """The bytes of a JSON value."""
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


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
