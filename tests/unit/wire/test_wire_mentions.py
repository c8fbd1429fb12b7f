import pytest

from relay_receiver.wire.code import blanked
from relay_receiver.wire.fingerprint import fingerprint
from relay_receiver.wire.mentions import mentioned

ROSTER = [("1", "Bob"), ("2", "Bob Smith"), ("3", "über"), ("4", "c++"), ("5", "bob-2"), ("6", "twin"), ("7", "Twin")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hello @Bob", ["1"]),
        ("@BOB, @bob: @Bob.", ["1"]),
        ("@Bob Smith and @bob smithson", ["2", "1"]),
        ("@Bobby bob@bob.com @@bob a@bob", []),
        ("@bob.com and @bob-3", []),
        ("@bob-2 @bob's", ["5", "1"]),
        ("@ÜBER @c++!", ["3", "4"]),
        ("@twin", ["6", "7"]),
        ("`@bob` ``a ` @bob`` @über", ["3"]),
        ("```\n@bob\n```\n@über", ["3"]),
        ("~~~sh\n@bob\n", []),
        ("a ` stray tick @bob", ["1"]),
        ("", []),
    ],
)
def test_mentions(text: str, found: list[str]) -> None:
    assert mentioned(text, ROSTER) == found


def test_a_hostile_text_takes_no_time() -> None:
    assert mentioned("`" * 5000 + "@" * 30000 + "``" * 5000, ROSTER) == []
    growing = " ".join("`" * n for n in range(1, 360))
    assert blanked(growing) == growing


def test_a_fingerprint_pins_what_was_said() -> None:
    said = {"channel": "c", "to": None, "kind": "message", "reply_to": None, "mentions": (), "content": "x"}
    one = fingerprint(**said, attachments=())
    assert one == fingerprint(**{**said, "mentions": []}, attachments=[])
    assert (
        len({one, fingerprint(**{**said, "content": "y"}, attachments=()), fingerprint(**said, attachments=["a"])}) == 3
    )
