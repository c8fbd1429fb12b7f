"""`relay doctor`: what is wrong, and the line that mends it."""

import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from relay_receiver import __version__
from relay_receiver.adapters import registry
from relay_receiver.adapters.base import AdapterUnusable, Binding
from relay_receiver.cli import output
from relay_receiver.cli.acting import of
from relay_receiver.cli.options import Command
from relay_receiver.cli.output import aimed
from relay_receiver.client import profiles
from relay_receiver.client.profiles import Profile
from relay_receiver.processes import environment, paths
from relay_receiver.receiver import service, verbs
from relay_receiver.receiver.target import Target
from relay_receiver.wire import limits
from relay_receiver.wire.errors import RelayError
from relay_receiver.wire.message import seconds

SKEW_SECONDS = 30.0
"""More than this between our clock and the hub's makes expiries look wrong."""

SIGN_IN = "codex login"
_AGENT_MENDS = {"missing": "relay receiver configure --argv JSON", "unauthorized": SIGN_IN}
_WORKING = {"ready", "busy"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing looked at. `mend` is the line to type where it is wrong."""

    about: str
    ok: bool
    detail: str
    mend: str | None = None

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {"check": self.about, "ok": self.ok, "detail": self.detail, "mend": None if self.ok else self.mend}


@click.command(cls=Command)
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Look at everything, and say the line that mends what is wrong. Exit status 1 if something is."""
    checks = [*_files(), *_profiles(), *_receivers()]
    wrong = [check for check in checks if not check.ok]
    lines = [f"{'ok  ' if check.ok else 'BAD '} {check.about}: {check.detail}" for check in checks]
    lines += [f"     mend: {check.mend}" for check in wrong if check.mend]
    value = {"ok": not wrong, "checks": [check.told() for check in checks]}
    output.emit(value, lines, then=next((check.mend for check in wrong if check.mend), "relay status"))
    ctx.exit(output.ERROR if wrong else output.DONE)


def _files() -> Iterator[Check]:
    """Whether everything under our home is ours alone."""
    home = paths.home()
    open_ones = [str(path) for path in _walk(home) if not _private(path)]
    if open_ones:
        shown = ", ".join(open_ones[:3])
        yield Check(about="files", ok=False, detail=f"others may read {shown}", mend=f"chmod -R go= {home}")
    else:
        yield Check(about="files", ok=True, detail=f"{home} is private")


def _walk(home: Path) -> Iterator[Path]:
    if home.is_dir():
        yield home
        yield from (path for path in home.rglob("*") if not path.is_symlink())


def _private(path: Path) -> bool:
    try:
        return not stat.S_IMODE(path.stat().st_mode) & 0o077
    except FileNotFoundError:
        return True


def _profiles() -> Iterator[Check]:
    names = profiles.names()
    if not names:
        yield Check(about="profiles", ok=False, detail="there is none", mend="relay hub start")
    for name in names:
        try:
            found = profiles.load(name)
        except RelayError as error:
            yield Check(about=f"profile {name}", ok=False, detail=error.sentence, mend=error.hint)
            continue
        yield from _hub(found)


def _hub(found: Profile) -> Iterator[Check]:
    about = f"hub of {found.name}"
    asked = time.time()
    try:
        state = of(found).talk(lambda hub: hub.state())
    except RelayError as error:
        mend = "relay hub start, on the hub's machine" if error.code == "hub_away" else output.hint_of(error)
        yield Check(about=about, ok=False, detail=error.sentence, mend=mend)
        return
    name = state["actor"].get("name")
    yield Check(about=about, ok=True, detail=f"{found.url} knows you as {name}")
    yield version(state)
    yield from clock(state, (asked + time.time()) / 2)


def version(state: Mapping[str, Any]) -> Check:
    """Whether the hub speaks the protocol that this program speaks."""
    spoken = state.get("protocol")
    upgrade = "pip install --upgrade relay-receiver"
    newer = isinstance(spoken, int) and spoken > limits.PROTOCOL
    return Check(
        about="hub version",
        ok=spoken == limits.PROTOCOL,
        detail=f"the hub speaks protocol {spoken}, and this program ({__version__}) protocol {limits.PROTOCOL}",
        mend=upgrade if newer else f"{upgrade}, on the hub's machine",
    )


def clock(state: Mapping[str, Any], now: float) -> Iterator[Check]:
    """Our clock against the hub's, as its answer has it; an older hub does not tell.

    Args:
        now: seconds since the epoch by our clock, in the middle of the call.
    """
    try:
        skew = now - seconds(state["now"])
    except (KeyError, TypeError, ValueError):
        return
    yield Check(
        about="clock",
        ok=abs(skew) <= SKEW_SECONDS,
        detail=f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the hub",
        mend="timedatectl set-ntp true" if sys.platform == "linux" else "sudo sntp -sS time.apple.com",
    )


def _receivers() -> Iterator[Check]:
    for found in verbs.list_all()["receivers"]:
        name = f"receiver of {found.get('profile')} in {found.get('channelName')}"
        aim = Target(found["profile"], found["workspace"], found["channel"])
        try:
            now = verbs.status(aim)
            check = wake(name, now)
        except RelayError as error:
            yield Check(about=name, ok=False, detail=error.sentence, mend=error.hint)
            continue
        checks = [
            check,
            *_journal(name, aim),
            *_directory(name, now, (paths.home(), aim.runtime)),
            *_agent(name, now),
            *_service(name, aim),
        ]
        for each in checks:
            mend = each.mend and aimed(each.mend, profile=aim.profile, channel=found.get("channelName"))
            yield replace(each, mend=mend)


def _journal(name: str, aim: Target) -> Iterator[Check]:
    """Whether the journal is whole."""
    try:
        faults = verbs.verify(aim)
    except RelayError as error:
        yield Check(about=name, ok=False, detail=error.sentence, mend=output.hint_of(error))
        return
    if not faults:
        yield Check(about=name, ok=True, detail="its journal is whole")
    for each in faults:
        mend = "relay receiver stop, move the journal aside, then restore a backup and relay receiver adopt"
        yield Check(about=name, ok=False, detail=f"its journal: {each}", mend=mend)


def _agent(name: str, now: Mapping[str, Any]) -> Iterator[Check]:
    """Whether the agent could work: its program is there and starts, and somebody is signed in."""
    if not now.get("adapter") or not now.get("directory"):
        return
    binding = Binding(
        settings={"argv": list(now.get("argv") or ())},
        directory=Path(now["directory"]),
        environment=environment.build(),
        spool=paths.home(),
        runtime=paths.home(),
    )
    try:
        registry.load(str(now["adapter"])).check(binding)
    except AdapterUnusable as error:
        yield Check(about=name, ok=False, detail=str(error), mend=_AGENT_MENDS.get(error.code, _AGENT_MENDS["missing"]))


def _service(name: str, aim: Target) -> Iterator[Check]:
    """Whether a service that was enabled would really start at boot, and find what it needs."""
    found = service.state(aim)
    if found is None:
        return
    if found["lingers"] is False:
        yield Check(
            about=name,
            ok=False,
            detail="its service runs only while you are logged in",
            mend="loginctl enable-linger",
        )
    elif not found["current"]:
        yield Check(
            about=name,
            ok=False,
            detail="its service was written with another PATH, home or Python than these",
            mend="relay receiver enable",
        )
    else:
        yield Check(about=name, ok=True, detail="its service starts at boot")


def wake(name: str, now: Mapping[str, Any]) -> Check:
    """Whether a request would truly be worked on now, without anybody's help."""
    state = str(now.get("state"))
    chain = now.get("chain") or {}
    if now.get("wake") == "manual":
        why, mend = "wake is manual: messages are stored and nothing runs", "relay receiver settings --wake addressed"
    elif state == "stopped":
        why, mend = "it does not run: nothing wakes the agent", "relay receiver start"
    elif state == "unknown":
        why, mend = "a job's outcome is unknown: nothing runs until it is settled", "relay receiver jobs"
    elif state == "unauthorized":
        why, mend = "the hub rejects its credential", "relay connect URL#CODE --name NAME"
    elif state == "standby":
        why, mend = "another process holds this agent's lease", "relay receiver stop"
    elif now.get("adapterError"):
        why = f"its agent cannot work: {now['adapterError']}"
        mend = SIGN_IN if SIGN_IN in str(now["adapterError"]) else "relay receiver configure --help"
    elif chain.get("paused"):
        why, mend = "the chain paused: agents' requests wait, people's run", "relay receiver resume"
    elif state not in _WORKING:
        why = f"it is {state}: {now.get('detail') or now.get('lastError') or 'see its log'}"
        mend = "relay receiver logs"
    else:
        return Check(about=name, ok=True, detail=f"automatic wake works ({now.get('wake')}, {state})")
    return Check(about=name, ok=False, detail=why, mend=mend)


def _directory(name: str, now: Mapping[str, Any], ours: Iterable[Path]) -> Iterator[Check]:
    """Whether the agent works in a directory that holds our state, and what protects the rest."""
    if not now.get("directory"):
        return
    folder = Path(now["directory"]).resolve()
    held = [path for path in ours if path.resolve().is_relative_to(folder)]
    if held:
        yield Check(
            about=name,
            ok=False,
            detail=f"its jobs work in {folder}, which holds relay's own state ({held[0]})",
            mend="relay receiver configure --directory DIR --new-session",
        )
    else:
        yield Check(about=name, ok=True, detail=f"works in {folder}; {protection(now)}")


def protection(now: Mapping[str, Any]) -> str:
    """What keeps a job of this binding from the rest of the machine, in words."""
    if now.get("adapter") == "codex":
        net = "open" if now.get("network") else "closed"
        return f"Codex's sandbox stops writes outside it, the network is {net}; reading is not stopped"
    return "its program may do everything that you may"
