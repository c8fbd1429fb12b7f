"""Requests to people at a simulated hub: made once, answered once, before their time, ended by their run."""

from collections.abc import Callable, Mapping
from typing import Any

from relay_receiver.client.errors import HubError
from relay_receiver.wire.action import action_hash
from relay_receiver.wire.message import iso, seconds

Json = dict[str, Any]
Tell = Callable[[str, Json], None]


class SimAsks:
    """The calls of `/requests` on what a hub has stored. `asks` is part of a backup; the rest is how it is told."""

    def __init__(self, *, author: str, channel: str, clock: Callable[[], float], tell: Tell) -> None:
        self._author, self._channel, self._clock, self._tell = author, channel, clock, tell

    def create(self, asks: dict[str, Json], body: Mapping[str, Any], *, name: str, open_run: bool) -> Json:
        """Make a request, once for each operation id."""
        self.expire(asks)
        operation = str(body["operationId"])
        if operation in asks:
            return dict(asks[operation])
        if not open_run:
            raise _refusal("run_finished")
        if seconds(str(body["expiresAt"])) <= self._clock():
            raise _refusal("expired", status=422)
        asks[operation] = {
            **body,
            "id": name,
            "author": {"id": self._author, "name": self._author, "kind": "agent"},
            "channel": self._channel,
            "actionHash": action_hash(body["action"]),
            "state": "open",
            "answer": None,
            "answeredBy": None,
            "createdAt": iso(self._clock()),
        }
        self._tell("request.created", {"request": dict(asks[operation])})
        return dict(asks[operation])

    def get(self, asks: dict[str, Json], name: str) -> Json:
        """One request."""
        self.expire(asks)
        return dict(self._of(asks, name))

    def opened(self, asks: dict[str, Json]) -> list[Json]:
        """The open ones."""
        self.expire(asks)
        return [dict(each) for each in asks.values() if each["state"] == "open"]

    def respond(self, asks: dict[str, Json], name: str, decision: str, *, by: str) -> bool:
        """A person answers; False where it is too late for that."""
        self.expire(asks)
        found = self._of(asks, name)
        if found["state"] != "open":
            return False
        self._move(found, "answered", answer={"decision": decision}, answeredBy={"id": by, "name": by})
        return True

    def close(self, asks: dict[str, Json], name: str, state: str) -> Json:
        """Its author ends it."""
        self.expire(asks)
        found = self._of(asks, name)
        if found["state"] != state:
            if found["state"] != ("answered" if state == "applied" else "open"):
                raise _refusal(f"request_{found['state']}")
            self._move(found, state)
        return dict(found)

    def supersede(self, asks: dict[str, Json], job: str) -> None:
        """The run of a job has ended."""
        for each in asks.values():
            if each["job"] == job and each["state"] == "open":
                self._move(each, "superseded")

    def expire(self, asks: dict[str, Json]) -> None:
        """End what nobody answered in time."""
        for each in asks.values():
            if each["state"] == "open" and seconds(each["expiresAt"]) <= self._clock():
                self._move(each, "expired")

    def _move(self, found: Json, state: str, **more: Any) -> None:  # noqa: ANN401 - fields of a request
        found.update(more, state=state)
        self._tell("request.updated", {"request": dict(found)})

    @staticmethod
    def _of(asks: dict[str, Json], name: str) -> Json:
        found = next((each for each in asks.values() if each["id"] == name), None)
        if found is None:
            raise _refusal("not_found", status=404)
        return found


def _refusal(code: str, *, status: int = 409) -> HubError:
    return HubError(f"The hub refuses: {code}.", status=status, code=code)
