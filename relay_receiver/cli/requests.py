"""`relay requests`: what agents ask of people, and the answers."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli import asked, asking, dialogue
from relay_receiver.cli.acting import actor, of, profile
from relay_receiver.cli.exchange import WAIT_SECONDS, place
from relay_receiver.cli.options import DURATION, Group, channel_option
from relay_receiver.cli.output import as_json, emit, table
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.action import action_hash, visible
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.form import FormError, check_answer, read_fields, schema_of

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub

Json = dict[str, Any]

WAIT = click.option(
    "--wait",
    "patience",
    type=DURATION,
    is_flag=False,
    flag_value=WAIT_SECONDS,
    metavar="[TIME]",
    help="Wait until it is no longer open, at most TIME (300s; 10m inside a job).",
)


@click.group(cls=Group)
def requests() -> None:
    """What agents ask of people: approvals, questions, choices, forms."""


@requests.command("list")
@channel_option
@click.option("--state", type=click.Choice(["open", "ended", "all"]), default="open", help="Default: open.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, help="At most this many, the newest. Default 50.")
def list_command(channel: str | None, state: str, limit: int) -> None:
    """List requests to people, newest first."""
    who = actor()

    async def ask(hub: "Hub") -> list[Json]:
        where = None if channel is None else (await place(who, hub, channel))[0]
        return await hub.requests(where, state, limit=limit)

    found = who.talk(ask)
    rows = [(r["id"], r["kind"], clean_name(r["author"]["name"]), asked.state(r), r["title"][:60]) for r in found]
    lines = [visible(line) for line in table(rows, empty="Nothing is asked of people here.")]
    then = f"relay requests show {found[0]['id']}" if found else "relay requests list --state all"
    emit({"requests": found}, lines, then=then)


@requests.command("show")
@click.argument("request", metavar="ID")
@WAIT
def show_command(request: str, patience: float | None) -> None:
    """Show a request in full; with --wait, once it is no longer open.

    Exit status with --wait: 0 answered, 1 expired or superseded, 5 still open.
    """
    if patience is not None:
        _wait(request, patience)
        return
    found = actor().talk(lambda hub: hub.request(request))
    emit(found, asked.shown(found), then=asked.next_line(found))


@requests.command("respond")
@click.argument("request", metavar="ID")
@click.option("--accept", "decision", flag_value="accept", help="Approve exactly what it shows, once.")
@click.option("--decline", "decision", flag_value="decline", help="Say no.")
@click.option("--text", metavar="TEXT", help="The answer to a question.")
@click.option("--choice", metavar="ID", help="The choice, by its id.")
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field of a form. Repeatable.")
@click.option("--json", "document", metavar="JSON", help="The whole answer as one JSON object; - reads it from stdin.")
@click.option("--action-hash", metavar="HASH", help="Answer only if this is the action; `show` tells its hash.")
def respond_command(request: str, action_hash: str | None, **said: Any) -> None:  # noqa: ANN401 - click's options
    """Answer a request, as a person: once, and for exactly what it shows.

    At a terminal, without an answer, it is shown and asked for.
    """
    who = of(profile())
    found = who.talk(lambda hub: hub.request(request))
    shown = _shown_hash(found, action_hash)
    answer = _typed(found) if not any(said.values()) and _at_a_terminal(found) else _answer(found, **said)
    answered = who.talk(lambda hub: hub.respond(request, answer, shown))
    emit(answered, ["Answered.", *asked.shown(answered)], then=asked.next_line(answered))


@requests.command("ask")
@channel_option
@click.option("--title", required=True, metavar="TEXT", help="The question, in one line.")
@click.option("--description", metavar="TEXT", help="What a person must know to answer it.")
@click.option("--kind", type=click.Choice(asking.KINDS), help="Default: form with a schema, choice with options.")
@click.option("--option", "options", multiple=True, metavar="ID=LABEL", help="One choice. Repeatable.")
@click.option("--schema-file", metavar="FILE", help="A form, as JSON schema; - is stdin.")
@click.option("--approver", "approvers", multiple=True, metavar="MEMBER", help="Who may answer. Default: any person.")
@click.option("--expires", type=DURATION, metavar="24h", help="Nobody may answer after this time. Default 24h.")
@click.option("--operation-id", metavar="X", help="Ask it once, however often this is typed with the same X.")
@WAIT
def ask_command(patience: float | None, schema_file: str | None, **said: Any) -> None:  # noqa: ANN401 - click's options
    """Ask people something: a text, a choice, or a form.

    Exit status with --wait: 0 answered, 1 expired or superseded, 5 still open.
    """
    who = actor()
    question = asking.Question(schema=_schema(schema_file), **said)
    made = who.talk(lambda hub: asking.ask(who, hub, question))
    if patience is None:
        emit(made, f"Asked: {made['id']}.", then=f"relay requests show {made['id']} --wait")
        return
    _wait(str(made["id"]), patience)


def _wait(request: str, patience: float) -> None:
    who = actor()
    found, code = who.talk(lambda hub: asking.answer(who, hub, request, timeout=patience))
    then = f"relay requests show {request} --wait" if found["state"] == "open" else "relay requests list"
    emit(found, asked.shown(found), then=then)
    click.get_current_context().exit(code)


def _schema(file: str | None) -> Any:  # noqa: ANN401 - JSON
    if file is None:
        return None
    text = sys.stdin.buffer.read().decode("utf-8", "replace") if file == "-" else Path(file).read_text(encoding="utf-8")
    return _json(text, "--schema-file")


def _json(text: str, option: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RelayError(f"{option} is not JSON.", code="usage", hint=f"Give {option} one JSON object.") from error


def _at_a_terminal(request: Json) -> bool:
    """Whether a person can be asked for the answer here."""
    return request["state"] == "open" and sys.stdin.isatty() and not as_json()


def _typed(request: Json) -> Json:
    return dialogue.answer(
        request,
        say=click.echo,
        prompt=lambda label: str(click.prompt(label, default="", show_default=False)),
    )


def _answer(
    request: Json,
    *,
    decision: str | None,
    text: str | None,
    choice: str | None,
    fields: tuple[str, ...],
    document: str | None,
) -> Json:
    """The answer that was typed, checked before it is sent.

    Raises:
        RelayError: it does not fit what is asked.
    """
    short = {"decision": decision, "text": text, "choice": choice}
    given = [{name: value} for name, value in short.items() if value is not None]
    if document is not None:
        text = sys.stdin.buffer.read().decode("utf-8", "replace") if document == "-" else document
        given.append(_json(text, "--json"))
    if len(given) + bool(fields) != 1:
        raise RelayError("Give one answer.", code="usage", hint=asked.next_line(request))
    schema = schema_of(request["kind"], request["options"], request["schema"])
    try:
        return check_answer(schema, given[0] if given else read_fields(schema, [_pair(each) for each in fields]))
    except FormError as error:
        raise RelayError(error.sentence, code="usage", hint=asked.next_line(request)) from error


def _pair(typed: str) -> tuple[str, str]:
    name, sign, value = typed.partition("=")
    if not sign:
        raise RelayError(f"--field {typed!r} has no value.", code="usage", hint="Say --field NAME=VALUE.")
    return name, value


def _shown_hash(request: Json, typed: str | None) -> str | None:
    """The hash of the action as it is shown here, which the answer is for.

    Raises:
        RelayError: it is not the hub's, or not the one that was typed.
    """
    shown = None if request["action"] is None else action_hash(request["action"])
    if shown != request["actionHash"] or typed not in {None, shown}:
        raise RelayError(
            "This is not the action that the request is about.",
            code="action_changed",
            hint=f"relay requests show {request['id']}",
        )
    return shown
