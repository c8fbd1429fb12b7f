"""Joining: the secrets are made and stored here before they are sent, so a lost answer is simply asked for again."""

import json
import re
import secrets as randomness
from typing import Any

from relay_receiver.client import profiles
from relay_receiver.client.address import normal
from relay_receiver.client.errors import Unauthorized
from relay_receiver.client.hub import Hub
from relay_receiver.client.profiles import Profile, Secrets
from relay_receiver.client.rest import Rest
from relay_receiver.wire.errors import RelayError

SECRET_BYTES = 32


async def enrol(url: str, code: str, *, name: str, profile: str) -> Profile:
    """Join with an enrolment code, into a profile; the channel joined is the last of its channels.

    Repeated safely: the same line gives the same membership. With a fresh code, an existing profile of this hub
    gains the channel.

    Args:
        name: what others see.
        profile: what the profile is called here; what a file name cannot have is replaced.

    Raises:
        RelayError: the profile belongs to another hub.
        HubAway: no answer; repeat the same line.
        HubError: the code is wrong, used or expired.
    """
    address, chosen = normal(url), profile_name(profile)
    secrets = await _secrets(chosen, address)
    async with Rest(address, None) as rest:
        joined = await Hub(rest).enroll(
            invite=code, client_secret=secrets.token, identity_secret=secrets.identity, name=name
        )
    async with Rest(address, secrets.token) as rest:
        state = await Hub(rest).state()
    made = facts(chosen, address, state, last=joined.get("channel"))
    profiles.save(made, token=secrets.token, identity=secrets.identity)
    profiles.forget_pending(chosen)
    return made


async def import_connection(text: str, *, profile: str = profiles.DEFAULT) -> Profile:
    """Join with what a connection file says: `{url, code, name?}`, such as the hub's `owner.json`.

    Raises:
        RelayError: it is not a connection file; else as `enrol`.
    """
    try:
        said = json.loads(text)
        url, code, name = said["url"], said["code"], said.get("name") or "owner"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _no_connection() from error
    if not all(isinstance(each, str) for each in (url, code, name)):
        raise _no_connection()
    return await enrol(url, code, name=name, profile=profile)


async def refresh(profile: Profile) -> Profile:
    """Ask the hub for the facts of a profile (its channels and names) and store them."""
    async with Rest(profile.url, profile.token()) as rest:
        made = facts(profile.name, profile.url, await Hub(rest).state())
    profiles.save(made)
    return made


def profile_name(text: str) -> str:
    """A name for a profile from any name: other characters become dashes."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("-.")[:64] or profiles.DEFAULT


def facts(name: str, url: str, state: dict[str, Any], *, last: object = None) -> Profile:
    """The profile that `GET /state` describes; the channel `last` comes last."""
    actor, space = state["actor"], str(state["workspace"])
    channels = [(str(each["id"]), str(each.get("name") or each["id"])) for each in state["channels"]]
    channels.sort(key=lambda channel: channel[0] == last)
    return Profile(
        name=name,
        url=url,
        workspace=space,
        workspace_name=str(state.get("workspaceName") or space),
        agent=str(actor["id"]),
        agent_name=str(actor.get("name") or actor["id"]),
        role=str(actor["role"]),
        channels=tuple(channels),
    )


async def _secrets(name: str, url: str) -> Secrets:
    """The secrets to join with: the profile's own where they still count, else those of a join that was begun."""
    if name in profiles.names():
        stored = profiles.secrets_of(name)
        if normal(stored.url) != url:
            raise RelayError(
                f"The profile {name} belongs to the hub at {stored.url}.",
                code="profile_taken",
                hint="Say --profile NAME to join under another.",
            )
        if await _counts(stored):
            return stored
    begun = profiles.pending(name)
    if begun is not None and begun.url == url:
        return begun
    made = Secrets(
        url=url, token=randomness.token_urlsafe(SECRET_BYTES), identity=randomness.token_urlsafe(SECRET_BYTES)
    )
    profiles.save_pending(name, made)
    return made


async def _counts(stored: Secrets) -> bool:
    async with Rest(stored.url, stored.token) as rest:
        try:
            await Hub(rest).state()
        except Unauthorized:
            return False
    return True


def _no_connection() -> RelayError:
    return RelayError(
        "This is not a connection file.", code="usage", hint="relay connection import --stdin < DIR/owner.json"
    )
