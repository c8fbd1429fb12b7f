"""`relay messages`: send, follow and settle."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli import referring, told
from relay_receiver.cli.acting import actor, member, of, profile
from relay_receiver.cli.exchange import WAIT_SECONDS, Letter, enclosure, place, rehearse, send, wait
from relay_receiver.cli.options import DURATION, Group, channel_option
from relay_receiver.cli.output import emit, note, table
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.errors import RelayError

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub


@click.group(cls=Group)
def messages() -> None:
    """Send messages and requests; wait for their results."""


@messages.command("send")
@channel_option
@click.option("--to", metavar="MEMBER", help="Whom it is for, by name or id. Without --kind it is a request.")
@click.option("--kind", type=click.Choice(["message", "request"]), help="Default: request with --to, else message.")
@click.option("--mention", "mentions", multiple=True, metavar="MEMBER", help="Wake this member too. Repeatable.")
@click.option("--reply-to", metavar="ID", help="The message that it answers.")
@click.option("--operation-id", metavar="X", help="Send it once, however often this is typed with the same X.")
@click.option("--expires", type=DURATION, metavar="2h", help="Give a request up after this time. Default 7d.")
@click.option(
    "--wait",
    "patience",
    type=DURATION,
    is_flag=False,
    flag_value=WAIT_SECONDS,
    metavar="[TIME]",
    help="Wait for the end of the request, at most TIME (300s).",
)
@click.option("--dry-run", "dry", is_flag=True, help="Send nothing; show whom it would wake, and what is in the way.")
@click.option("--content", metavar="TEXT", help="The text; - reads it from stdin.")
@click.option("--content-file", metavar="FILE", help="A file with the text; - is stdin.")
@click.option(
    "--attach",
    "attachments",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Send this file along. Repeatable.",
)
def send_command(
    patience: float | None,
    dry: bool,  # noqa: FBT001 - click passes flags so
    content: str | None,
    content_file: str | None,
    attachments: tuple[Path, ...],
    **said: Any,  # noqa: ANN401 - click's options
) -> None:
    """Send a message, or a request to one member."""
    files = tuple(enclosure(path) for path in attachments)
    letter = Letter(content=_text(content, content_file), attachments=files, **said)
    if patience is not None and (said["kind"] or ("request" if said["to"] else "message")) != "request":
        raise RelayError(
            "Only a request has an end to wait for.", code="usage", hint="Say --to NAME, or leave --wait out."
        )
    if patience is not None and dry:
        raise RelayError("A dry run sends nothing to wait for.", code="usage", hint="Leave --wait or --dry-run out.")
    who = actor()
    if dry:
        answer = who.talk(lambda hub: rehearse(who, hub, letter))
        emit(answer, told.rehearsal(answer["wakes"]), then="relay peers")
        return
    stored = who.talk(lambda hub: send(who, hub, letter))
    if patience is None:
        emit(stored, _sent(stored), then=f"relay messages wait {stored['id']}" if stored["kind"] == "request" else None)
        return
    for line in _sent(stored):
        note(line)
    _wait(str(stored["id"]), patience)


@messages.command("wait")
@click.argument("message", metavar="ID")
@click.option("--timeout", type=DURATION, default=WAIT_SECONDS, metavar="300", help="Wait at most this long.")
def wait_command(message: str, timeout: float) -> None:
    """Wait for the end of a request.

    Exit status: 0 answered or quiet, 1 failed, expired, cancelled or withdrawn, 4 unknown, 5 timed out.
    """
    _wait(message, timeout)


@messages.command("list")
@channel_option
@click.option("--after", type=int, metavar="N", help="Only messages after this event number.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, help="At most this many, the newest. Default 50.")
def list_command(channel: str | None, after: int | None, limit: int) -> None:
    """List the messages of a channel, oldest first."""
    who = actor()

    async def ask(hub: "Hub") -> dict[str, Any]:
        where, _ = await place(who, hub, channel)
        return await hub.history(where, after=after, limit=limit)

    page = who.talk(ask)
    rows = [(m["id"], m["createdAt"][:19], _author(m), m["kind"], m["content"][:60]) for m in page["messages"]]
    emit(page, table(rows, empty="No messages yet."), then='relay messages send --to NAME --wait --content "..."')


@messages.command("show")
@click.argument("message", metavar="ID")
def show_command(message: str) -> None:
    """Show one message, and how far a request has come."""
    found = actor().talk(lambda hub: hub.message(message))
    named = {"references": referring.referred(found["content"])}
    then = f"relay messages wait {message}" if found["kind"] == "request" else _fetch(found)
    emit({**found, **named}, _shown(found), then=then or referring.next_line(found["content"]))


@messages.command("fetch")
@click.argument("attachment", metavar="ID")
@click.option("--save", required=True, type=click.Path(path_type=Path), metavar="FILE", help="A file to make.")
def fetch_command(attachment: str, save: Path) -> None:
    """Fetch an attachment into a new file; one that is there already is left as it is."""
    data = actor().talk(lambda hub: hub.attachment(attachment))
    with save.open("xb") as file:
        file.write(data)
    emit({"id": attachment, "path": str(save.resolve()), "size": len(data)}, f"Saved {len(data)} bytes to {save}.")


@messages.command("withdraw")
@click.argument("message", metavar="ID")
def withdraw_command(message: str) -> None:
    """Take a request back: it is never run, or interrupted where it runs."""
    answer = actor().talk(lambda hub: hub.withdraw(message))
    emit(answer, "The request is withdrawn, or its job is being interrupted.", then=f"relay messages show {message}")


@messages.command("settle")
@click.argument("message", metavar="ID")
@click.option("--abandon", "outcome", flag_value="abandoned", help="It is over: tell the requester.")
@click.option("--retry", "outcome", flag_value="not-accepted", help="Let it run again, on your word.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept and shown.")
@click.option("--agent", metavar="MEMBER", help="Whose run, where the message was addressed to nobody.")
def settle_command(message: str, outcome: str | None, reason: str, agent: str | None) -> None:
    """End the run of a request whose machine is gone, as a person."""
    if outcome is None:
        raise RelayError(
            "Say what became of it.", code="usage", hint=f"relay messages settle {message} --abandon --reason TEXT"
        )
    who = of(profile())

    async def ask(hub: "Hub") -> dict[str, Any]:
        found = await hub.message(message)
        whose = member(await hub.members(found["channel"]), agent) if agent else found["to"]
        return await hub.settle(
            channel=found["channel"], agent=whose, request_id=message, outcome=outcome, reason=reason
        )

    emit(who.talk(ask), "Settled.", then=f"relay messages show {message}")


def _wait(message: str, patience: float) -> None:
    who = actor()
    answer, code = who.talk(lambda hub: wait(who, hub, message, timeout=patience, progress=_progress))
    then = {4: f"relay messages show {message}", 5: f"relay messages wait {message}"}.get(code)
    emit(answer, _ended(answer), then=then or _fetch(answer["result"]) or "relay messages list")
    click.get_current_context().exit(code)


def _progress(delivery: Mapping[str, Any]) -> None:
    note(f"  {told.delivery(delivery)}")


def _text(content: str | None, file: str | None) -> str:
    if (content is None) == (file is None):
        raise RelayError("Give the text once.", code="usage", hint="Say --content TEXT, or --content-file FILE.")
    if "-" in {content, file}:
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    if content is not None:
        # Where the locale is not UTF-8 its bytes arrive as surrogates; they are UTF-8 all the same.
        return content.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return Path(str(file)).read_text(encoding="utf-8", errors="replace")


def _sent(stored: Mapping[str, Any]) -> list[str]:
    lines = [f"Sent {stored['kind']} {stored['id']}."]
    for each in stored["wakes"]:
        state = receiver_state(each.get("receiver"))
        lines.append(f"  {clean_name(each['name'])}: {'its receiver is ' + state if state else 'no receiver runs'}.")
    return lines


def receiver_state(receiver: object) -> str | None:
    """The state of a member's receiver in one word; None where none runs."""
    if isinstance(receiver, Mapping):
        return str(receiver.get("state") or "running")
    return str(receiver) if receiver else None


