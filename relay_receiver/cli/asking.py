"""Asking people something and waiting for what they say: for the commands and the tools."""

import contextlib
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relay_receiver.cli import output
from relay_receiver.cli.acting import Actor, member
from relay_receiver.cli.exchange import place
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.form import FormError, check_schema
from relay_receiver.wire.limits import JOB_WAIT_SECONDS
from relay_receiver.wire.message import iso

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub

KINDS = ("input", "choice", "form")
"""What an agent may ask; an approval is asked for by its receiver."""

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is asked, as typed: names are not resolved yet. `options` are `ID=LABEL`, or a label that is its own id."""

    title: str
    kind: str | None = None
    description: str | None = None
    options: Sequence[str] = ()
    schema: Any = None
    channel: str | None = None
    approvers: Sequence[str] = ()
    expires: float | None = None
    operation_id: str | None = None


async def ask(who: Actor, hub: "Hub", question: Question) -> Json:
    """Ask people; the answer is the request as the hub stored it."""
    kind = question.kind or ("form" if question.schema is not None else "choice" if question.options else "input")
    _check(kind, question)
    where, _ = await place(who, hub, question.channel)
    body: Json = {
        "channel": where,
        "kind": kind,
        "title": question.title,
        "description": question.description,
        "operationId": question.operation_id or f"cli:{uuid.uuid4().hex}",
    }
    if question.options:
        body["options"] = [_option(each) for each in question.options]
    if question.schema is not None:
        body["schema"] = question.schema
    if question.approvers:
        members = await hub.members(where)
        body["approvers"] = [member(members, each) for each in question.approvers]
    if question.expires is not None:
        body["expiresAt"] = iso(time.time() + question.expires)
    return await hub.create_request(body)


def _check(kind: str, question: Question) -> None:
    if not question.title.strip():
        raise RelayError("Nothing is asked.", code="usage", hint='Say --title "...".')
    if (kind == "choice") != bool(question.options):
        raise RelayError("A choice, and only a choice, has options.", code="usage", hint="Say --option ID=LABEL twice.")
    if (kind == "form") != (question.schema is not None):
        raise RelayError("A form, and only a form, has a schema.", code="usage", hint="Say --schema-file FILE.")
    if question.schema is not None:
        try:
            check_schema(question.schema)
        except FormError as error:
            raise RelayError(error.sentence, code="usage", hint="relay skill show, or docs/requests.md") from error


def _option(typed: str) -> Json:
    name, sign, label = typed.partition("=")
    return {"id": name.strip(), "label": label.strip()} if sign else {"id": typed.strip(), "label": typed.strip()}


async def answer(who: Actor, hub: "Hub", request: str, *, timeout: float) -> tuple[Json, int]:  # noqa: ASYNC109 - as in exchange
    """Wait for the end of a request: what it is then, and the exit code that says how it ended.

    What its own author has read the answer of is closed as applied.
    """
    from relay_receiver.client.answer import answered
    from relay_receiver.client.errors import HubAway, HubError

    limit = min(timeout, JOB_WAIT_SECONDS) if who.job else timeout
    found = await answered(hub, request, limit)
    if found["state"] == "answered" and found["author"]["id"] == who.id and found["kind"] != "approval":
        with contextlib.suppress(HubAway, HubError):
            found = await hub.close_request(request, "applied")
    return found, ending(found)


def ending(request: Mapping[str, Any]) -> int:
    """The exit code of a request: 0 answered, 1 nobody did, 5 still open."""
    if request["state"] == "open":
        return output.TIMED_OUT
    return output.DONE if request["answer"] is not None else output.ERROR
