"""The address of a hub, as people type it and as it is used."""

import ipaddress
from urllib.parse import urlsplit

from relay_receiver.wire.errors import RelayError

_HINT = "An address looks like http://127.0.0.1:7423 or https://hub.example.org."


def normal(url: str) -> str:
    """The one spelling of a hub's address: scheme, host, port and path, without a slash at the end.

    Raises:
        RelayError: it is not an address that a hub can have.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise RelayError("This is not the address of a hub.", code="bad_address", hint=_HINT) from error
    if parts.scheme not in {"http", "https"} or not host:
        raise RelayError("The address of a hub starts with http:// or https://.", code="bad_address", hint=_HINT)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise RelayError(
            "The address of a hub has no user, password, query or fragment.", code="bad_address", hint=_HINT
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def split_invitation(text: str) -> tuple[str, str]:
    """`URL#CODE` as (address, code).

    Raises:
        RelayError: a part is missing or the address is not one.
    """
    url, mark, code = text.strip().partition("#")
    if not mark or not code:
        raise RelayError(
            "An invitation is typed as URL#CODE.", code="usage", hint="relay invites create prints the whole line."
        )
    return normal(url), code


def is_loopback(url: str) -> bool:
    """Whether the hub is on this machine, so that no proxy leads to it."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
