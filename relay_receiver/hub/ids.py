"""Ids and codes: random, opaque, safe in URLs and on a command line."""

import base64
import secrets

CODE_BYTES = 16
"""An enrolment code has 128 bits."""
TOKEN_BYTES = 32


def new(kind: str) -> str:
    """A new id; `kind` is a short word before it, for people who read logs."""
    return f"{kind}_{_letters(secrets.token_bytes(12))}"


def code() -> str:
    """A single-use enrolment code of letters and digits that are not mistaken for each other."""
    return _letters(secrets.token_bytes(CODE_BYTES))


def token() -> str:
    """A bearer token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def fence() -> int:
    """A new fence: random, so that a hub that was restored never gives one out twice; safe in every JSON reader."""
    return secrets.randbelow(2**52) + 1


def _letters(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()
