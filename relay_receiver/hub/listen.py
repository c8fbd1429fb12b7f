"""Where the hub listens: its address, the names it answers to, its certificate; each fault in one sentence."""

import socket
import ssl
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from relay_receiver.hub.options import LOOPBACK_NAMES, host_name, is_loopback
from relay_receiver.wire.errors import RelayError

WILDCARDS = frozenset({"0.0.0.0", "[::]"})  # noqa: S104 - the names of the addresses, refused without --allow-host
BACKLOG = 2048
READABLE = (
    "Without TLS, whoever is on this network can read all messages, attachments and credentials that pass, "
    "and use them."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A listening socket and what it is called."""

    socket: socket.socket
    hosts: frozenset[str]
    url: str
    tls: ssl.SSLContext | None
    warning: str | None


def listen(
    host: str, port: int, *, allow_host: Collection[str], tls_cert: Path | None, tls_key: Path | None, plain_http: bool
) -> Place:
    """Listen as asked.

    Raises:
        RelayError: the address is not this machine's, the port is taken, the certificate is bad, or others could
            reach it without TLS and nobody said that this is meant.
    """
    name = host_name(host)
    allowed = frozenset(host_name(each) for each in allow_host)
    tls = _tls(tls_cert, tls_key)
    warning = None
    if not is_loopback(name):
        if name in WILDCARDS and not allowed:
            raise RelayError(
                f"{host} is every address of this machine; say under which name the hub is reached.",
                code="usage",
                hint="--allow-host NAME",
            )
        if tls is None:
            if not plain_http:
                raise RelayError(
                    f"{host} can be reached from other machines. {READABLE}",
                    code="plain_http",
                    hint="--tls-cert FILE --tls-key FILE; or --plain-http on a private network such as a VPN",
                )
            warning = READABLE
    hosts = LOOPBACK_NAMES | allowed | (frozenset() if name in WILDCARDS else {name})
    bound = _bind(name.strip("[]"), port)
    called = min(allowed) if name in WILDCARDS else name
    url = f"{'https' if tls else 'http'}://{called}:{bound.getsockname()[1]}"
    return Place(socket=bound, hosts=hosts, url=url, tls=tls, warning=warning)


def _bind(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, OverflowError) as error:
        raise RelayError(f"There is no address {host}:{port} to listen on.", code="bad_address") from error
    family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
        bound.settimeout(0)
    except OSError as error:
        bound.close()
        raise RelayError(
            f"The hub cannot listen on {host}:{port}: {error.strerror}.",
            code="port_taken",
            hint="Name another port with --port, or see with `relay hub status` whether a hub runs there.",
        ) from error
    return bound


def _tls(cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if cert is None and key is None:
        return None
    if cert is None:
        raise RelayError("A key needs its certificate.", code="usage", hint="--tls-cert FILE")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        why = error.reason if isinstance(error, ssl.SSLError) and error.reason else error.strerror
        raise RelayError(
            f"The certificate {cert} and its key cannot be used: {str(why).lower().replace('_', ' ')}.",
            code="bad_certificate",
            hint="--tls-cert and --tls-key name files in PEM form that belong together.",
        ) from error
    return context
