"""How values are shown on pages."""

import datetime as dt

from markupsafe import Markup

from relay_receiver.hub.console.markdown import markdown
from relay_receiver.jobs.text import clean_name
from relay_receiver.wire.action import visible
from relay_receiver.wire.message import iso, seconds

_SIZES = ((1024 * 1024, "MB"), (1024, "kB"))


def moment(value: str | float) -> Markup:
    """A time, as ISO 8601 or seconds since the epoch: in UTC, which a script turns into the reader's own."""
    at = value if isinstance(value, int | float) else seconds(value)
    shown = dt.datetime.fromtimestamp(at, tz=dt.UTC)
    text = shown.strftime("%-d %b %Y, %H:%M UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(at), text, text)


def when(value: str) -> Markup | str:
    """A time that a receiver reported: as `moment`, or as it is where it is none."""
    try:
        return moment(value)
    except (ValueError, OverflowError):
        return value


def size(value: int) -> str:
    """Bytes as people say them."""
    for step, unit in _SIZES:
        if value >= step:
            return f"{value / step:.1f} {unit}".replace(".0 ", " ")
    return f"{value} bytes"


def initials(name: str) -> str:
    """One or two letters that stand for a name."""
    words = [word for word in clean_name(name).replace("-", " ").replace("_", " ").split() if word]
    return "".join(word[0] for word in words[:2]).upper() or "?"


FILTERS = {
    "moment": moment,
    "when": when,
    "size": size,
    "initials": initials,
    "name": clean_name,
    "visible": visible,
    "markdown": markdown,
}
"""In templates: `{{ member.name | name }}` for every name that somebody chose."""
