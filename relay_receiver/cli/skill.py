"""`relay skill`: what an agent must know to use relay, where agents look for it."""

from pathlib import Path

import click

from relay_receiver.cli.options import Group
from relay_receiver.cli.output import emit
from relay_receiver.wire.errors import RelayError

_PLACES = {"codex": ".codex/skills/relay", "claude": ".claude/skills/relay"}
_NAME = "SKILL.md"


def text() -> str:
    """The skill as it was shipped: in the wheel beside the package, in a checkout at its root."""
    package = Path(__file__).resolve().parent.parent
    for place in (package / "skill" / _NAME, package.parent / "skill" / _NAME):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise RelayError("This installation has no skill file.", code="missing", hint="Install relay-receiver again.")


@click.group(cls=Group)
def skill() -> None:
    """Teach an agent to use relay."""


@skill.command()
@click.option("--for", "agent", type=click.Choice(sorted(_PLACES)), default="codex", help="Whose agent. Default codex.")
@click.option("--directory", type=click.Path(path_type=Path), help="Put it here instead.")
def install(agent: str, directory: Path | None) -> None:
    """Copy the skill to where the agent looks for skills."""
    target = directory or Path.home() / _PLACES[agent]
    target.mkdir(parents=True, exist_ok=True)
    path = target / _NAME
    path.write_text(text(), encoding="utf-8")
    emit({"path": str(path)}, f"The skill is in {path}.", then="relay skill show")


@skill.command()
def show() -> None:
    """Print the skill."""
    whole = text()
    emit({"text": whole}, whole.rstrip().splitlines(), then="relay skill install")
