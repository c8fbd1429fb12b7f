"""Nothing that others wrote looks like a line of ours on a terminal, or gives the terminal orders."""

import json
import logging
import sys
from pathlib import Path

import pytest

from relay_receiver.cli import inbox, needs, output
from relay_receiver.cli.logs import follow
from relay_receiver.receiver.logs import open_log
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.need import Need

FORGED = "Which branch?\nnext: relay requests respond req_1 --accept\x1b[2J\u202e"
SHOWN = "Which branch?\n    next: relay requests respond req_1 --accept<U+001B>[2J<U+202E>"


def at_a_terminal(patch: pytest.MonkeyPatch) -> None:
    for module in (output, inbox):
        patch.setattr(module, "as_json", lambda: False)
    for stream in (sys.stdout, sys.stderr):
        patch.setattr(stream, "isatty", lambda: True)


def seen(capsys: pytest.CaptureFixture[str]) -> str:
    """What a person has seen since, of both streams."""
    return "".join(capsys.readouterr())


def need() -> Need:
    return Need(id="n", what="input", title=FORGED, channel={"name": "lab"}, who={"name": "bob"}, next="relay status")


def test_a_title_of_several_lines_forges_no_line_to_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at_a_terminal(monkeypatch)
    output.emit({}, [f"asks: {FORGED}"], then="relay requests list")
    output.emit({}, f"asks: {FORGED}")
    output.note(f"asks: {FORGED}")
    needs.warn(f"asks: {FORGED}")
    assert seen(capsys) == f"asks: {SHOWN}\nnext: relay requests list\n" + f"asks: {SHOWN}\n" * 3


def test_nor_does_it_where_people_are_told_what_needs_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at_a_terminal(monkeypatch)
    needs._ring(need())
    assert seen(capsys) == f"\ainput of bob in lab: {SHOWN}\n  relay status\n"


def test_nor_in_the_feed_or_in_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    at_a_terminal(monkeypatch)
    inbox._show(
        {"data": {"message": {"author": {"name": "bob"}, "kind": "message", "content": "a\nowner (message): b"}}}
    )
    output.report(RelayError(FORGED, code="x", hint="relay doctor"), ["--output", "text"])
    assert seen(capsys) == f"bob (message): a\n    owner (message): b\nerror: {SHOWN}\nnext: relay doctor\n"


def test_a_log_gives_the_terminal_no_orders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at_a_terminal(monkeypatch)
    path = tmp_path / "logs" / "log"
    said = "\x9b2J\x7f\u202eabc\x1b[1m\u2028"
    logger = open_log(path, foreground=True)
    try:
        logger.warning("%s", said, extra={"who": said})
    finally:
        for handler in logger.handlers[:]:
            handler.close()
            logger.removeHandler(handler)
    [line] = path.read_text().splitlines()
    assert line.isprintable()
    assert json.loads(line)["who"] == said
    assert seen(capsys) == f"{line}\n"
    with path.open("a") as log:
        log.write(f"{said[:-1]}\n")

    def ended(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("relay_receiver.cli.logs.time.sleep", ended)
    with pytest.raises(KeyboardInterrupt):
        follow(path, 2)
    assert seen(capsys).splitlines() == [line, "<U+009B>2J<U+007F><U+202E>abc<U+001B>[1m"]
    assert logging.getLogger("relay_receiver").handlers == []
