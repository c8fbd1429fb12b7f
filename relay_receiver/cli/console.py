"""`relay console`: a link that signs a person in to the hub's pages, once."""

import click

from relay_receiver.cli.acting import of, profile
from relay_receiver.cli.options import Command
from relay_receiver.cli.output import emit


@click.command(cls=Command)
@click.option("--open", "opens", is_flag=True, help="Open it in this machine's browser.")
def console(opens: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Make a link that signs you in to the console: once, within 10 minutes."""
    chosen = profile()
    made = of(chosen).talk(lambda hub: hub.console_link())
    url = chosen.url.rstrip("/") + made["path"]
    if opens:
        click.launch(url)
    lines = ["Open it in a browser within 10 minutes; it signs you in, once:", f"  {url}"]
    emit({"url": url, "expiresAt": made["expiresAt"]}, lines)
