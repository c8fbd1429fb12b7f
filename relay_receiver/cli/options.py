"""The options that every command takes, and how times and sizes are typed."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_META = "relay.common"
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_SECONDS = 3650 * 86400.0
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)\s*")

JSON = "json"
TEXT = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class Common:
    """What was said at the root or after a subcommand; the last word counts."""

    profile: str | None = None
    workspace: str | None = None
    output: str | None = None
    debug: bool = False


def common() -> Common:
    """The common options of the command that runs."""
    found = click.get_current_context().meta.get(_META)
    return found if isinstance(found, Common) else Common()


def _note(ctx: click.Context, param: click.Parameter, value: Any) -> None:  # noqa: ANN401 - any option's value
    if value is None or value is False or param.name is None:
        return
    before = ctx.meta.get(_META, Common())
    ctx.meta[_META] = replace(before, **{param.name: value})


def _common_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--profile"], metavar="NAME", callback=_note, expose_value=False, help="Which profile to act as."
        ),
        click.Option(["--workspace"], metavar="ID", callback=_note, expose_value=False, help="Which workspace."),
        click.Option(
            ["--output"],
            type=click.Choice([TEXT, JSON]),
            callback=_note,
            expose_value=False,
            help="Text on a terminal, JSON when piped.",
        ),
        click.Option(
            ["--debug"], is_flag=True, callback=_note, expose_value=False, help="Show where an error came from."
        ),
    ]


class Command(click.Command):
    """A command that takes the common options too."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters and the common ones."""
        return [*super().get_params(ctx), *_common_options()]


class Group(click.Group):
    """A group whose commands take the common options, as it does itself."""

    command_class = Command
    group_class = type

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters and the common ones."""
        return [*super().get_params(ctx), *_common_options()]


class Duration(click.ParamType[float]):
    """A time such as 30s, 15m, 2h or 7d; a bare number is seconds. The value is seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's signature
        """Read a duration."""
        if isinstance(value, int | float):
            return float(value)
        match = _DURATION.fullmatch(str(value).lower())
        if match is None:
            self.fail(f"{value!r} is not a time; type 30s, 15m, 2h or 7d.", param, ctx)
        seconds = float(match[1]) * _UNITS[match[2]]
        if seconds > LONGEST_SECONDS:
            self.fail(f"{value!r} is too long; ten years are the most.", param, ctx)
        return seconds


DURATION = Duration()


def channel_option(command: F) -> F:
    """`--channel`, by name or id; optional where there is one."""
    return click.option("--channel", metavar="CHANNEL", help="A channel, by name or id; needed where there are many.")(
        command
    )


def short(seconds: float) -> str:
    """A time as a person says it: 45s, 12m, 3h, 2d."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("m", 60.0)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
