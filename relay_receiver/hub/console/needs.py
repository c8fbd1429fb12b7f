"""What needs a person: requests that this person may answer, and receivers that wait for somebody."""

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from relay_receiver.hub import asks, controls
from relay_receiver.hub.auth import Actor
from relay_receiver.hub.console import reported
from relay_receiver.hub.console.reported import Receiver
from relay_receiver.hub.store import Store

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """Everything that waits for one person."""

    requests: list[Json]
    receivers: list[Receiver]
    """Those with something unknown, paused or broken."""
    decided: dict[tuple[str, str], list[Json]]
    """What people decided about a receiver, by channel and agent, and it has not told of yet."""

    @property
    def count(self) -> int:
        """How many things they are."""
        return len(self.requests) + len(self.receivers)


def of(conn: Connection, store: Store, person: Actor) -> Needs:
    """What needs this person now."""
    waiting = reported.receivers(conn, store, person, waiting=True)
    return Needs(
        requests=asks.needs(conn, person, time.time()),
        receivers=waiting,
        decided=decided(conn, person) if waiting else {},
    )


def decided(conn: Connection, person: Actor) -> dict[tuple[str, str], list[Json]]:
    """Decisions that wait for their receivers, by channel and agent."""
    found: dict[tuple[str, str], list[Json]] = {}
    for each in controls.list_controls(conn, person, waiting=True):
        found.setdefault((each["channel"], each["agent"]), []).append(each)
    return found


def count(conn: Connection, store: Store, person: Actor) -> int:
    """How many things need this person now."""
    return reported.count_waiting(conn, store, person) + asks.count_needs(conn, person, time.time())
