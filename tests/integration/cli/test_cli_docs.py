"""Documents, tasks and search on the command line, by real processes at a real hub."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support_cli import Machine, machine
from support_time import WITHIN


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine with a hub, its owner and bob, an agent, in the channel lab."""
    with machine(tmp_path_factory.mktemp("docs") / "home") as made:
        url = made.ok("hub", "start", "--port", "0")["url"]
        invite = made.ok("channels", "create", "lab")["invite"]
        made.ok("connect", f"{url}#{invite['code']}", "--name", "bob")
        yield made


def _make(here: Machine, content: str = "# One\n", title: str = "Plan") -> Any:
    return here.ok("docs", "create", "--title", title, "--content", "-", "--profile", "default", say=content)


def test_a_document_from_making_to_its_history(here: Machine) -> None:
    made = _make(here)
    changed = here.ok(
        "docs", "edit", made["id"], "--rev", "1", "--content", "# Two", "--title", "Plan B", "--profile", "bob"
    )
    assert (changed["rev"], changed["updatedBy"]["name"]) == (2, "bob")
    assert here.ok("docs", "show", made["id"], "--rev", "1", "--profile", "bob")["content"] == "# One\n"
    listed = here.ok("docs", "history", made["id"], "--profile", "bob")["revisions"]
    assert [(each["rev"], each["title"]) for each in listed] == [(2, "Plan B"), (1, "Plan")]
    assert made["id"] in {each["id"] for each in here.ok("docs", "list", "--profile", "bob")["docs"]}
    shown = here.text("docs", "show", made["id"], "--profile", "bob")
    assert f"Plan B ({made['id']}, revision 2 by bob" in shown
    assert "\n# Two\n" in shown
    here.ok("docs", "edit", made["id"], "--archive", "--profile", "bob")
    assert made["id"] not in {each["id"] for each in here.ok("docs", "list", "--profile", "bob")["docs"]}
    assert made["id"] in here.text("docs", "list", "--archived", "--profile", "bob")


def test_the_second_of_two_changes_keeps_its_text_in_a_file(here: Machine) -> None:
    made = _make(here)
    edit = ("docs", "edit", made["id"], "--rev", "1", "--content", "-", "--profile")
    here.ok(*edit, "bob", say="bob's")
    lost = here.relay(*edit, "default", say="mine, of three lines\n\nend\n")
    assert (lost.code, lost.err["code"]) == (3, "stale_rev")
    assert lost.err["current"]["content"] == "bob's"
    kept = Path(lost.err["hint"].partition("--content-file ")[2])
    assert str(kept) in lost.err["hint"].partition(".md")[0] + ".md"
    assert kept.read_text() == "mine, of three lines\n\nend\n"
    assert kept.stat().st_mode & 0o077 == 0 or kept.parent.stat().st_mode & 0o077 == 0
    here.ok("docs", "edit", made["id"], "--rev", "2", "--content-file", str(kept), "--profile", "default")
    assert kept.exists()
    kept.unlink()
    kept.parent.rmdir()


def test_a_text_that_the_hub_does_not_take_is_kept(here: Machine) -> None:
    made = _make(here)
    large = "x" * (256 * 1024 + 1)
    for words in (["edit", made["id"], "--rev", "1"], ["create", "--title", "Large"]):
        told = here.relay("docs", *words, "--content", "-", "--profile", "default", say=large)
        assert (told.code, told.err["code"]) == (3, "too_large")
        kept = Path(told.err["hint"].removeprefix("Your text is in ").partition(". Next")[0])
        assert kept.read_text() == large
        kept.unlink()
        kept.parent.rmdir()
    no_rev = here.relay("docs", "edit", made["id"], "--content", "x", "--profile", "default")
    assert (no_rev.code, no_rev.err["code"]) == (2, "usage")
    no_terminal = here.relay("docs", "edit", made["id"], "--profile", "default")
    assert (no_terminal.code, no_terminal.err["code"]) == (2, "usage")


def _in_a_terminal(here: Machine, editor: str, *words: str) -> tuple[int, str]:
    """Run a line at a terminal whose $EDITOR is a program of ours; its exit code and what it showed."""
    program = here.project / "editor.py"
    program.write_text(editor)
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "relay_receiver.cli.main", *words],
        stdin=side,
        stdout=side,
        stderr=side,
        env=here.environment(EDITOR=f"{sys.executable} {program}", VISUAL="", TMPDIR=str(here.project)),
    )
    os.close(side)
    shown = b""
    try:
        while piece := os.read(main, 4096):
            shown += piece
    except OSError:  # how a terminal says that nobody is left at its other side
        pass
    finally:
        os.close(main)
    return process.wait(WITHIN), shown.decode()


