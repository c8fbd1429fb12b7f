"""A world with an agent that is the real Codex, and people who answer what it asks."""

from typing import Any

from support_world import World, until

from relay_receiver.receiver import verbs
from relay_receiver.receiver.target import Target


def requests(w: World, state: str = "open") -> list[dict[str, Any]]:
    """The requests to people at the hub, oldest first."""
    found: list[dict[str, Any]] = w.do("owner", lambda hub: hub.requests(w.channel, state))
    return found[::-1]


def asked(w: World, count: int = 1) -> list[dict[str, Any]]:
    """The open requests, once there are so many."""
    return until(lambda: len(found := requests(w)) >= count and found, what=f"{count} open requests")


def respond(w: World, request: dict[str, Any], decision: str, *, by: str = "owner") -> dict[str, Any]:
    """A person decides, for the action that was shown."""
    answer = {"decision": decision}
    told: dict[str, Any] = w.do(by, lambda hub: hub.respond(request["id"], answer, request["actionHash"]))
    return told


def state_of(w: World, request: dict[str, Any]) -> str:
    return str(w.do("owner", lambda hub: hub.request(request["id"]))["state"])


def until_state(w: World, request: dict[str, Any], *states: str) -> str:
    return until(lambda: (now := state_of(w, request)) in states and now, what=f"{request['id']} {states}")


def job_state(target: Target) -> str | None:
    job = verbs.status(target)["job"]
    return None if job is None else str(job["state"])
