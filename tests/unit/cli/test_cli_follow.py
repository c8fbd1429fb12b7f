"""What goes on in the foreground: a log that grows and is rotated, and the feed in words."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from relay_receiver.cli.inbox import _show


def test_a_log_is_followed_over_its_rotation(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\n")
    code = "import sys, pathlib; from relay_receiver.cli.logs import follow; follow(pathlib.Path(sys.argv[1]), 1)"
    following = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert following.stdout is not None
        assert following.stdout.readline() == "two\n"
        with path.open("a") as log:
            log.write("three\nfo")
        assert following.stdout.readline() == "three\n"
        with path.open("a") as log:
            log.write("ur\n")
        assert following.stdout.readline() == "four\n"
        path.rename(tmp_path / "log.1")
        path.write_text("five\n")
        assert following.stdout.readline() == "five\n"
    finally:
        following.kill()
        following.communicate()


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (
            {"message": {"author": {"name": "bob"}, "kind": "result", "content": "\x1b]0;x"}},
            "bob (result): <U+001B>]0;x",
        ),
        ({"message": "m1", "stage": "running", "detail": None}, "message.stage m1 running"),
    ],
)
def test_an_event_in_words(
    data: dict[str, object], line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    event = {"type": "message.stage", "id": 1, "data": data}
    monkeypatch.setattr("relay_receiver.cli.inbox.as_json", lambda: False)
    _show(event)
    monkeypatch.setattr("relay_receiver.cli.inbox.as_json", lambda: True)
    _show(event)
    first, second = capsys.readouterr().out.splitlines()
    assert first == line
    assert json.loads(second) == event
