"""What a request to people at the hub says about a question of the agent: used only where all of it fits (P11)."""

import json
from collections.abc import Mapping
from typing import Any

from relay_receiver.journal.approvals import Approval, Decision
from relay_receiver.journal.tables import ApprovalKind, ApprovalState
from relay_receiver.wire.action import action_hash
from relay_receiver.wire.form import FormError, check_answer

Json = Mapping[str, Any]

HUB = "hub"
RECEIVER = "receiver"


class Unfit(Exception):  # noqa: N818 - it says what is the matter
    """The request is not that of the question, or its answer is none. It is not used; the clause says why."""


def read(asked: Approval, request: Json, *, agent: str, channel: str) -> Decision | None:
    """What was decided about a question; None while nothing was.

    Args:
        request: the request as the hub tells it.
        agent: whose receiver this is.

    Raises:
        Unfit: it is not used.
    """
    _belongs(asked, request, agent=agent, channel=channel)
    match request.get("state"):
        case "open":
            return None
        case "answered":
            return _answer(asked, request, agent=agent)
        case "expired":
            return Decision(state=ApprovalState.EXPIRED, by=HUB, reason="nobody answered in time")
        case "superseded":
            return Decision(state=ApprovalState.DECLINED, by=HUB, reason="the request to people was closed at the hub")
        case "applied":
            why = "its answer was given to the agent before, and an answer is used once"
            return Decision(state=ApprovalState.DECLINED, by=HUB, reason=why)
    raise Unfit(f"its state is {request.get('state')!r}")


def is_partial(request: Json) -> bool:
    """Whether an event left out what was too large for it: the request itself is to be read."""
    return bool(request.get("partial"))


def _belongs(asked: Approval, request: Json, *, agent: str, channel: str) -> None:
    author = request.get("author")
    pairs = (
        ("request", request.get("id"), asked.request or request.get("id")),
        ("operation", request.get("operationId"), asked.id),
        ("author", author.get("id") if isinstance(author, dict) else None, agent),
        ("channel", request.get("channel"), channel),
        ("action", request.get("actionHash"), action_hash(json.loads(asked.action))),
    )
    for what, found, wanted in pairs:
        if not isinstance(found, str) or found != wanted:
            raise Unfit(f"it is of another {what}")


def _answer(asked: Approval, request: Json, *, agent: str) -> Decision:
    person = request.get("answeredBy")
    by = person.get("id") if isinstance(person, dict) else None
    if not isinstance(by, str) or by == agent:
        raise Unfit("no person answered it")
    if asked.approvers is not None and by not in json.loads(asked.approvers):
        raise Unfit(f"{by} is not among those who may answer it")
    who = f"{person.get('name')} ({by})" if isinstance(person, dict) else by
    answer = request.get("answer")
    if asked.kind is ApprovalKind.INPUT:
        try:
            given = check_answer(json.loads(asked.schema or "{}"), answer)
        except (FormError, KeyError) as error:
            raise Unfit(f"its answer does not fit the form: {error}") from error
        return Decision(state=ApprovalState.ANSWERED, by=who, answer=given)
    match answer:
        case {"decision": "accept"}:
            return Decision(state=ApprovalState.APPROVED, by=who)
        case {"decision": "decline"}:
            return Decision(state=ApprovalState.DECLINED, by=who)
    raise Unfit("its answer is neither accept nor decline")
