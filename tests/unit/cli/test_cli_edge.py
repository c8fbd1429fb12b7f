"""What every command shares: help without imports, exit codes, JSON or text, errors in one sentence."""

import io
import json
import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from support_time import WITHIN

from relay_receiver.cli import main, output
from relay_receiver.cli.options import Command, Duration, common, short
from relay_receiver.wire.errors import RelayError

HEAVY = ("sqlalchemy", "httpx", "websockets", "starlette", "uvicorn", "mcp", "psutil", "alembic")


def child(*words: str, code: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", code] if code else [sys.executable, "-m", "relay_receiver.cli.main", *words]
    base = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    return subprocess.run(
        argv, capture_output=True, text=True, env={**base, **environment}, check=False, timeout=WITHIN
    )


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    def put(call: Callable[[], None]) -> None:
        made = click.command(cls=Command)(call)
        monkeypatch.setitem(main.COMMANDS, "probe", ("tests.probe:probe", "A probe."))
        monkeypatch.setattr(main.LazyGroup, "get_command", lambda *_: made)

    return put


def test_help_lists_every_command_and_imports_none_of_them() -> None:
    code = (
        "import sys; from relay_receiver.cli.main import run; code = run(['--help']); "
        f"print([m for m in {HEAVY!r} if m in sys.modules], "
        "[m for m in sys.modules if m.startswith('relay_receiver.') and 'cli' not in m], code)"
    )
    answer = child(code=code)
    assert answer.stderr == ""
    assert answer.stdout.rstrip().endswith("0")
    assert "[] [" in answer.stdout
    for name, (_, line) in main.COMMANDS.items():
        assert f"\n  {name} " in answer.stdout
        assert line.split(";", maxsplit=1)[0].split(",", maxsplit=1)[0] in answer.stdout


def test_an_error_is_one_json_object_on_stderr_when_piped(
    command: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise RelayError("It is not so.", code="not_so", hint="relay status", number=3)

    command(fail)
    assert main.run(["probe"]) == output.ERROR
    told = capsys.readouterr()
    assert told.out == ""
    assert json.loads(told.err) == {"error": "It is not so.", "code": "not_so", "hint": "relay status", "number": 3}


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_fault(closed: str) -> None:
    line = f"{sys.executable} -m relay_receiver.cli.main skill show {closed}"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False, timeout=WITHIN)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_is_a_sentence_and_the_next_line_in_text(
    command: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise RelayError("It is \x1b[31mnot so.", hint="relay status")

    command(fail)
    assert main.run(["--output", "text", "probe"]) == output.ERROR
    assert capsys.readouterr().err == "error: It is <U+001B>[31mnot so.\nnext: relay status\n"


@pytest.mark.parametrize("words", [["--output", "json", "probe"], ["probe", "--output", "json"]])
def test_common_options_count_at_the_root_and_after_the_subcommand(
    words: list[str], command: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def look() -> None:
        seen.append(common())
        output.emit({"é": 1}, "text", then="relay")

    command(look)
    assert main.run([*words, "--profile", "bob", "--workspace", "w"]) == output.DONE
    assert (seen[0].profile, seen[0].workspace, seen[0].output, seen[0].debug) == ("bob", "w", "json", False)
    assert json.loads(capsys.readouterr().out) == {"é": 1}


def test_the_subcommand_has_the_last_word(command: Callable[[Callable[[], None]], None]) -> None:
    seen = []
    command(lambda: seen.append(common().profile))
    main.run(["--profile", "ann", "probe", "--profile", "bob"])
    assert seen == ["bob"]


def test_text_ends_with_the_next_line(
    command: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(lambda: output.emit({}, ["one", "two"], then="relay status"))
    main.run(["--output=text", "probe"])
    assert capsys.readouterr().out == "one\ntwo\nnext: relay status\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RelayError("x"), 1),
        (RelayError("x", code="usage"), 2),
        (RelayError("x", code="no_profile"), 3),
        (RelayError("x", code="hub_away"), 3),
        (RelayError("x", code="timed_out"), 5),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 0),
        (ZeroDivisionError("0"), 1),
        (PermissionError(13, "Permission denied", "/x"), 1),
    ],
)
def test_exit_codes(
    error: BaseException,
    code: int,
    command: Callable[[Callable[[], None]], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(output, "silence", lambda: None)
    command(fail)
    assert main.run(["probe"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_status_of_the_hub_is_refused() -> None:
    error = RelayError("x", code="withdrawn")
    error.status = 409  # type: ignore[attr-defined]  # as client.errors.HubError has it
    assert output.exit_code(error) == output.REFUSED


def test_a_traceback_only_with_debug(
    command: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("0")

    command(fail)
    main.run(["probe", "--debug"])
    assert "Traceback" in capsys.readouterr().err


def test_usage_errors_are_told_in_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["nonsense"]) == output.USAGE
    told = json.loads(capsys.readouterr().err)
    assert told["code"] == "usage"
    assert told["hint"] == "relay --help"
    assert main.run(["--output", "text", "--nonsense"]) == output.USAGE
    assert capsys.readouterr().err.startswith("error: ")


def test_a_reader_that_goes_away_is_no_error() -> None:
    line = f"{sys.executable} -m relay_receiver.cli.main --help | head -c 1; echo ${{PIPESTATUS[0]}}"
    answer = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=WITHIN)
    assert answer.stderr == ""


def test_a_locale_without_utf8_still_gets_valid_json() -> None:
    code = (
        "import sys; from relay_receiver.cli import output; output.steady(sys.stdout); "
        "output.write_json({'a': '\\u00e9\\U0001f600'}, sys.stdout); print('\\u00e9')"
    )
    answer = child(code=code, PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    first, second = answer.stdout.splitlines()
    assert json.loads(first) == {"a": "é😀"}
    assert second == "\\xe9"


def test_json_is_readable_where_the_stream_is_utf8() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    output.write_json({"a": "é"}, stream)
    assert raw.getvalue() == '{"a": "é"}\n'.encode()


@pytest.mark.parametrize(
    ("typed", "seconds"), [("30s", 30), ("15m", 900), ("2h", 7200), ("7d", 604800), ("5", 5), ("1.5h", 5400)]
)
def test_durations(typed: str, seconds: float) -> None:
    assert Duration().convert(typed, None, None) == seconds


@pytest.mark.parametrize("typed", ["", "soon", "-3s", "3 weeks", "1e9", "nan"])
def test_what_is_no_duration_is_refused(typed: str) -> None:
    with pytest.raises(click.UsageError):
        Duration().convert(typed, None, None)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "0s"), (45, "45s"), (119, "119s"), (130, "2m"), (7300, "2h"), (260000, "3d")]
)
def test_times_as_people_say_them(seconds: float, said: str) -> None:
    assert short(seconds) == said
