"""JSON-RPC as stdio agents speak it: one JSON object a line, ids of any type, no I/O here.

Lines are made without their newline. The member `"jsonrpc"` is neither sent nor asked for.
"""

import json
from dataclasses import dataclass
from typing import Any

JSON = dict[str, Any]
Id = str | int

METHOD_NOT_FOUND = -32601


class Fault(Exception):  # noqa: N818 - the protocol's error answer, which may be expected
    """The other side answered a call with an error."""

    def __init__(self, message: str, code: int = 0, data: Any = None) -> None:  # noqa: ANN401 - JSON
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A method that wants an answer under the same id, of the same type."""

    id: Id
    method: str
    params: JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """A method that wants no answer."""

    method: str
    params: JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The answer to a call: a result, or an error."""

    id: Id
    result: Any = None
    fault: Fault | None = None


Message = Call | Notice | Reply


def parse(line: bytes) -> Message | None:
    """The message of one line; None for what is none, which every reader passes over."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    name, method = value.get("id"), value.get("method")
    if isinstance(name, bool) or not isinstance(name, str | int):
        name = None
    if isinstance(method, str):
        params = value.get("params")
        params = params if isinstance(params, dict) else {}
        return Notice(method=method, params=params) if name is None else Call(id=name, method=method, params=params)
    if name is None:
        return None
    error = value.get("error")
    return Reply(id=name, result=value.get("result"), fault=None if error is None else _fault(error))


def _fault(error: Any) -> Fault:  # noqa: ANN401 - JSON
    if not isinstance(error, dict):
        return Fault(str(error))
    code = error.get("code")
    return Fault(str(error.get("message", "")), code if isinstance(code, int) else 0, error.get("data"))


def call(name: Id, method: str, params: JSON) -> bytes:
    """The line of a call."""
    return _line({"id": name, "method": method, "params": params})


def notice(method: str) -> bytes:
    """The line of a notice without parameters."""
    return _line({"method": method})


def reply(name: Id, result: JSON) -> bytes:
    """The line that answers a call."""
    return _line({"id": name, "result": result})


def fault(name: Id, code: int, message: str) -> bytes:
    """The line that answers a call with an error."""
    return _line({"id": name, "error": {"code": code, "message": message}})


def _line(value: JSON) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
