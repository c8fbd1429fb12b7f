"""A scripted model on loopback: the part of the OpenAI Responses API that Codex speaks, for tests and demos.

What it answers is decided by the last line `model: VERB REST` in the newest message of the user:

    say TEXT          answer with TEXT                      nothing           end without a word
    note TEXT         commentary, then the final answer     big N             answer with N characters
    hold NAME VERB..  do VERB once `release(NAME)` is called
    begin NAME        begin a message, go on at `release(NAME)`
    run CMD           run a command in the sandbox          escalate CMD      ask to run it outside
    escalates A;;B    ask for both at once                  patch PATH TEXT   write a file by a patch
    tool NS/NAME JSON call a tool                           cut               break the stream off
    fail CODE         `response.failed` with CODE           status N          answer with that HTTP status
    limit SECONDS     a usage limit that ends in SECONDS
    ask NAME TEXT     send NAME a request with the tools of relay, wait for its end, answer with that

After a tool's output it answers `after the tool: ` and the end of that output.
"""

import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast

JSON = dict[str, Any]

PATIENCE = 60.0
"""Seconds after which what is waited for counts as never coming."""
HOLD_SECONDS = 600.0
"""How long a held answer waits for its release before the stream is broken off."""

_LINE = re.compile(r"^model: (\w+) ?(.*)$", re.MULTILINE)
_SENT = re.compile(r"msg_\w+")
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_ERRORS: Mapping[int, JSON] = {
    400: {"message": "the request is not valid", "type": "invalid_request_error"},
    401: {"message": "the key is not valid", "type": "invalid_request_error", "code": "invalid_api_key"},
    429: {"message": "too many requests", "type": "rate_limit_exceeded", "code": "rate_limit_exceeded"},
    500: {"message": "something broke", "type": "server_error", "code": "server_error"},
    503: {"message": "overloaded", "type": "server_error", "code": "server_is_overloaded"},
}


