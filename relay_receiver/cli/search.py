"""`relay search`: messages, documents, tasks and requests by their words."""

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli.acting import actor
from relay_receiver.cli.exchange import place
from relay_receiver.cli.options import Command, channel_option
from relay_receiver.cli.output import emit
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.errors import RelayError

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub

Json = dict[str, Any]


@click.command(cls=Command)
@click.argument("words", nargs=-1, required=True)
@channel_option
@click.option("--before", type=click.IntRange(1), metavar="N", help="The next page; each page tells it.")
@click.option("--limit", type=click.IntRange(1, 100), default=20, help="At most this many. Default 20.")
def search(words: tuple[str, ...], channel: str | None, before: int | None, limit: int) -> None:
    """Find what has all the words in your channels, the newest first.

    The last word may be the beginning of one. Words that follow each other: '"like this"'.
    """
    typed = " ".join(words)
    if not typed.strip():
        raise RelayError("Search for what?", code="usage", hint="relay search WORDS")
    who = actor()

    async def ask(hub: "Hub") -> Json:
        where = None if channel is None else (await place(who, hub, channel))[0]
        return await hub.search(typed, channel=where, before=before, limit=limit)

    page = who.talk(ask)
    lines = [line for each in page["results"] for line in _lines(each)] or ["Nothing has these words."]
    if page["note"]:
        lines.append(page["note"])
    then = f"relay {page['results'][0]['kind']}s show {page['results'][0]['id']}" if page["results"] else None
    if page["next"] is not None:
        then = f"relay search {shlex.quote(typed)} --before {page['next']}"
    emit(page, lines, then=then)


def _lines(found: Mapping[str, Any]) -> list[str]:
    title = f": {found['title']}" if found["title"] else ""
    snippet = "".join(part["text"] for part in found["snippet"])
    head = f"{found['kind']} {found['id']} {found['at'][:19]} {clean_name(found['by']['name'])}{title}"
    return [head, f"  {' '.join(snippet.split())}"]
