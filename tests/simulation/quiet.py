"""The end of a history: faults over, time passed, people have had their say. Then all has come to an end (P5)."""

from simulation.process import Process
from simulation.world import Lineage, World

from relay_receiver.journal import chain
from relay_receiver.journal.tables import UNPOSTED_JOB
from relay_receiver.receiver.settle import Verb, settle
from relay_receiver.testing.sim_hub import AGENT
from relay_receiver.wire.stage import ENDS, Stage

ROUNDS = 30
ROUND_SECONDS = 30.0
SHOWN = frozenset({"unknown", "paused"})
"""States of a receiver that say why requests wait, and that a person ends."""
OPEN = "('queued', 'submitting', 'running', 'waiting', 'output', 'unknown')"


def come_to_rest(world: World) -> None:
    """First alone, until only what a person must do is left, and says so; then a person does it."""
    _heal(world)
    _wait(world, people=False)
    world.judge.check()
    _wait(world, people=True)
    _look_for_results(world)
    world.judge.check()


def _look_for_results(world: World) -> None:
    stored = world.hub.stored
    answered = {each["replyTo"] for each in stored.messages.values() if each["kind"] == "result"}
    for message, stage in stored.stages.items():
        if stage in {Stage.ANSWERED, Stage.QUIET} and message not in answered | world.judge.unseen:
            world.judge.say("P5", f"{message} shows as {stage}, and has no result")


def _heal(world: World) -> None:
    world.network.heal()
    world.locked = False
    world.deaths.clear()
    for machine in world.machines.values():
        machine.turns.clear()
        machine.usable = True
    for lineage in world.lineages:
        if lineage.process is not None and not lineage.retired:
            world.start(lineage)


def _wait(world: World, *, people: bool) -> None:
    left: list[str] = []
    for turn in range(ROUNDS):
        world.run(2.0 if turn == 0 else ROUND_SECONDS)
        for lineage in world.lineages:
            if lineage.process is not None and not lineage.retired and not world.alive(lineage):
                world.start(lineage)  # it was stopping
        if people:
            for lineage in world.lineages:
                _settle(world, lineage)
        left = _left(world, people=people)
        if not left:
            return
    world.judge.say("P5", f"not at an end ({people=}): {'; '.join(left)}; {_shown(world)}")


def _left(world: World, *, people: bool) -> list[str]:
    """What is not at its end, and not shown as waiting for a person."""
    hub = world.hub
    hub.expire()
    holder = next(
        (each for each in world.lineages if _holds(world, each)),
        None,
    )
    if holder is None or holder.process is None:
        return ["nobody holds the lease"]
    told = ENDS if people else ENDS | {Stage.UNKNOWN}
    known = {row[0] for row in holder.rows("SELECT id FROM message")}
    open_ = [
        f"{message} {stage}"
        for message, stage in hub.stored.stages.items()
        if stage not in told
        and message not in world.judge.unseen
        and (message in known or hub.stored.messages[message]["event"] > max(hub.stored.pruned, holder.start))
    ]
    here = [
        f"{job} {state}"
        for job, state in holder.rows(f"SELECT message, state FROM job WHERE state IN {OPEN}")  # noqa: S608 - a constant
        if people or state != "unknown"
    ]
    if people:
        here += [f"{job} unposted" for (job,) in holder.rows(f"SELECT message FROM job WHERE {UNPOSTED_JOB}")]  # noqa: S608 - a constant
    here += [f"{message} received" for (message,) in holder.rows("SELECT id FROM message WHERE received")]
    if not people and (open_ or here) and holder.process.state in SHOWN:
        return _untold(world, holder)
    return open_ + here


def _untold(world: World, holder: Lineage) -> list[str]:
    """An unknown job whose requester does not see it, though the hub could have been told."""
    rows = holder.rows("SELECT message FROM job WHERE state = 'unknown' AND NOT notified")
    return [f"{message} is unknown and untold" for (message,) in rows]


def _holds(world: World, lineage: Lineage) -> bool:
    process = lineage.process
    return (
        world.alive(lineage)
        and process is not None
        and world.hub.stored.holder == process.parts.binding.holder
        and process.parts.situation.lease.value == "held"
    )


def _settle(world: World, lineage: Lineage) -> None:
    """A person ends what waits for one."""
    if not _holds(world, lineage):
        return
    process = lineage.process
    assert process is not None
    run = process.parts.situation.foreign_run
    if run is not None:
        world.judge.touched.add(str(run["message"]))
        world.hub.settle(str(run["message"]), "abandoned")
        process.lease.renew_soon()
    for (job,) in lineage.rows("SELECT id FROM job WHERE state = 'unknown'"):
        world.ask(lineage, lambda found, job=job: settled(found, job, Verb.ABANDON))
    if process.parts.situation.paused:
        world.judge.resumed(lineage)
        world.ask(lineage, resumed)


async def settled(process: Process, job: str, verb: Verb) -> None:
    """As the control socket does it."""

    async def call() -> None:
        await process.parts.write(
            settle, job, verb, channel="c", text="done", reason="seen", who="os:me", at=process.parts.now()
        )
        await process.runner.reload()

    await process.runner.ask(call)
    process.runner.kick()
    process.lease.renew_soon()


async def resumed(process: Process) -> None:
    """As the control socket does it."""
    await process.parts.write(chain.resume, at=process.parts.now(), who="os:me")
    process.runner.kick()
    process.lease.renew_soon()


async def cancelled(process: Process, job: str) -> None:
    """As the control socket does it."""
    await process.runner.ask(lambda: process.runner.cancel(job, "os:me"))
    process.runner.kick()


def _shown(world: World) -> str:
    told = []
    for lineage in world.lineages:
        if lineage.process is not None:
            process = lineage.process
            situation = process.parts.situation
            told.append(
                f"{lineage.path.stem}: {process.state} {situation.lease.value} "
                f"error={situation.last_error} foreign={situation.foreign_run} dead={process.dead}"
            )
    return f"{AGENT}: {told}"
