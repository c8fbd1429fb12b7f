"""What Codex asks of people, as they are shown it: whole, from its structured fields, the agent's own words marked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relay_receiver.adapters.jsonrpc import JSON, Call
from relay_receiver.wire.action import action_hash
from relay_receiver.wire.form import FormError, check_schema

Files = Mapping[str, Sequence[Any]]
"""The changes of each patch that is not applied yet, by the id of its item."""

SAYS = "agentSays"
"""The field of an action with the agent's own words: a reason that nobody has checked."""

_BOOKKEEPING = frozenset(
    {
        "approvalId",
        "availableDecisions",
        "commandActions",
        "itemId",
        "kind",
        "proposedExecpolicyAmendment",
        "proposedNetworkPolicyAmendments",
        "reason",
        "startedAtMs",
        "threadId",
        "turnId",
    }
)
"""Fields of a call that name or repeat what others say. Every other field that it has is shown."""

_HINTS = frozenset({"codex_approval_kind", "persist", "tool_params_display"})
"""Fields of a call of a tool that say how to show it, not what it does."""


class CannotShow(Exception):  # noqa: N818 - it says what is the matter
    """It is not put to people, but declined: the clause says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """One question to people."""

    kind: str
    """`approval` or `input`."""
    title: str
    action: JSON
    schema: JSON | None = None
    """The form of an input."""


def shown(request: Call, files: Files) -> Shown:
    """What people are shown of a call.

    Raises:
        CannotShow: it is of a kind that is not put to people, or cannot be shown whole.
    """
    show = _SHOWS.get(request.method)
    if show is None:
        raise CannotShow(f"people are not asked for {request.method}")
    found = show(request.params, files)
    try:
        action_hash(found.action)
    except ValueError as error:
        raise CannotShow("it holds what is no text") from error
    if found.schema is not None:
        try:
            check_schema(found.schema)
        except FormError as error:
            raise CannotShow(f"it asks in a form that people cannot be given ({error.sentence})") from error
    return found


def accepted(request: Call, answers: Mapping[str, Any]) -> JSON:
    """The result that accepts this one call, and nothing after it.

    Args:
        answers: to an input, the fields of its form.
    """
    match request.method:
        case "item/permissions/requestApproval":
            return {"permissions": request.params.get("permissions") or {}, "scope": "turn"}
        case "item/tool/requestUserInput":
            return {"answers": _answers(request.params, answers)}
        case "mcpServer/elicitation/request":
            return {"action": "accept", "content": dict(answers)}
    return {"decision": "accept"}


def _command(params: Mapping[str, Any], _: Files) -> Shown:
    if params.get("kind") not in {None, "command"}:
        raise CannotShow("what would be typed into a running terminal cannot be shown whole")
    action = {"kind": "command", **_whole(params)}
    if not isinstance(params.get("command"), str) or not params["command"]:
        raise CannotShow("Codex did not say which command")
    return Shown(kind="approval", title=f"Run outside the sandbox: {params['command']}", action=action)


def _patch(params: Mapping[str, Any], files: Files) -> Shown:
    changes = files.get(str(params.get("itemId")))
    if not changes:
        raise CannotShow("Codex did not say which changes")
    if params.get("grantRoot"):
        raise CannotShow("nobody is asked for a grant that outlasts the patch")
    action = {"kind": "patch", **_whole(params), "changes": list(changes)}
    paths = ", ".join(str(change.get("path")) for change in changes if isinstance(change, dict))
    return Shown(kind="approval", title=f"Change files: {paths}", action=action)


def _permissions(params: Mapping[str, Any], _: Files) -> Shown:
    action = {"kind": "permissions", **_whole(params)}
    return Shown(kind="approval", title="Give the agent more permissions for the rest of its turn", action=action)


def _questions(params: Mapping[str, Any], _: Files) -> Shown:
    asked = [each for each in params.get("questions") or () if isinstance(each, dict)]
    if not asked:
        raise CannotShow("Codex did not say what it asks")
    if any(each.get("isSecret") for each in asked):
        raise CannotShow("secrets are not asked for in a channel")
    fields: JSON = {}
    required = []
    for each in asked:
        name = str(each.get("id"))
        options = [option for option in each.get("options") or () if isinstance(option, dict)]
        fields[name] = _field(each, options)
        if options and each.get("isOther"):
            fields[_other(name)] = {"type": "string", "title": "Something else, in your own words"}
        else:
            required.append(name)
    schema = {"type": "object", "properties": fields, "required": required}
    action = {"kind": "questions", SAYS: [str(each.get("question")) for each in asked], "questions": asked}
    return Shown(kind="input", title=f"The agent asks: {asked[0].get('question')}", action=action, schema=schema)


def _field(question: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> JSON:
    field: JSON = {"type": "string", "title": str(question.get("header") or question.get("question"))}
    told = [f"{option.get('label')}: {option.get('description')}" for option in options if option.get("description")]
    field["description"] = "\n".join([str(question.get("question")), *told])
    if options:
        field["enum"] = [str(option.get("label")) for option in options]
    return field


def _other(name: str) -> str:
    return f"{name} (other)"


def _answers(params: Mapping[str, Any], given: Mapping[str, Any]) -> JSON:
    answers: JSON = {}
    for question in params.get("questions") or ():
        name = str(question.get("id"))
        said = given.get(_other(name)) or given.get(name)
        answers[name] = {"answers": [] if said is None else [str(said)]}
    return answers


def _elicitation(params: Mapping[str, Any], _: Files) -> Shown:
    server, message = str(params.get("serverName")), str(params.get("message"))
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    if meta.get("codex_approval_kind") == "mcp_tool_call":
        call = {name: value for name, value in meta.items() if name not in _HINTS}
        action = {"kind": "tool", "server": server, "message": message, **call}
        return Shown(kind="approval", title=f"Call a tool of {server}: {message}", action=action)
    said = {"server": server, SAYS: message}
    if params.get("mode") == "url":
        action = {"kind": "link", **said, "url": str(params.get("url"))}
        return Shown(kind="approval", title=f"{server} asks to open a link: {message}", action=action)
    if params.get("mode") not in {None, "form"}:
        raise CannotShow(f"{server} asks in a form that is not known here")
    wanted = params.get("requestedSchema")
    wanted = wanted if isinstance(wanted, dict) else {}
    fields = {str(name): _mcp_field(each) for name, each in (wanted.get("properties") or {}).items()}
    action = {"kind": "elicitation", **said}
    title = f"{server} asks: {message}"
    if not fields:
        return Shown(kind="approval", title=title, action=action)
    schema = {"type": "object", "properties": fields, "required": list(wanted.get("required") or ())}
    return Shown(kind="input", title=title, action={**action, "form": wanted}, schema=schema)


def _mcp_field(asked: Any) -> JSON:  # noqa: ANN401 - JSON
    """A field as MCP describes it, in the words of our forms; hints that these have no word for go to its description.

    Raises:
        CannotShow: it is none.
    """
    if not isinstance(asked, dict) or not isinstance(asked.get("type"), str):
        raise CannotShow("a tool asks for a field that is not known here")
    names = ("type", "title", "description", "enum", "minLength", "maxLength", "minimum", "maximum", "default")
    field = {name: asked[name] for name in (*names, "minItems", "maxItems") if asked.get(name) is not None}
    items = asked.get("items")
    items = items if isinstance(items, dict) else {}
    choices = asked.get("oneOf") or items.get("anyOf") or ()
    values = [str(each.get("const")) for each in choices if isinstance(each, dict)] or items.get("enum")
    if field["type"] == "array":
        field["items"] = {"enum": list(values or ())}
    elif values:
        field["enum"] = list(values)
    hints = [f"{each.get('const')}: {each.get('title')}" for each in choices if isinstance(each, dict)]
    named = zip(asked.get("enum") or (), asked.get("enumNames") or (), strict=False)
    hints += [f"{value}: {name}" for value, name in named]
    hints += [f"Format: {asked['format']}"] if asked.get("format") else []
    if hints:
        field["description"] = "\n".join([*([field["description"]] if field.get("description") else []), *hints])
    return field


def _whole(params: Mapping[str, Any]) -> JSON:
    """Every field that is not bookkeeping, and the agent's reason as such."""
    found = {name: value for name, value in params.items() if name not in _BOOKKEEPING and value is not None}
    reason = params.get("reason")
    return {**found, SAYS: str(reason)} if reason else found


_SHOWS: Mapping[str, Callable[[Mapping[str, Any], Files], Shown]] = {
    "item/commandExecution/requestApproval": _command,
    "item/fileChange/requestApproval": _patch,
    "item/permissions/requestApproval": _permissions,
    "item/tool/requestUserInput": _questions,
    "mcpServer/elicitation/request": _elicitation,
}