def test_an_editor_at_a_terminal_changes_a_document_or_leaves_it(here: Machine) -> None:
    made = _make(here)
    edit = ("docs", "edit", made["id"], "--profile", "default")
    add = "import sys, pathlib; p = pathlib.Path(sys.argv[-1]); p.write_text(p.read_text() + 'more')"
    code, shown = _in_a_terminal(here, add, *edit)
    assert (code, "is at revision 2" in shown) == (0, True), shown
    assert here.ok("docs", "show", made["id"], "--profile", "default")["content"] == "# One\nmore"
    code, shown = _in_a_terminal(here, "", *edit)
    assert (code, "Nothing was changed" in shown) == (0, True), shown
    assert not list(here.project.glob("relay-*"))


def test_what_was_typed_in_an_editor_outlives_a_conflict_and_an_editor_that_fails(here: Machine) -> None:
    made = _make(here)
    other = [sys.executable, "-m", "relay_receiver.cli.main", "docs", "edit", made["id"], "--rev", "1"]
    meanwhile = (
        "import subprocess, sys, pathlib\n"
        f"subprocess.run({[*other, '--content', 'first', '--profile', 'bob']!r}, check=True, capture_output=True)\n"
        "pathlib.Path(sys.argv[-1]).write_text('my long work')"
    )
    code, shown = _in_a_terminal(here, meanwhile, "docs", "edit", made["id"], "--profile", "default")
    assert (code, "it is at revision 2 now, by bob" in shown) == (3, True), shown
    (kept,) = here.project.glob("relay-*/document.md")
    assert kept.read_text() == "my long work"
    assert str(kept) in shown
    kept.unlink()
    fails = "import sys, pathlib; pathlib.Path(sys.argv[-1]).write_text('half'); sys.exit(3)"
    code, shown = _in_a_terminal(here, fails, "docs", "edit", made["id"], "--profile", "default")
    (kept,) = here.project.glob("relay-*/document.md")
    assert (code, kept.read_text(), str(kept) in shown) == (1, "half", True), shown


def test_a_task_list(here: Machine) -> None:
    plan = _make(here)["id"]
    made = here.ok("tasks", "create", "--title", "Mend it", "--assignee", "bob", "--doc", plan, "--profile", "default")
    assert (made["assignee"]["name"], made["doc"], made["state"]) == ("bob", plan, "open")
    listed = here.ok("tasks", "list", "--mine", "--profile", "bob")["tasks"]
    assert [each["id"] for each in listed] == [made["id"]]
    changed = here.ok("tasks", "set", made["id"], "--state", "done", "--assignee", "-", "--profile", "bob")
    assert (changed["state"], changed["assignee"], changed["rev"]) == ("done", None, 2)
    late = here.relay("tasks", "set", made["id"], "--title", "Else", "--rev", "1", "--profile", "default")
    assert (late.code, late.err["code"], late.err["current"]["state"]) == (3, "stale_rev", "done")
    assert here.ok("tasks", "list", "--mine", "--profile", "bob")["tasks"] == []
    assert "Mend it" in here.text("tasks", "show", made["id"], "--profile", "bob")
    assert "Mend it" in here.text("tasks", "list", "--state", "done", "--profile", "bob")


def test_search_and_references(here: Machine) -> None:
    plan = _make(here, content="about zebras", title="Zoo")["id"]
    said = here.ok("messages", "send", "--content", f"zebras: doc:{plan}", "--profile", "default")["id"]
    found = here.ok("search", "zebr", "--profile", "bob")["results"]
    assert [each["id"] for each in found] == [said, plan]
    assert here.ok("search", "zebras about", "--channel", "lab", "--profile", "bob")["results"][0]["title"] == "Zoo"
    shown = here.text("search", "zebras", "--profile", "bob")
    assert f"doc {plan}" in shown
    assert "about zebras" in shown
    assert "Nothing has these words" in here.text("search", "unicorns", "--profile", "bob")
    message = here.ok("messages", "show", said, "--profile", "bob")
    assert message["references"] == [{"kind": "doc", "id": plan}]
    assert f"refers to doc:{plan}: relay docs show {plan}" in here.text("messages", "show", said, "--profile", "bob")
    assert json.dumps(here.relay("search", "", "--profile", "bob").err["code"]) == '"usage"'