class ModelEndpoint:
    """Serves the script above on a free port of loopback, for as long as the `with` block lasts."""

    def __init__(self) -> None:
        self.requests: list[JSON] = []
        """What Codex sent: `{verb, rest, outputs, bytes, tools}` of each request, oldest first."""
        self._gates: dict[str, threading.Event] = {}
        self.words: dict[str, str] = {}
        """What was given to `release`, by name."""
        self._changed = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Exchange)
        self._server.endpoint = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="model", daemon=True)

    @property
    def url(self) -> str:
        """The base URL for `model_providers.NAME.base_url`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        with self._changed:
            for gate in self._gates.values():
                gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def release(self, name: str, text: str = "") -> None:
        """Let what is held under `name` go on, now and in future; a `hold` that names no verb says `text`."""
        self.words[name] = text or f"held {name}"
        self.gate(name).set()

    def gate(self, name: str) -> threading.Event:
        """The event on which `hold NAME` and `begin NAME` wait."""
        with self._changed:
            return self._gates.setdefault(name, threading.Event())

    def wait_for(self, wanted: Callable[[Sequence[JSON]], bool], *, within: float = PATIENCE) -> bool:
        """Wait until the requests seen so far are what is `wanted`; False if they never were."""
        with self._changed:
            return self._changed.wait_for(lambda: wanted(self.requests), within)

    def saw(self, request: JSON) -> None:
        """Keep what was asked, and wake whoever waits for it."""
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    endpoint: ModelEndpoint

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in the middle of an answer is part of the script."""


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def endpoint(self) -> ModelEndpoint:
        return cast("_Server", self.server).endpoint

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """An empty list of models."""
        self._json(200, {"models": [], "data": []})

    def do_POST(self) -> None:
        """Answer one request of a turn."""
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body: JSON = json.loads(raw)
        verb, rest, outputs = _directive(body.get("input") or [])
        tools = [tool.get("name") or tool.get("type") for tool in body.get("tools", [])]
        self.endpoint.saw({"verb": verb, "rest": rest, "outputs": outputs, "bytes": len(raw), "tools": tools})
        if verb == "ask" and len(outputs) == 1 and (sent := _SENT.search(json.dumps(outputs[0]))):
            self._open()
            self._items([_call("wait", {"id": sent[0]}, "mcp__relay")])
        elif outputs:
            self._open()
            self._items([_message(f"after the tool: {json.dumps(outputs[-1])[-2000:]}")])
        else:
            self._do(verb, rest)

    def _do(self, verb: str, rest: str) -> None:
        getattr(self, f"_do_{verb}", self._do_say)(rest)

    # One method a verb.

    def _do_say(self, rest: str) -> None:
        self._open()
        self._items([_message(rest or "hello")])

    def _do_note(self, rest: str) -> None:
        self._open()
        self._items([_message("a note on the way", "commentary"), _message(rest, "final_answer")])

    def _do_nothing(self, _rest: str) -> None:
        self._open()
        self._items([])

    def _do_big(self, rest: str) -> None:
        self._open()
        self._items([_message("x" * int(rest))])

    def _do_hold(self, rest: str) -> None:
        name, _, after = rest.partition(" ")
        if self.endpoint.gate(name).wait(HOLD_SECONDS):
            verb, _, more = (after or f"say {self.endpoint.words[name]}").partition(" ")
            self._do(verb, more)

    def _do_begin(self, rest: str) -> None:
        self._open()
        item = _message(f"begun {rest}")
        self._begin(0, item)
        self._delta(0, item, "begun ")
        if self.endpoint.gate(rest).wait(HOLD_SECONDS):
            self._end(0, item)
            self._complete()

    def _do_run(self, rest: str) -> None:
        self._open()
        self._items([_message("running it", "commentary"), _call("exec_command", {"cmd": rest})])

    def _do_escalate(self, rest: str) -> None:
        wanted = {"cmd": rest, "sandbox_permissions": "require_escalated", "justification": "May it run outside?"}
        self._open()
        self._items([_call("exec_command", wanted)])

    def _do_escalates(self, rest: str) -> None:
        asked = {"sandbox_permissions": "require_escalated", "justification": "May they run outside?"}
        self._open()
        self._items([_call("exec_command", {"cmd": each.strip(), **asked}) for each in rest.split(";;")])

    def _do_patch(self, rest: str) -> None:
        path, _, text = rest.partition(" ")
        patch = f"*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch"
        self._open()
        self._items([_call("exec_command", {"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF"})])

    def _do_tool(self, rest: str) -> None:
        name, _, arguments = rest.partition(" ")
        space, _, tool = name.rpartition("/")
        self._open()
        self._items([_call(tool, json.loads(arguments or "{}"), space or None)])

    def _do_ask(self, rest: str) -> None:
        name, _, text = rest.partition(" ")
        self._open()
        self._items([_call("send", {"to": name, "content": text}, "mcp__relay")])

    def _do_cut(self, _rest: str) -> None:
        self._open()
        item = _message("never finished")
        self._begin(0, item)
        self._delta(0, item, "never ")

    def _do_fail(self, rest: str) -> None:
        self._open()
        error = {"code": rest, "message": f"the model failed: {rest}"}
        self._event("response.failed", response={"id": "r", "status": "failed", "error": error})

    def _do_status(self, rest: str) -> None:
        self._json(int(rest), {"error": _ERRORS[int(rest)]})

    def _do_limit(self, rest: str) -> None:
        resets = int(time.time()) + int(rest)
        error = {"message": "the usage limit", "type": "usage_limit_reached", "plan_type": "plus", "resets_at": resets}
        self._json(429, {"error": error})

    # The wire.

    def _json(self, status: int, body: JSON) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _open(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self._event("response.created", response={"id": "r"})

    def _event(self, kind: str, **data: Any) -> None:  # noqa: ANN401 - JSON
        text = json.dumps({"type": kind, **data})
        self.wfile.write(f"event: {kind}\ndata: {text}\n\n".encode())
        self.wfile.flush()

    def _items(self, items: Sequence[JSON]) -> None:
        for index, item in enumerate(items):
            self._begin(index, item)
            if item["type"] == "message":
                self._delta(index, item, item["content"][0]["text"])
            self._end(index, item)
        self._complete()

    def _begin(self, index: int, item: JSON) -> None:
        empty: JSON = {"content": []} if item["type"] == "message" else {}
        self._event("response.output_item.added", output_index=index, item={**item, "status": "in_progress", **empty})

    def _delta(self, index: int, item: JSON, text: str) -> None:
        kind = "response.output_text.delta"
        self._event(kind, item_id=item["id"], output_index=index, content_index=0, delta=text)

    def _end(self, index: int, item: JSON) -> None:
        self._event("response.output_item.done", output_index=index, item=item)

    def _complete(self) -> None:
        usage = {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 20},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 110,
        }
        response = {"id": "r", "object": "response", "status": "completed", "output": [], "usage": usage}
        self._event("response.completed", response=response)


def _directive(items: Sequence[JSON]) -> tuple[str, str, list[Any]]:
    """The verb and its rest from the newest message that has one, and the tool outputs since then."""
    outputs: list[Any] = []
    for item in reversed(items):
        if item.get("type") in _OUTPUTS:
            outputs.insert(0, item.get("output"))
        if item.get("role") != "user":
            continue
        text = "\n".join(part.get("text", "") for part in item.get("content", []))
        if found := _LINE.findall(text):
            verb, rest = found[-1]
            return verb, rest.strip(), outputs
    return "say", "", outputs


def _message(text: str, phase: str | None = None) -> JSON:
    said = {"type": "output_text", "text": text, "annotations": []}
    name = f"msg_{uuid.uuid4().hex[:12]}"
    item = {"type": "message", "id": name, "role": "assistant", "status": "completed", "content": [said]}
    return item if phase is None else {**item, "phase": phase}


def _call(name: str, arguments: JSON, space: str | None = None) -> JSON:
    call: JSON = {
        "type": "function_call",
        "id": f"fc_{uuid.uuid4().hex[:12]}",
        "call_id": f"call_{uuid.uuid4().hex[:12]}",
        "name": name,
        "arguments": json.dumps(arguments),
    }
    return call if space is None else {**call, "namespace": space}
