"""`relay console`: a link that signs a person in to the hub's pages, once."""

import hashlib
from urllib.parse import urlsplit

import click

from relay_receiver.cli.acting import of, profile
from relay_receiver.cli.options import Command
from relay_receiver.cli.output import emit

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@click.command(cls=Command)
@click.option("--open", "opens", is_flag=True, help="Open it in this machine's browser.")
def console(opens: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Make a link that signs you in to the console: once, within 10 minutes.

    For a hub on this machine under a name of your own, which browsers know to be this machine: what they keep for
    127.0.0.1 they send to every program that listens there.
    """
    chosen = profile()
    made = of(chosen).talk(lambda hub: hub.console_link())
    plain = chosen.url.rstrip("/")
    own = own_address(plain, chosen.token())
    url, otherwise = own + made["path"], plain + made["path"]
    if opens:
        click.launch(url)
    lines = ["Open it in a browser within 10 minutes; it signs you in, once:", f"  {url}"]
    if own != plain:
        lines += [
            "Where the browser does not find that name, the same link is (other programs on this machine that you open",
            f"in that browser could then act as you):  {otherwise}",
        ]
    emit({"url": url, "otherwise": otherwise, "expiresAt": made["expiresAt"]}, lines)


def own_address(url: str, token: str) -> str:
    """A hub on this machine under a name that only this person knows, always the same; another hub as it is."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK:
        return url
    name = hashlib.sha256(f"relay console {token}".encode()).hexdigest()[:20]
    port = "" if parts.port is None else f":{parts.port}"
    return f"http://relay-{name}.localhost{port}"