def _author(message: Mapping[str, Any]) -> str:
    return clean_name(str((message.get("author") or {}).get("name") or message.get("authorId")))


def _attached(message: Mapping[str, Any]) -> list[str]:
    return [f"attachment: {each.get('name')} {each.get('id')}" for each in message.get("attachments") or ()]


def _fetch(message: Mapping[str, Any] | None) -> str | None:
    """The line that fetches the first attachment of a message."""
    for each in (message or {}).get("attachments") or ():
        name = Path(clean_name(str(each.get("name")))).name or "attachment"
        return f"relay messages fetch {each.get('id')} --save {shlex.quote(f'./{name}')}"
    return None


def _shown(message: Mapping[str, Any]) -> list[str]:
    lines = [f"{message['kind']} {message['id']} from {_author(message)}, {message['createdAt']}"]
    if message.get("delivery"):
        lines.append(f"stage: {told.delivery(message['delivery'])}")
        lines += told.waits_on(message["delivery"])
    said = message["content"]
    return [*lines, "", *said.splitlines(), *_attached(message), *referring.lines(said)]


def _ended(answer: Mapping[str, Any]) -> list[str]:
    delivery, result = answer["delivery"], answer.get("result")
    lines = [told.delivery(delivery), *told.waits_on(delivery)]
    if result:
        lines += ["", *result["content"].splitlines(), *_attached(result)]
    return lines
