"""The sockets of this hub process: who has one open, and how many."""

from collections import defaultdict
from typing import Protocol

from relay_receiver.hub.auth import Actor
from relay_receiver.hub.errors import Refusal
from relay_receiver.hub.middleware_auth import FindActor
from relay_receiver.hub.reader import CREDENTIAL_ENDED, DISPLACED
from relay_receiver.wire.limits import SOCKETS_PER_MEMBER

UNGREETED = 16
"""Sockets of a member that have not said hello yet."""


class Connection(Protocol):
    """An open socket, as the registry sees it."""

    actor: Actor
    token: str
    channel: str | None
    holder: str | None

    def end(self, code: int, reason: str) -> None:
        """Close it at once."""

    def refresh(self, actor: Actor) -> None:
        """Go on with what this actor may see now."""


class Sockets:
    """All open sockets, by member and channel and by holder."""

    def __init__(self, find: FindActor) -> None:
        self._find = find
        self._opening: dict[str, int] = defaultdict(int)
        self._open: dict[tuple[str, str | None], list[Connection]] = {}
        self._holders: dict[tuple[str, str | None, str], Connection] = {}
        self._jobs: set[Connection] = set()

    def opening(self, actor: Actor) -> None:
        """Count a socket that has not said hello yet.

        Raises:
            Refusal: 429, the member has too many of them.
        """
        if self._opening[actor.id] >= UNGREETED:
            raise Refusal(429, "too_many_sockets", "Too many sockets of this member wait for hello.", retry_after=10)
        self._opening[actor.id] += 1

    def opened(self, actor: Actor) -> None:
        """It said hello, or went away."""
        self._opening[actor.id] -= 1
        if not self._opening[actor.id]:
            del self._opening[actor.id]

    def add(self, socket: Connection) -> None:
        """Count a greeted socket; an older one of the same holder is displaced.

        Raises:
            Refusal: 429, the member has too many in this channel.
        """
        if socket.holder is not None:
            older = self._holders.get((socket.actor.id, socket.channel, socket.holder))
            if older is not None:
                self.remove(older)
                older.end(DISPLACED, "a newer connection of this holder took over")
        there = self._open.setdefault((socket.actor.id, socket.channel), [])
        if len(there) >= SOCKETS_PER_MEMBER:
            raise Refusal(
                429, "too_many_sockets", f"A member may have {SOCKETS_PER_MEMBER} sockets in a channel.", retry_after=10
            )
        there.append(socket)
        if socket.holder is not None:
            self._holders[socket.actor.id, socket.channel, socket.holder] = socket
        if socket.actor.job is not None:
            self._jobs.add(socket)

    def remove(self, socket: Connection) -> None:
        """It is no longer open; twice is fine."""
        place = (socket.actor.id, socket.channel)
        there = self._open.get(place, [])
        if socket in there:
            there.remove(socket)
            if not there:
                del self._open[place]
        if socket.holder is not None:
            key = (*place, socket.holder)
            if self._holders.get(key) is socket:
                del self._holders[key]
        self._jobs.discard(socket)

    def check_jobs(self) -> None:
        """End the sockets of runs that are over."""
        for socket in tuple(self._jobs):
            self._check(socket)

    def check_members(self, workspace: str) -> None:
        """End the sockets whose credential or channel is gone, and show the others what they may see now."""
        for there in tuple(self._open.values()):
            for socket in tuple(there):
                if socket.actor.workspace == workspace:
                    self._check(socket)

    def _check(self, socket: Connection) -> None:
        actor = self._find(socket.token)
        if actor is None or (socket.channel is not None and socket.channel not in actor.channels):
            self.remove(socket)
            socket.end(CREDENTIAL_ENDED, "the credential ended")
        elif actor.channels != socket.actor.channels:
            socket.refresh(actor)
