"""What people are shown of what Codex asks: whole, with the agent's words marked, and what is not put to them."""

from typing import Any

import pytest

from relay_receiver.adapters import codex_asks
from relay_receiver.adapters.codex_asks import CannotShow
from relay_receiver.adapters.jsonrpc import Call
from relay_receiver.wire.form import check_answer

COMMAND = "item/commandExecution/requestApproval"
PATCH = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"
INPUT = "item/tool/requestUserInput"
ELICITATION = "mcpServer/elicitation/request"


def asked(method: str, **params: Any) -> Call:
    return Call(id=0, method=method, params={"threadId": "T", "turnId": "U", "itemId": "i", "startedAtMs": 1, **params})


def test_a_command_is_shown_with_every_field_that_says_what_it_does() -> None:
    request = asked(
        COMMAND,
        command="/bin/bash -lc 'rm -rf \u202e/'",
        cwd="/work",
        reason="It is harmless.",
        networkApprovalContext={"host": "evil.example", "protocol": "https"},
        additionalPermissions={"network": {"enabled": True}},
        somethingNew={"a": 1},
        commandActions=[{"type": "unknown", "command": "ls"}],
        availableDecisions=["accept", "cancel"],
        environmentId=None,
    )
    shown = codex_asks.shown(request, {})
    assert shown.kind == "approval"
    assert shown.action == {
        "kind": "command",
        "command": "/bin/bash -lc 'rm -rf \u202e/'",
        "cwd": "/work",
        "agentSays": "It is harmless.",
        "networkApprovalContext": {"host": "evil.example", "protocol": "https"},
        "additionalPermissions": {"network": {"enabled": True}},
        "somethingNew": {"a": 1},
    }
    assert "harmless" not in shown.title
    assert codex_asks.accepted(request, {}) == {"decision": "accept"}


def test_a_patch_is_shown_whole_by_its_item() -> None:
    diff = "+x\n" * 50_000
    changes = [{"path": "/etc/a", "kind": {"type": "add"}, "diff": diff}]
    shown = codex_asks.shown(asked(PATCH, reason=None, grantRoot=None), {"i": changes, "other": []})
    assert shown.action == {"kind": "patch", "changes": changes}
    assert "/etc/a" in shown.title


def test_permissions_are_granted_as_they_were_asked_for_this_turn_only() -> None:
    wanted = {"network": {"enabled": True}}
    request = asked(PERMISSIONS, cwd="/work", permissions=wanted, reason="for npm")
    action = codex_asks.shown(request, {}).action
    assert (action["permissions"], action["cwd"], action["agentSays"]) == (wanted, "/work", "for npm")
    assert codex_asks.accepted(request, {}) == {"permissions": wanted, "scope": "turn"}


def test_questions_become_a_form_and_its_answers_go_back_by_question() -> None:
    options = [{"label": "red", "description": "like blood"}, {"label": "blue", "description": ""}]
    request = asked(
        INPUT,
        questions=[
            {"id": "c", "header": "Colour", "question": "Which colour?", "options": options, "isOther": True},
            {"id": "n", "header": "Name", "question": "Which name?", "options": None},
        ],
    )
    shown = codex_asks.shown(request, {})
    assert shown.schema is not None
    assert shown.kind == "input"
    assert shown.schema["properties"]["c"]["enum"] == ["red", "blue"]
    assert shown.schema["required"] == ["n"]
    assert shown.action["questions"] == request.params["questions"]
    chosen = check_answer(shown.schema, {"c": "red", "n": "Bo"})
    assert codex_asks.accepted(request, chosen) == {"answers": {"c": {"answers": ["red"]}, "n": {"answers": ["Bo"]}}}
    other = check_answer(shown.schema, {"c (other)": "green", "n": "Bo"})
    assert codex_asks.accepted(request, other)["answers"]["c"] == {"answers": ["green"]}


