"""`relay docs`: shared documents."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli import referring, writing
from relay_receiver.cli.acting import actor, of, profile
from relay_receiver.cli.exchange import place
from relay_receiver.cli.options import Group, channel_option
from relay_receiver.cli.output import emit, table
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.errors import RelayError

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub

Json = dict[str, Any]

LIMIT = click.option("--limit", type=click.IntRange(1, 500), default=100, help="At most this many. Default 100.")
CONTENT = click.option("--content", metavar="TEXT", help="The text, in Markdown; - reads it from stdin.")
CONTENT_FILE = click.option("--content-file", metavar="FILE", help="A file with the text; - is stdin.")


@click.group(cls=Group)
def docs() -> None:
    """Shared documents in Markdown, with every revision."""


@docs.command("list")
@channel_option
@click.option("--archived", is_flag=True, help="Those put away instead of the others.")
@click.option("--before", metavar="ID", help="The next page: those after this document.")
@LIMIT
def list_command(channel: str | None, archived: bool, before: str | None, limit: int) -> None:  # noqa: FBT001 - click passes flags so
    """List documents, the last changed first."""
    who = actor()

    async def ask(hub: "Hub") -> Json:
        where = None if channel is None else (await place(who, hub, channel))[0]
        return await hub.docs(where, archived=archived, before=before, limit=limit)

    page = who.talk(ask)
    found = page["docs"]
    rows = [
        (d["id"], d["updatedAt"][:19], clean_name(d["updatedBy"]["name"]), f"r{d['rev']}", d["title"]) for d in found
    ]
    then = 'relay docs create --title "..." --content-file FILE'
    if found:
        then = f"relay docs show {found[0]['id']}"
    if page["more"]:
        then = f"relay docs list --before {found[-1]['id']}"
    emit(page, table(rows, empty="No documents here."), then=then)


@docs.command("show")
@click.argument("doc", metavar="ID")
@click.option("--rev", type=click.IntRange(1), metavar="N", help="As it was at this revision.")
def show_command(doc: str, rev: int | None) -> None:
    """Show a document: its text in Markdown."""
    found = actor().talk(lambda hub: hub.doc(doc, rev=rev))
    emit(found, _shown(found), then=referring.next_line(found["content"]) or f"relay docs edit {doc}")


@docs.command("history")
@click.argument("doc", metavar="ID")
@click.option("--before", type=click.IntRange(1), metavar="N", help="The next page: those older than this revision.")
@LIMIT
def history_command(doc: str, before: int | None, limit: int) -> None:
    """List the revisions of a document, the newest first."""
    found = actor().talk(lambda hub: hub.doc_revisions(doc, before=before, limit=limit))
    rows = [(r["rev"], r["at"][:19], clean_name(r["by"]["name"]), f"{r['bytes']} bytes", r["title"]) for r in found]
    then = f"relay docs show {doc} --rev {found[-1]['rev']}" if found else f"relay docs show {doc}"
    emit({"revisions": found}, table(rows, empty="No older revisions."), then=then)


@docs.command("create")
@channel_option
@click.option("--title", required=True, metavar="TEXT", help="One line.")
@CONTENT
@CONTENT_FILE
@click.option("--operation-id", metavar="X", help="Make it once, however often this is typed with the same X.")
def create_command(
    channel: str | None, title: str, content: str | None, content_file: str | None, operation_id: str | None
) -> None:
    """Make a document; without a text given, in your editor."""
    who = of(profile())
    otherwise = "Say --content TEXT, or --content-file FILE."
    written = writing.given(content, content_file) or writing.edited("", otherwise=otherwise)
    if written is None:
        raise RelayError("Nothing was written.", code="usage", hint=otherwise)
    text = written.text

    async def say(hub: "Hub") -> Json:
        where, _ = await place(who, hub, channel)
        return await hub.create_doc(where, title=title, content=text, operation=operation_id)

    with writing.stored(written, conflict=""):
        made = who.talk(say)
    emit(made, f"Made {made['id']}: refer to it as doc:{made['id']}.", then=f"relay docs show {made['id']}")


@docs.command("edit")
@click.argument("doc", metavar="ID")
@CONTENT
@CONTENT_FILE
@click.option("--rev", type=click.IntRange(1), metavar="N", help="The revision that you read; `show` tells it.")
@click.option("--title", metavar="TEXT", help="Another title.")
@click.option("--archive/--restore", "archived", default=None, help="Put it away, or back.")
def edit_command(doc: str, content: str | None, content_file: str | None, rev: int | None, **said: Any) -> None:  # noqa: ANN401 - click's options
    """Change a document; without anything given, in your editor.

    What somebody changed since the revision that you read is not overwritten: your text is kept in a file.
    """
    who = of(profile())
    changes = {name: value for name, value in said.items() if value is not None}
    written = writing.given(content, content_file)
    with writing.stored(written, conflict=""):
        if written is not None and rev is None:
            raise RelayError("Say which revision you read: --rev N.", code="usage", hint=f"relay docs show {doc}")
    if written is None and not changes:
        found = who.talk(lambda hub: hub.doc(doc, rev=rev))
        rev, otherwise = found["rev"], "Say --content-file FILE and --rev N."
        written = writing.edited(found["content"], otherwise=otherwise)
        if written is None:
            emit(found, "Nothing was changed.", then=f"relay docs show {doc}")
            return
    if written is not None:
        changes["content"] = written.text
    base = rev

    async def say(hub: "Hub") -> Json:
        return await hub.change_doc(doc, rev=base or (await hub.doc(doc))["rev"], **changes)

    again = f"relay docs show {doc}, put the two together, then relay docs edit {doc} --rev N --content-file FILE"
    with writing.stored(written, conflict=again):
        changed = who.talk(say)
    emit(changed, f"{doc} is at revision {changed['rev']}.", then=f"relay docs show {doc}")


def _shown(found: Mapping[str, Any]) -> list[str]:
    who = clean_name(found["updatedBy"]["name"])
    newest = "" if found["rev"] == found["latest"] else f" (the newest is {found['latest']})"
    put_away = ", archived" if found["archived"] else ""
    head = f"{found['title']} ({found['id']}, revision {found['rev']}{newest} by {who}, {found['updatedAt']}{put_away})"
    return [head, "", *found["content"].splitlines(), *referring.lines(found["content"])]
