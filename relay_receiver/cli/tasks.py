"""`relay tasks`: the task lists of channels."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from relay_receiver.cli import referring
from relay_receiver.cli.acting import actor, member, of, profile
from relay_receiver.cli.exchange import place
from relay_receiver.cli.options import Group, channel_option
from relay_receiver.cli.output import emit, table
from relay_receiver.jobs.text import clean_name

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub

Json = dict[str, Any]

STATES = ("open", "doing", "done", "dropped")
NOBODY = "-"
"""Takes an assignee, message or document away."""


@click.group(cls=Group)
def tasks() -> None:
    """What is to be done in your channels, and who does it."""


@tasks.command("list")
@channel_option
@click.option("--state", type=click.Choice(["active", "all", *STATES]), default="active", help="Default: active.")
@click.option("--mine", is_flag=True, help="Only yours.")
@click.option("--before", metavar="ID", help="The next page: those after this task.")
@click.option("--limit", type=click.IntRange(1, 500), default=100, help="At most this many. Default 100.")
def list_command(channel: str | None, state: str, mine: bool, before: str | None, limit: int) -> None:  # noqa: FBT001 - click passes flags so
    """List tasks, the last changed first; active ones are open or in doing."""
    who = actor()

    async def ask(hub: "Hub") -> Json:
        where = None if channel is None else (await place(who, hub, channel))[0]
        return await hub.tasks(where, state=state, assignee=who.id if mine else None, before=before, limit=limit)

    page = who.talk(ask)
    found = page["tasks"]
    rows = [(t["id"], t["state"], _assignee(t), t["title"]) for t in found]
    then = f"relay tasks show {found[0]['id']}" if found else 'relay tasks create --title "..."'
    if page["more"]:
        then = f"relay tasks list --state {state} --before {found[-1]['id']}"
    emit(page, table(rows, empty="Nothing to do here."), then=then)


@tasks.command("show")
@click.argument("task", metavar="ID")
def show_command(task: str) -> None:
    """Show a task."""
    found = actor().talk(lambda hub: hub.task(task))
    emit(found, _shown(found), then=_then(found))


@tasks.command("create")
@channel_option
@click.option("--title", required=True, metavar="TEXT", help="What is to be done, in one line.")
@click.option("--description", metavar="TEXT", help="More of it.")
@click.option("--assignee", metavar="MEMBER", help="Who does it, by name or id.")
@click.option("--message", metavar="ID", help="The message that it is about.")
@click.option("--doc", metavar="ID", help="The document that it is about.")
@click.option("--state", type=click.Choice(STATES), help="Default: open.")
@click.option("--operation-id", metavar="X", help="Make it once, however often this is typed with the same X.")
def create_command(channel: str | None, assignee: str | None, operation_id: str | None, **said: str | None) -> None:
    """Make a task. It wakes nobody: send a request to have it done."""
    who = of(profile())

    async def say(hub: "Hub") -> Json:
        where, _ = await place(who, hub, channel)
        wish = {name: value for name, value in said.items() if value is not None}
        if assignee is not None:
            wish["assignee"] = member(await hub.members(where), assignee)
        if operation_id is not None:
            wish["operationId"] = operation_id
        return await hub.create_task(where, **wish)

    made = who.talk(say)
    emit(made, f"Made {made['id']}: refer to it as task:{made['id']}.", then=f"relay tasks show {made['id']}")


@tasks.command("set")
@click.argument("task", metavar="ID")
@click.option("--state", type=click.Choice(STATES), help="How far it is.")
@click.option("--title", metavar="TEXT", help="Another title.")
@click.option("--description", metavar="TEXT", help="Another description.")
@click.option("--assignee", metavar="MEMBER", help="Who does it, by name or id; - for nobody.")
@click.option("--message", metavar="ID", help="The message that it is about; - for none.")
@click.option("--doc", metavar="ID", help="The document that it is about; - for none.")
@click.option("--rev", type=click.IntRange(1), metavar="N", help="Only if it is still at this revision.")
def set_command(task: str, rev: int | None, **said: str | None) -> None:
    """Change a task. What somebody changed since the revision that you read is not overwritten."""
    who = of(profile())

    async def say(hub: "Hub") -> Json:
        found = await hub.task(task)
        wish: dict[str, str | None] = {name: value for name, value in said.items() if value is not None}
        for name in ("assignee", "message", "doc"):
            if wish.get(name) == NOBODY:
                wish[name] = None
        if wish.get("assignee") is not None:
            wish["assignee"] = member(await hub.members(found["channel"]), str(wish["assignee"]))
        return await hub.change_task(task, rev=rev or found["rev"], **wish)

    changed = who.talk(say)
    emit(changed, _shown(changed), then="relay tasks list")


def _assignee(task: Mapping[str, Any]) -> str:
    return clean_name(task["assignee"]["name"]) if task["assignee"] else ""


def _shown(task: Mapping[str, Any]) -> list[str]:
    lines = [f"{task['title']} ({task['id']}, revision {task['rev']})", f"state: {task['state']}"]
    if task["assignee"]:
        lines.append(f"assignee: {_assignee(task)}")
    lines += [f"{name}: {task[name]}" for name in ("message", "doc") if task[name]]
    lines.append(f"changed by {clean_name(task['updatedBy']['name'])}, {task['updatedAt']}")
    if task["description"]:
        lines += ["", *task["description"].splitlines()]
    return [*lines, *referring.lines(task["description"])]


def _then(task: Mapping[str, Any]) -> str:
    for name, line in (("doc", "relay docs show"), ("message", "relay messages show")):
        if task[name]:
            return f"{line} {task[name]}"
    return f"relay tasks set {task['id']} --state {'done' if task['state'] == 'doing' else 'doing'}"
