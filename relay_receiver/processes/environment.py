"""The environment of a child: built from a small allow-list, never inherited whole."""

import os
from collections.abc import Iterable, Mapping

ALLOWED = frozenset(
    {
        "HOME",
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "CODEX_HOME",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    },
)


def build(allow: Iterable[str] = (), *, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of an agent.

    Args:
        allow: more names to hand on, as they are now.
        extra: variables to set, over all others.
    """
    names = ALLOWED | set(allow)
    kept = {name: value for name, value in os.environ.items() if name in names or name.startswith("LC_")}
    return {**kept, **(extra or {})}


def own() -> dict[str, str]:
    """The environment of a background process of ours: this one's, from which it builds its agents'."""
    return {name: value for name, value in os.environ.items() if name != "RELAY_JOB"}
