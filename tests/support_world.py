"""A small world for tests: the place of the package's trials, and what tests ask and look for in it."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support_time import WITHIN

from relay_receiver.client import profiles
from relay_receiver.processes.tree import gone
from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target
from relay_receiver.testing.trial_place import NotInTime, Place, place, until

__all__ = ["World", "never", "until", "world"]

MOMENT = 0.5
"""Seconds in which what must not come about would have come about."""


def never(condition: Callable[[], Any], *, what: str) -> None:
    """Look for a moment whether something comes about that must not."""
    with contextlib.suppress(NotInTime):
        until(condition, seconds=MOMENT, what=what)
        raise AssertionError(f"{what} came about")


class World(Place):
    """Everything lives below `home`, which RELAY_HOME names."""

    def kill_hub(self) -> None:
        assert self.hub is not None
        self.hub.kill()
        self.hub.wait()

    def ask(self, target: Target, text: str, *, by: str = "owner", **more: Any) -> dict[str, Any]:
        """Send a request to an agent."""
        agent = profiles.load(target.profile).agent
        body = {"channel": self.channel, "kind": "request", "to": agent, "content": text, **more}
        return self.do(by, lambda hub: hub.post_message(body))

    def say(self, text: str, *, by: str = "owner", **more: Any) -> dict[str, Any]:
        body = {"channel": self.channel, "kind": "message", "content": text, **more}
        return self.do(by, lambda hub: hub.post_message(body))

    def stage(self, message: str) -> str:
        return str(self.do("owner", lambda hub: hub.message(message))["delivery"]["stage"])

    def until_stage(self, message: str, *stages: str, seconds: float = WITHIN) -> str:
        return until(
            lambda: (now := self.stage(message)) in stages and now, seconds=seconds, what=f"{message} {stages}"
        )

    def results(self, message: str) -> list[dict[str, Any]]:
        page = self.do("owner", lambda hub: hub.history(self.channel, limit=200))
        return [m for m in page["messages"] if m["kind"] == "result" and m["replyTo"] == message]

    def kill(self, target: Target) -> int:
        """SIGKILL the receiver process of a target."""
        pid = int(verbs.status(target)["pid"])
        os.kill(pid, signal.SIGKILL)
        until(lambda: gone(pid), what="the end of the killed receiver")
        return pid

    def close(self) -> None:
        for name in ("a", "b", "c"):
            self.release(name)
        super().close()


@contextlib.contextmanager
def world(tmp_path: Path) -> Iterator[World]:
    """A hub, its owner and a channel; everything ends with the block."""
    with place(tmp_path, World) as made:
        yield made
