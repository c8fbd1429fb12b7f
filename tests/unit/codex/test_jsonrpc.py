import json

import pytest

from relay_receiver.adapters import jsonrpc
from relay_receiver.adapters.jsonrpc import Call, Notice, Reply


def test_a_call_keeps_the_exact_type_of_its_id() -> None:
    numbered = jsonrpc.parse(b'{"id":0,"method":"ask","params":{"a":1}}')
    named = jsonrpc.parse(b'{"id":"0","method":"ask"}')
    assert numbered == Call(id=0, method="ask", params={"a": 1})
    assert named == Call(id="0", method="ask", params={})
    assert json.loads(jsonrpc.reply(0, {})) == {"id": 0, "result": {}}


def test_a_notice_and_an_answer_are_told_apart() -> None:
    assert jsonrpc.parse(b'{"method":"turn/started","params":{}}') == Notice(method="turn/started", params={})
    assert jsonrpc.parse(b'{"id":"x","result":{"a":1}}') == Reply(id="x", result={"a": 1})


def test_an_error_answer_carries_code_and_data() -> None:
    reply = jsonrpc.parse(b'{"id":"x","error":{"code":-32602,"message":"too long","data":{"k":1}}}')
    assert isinstance(reply, Reply)
    assert reply.fault is not None
    assert (reply.fault.code, reply.fault.message, reply.fault.data) == (-32602, "too long", {"k": 1})


def test_an_error_of_any_shape_is_an_error() -> None:
    reply = jsonrpc.parse(b'{"id":1,"error":"odd"}')
    assert isinstance(reply, Reply)
    assert reply.fault is not None
    assert reply.fault.message == "odd"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"text",
        b"[]",
        b'"x"',
        b"{}",
        b'{"id":null,"result":1}',
        b'{"id":true,"result":1}',
        b"\xff\xfe",
        b"[" * 5000,
    ],
)
def test_what_is_no_message_is_passed_over(line: bytes) -> None:
    assert jsonrpc.parse(line) is None


def test_lines_are_one_line_each() -> None:
    for line in (jsonrpc.call("a", "m", {"t": "x\ny"}), jsonrpc.notice("n"), jsonrpc.fault(1, -32601, "no")):
        assert b"\n" not in line
