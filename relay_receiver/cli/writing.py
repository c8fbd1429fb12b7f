"""Text that somebody writes: given, read from a file or stdin, or typed in an editor; what is not taken is kept."""

import contextlib
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from relay_receiver.cli.output import hint_of, note
from relay_receiver.wire.errors import RelayError

STDIN = "-"
STALE = "stale_rev"


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """What was written, and the file that has it, if there is one; `ours` goes once the text is stored."""

    text: str
    file: Path | None = None
    ours: bool = False


def given(content: str | None, file: str | None) -> Text | None:
    """The text of `--content` or `--content-file`; None where neither was given.

    Raises:
        RelayError: both were given.
    """
    if content is None and file is None:
        return None
    if content is not None and file is not None:
        raise RelayError("Give the text once.", code="usage", hint="Say --content TEXT, or --content-file FILE.")
    if STDIN in {content, file}:
        return Text(text=sys.stdin.buffer.read().decode("utf-8", "replace"))
    if content is not None:
        # Where the locale is not UTF-8 its bytes arrive as surrogates; they are UTF-8 all the same.
        return Text(text=content.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    path = Path(str(file))
    return Text(text=path.read_text(encoding="utf-8", errors="replace"), file=path)


def edited(before: str, *, otherwise: str) -> Text | None:
    """What somebody makes of a text in their editor; None where they left it as it was.

    Args:
        otherwise: what to type where there is no terminal.

    Raises:
        RelayError: there is no terminal, or the editor failed; what was typed is kept, and the hint says where.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise RelayError("There is no terminal for an editor.", code="usage", hint=otherwise)
    path = _keep(before)
    try:
        click.edit(filename=str(path))
        text = path.read_text(encoding="utf-8", errors="replace")
    except (click.ClickException, OSError) as error:
        raise RelayError(
            f"The editor failed: {str(error).rstrip('.')}.", code="editor_failed", hint=f"The text is in {path}."
        ) from error
    if text == before:
        _drop(path)
        return None
    return Text(text=text, file=path, ours=True)


def _keep(text: str) -> Path:
    path = Path(tempfile.mkdtemp(prefix="relay-")) / "document.md"
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def _drop(path: Path) -> None:
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


@contextlib.contextmanager
def stored(written: Text | None, *, conflict: str) -> Iterator[None]:
    """Around the call that stores a text: where that fails, the text is in a file, and the hint says in which.

    Args:
        conflict: what to type where somebody else was first; FILE in it stands for that file.
    """
    try:
        yield
    except RelayError as error:
        if written is not None:
            file = written.file or _keep(written.text)
            again = conflict.replace("FILE", shlex.quote(str(file))) if error.code == STALE else hint_of(error)
            error.hint = f"Your text is in {file}. Next: {again}"
        raise
    except KeyboardInterrupt:
        if written is not None:
            note(f"Your text is in {written.file or _keep(written.text)}.")
        raise
    if written is not None and written.file is not None and written.ours:
        _drop(written.file)
