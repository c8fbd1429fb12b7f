"""Someone who asks, and keeps asking while the hub is away: the same request, under the same operation id."""

import asyncio
import time
import uuid
from collections.abc import Callable
from typing import Any

from relay_receiver.client import profiles
from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.client.hub import Hub
from relay_receiver.client.rest import Rest
from relay_receiver.receiver.target import Target

PATIENCE_SECONDS = 90.0


class Person:
    """The owner of a place, in one of its channels."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        profile = profiles.load("owner")
        self._runner = asyncio.Runner()
        self._rest = Rest(profile.url, profile.token())
        self._hub = Hub(self._rest)

    def close(self) -> None:
        """Hang up."""
        self._runner.run(self._rest.close())
        self._runner.close()

    def ask(self, target: Target, text: str, *, meanwhile: Callable[[], None] = lambda: None) -> str:
        """Send a request to the agent of a receiver; its message id, once the hub has accepted it.

        Args:
            meanwhile: called between two tries.

        Raises:
            HubAway, HubError: the hub did not accept it for a long time.
        """
        body = {
            "channel": self._channel,
            "kind": "request",
            "to": profiles.load(target.profile).agent,
            "content": text,
            "operationId": f"trial:{uuid.uuid4().hex}",
        }
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return str(self._do(lambda hub: hub.post_message(body))["id"])
            except (HubAway, HubError):
                if time.monotonic() > end:
                    raise
                meanwhile()

    def delivery(self, message: str) -> dict[str, Any]:
        """How far a request is; nothing where the hub does not say."""
        try:
            return dict(self._do(lambda hub: hub.message(message))["delivery"] or {})
        except (HubAway, HubError):
            return {}

    def stage(self, message: str) -> str:
        """The stage of a request."""
        return str(self.delivery(message).get("stage"))

    def history(self) -> list[dict[str, Any]]:
        """All messages of the channel."""
        found: list[dict[str, Any]] = []
        after = 0
        while True:
            page = self._do(lambda hub: hub.history(self._channel, after=after, limit=200))  # noqa: B023 - called at once
            if not page["messages"]:
                return found
            found += page["messages"]
            after = found[-1]["event"]

    def _do(self, call: Callable[[Hub], Any]) -> Any:  # noqa: ANN401 - JSON
        return self._runner.run(call(self._hub))
