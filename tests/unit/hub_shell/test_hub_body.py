import json

import pytest

from relay_receiver.hub import body
from relay_receiver.hub.errors import Refusal


def nested(depth: int) -> bytes:
    return b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)


def test_depth_is_bounded_exactly() -> None:
    assert body.parse(nested(32))
    for depth in (33, 1000, 100_000):
        with pytest.raises(Refusal) as refused:
            body.parse(nested(depth))
        assert refused.value.code == "too_deep"


def test_many_brackets_in_text_are_not_depth() -> None:
    assert body.parse(json.dumps({"content": "[{" * 1000}).encode())["content"]
    assert len(body.parse(json.dumps({"a": [[]] * 500}).encode())["a"]) == 500


def test_what_no_database_keeps_is_refused_wherever_it_stands() -> None:
    for raw in (rb'{"a":"\u0000"}', rb'{"\ud800":1}', rb'{"a":[{"b":"\udc00"}]}', b'{"a":"\xed\xa0\x80"}'):
        with pytest.raises(Refusal) as refused:
            body.parse(raw)
        assert (refused.value.status, refused.value.code) == (400, "unstorable_text"), raw
    assert body.parse(rb'{"a":"\ud83d\ude00"}') == {"a": "\N{GRINNING FACE}"}


def test_an_empty_body_is_an_empty_object() -> None:
    assert body.parse(b" \n") == {}


def test_numbers_keep_within_64_bits() -> None:
    assert body.parse(b'{"a":9223372036854775807,"b":-9223372036854775808}')
    for raw in (b'{"a":9223372036854775808}', b'{"a":-9223372036854775809}', b'{"a":1e400}', b'{"a":' + b"1" * 9999):
        with pytest.raises(Refusal):
            body.parse(raw + (b"" if raw.endswith(b"}") else b"}"))


def test_content_is_counted_in_bytes() -> None:
    assert body.text({"a": "é" * 5}, "a", most_bytes=10)
    with pytest.raises(Refusal) as refused:
        body.text({"a": "é" * 6}, "a", most_bytes=11)
    assert refused.value.status == 413
