"""Who a command acts as: the credential of a job where one was given, else a profile."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from relay_receiver.cli.options import common
from relay_receiver.client.profiles import JobCredential, Profile, resolve
from relay_receiver.processes.identity import descends_from_job
from relay_receiver.wire.errors import RelayError

if TYPE_CHECKING:
    from relay_receiver.client.hub import Hub

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Actor:
    """The member that a command acts as. `job` is true for a job, which may do little and only in its channel."""

    url: str
    token: str = field(repr=False)
    workspace: str
    id: str
    name: str
    channels: tuple[tuple[str, str], ...]
    job: bool

    def talk(self, say: Callable[["Hub"], Awaitable[T]]) -> T:
        """Run `say` with the hub, from outside an event loop."""
        import asyncio

        return asyncio.run(self.converse(say))

    async def converse(self, say: Callable[["Hub"], Awaitable[T]]) -> T:
        """Run `say` with the hub."""
        from relay_receiver.client.hub import Hub
        from relay_receiver.client.rest import Rest

        async with Rest(self.url, self.token) as rest:
            return await say(Hub(rest))


def actor() -> Actor:
    """Whom to act as: inside a job its credential and nothing else, read anew each time.

    Raises:
        RelayError: there is no profile, or the process is in a job that was not given a credential.
    """
    credential = JobCredential.from_environment()
    if credential is not None:
        return Actor(
            url=credential.url,
            token=credential.token,
            workspace=credential.workspace,
            id=credential.agent,
            name=credential.agent_name,
            channels=((credential.channel, credential.channel),),
            job=True,
        )
    return of(profile())


def of(chosen: Profile) -> Actor:
    """The actor that a profile makes."""
    return Actor(
        url=chosen.url,
        token=chosen.token(),
        workspace=chosen.workspace,
        id=chosen.agent,
        name=chosen.agent_name,
        channels=chosen.channels,
        job=False,
    )


def profile() -> Profile:
    """The profile that was chosen; refused inside a job, whose credential is all it may use."""
    refuse_in_a_job()
    return look()


def look() -> Profile:
    """The profile that was chosen, for looking only: never its token."""
    said = common()
    chosen = resolve(said.profile)
    if said.workspace not in {None, chosen.workspace, chosen.workspace_name}:
        raise RelayError(
            f"The profile {chosen.name} is in the workspace {chosen.workspace_name}, not in {said.workspace}.",
            code="not_connected",
            hint="relay profile list",
        )
    return chosen


def refuse_in_a_job() -> None:
    """Refuse what only people may do to any process that descends from a job."""
    if descends_from_job():
        raise RelayError(
            "A job may not do this: it may send, read and wait in its own channel, and nothing else.",
            code="inside_a_job",
            hint="Ask a person to type it outside the job.",
        )


def choose(channels: Sequence[tuple[str, str]], given: str | None) -> tuple[str, str] | None:
    """The channel (id, name) that was meant, among `channels`; None where it is not among them.

    Raises:
        RelayError: none was given and there is not exactly one, or a name means several.
    """
    if given is None:
        if len(channels) == 1:
            return channels[0]
        names = ", ".join(name for _, name in channels) or "none"
        raise RelayError(
            f"Which channel? There are {len(channels)}: {names}.",
            code="usage",
            hint="Say --channel NAME." if channels else "relay channels create lab",
        )
    return _one(channels, given.removeprefix("#"), what="channel")


def channel(who: Actor, given: str | None, fresh: Sequence[Mapping[str, Any]] = ()) -> tuple[str, str]:
    """The channel (id, name) that was meant; `fresh` are the hub's, where they were asked for.

    Raises:
        RelayError: there is no such channel, or it is not clear which is meant.
    """
    known = [(str(each["id"]), str(each["name"])) for each in fresh] or who.channels
    found = choose(known, given)
    if found is None:
        names = ", ".join(name for _, name in known) or "none"
        raise RelayError(
            f"There is no channel {given} here; there are: {names}.", code="unknown_channel", hint="relay channels list"
        )
    return found


def member(members: Sequence[Mapping[str, Any]], given: str) -> str:
    """The id of the member that was meant, by id or name.

    Raises:
        RelayError: nobody has that name, or several.
    """
    if given == "human":
        return given
    found = _one([(str(each["id"]), str(each["name"])) for each in members], given.removeprefix("@"), what="member")
    if found is None:
        names = ", ".join(str(each["name"]) for each in members) or "nobody"
        raise RelayError(
            f"Nobody here is called {given}; here are: {names}.", code="unknown_member", hint="relay peers"
        )
    return found[0]


def _one(known: Sequence[tuple[str, str]], given: str, *, what: str) -> tuple[str, str] | None:
    for pair in known:
        if pair[0] == given:
            return pair
    named = [pair for pair in known if pair[1].casefold() == given.casefold()]
    if len(named) > 1:
        ids = ", ".join(identity for identity, _ in named)
        raise RelayError(f"{given} is the name of more than one {what}.", code="usage", hint=f"Say which by id: {ids}.")
    return named[0] if named else None
