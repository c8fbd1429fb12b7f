"""What a command says: one JSON value, or text that ends with the next line to type."""

import contextlib
import json
import os
import shlex
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import click

from relay_receiver.cli.options import JSON, TEXT, common
from relay_receiver.jobs.text import printable
from relay_receiver.wire.errors import RelayError

DONE = 0
ERROR = 1
USAGE = 2
REFUSED = 3
"""Not connected, or refused by the hub."""
PERSON = 4
"""A person is needed."""
TIMED_OUT = 5
INTERRUPTED = 130

_EXITS = {
    "usage": USAGE,
    "timed_out": TIMED_OUT,
    "needs_person": PERSON,
    "unknown_outcome": PERSON,
    "not_connected": REFUSED,
    "no_profile": REFUSED,
    "unauthorized": REFUSED,
    "hub_away": REFUSED,
}


def as_json() -> bool:
    """Whether this command answers in JSON: asked for, or piped."""
    return (common().output or (TEXT if sys.stdout.isatty() else JSON)) == JSON


def wants_json(argv: Sequence[str]) -> bool:
    """The same before the arguments were understood."""
    return (typed(argv, "--output") or (TEXT if sys.stdout.isatty() else JSON)) == JSON


def typed(argv: Sequence[str], option: str) -> str | None:
    """The last value that was typed for an option, before the arguments were understood."""
    found = None
    for place, word in enumerate(argv):
        if word == option and place + 1 < len(argv):
            found = argv[place + 1]
        elif word.startswith(f"{option}="):
            found = word.partition("=")[2]
    return found


def steady(*streams: TextIO) -> None:
    """Make streams take every character, whatever the locale: what it cannot show is escaped."""
    for stream in streams:
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]  # a TextIOWrapper in real life


def replace_closed() -> None:
    """Write nowhere what was closed by whoever started this command (`>&-`)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - open as long as we run


def write_json(value: object, stream: TextIO) -> None:
    """Write one JSON value and a newline, in ASCII where the stream is not UTF-8."""
    plain = (stream.encoding or "").lower().replace("-", "") != "utf8"
    stream.write(json.dumps(value, ensure_ascii=plain, default=str) + "\n")
    stream.flush()


def line(text: str) -> str:
    """A line for a terminal: what cannot be seen made visible, and what breaks it further in.

    So nothing that others wrote, a title or a message, looks like a line of ours, least of all like one to type.
    """
    return printable(text).replace("\n", "\n    ")


def emit(value: object, text: str | Iterable[str] = (), *, then: str | None = None) -> None:
    """Answer: `value` in JSON mode, else the lines of `text` and the next line to type."""
    if as_json():
        write_json(value, sys.stdout)
        return
    for each in [text] if isinstance(text, str) else text:
        sys.stdout.write(line(each) + "\n")
    if then:
        sys.stdout.write(f"next: {line(aimed(then))}\n")
    sys.stdout.flush()


def aimed(typed: str, *, profile: str | None = None, channel: str | None = None) -> str:
    """A line to type, for this profile and channel, or those of the command that runs."""
    ctx = click.get_current_context(silent=True)
    if ctx is None or not typed.startswith("relay "):
        return typed
    where, who = channel or ctx.params.get("channel"), profile or common().profile
    if where and typed.startswith("relay receiver ") and "--channel" not in typed:
        typed += f" --channel {shlex.quote(where)}"
    return _for(who, typed)


def _for(profile: str | None, typed: str) -> str:
    return f"{typed} --profile {shlex.quote(profile)}" if profile and "--profile" not in typed else typed


def note(text: str) -> None:
    """A line of progress for a person at a terminal, on stderr; nothing when piped."""
    if sys.stderr.isatty() and not as_json():
        sys.stderr.write(line(text) + "\n")
        sys.stderr.flush()


def table(rows: Iterable[Sequence[object]], *, empty: str) -> list[str]:
    """Rows in aligned columns, or the line `empty`."""
    cells = [["-" if cell in {None, ""} else " ".join(str(cell).split()) for cell in row] for row in rows]
    if not cells:
        return [empty]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


_HINTS = {
    "invite_invalid": "relay invites create, where a person of the channel is: codes are good once, for 10 minutes",
    "other_kind": "Say --profile NAME to join under another profile.",
    "expired": "Give it more time: --expires 2h.",
    "operation_reused": "Give another --operation-id, or send the same text again.",
    "not_found": "relay channels list, or relay messages list",
    "name_taken": "relay channels list",
    "stale_rev": "Look at what it is now, then type it again.",
    "ended": "relay messages list",
    "person_needed": "Answer as a person: --profile NAME; relay profile list shows whose each is.",
    "not_approver": "relay requests list",
    "request_answered": "relay requests list",
    "request_applied": "relay requests list",
    "request_expired": "relay requests list",
    "request_superseded": "relay requests list",
    "too_many_open": "relay requests list",
}
_HINTS_BY_STATUS = {
    422: "Change what it names, then type it again; --help says what is taken.",
    400: "Type it again with --help, and look at what it takes.",
    403: "Ask a person of the workspace to do it.",
    404: "relay channels list",
    413: "Send it as a file: --attach FILE.",
    429: "Wait a little, then type it again.",
    503: "Wait a little, then type it again.",
}


def hint_of(error: RelayError) -> str:
    """What to do next: the error's own word, else what usually helps."""
    status = getattr(error, "status", 0)
    return error.hint or _HINTS.get(error.code) or _HINTS_BY_STATUS.get(status) or "relay doctor"


def exit_code(error: RelayError) -> int:
    """The exit code of an error: 2 usage, 3 not connected or refused by the hub, 4 a person, 5 time, else 1."""
    if error.code in _EXITS:
        return _EXITS[error.code]
    return REFUSED if isinstance(getattr(error, "status", None), int) else ERROR


def report(error: BaseException, argv: Sequence[str]) -> int:
    """Say an error on stderr, once: one sentence and what to do next. Returns the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(error.format_message() + "\n")
        return USAGE
    known = error if isinstance(error, RelayError) else _unforeseen(error)
    if "--debug" in argv:
        traceback.print_exception(error, file=sys.stderr)
    hint = hint_of(known)
    if hint.startswith("relay ") and "," not in hint and known.code != "no_profile":
        hint = _for(typed(argv, "--profile"), hint)
    if wants_json(argv):
        body: Mapping[str, Any] = {"error": known.sentence, "code": known.code, "hint": hint, **known.data}
        write_json(body, sys.stderr)
    else:
        sys.stderr.write(f"error: {line(known.sentence)}\n")
        sys.stderr.write(f"next: {line(hint)}\n")
        sys.stderr.flush()
    return exit_code(known)


def _unforeseen(error: BaseException) -> RelayError:
    """A click error, or one that nobody foresaw, as a sentence."""
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "relay"
        return RelayError(error.format_message(), code="usage", hint=f"{path} --help")
    if isinstance(error, click.ClickException):
        return RelayError(error.format_message())
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename else ""
        hint = "Look at the path, then type it again." if where else "relay doctor"
        return RelayError(f"{error.strerror or error}{where}.", code="os_error", hint=hint)
    return RelayError(
        f"This is a fault of relay itself ({type(error).__name__}: {error}).",
        code="internal",
        hint="Run the same line with --debug and report what it prints.",
    )


def silence() -> None:
    """Send what is left in stdout nowhere: its reader has gone."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
