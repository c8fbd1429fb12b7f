import pytest

from relay_receiver.wire.cursor import Cursor


@pytest.mark.parametrize("text", ["0", "17", "17.ab", "999999999999999999.0123456789abcdef"])
def test_a_cursor_comes_back_as_it_was_sent(text: str) -> None:
    assert str(Cursor.parse(text)) == text


def test_a_bare_integer_is_accepted_too() -> None:
    assert Cursor.parse(17) == Cursor.parse("17") == Cursor(17)
    assert Cursor.parse("17.a0") == Cursor(17, "a0")


@pytest.mark.parametrize(
    "value",
    ["", "-1", "+1", " 1", "1 ", "1\n", "1.", ".a", "1.g", "1.AB", "1.a.b", "1e3", "0x1", "\u0661\u0662", "1" * 19,
     "1." + "a" * 17, True, False, -1, 10**18, 1.0, None, [1], {}],
)  # fmt: skip
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not one that a hub made"):
        Cursor.parse(value)
