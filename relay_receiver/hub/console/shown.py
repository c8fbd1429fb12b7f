"""What people decide about, in full: the parts of an action, with all that cannot be seen made visible."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from relay_receiver.wire.action import visible

SAYS = "agentSays"
"""The field of an action with the agent's own words, which nobody has checked."""
_FIRST = ("command", "cwd", "server", "message", "url")
_LABELS = {"cwd": "Working directory", SAYS: "The agent says", "url": "Link"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One field of an action: its label, its whole text, and whether these are only the agent's words."""

    label: str
    text: str
    code: bool = False
    says: bool = False


def parts(action: Any) -> list[Part]:  # noqa: ANN401 - JSON
    """The parts of an action, what is done first and the agent's own words last; nothing is left out."""
    if not isinstance(action, Mapping):
        return [] if action is None else [Part(label="Action", text=_text(action), code=True)]
    names = [name for name in _FIRST if name in action]
    names += [name for name in action if name not in {*_FIRST, "kind", SAYS}]
    found = [part for name in names for part in _of_field(name, action[name])]
    if SAYS in action:
        said = action[SAYS] if isinstance(action[SAYS], list) else [action[SAYS]]
        text = "\n".join(_text(each) for each in said)
        found.append(Part(label=_label(SAYS), text=text, says=True))
    return found


def _of_field(name: str, value: Any) -> Iterator[Part]:  # noqa: ANN401 - JSON
    if name == "changes" and isinstance(value, list) and all(_is_change(each) for each in value):
        for change in value:
            rest = {key: more for key, more in change.items() if key not in {"path", "diff"}}
            said = ", ".join(_said_of(rest))
            label = f"{change['path']} ({said})" if said else change["path"]
            yield Part(label=visible(label), text=visible(change["diff"]), code=True)
    else:
        yield Part(label=_label(name), text=_text(value), code=name == "command" or not isinstance(value, str))


def _said_of(rest: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """What else a change says, such as `update` or `update, kind.move_path: b.py`; what is null says nothing."""
    for name, value in rest.items():
        if isinstance(value, Mapping):
            yield from _said_of(value, f"{within}{name}.")
        elif f"{within}{name}" in {"kind", "kind.type"} and isinstance(value, str):
            yield value
        elif value is not None:
            yield f"{within}{name}: {_text(value)}"


def _is_change(value: Any) -> bool:  # noqa: ANN401 - JSON
    return isinstance(value, Mapping) and isinstance(value.get("path"), str) and isinstance(value.get("diff"), str)


def _label(name: str) -> str:
    return _LABELS.get(name) or visible(name[:1].upper() + name[1:])


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return visible(value)
    return visible(json.dumps(value, ensure_ascii=False, indent=2))
