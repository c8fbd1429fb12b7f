"""What needs the persons of this machine, asked of its receivers and of the hub; `relay watch --needs-me`."""

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from relay_receiver.cli import output
from relay_receiver.cli.acting import Actor, of
from relay_receiver.client import profiles
from relay_receiver.client.profiles import Profile
from relay_receiver.processes.identity import descends_from_job
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.need import TITLES, Need

ASK_SECONDS = 5.0
"""How long an overview waits for a hub."""
BELL = "\a"


def people() -> list[Profile]:
    """The profiles of persons here; none inside a job, which may not look through a person's eyes."""
    if descends_from_job():
        return []
    return [each for each in (_loaded(name) for name in profiles.names()) if each is not None and each.role != "agent"]


def _loaded(name: str) -> Profile | None:
    try:
        return profiles.load(name)
    except RelayError:
        return None  # the overview tells what is wrong with it


def of_person(chosen: Profile) -> Actor:
    """The person that a profile is.

    Raises:
        RelayError: it is an agent's.
    """
    if chosen.role == "agent":
        raise RelayError(
            f"The profile {chosen.name} is an agent's; only people are needed.",
            code="person_needed",
            hint="Say --profile NAME; relay profile list shows them.",
        )
    return of(chosen)


def at_the_hubs(those: Iterable[Profile]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What needs these persons, and which hubs could not be asked: `{profile, url, error}` each."""
    chosen = list(those)
    if not chosen:
        return [], []
    answers = asyncio.run(_ask_all(chosen))
    needs, away = [], []
    for each, answer in zip(chosen, answers, strict=True):
        if isinstance(answer, RelayError):
            away.append({"profile": each.name, "url": each.url, "error": answer.sentence})
        else:
            needs += [{**need.to_json(), "profile": each.name} for need in answer]
    return needs, away


async def _ask_all(chosen: Iterable[Profile]) -> list[list[Need] | RelayError]:
    return list(await asyncio.gather(*(_ask(each) for each in chosen)))


async def _ask(chosen: Profile) -> list[Need] | RelayError:
    from relay_receiver.client.hub import Hub
    from relay_receiver.client.needs import look
    from relay_receiver.client.rest import Rest

    try:
        async with asyncio.timeout(ASK_SECONDS), Rest(chosen.url, chosen.token()) as rest:
            return await look(Hub(rest, patient=False), chosen.agent)
    except TimeoutError:
        return RelayError(f"The hub at {chosen.url} did not answer within {ASK_SECONDS:g} s.", code="hub_away")
    except RelayError as error:
        return error


async def each_look(who: Actor, see: Callable[[list[Need]], None]) -> None:
    """Look again and again, for ever; a hub that is away is said once, and waited for.

    Raises:
        RelayError: the hub refuses for good.
    """
    from relay_receiver.client.hub import Hub
    from relay_receiver.client.needs import follow
    from relay_receiver.client.rest import Rest

    away = False
    async with Rest(who.url, who.token) as rest:
        async for seen in follow(Hub(rest, patient=False), who.id):
            if seen.needs is None:
                if not away:
                    warn(f"The hub is away; it is tried again and again: {seen.away}")
                away = True
                continue
            if away:
                warn("The hub is back.")
            away = False
            see(seen.needs)


async def watch(who: Actor) -> None:
    """Ring and say a line for each thing that needs this person, as it comes up; for ever."""
    shown: set[str] = set()

    def see(found: list[Need]) -> None:
        nonlocal shown
        for need in found:
            if need.id not in shown:
                _ring(need)
        shown = {each.id for each in found}

    await each_look(who, see)


def _ring(need: Need) -> None:
    if output.as_json():
        output.write_json(need.to_json(), sys.stdout)
        return
    bell = BELL if sys.stdout.isatty() else ""
    sys.stdout.write(f"{bell}{output.line(need.line())}\n  {output.line(output.aimed(need.next))}\n")
    sys.stdout.flush()


def warn(text: str) -> None:
    """A line on stderr, on a terminal or not: what a process that runs for long has to say of itself."""
    sys.stderr.write(output.line(text) + "\n")
    sys.stderr.flush()


def of_receiver(receiver: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a receiver of this machine needs, as `relay status` lists it; `next` is not aimed yet."""
    place = f"{receiver.get('profile')}:{receiver.get('channel')}"
    return [
        {
            "id": f"here:{each.get('what')}:{place}:{each.get('job') or ''}",
            "what": each.get("what"),
            "title": each.get("why") or each.get("title") or TITLES.get(str(each.get("what")), ""),
            "channel": {"id": receiver.get("channel"), "name": receiver.get("channelName")},
            "who": {"id": receiver.get("agent"), "name": receiver.get("agentName") or receiver.get("profile")},
            "profile": receiver.get("profile"),
            "job": each.get("job"),
            "request": each.get("request"),
            "next": each.get("next"),
            "here": True,
        }
        for each in receiver.get("needsPerson") or []
    ]
