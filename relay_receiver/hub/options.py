"""What can be set about a hub's shell; values only."""

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache

from relay_receiver.wire import limits

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_OWN_NAME = re.compile(r"[a-z0-9-]{1,63}\.localhost")


@dataclass(frozen=True, kw_only=True, slots=True)
class HubOptions:
    """Who may reach the hub under which name, and how much it holds for a reader. Times in seconds."""

    hosts: frozenset[str] = LOOPBACK_NAMES
    """Names and addresses that `Host` may have; an IPv6 address in brackets."""
    ring_events: int = 10_000
    """Latest events of a workspace kept in memory."""
    queue_events: int = 1_000
    """Events that may wait for one reader before it is cut off as too slow."""
    hello_seconds: float = limits.HELLO_SECONDS
    cursor_seconds: float = limits.CURSOR_SECONDS
    ping_seconds: float = limits.PING_SECONDS
    close_seconds: float = 10.0
    """How long a reader that is told to go may take to read what it was sent before."""
    rate_factor: float = 1.0
    """So many times the rates of PROTOCOL; more than one to measure what the hub itself can do."""
    body_seconds: float = 60.0
    """In which a body must have arrived; ten times as long for an attachment."""


@lru_cache(maxsize=64)
def host_name(host: str) -> str:
    """A host as `Host` has it, without port: lower case, an IPv6 address in brackets and in its short form."""
    bare = host.strip().lower().removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return bare.rstrip(".")
    return f"[{address}]" if address.version == 6 else str(address)


def is_own_name(name: str) -> bool:
    """Whether it is a name directly below `localhost`, which browsers take for this machine and never ask about.

    `relay console` makes one up for each person: a browser sends cookies of 127.0.0.1 to every port there.
    """
    return _OWN_NAME.fullmatch(name) is not None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    name = host_name(host)
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