def test_a_tool_of_others_is_shown_with_its_arguments() -> None:
    meta = {"codex_approval_kind": "mcp_tool_call", "persist": ["always"], "tool_params": {"what": "disk"}}
    request = asked(ELICITATION, serverName="others", mode="form", message='run "erase"?', _meta=meta)
    shown = codex_asks.shown(request, {})
    assert shown.kind == "approval"
    assert shown.action == {
        "kind": "tool",
        "server": "others",
        "message": 'run "erase"?',
        "tool_params": {"what": "disk"},
    }
    assert codex_asks.accepted(request, {}) == {"action": "accept", "content": {}}


def test_the_form_of_a_tool_is_translated_and_its_answer_goes_back() -> None:
    wanted = {
        "type": "object",
        "properties": {
            "mail": {"type": "string", "format": "email", "description": "Yours", "minLength": 3},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
            "kind": {"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]},
            "tags": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}, "maxItems": 1},
            "more": {"type": "array", "items": {"type": "string", "enum": ["p", "q"]}},
            "sure": {"type": "boolean", "default": False, "title": None},
        },
        "required": ["mail"],
    }
    request = asked(
        ELICITATION, serverName="others", mode="form", message="Which?", requestedSchema=wanted, turnId=None
    )
    shown = codex_asks.shown(request, {})
    assert shown.kind == "input"
    assert shown.schema is not None
    fields = shown.schema["properties"]
    assert fields["mail"]["description"] == "Yours\nFormat: email"
    assert fields["size"]["enum"] == ["s", "l"]
    assert "l: Large" in fields["size"]["description"]
    assert "b: Second" in fields["kind"]["description"]
    assert fields["tags"]["items"] == {"enum": ["x"]}
    assert fields["more"]["items"] == {"enum": ["p", "q"]}
    answer = check_answer(shown.schema, {"mail": "a@b", "size": "l", "tags": ["x"]})
    assert codex_asks.accepted(request, answer) == {"action": "accept", "content": answer}


def test_a_tool_that_only_wants_a_yes_or_a_link_opened_is_an_approval() -> None:
    empty = {"type": "object", "properties": {}}
    yes = codex_asks.shown(asked(ELICITATION, serverName="o", mode="form", message="Sure?", requestedSchema=empty), {})
    assert (yes.kind, yes.action["agentSays"]) == ("approval", "Sure?")
    link = codex_asks.shown(asked(ELICITATION, serverName="o", mode="url", message="Sign in", url="https://x/"), {})
    assert (link.kind, link.action["url"]) == ("approval", "https://x/")


@pytest.mark.parametrize(
    "request_",
    [
        asked(COMMAND, command=None),
        asked(COMMAND, command="x", kind="writeStdin"),
        asked(COMMAND, command="x \ud800"),
        asked(PATCH),
        asked(PATCH, grantRoot="/"),
        asked(INPUT, questions=[]),
        asked(INPUT, questions=[{"id": "p", "header": "h", "question": "Password?", "isSecret": True}]),
        asked(INPUT, questions=[{"id": "\n", "header": "h", "question": "q"}]),
        asked(ELICITATION, serverName="o", mode="openai/form", message="m", requestedSchema={}),
        asked(ELICITATION, serverName="o", mode="form", message="m", requestedSchema={"properties": {"a": 3}}),
        asked(
            ELICITATION,
            serverName="o",
            mode="form",
            message="m",
            requestedSchema={"properties": {"a": {"type": "file"}}},
        ),
        asked("execCommandApproval", command=["ls"]),
        asked("something/new"),
    ],
)
def test_what_cannot_be_shown_whole_or_lasts_longer_is_not_put_to_people(request_: Call) -> None:
    files = {"i": [{"path": "/etc/a", "diff": "+x"}]} if request_.params.get("grantRoot") else {}
    with pytest.raises(CannotShow) as why:
        codex_asks.shown(request_, files)
    assert str(why.value)
