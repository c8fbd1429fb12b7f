"""One exchange with another member: what is sent, whom it wakes, and how it ended. For the commands and the tools."""

import mimetypes
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relay_receiver.cli import output
from relay_receiver.cli.acting import Actor, channel, member
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.limits import ATTACHMENT_BYTES, CONTENT_BYTES, JOB_WAIT_SECONDS
from relay_receiver.wire.message import iso
from relay_receiver.wire.reason import Reason
from relay_receiver.wire.stage import GOOD_ENDS, Stage

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub

REQUEST = "request"
MESSAGE = "message"
WAIT_SECONDS = 300.0
"""How long `wait` waits unless told otherwise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Enclosure:
    """A file that goes with a message."""

    name: str
    type: str
    data: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Letter:
    """What someone wants to send, as typed: names are not resolved yet."""

    content: str
    channel: str | None = None
    to: str | None = None
    kind: str | None = None
    mentions: Sequence[str] = ()
    reply_to: str | None = None
    operation_id: str | None = None
    expires: float | None = None
    attachments: Sequence[Enclosure] = ()


async def send(who: Actor, hub: "Hub", letter: Letter) -> dict[str, Any]:
    """Send a message; the answer is the stored message with `wakes`: each one's id, name and receiver."""
    body, members = await _body(who, hub, letter)
    if letter.attachments:
        body["attachments"] = [(await hub.upload(each.data, each.name, each.type))["id"] for each in letter.attachments]
    stored = await hub.post_message(body)
    return {**stored, "wakes": woken(stored, members)}


async def rehearse(who: Actor, hub: "Hub", letter: Letter) -> dict[str, Any]:
    """Ask whom a message would wake, `{wakes: [...]}`; nothing is sent, and no file goes up."""
    body, _ = await _body(who, hub, letter)
    return await hub.post_message({**body, "dryRun": True})


async def _body(who: Actor, hub: "Hub", letter: Letter) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The message as the hub takes it, with names resolved, and the members of its channel."""
    kind = letter.kind or (REQUEST if letter.to else MESSAGE)
    _check(letter, kind)
    where, _ = await place(who, hub, letter.channel)
    members = await hub.members(where)
    body: dict[str, Any] = {
        "channel": where,
        "content": letter.content,
        "kind": kind,
        "operationId": letter.operation_id or f"cli:{uuid.uuid4().hex}",
    }
    if letter.to:
        body["to"] = member(members, letter.to)
    if letter.mentions:
        body["mentions"] = [member(members, each) for each in letter.mentions]
    if letter.reply_to:
        body["replyTo"] = letter.reply_to
    if letter.expires is not None:
        body["expiresAt"] = iso(time.time() + letter.expires)
    return body, members


def woken(stored: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Whom a stored message wakes, and whether their receivers run.

    That is whom a request is to, whom a message mentions, and those that the hub knows to be woken by every message.
    """
    asked = {REQUEST: [stored.get("to")], MESSAGE: stored.get("mentions") or []}
    ids = {*asked.get(str(stored.get("kind")), []), *(each["id"] for each in stored.get("wakes") or ())}
    return [
        {"id": each["id"], "name": each["name"], "receiver": _running(each.get("receiver"))}
        for each in members
        if each["id"] in ids and each.get("kind") == "agent"
    ]


def _running(receiver: object) -> dict[str, Any] | None:
    """Of a member's receiver what a sender wants to know; None where none is connected."""
    if not isinstance(receiver, Mapping) or receiver.get("state") == Reason.OFFLINE:
        return None
    return {name: receiver.get(name) for name in ("state", "detail")}


async def place(who: Actor, hub: "Hub", given: str | None) -> tuple[str, str]:
    """The channel (id, name) that was meant; the hub is asked where this machine does not know it."""
    try:
        return channel(who, given)
    except RelayError:
        if who.job:
            raise
        return channel(who, given, await hub.channels())


async def wait(
    who: Actor,
    hub: "Hub",
    message: str,
    *,
    timeout: float,  # noqa: ASYNC109 - it ends with an answer of its own, not with an exception
    progress: Callable[[Mapping[str, Any]], None] | None = None,
) -> tuple[dict[str, Any], int]:
    """Wait for the end of a request: `{request, delivery, result}`, and the exit code that says how it ended."""
    from relay_receiver.client.wait import wait as follow

    limit = min(timeout, JOB_WAIT_SECONDS) if who.job else timeout
    answer = await follow(hub, message, limit, progress=progress)
    return answer, ending(answer["delivery"].get("stage"))


def ending(stage: str | None) -> int:
    """The exit code that a stage means: 0 answered or quiet, 1 another end, 4 unknown, 5 not ended yet."""
    if stage == Stage.UNKNOWN:
        return output.PERSON
    if stage in GOOD_ENDS:
        return output.DONE
    ended = {Stage.FAILED, Stage.EXPIRED, Stage.WITHDRAWN, Stage.CANCELLED}
    return output.ERROR if stage in ended else output.TIMED_OUT


def _check(letter: Letter, kind: str) -> None:
    if kind == REQUEST and not letter.to:
        raise RelayError(
            "A request is made to someone.", code="usage", hint="Say --to NAME; relay peers shows who is here."
        )
    if not (letter.content.strip() or letter.attachments):
        raise RelayError("There is no text to send.", code="usage", hint='Say --content "...", or --attach FILE.')
    size = len(letter.content.encode("utf-8", "surrogatepass"))
    if size > CONTENT_BYTES:
        raise RelayError(
            f"The text is {size} bytes; a message takes {CONTENT_BYTES}.",
            code="too_large",
            hint="Send it as a file: --attach FILE.",
        )


def enclosure(path: Path) -> Enclosure:
    """A file as it is sent along."""
    if path.stat().st_size > ATTACHMENT_BYTES:
        raise RelayError(f"{path} is over {ATTACHMENT_BYTES} bytes, the most that a hub takes.", code="too_large")
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Enclosure(name=path.name, type=kind, data=path.read_bytes())
