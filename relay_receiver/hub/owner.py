"""The owner's connection file: a code for the owner's seat that lives ten minutes, gone once it is used."""

import contextlib
import getpass
import json
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from relay_receiver.hub import enrolment
from relay_receiver.hub.auth import digest
from relay_receiver.hub.files import read_private, write_private
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import enrolment as codes
from relay_receiver.hub.tables import member
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.message import iso

FILE = "owner.json"
RUNNING = "hub.json"
"""Where a hub says where it listens, in its data directory."""


def make(store: Store, data: Path, url: str) -> Path:
    """Make a code for the owner's seat, and the connection file `{url, code, name, expiresAt}`; returns its path."""
    code = store.write_now(enrolment.owner_code, at=time.time())
    said = {"url": url, "code": code.code, "name": _name(), "expiresAt": iso(code.expires_at)}
    write_private(data / FILE, json.dumps(said).encode())
    return data / FILE


def owner_code(data: Path, database: str | None = None) -> Path:
    """Make another connection file for the owner of the hub in `data`, whether the hub runs or not; returns its path.

    Raises:
        RelayError: there is no hub in this directory.
    """
    running = _read(data / RUNNING)
    if running is None or not isinstance(running.get("url"), str):
        raise RelayError(
            f"There is no hub in {data}.", code="no_hub", hint=f"Start one first: relay hub serve --data {data}"
        )
    store = Store.open(database or data)
    try:
        return make(store, data, running["url"])
    finally:
        store.close()


def at_start(store: Store, data: Path, url: str) -> Path | None:
    """Make the connection file where nobody has the owner's seat yet; returns its path."""
    if store.read_now(_has_owner):
        sweep(store, data)
        return None
    return make(store, data, url)


def sweep(store: Store, data: Path) -> None:
    """Delete the connection file once its code was used, or counts no more."""
    path = data / FILE
    if not path.exists():
        return
    said = _read(path)
    code = said.get("code") if said else None
    if not isinstance(code, str) or not store.read_now(_waits, digest(code), time.time()):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _has_owner(conn: Connection) -> bool:
    return conn.execute(select(member.c.id).where(member.c.role == "owner").limit(1)).first() is not None


def _waits(conn: Connection, wanted: str, now: float) -> bool:
    """Whether a code is there, unused, and counts still."""
    found = select(codes.c.expires_at).where(codes.c.digest == wanted, codes.c.used_at.is_(None))
    expires = conn.execute(found).scalar()
    return expires is not None and expires > now


def _read(path: Path) -> dict[str, Any] | None:
    try:
        said = json.loads(read_private(path))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def _name() -> str:
    try:
        return getpass.getuser()[:64] or "owner"
    except (OSError, KeyError):
        return "owner"
