"""The rules of histories: what hubs, networks, machines, agents and people may do, in any order."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from simulation.quick import journals
from simulation.quiet import cancelled, come_to_rest, resumed, settled
from simulation.world import Lineage, Stored, World

from relay_receiver.receiver.how import How
from relay_receiver.receiver.settle import Verb
from relay_receiver.testing.sim_agent import Turn
from relay_receiver.testing.sim_hub import AGENT
from relay_receiver.testing.sim_line import Fault

CALLS = (
    "ask",
    "look",
    "close",
    "lease",
    "begin",
    "stage",
    "finish",
    "post",
    "message",
    "acknowledge",
    "frame",
    "history",
    "updates",
    "socket",
)
WRITES = (
    "ask",
    "take",
    "decide",
    "over",
    "found",
    "settle",
    "known_as",
    "store",
    "move",
    "posted",
    "requeue",
    "run_closed",
    "set_columns",
    "post_again",
    "mended",
    "prune",
)
DOORS = (
    *(f"{when} {call}" for call in ("lease", "begin", "finish", "post") for when in ("call", "applied", "answered")),
    *(f"{when} submit" for when in ("before", "after", "call", "applied", "answered", "after", "applied", "answered")),
    *(f"{when} {write}" for write in WRITES for when in ("before", "after")),
    "call frame",
    "call message",
    "answered message",
    "call answer",
    "applied answer",
    *(f"{when} {call}" for call in ("ask", "look", "close") for when in ("call", "applied", "answered")),
    "call recorded",
    "call recover",
    "call interrupt",
    "applied interrupt",
    "applied stage",
)
ASKING = tuple(
    door
    for door in DOORS
    if door.split()[1] in {"ask", "look", "close", "answer", "take", "store", "over", "found", "settle", "known_as"}
)
TIMES = (0.0, 0.006, 0.02, 0.06, 0.3, 1.0, 3.0, 12.0, 35.0, 100.0)

some = st.sampled_from


@dataclass(frozen=True, kw_only=True)
class Said:
    """What somebody else says in the channel."""

    agent: bool
    kind: str
    """`request`, `mention`, `chat`, or `go on`: a request in the chain of something that this agent said."""
    expires: float | None = None

    def by(self, world: World) -> str:
        """Say it; the id of the message."""
        stored = world.hub.stored
        request = self.kind in {"request", "go on"}
        ours = [each["id"] for each in stored.messages.values() if each["authorId"] == AGENT]
        said = world.hub.say(
            "a_other" if self.agent else "p_1",
            agent=self.agent,
            kind="request" if request else "message",
            content="do it",
            to=AGENT if request else None,
            mentions=(AGENT,) if self.kind == "mention" else (),
            expires_in=self.expires if request else None,
            reply_to=ours[-1] if ours and self.kind == "go on" else None,
        )
        return str(said["id"])


SAID = some(
    (
        *(
            Said(agent=agent, kind=kind)
            for agent in (False, True)
            for kind in ("request", "request", "mention", "chat")
        ),
        Said(agent=True, kind="go on"),
        Said(agent=True, kind="go on"),
        Said(agent=False, kind="request", expires=20.0),
        Said(agent=True, kind="request", expires=60.0),
    )
)


class History(RuleBasedStateMachine):
    """One history."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.world = World(self.stack.enter_context(journals()))
        self.hubs: list[Stored] = []
        self.saved: list[tuple[object, Lineage]] = []
        self.messages: list[str] = []
        self.revive = True
        """Whether a dead receiver is started again by and by, as a service manager does it."""

    @initialize(
        turns=st.lists(some(Turn), max_size=4),
        said=st.lists(SAID, min_size=1, max_size=5),
        deaths=st.lists(st.tuples(some(DOORS), some((0, 0, 1, 2))), max_size=3),
        after=some(TIMES),
    )
    def begin(self, turns: list[Turn], said: list[Said], deaths: list[tuple[str, int]], after: float) -> None:
        """A receiver at work, that has something to do and may die of it."""
        self.world.start(self.world.configure("one"))
        self.here.machine.turns.extend(turns)
        self.world.run(0.2)
        self.world.deaths.extend(deaths)
        self._say(said, after)

    def teardown(self) -> None:
        try:
            come_to_rest(self.world)
        finally:
            self.world.close()
            self.stack.close()

    @property
    def here(self) -> Lineage:
        return self.world.lineages[-1]

    # Others speak.

    @rule(said=st.lists(SAID, min_size=1, max_size=4), after=some(TIMES))
    def say(self, said: list[Said], after: float) -> None:
        self._say(said, after)

    @rule(
        said=st.lists(SAID, min_size=1, max_size=3),
        turns=st.lists(some(Turn), min_size=1, max_size=3),
        after=some(TIMES),
    )
    def work(self, said: list[Said], turns: list[Turn], after: float) -> None:
        """Work for an agent of whom it is known how it will take it."""
        self.here.machine.turns.extend(turns)
        self._say(said, after)

    @rule(door=some(DOORS), count=some((0, 0, 1, 2)), said=SAID, after=some(TIMES))
    def die_of(self, door: str, count: int, said: Said, after: float) -> None:
        """Work that the receiver may die of."""
        self.world.deaths.append((door, count))
        self._say([said], after)

    def _say(self, said: list[Said], after: float) -> None:
        for each in said:
            self.messages.append(each.by(self.world))
        self.world.run(after)
        if self.revive and not self.world.alive(self.here):
            self.world.start(self.here)

    # Time and the agent.

    @rule(seconds=some(TIMES))
    def wait(self, seconds: float) -> None:
        self._say([], seconds)

    @rule(provable=st.booleans(), usable=some((True, True, False)))
    def agent(self, *, provable: bool, usable: bool) -> None:
        self.here.machine.provable, self.here.machine.usable = provable, usable

    # The network and the hub.

    @rule(call=some(CALLS), fault=some(Fault), again=some((1, 1, 3)), after=some(TIMES))
    def fault(self, call: str, fault: Fault, again: int, after: float) -> None:
        self.world.network.faults[call].extend([fault] * again)
        self.world.run(after)

    @rule(up=st.booleans(), sockets=st.booleans(), after=some(TIMES))
    def network(self, *, up: bool, sockets: bool, after: float) -> None:
        self.world.network.up, self.world.network.sockets = up, sockets
        self.world.network.drop_sockets()
        self.world.run(after)

    @rule()
    def displace(self) -> None:
        for line in list(self.world.network.lines):
            line.displace()

    @rule(history=st.booleans(), keep=some((0, 2)))
    def forget(self, *, history: bool, keep: int) -> None:
        self.world.hub.forget(max(0, self.world.hub.stored.head - keep), history=history)

    @rule()
    def back_up_hub(self) -> None:
        self.hubs.append(self.world.hub.backup())

    @precondition(lambda self: self.hubs)
    @rule(number=st.integers(0, 3), after=some(TIMES))
    def restore_hub(self, number: int, after: float) -> None:
        self.world.restore_hub(self.hubs[number % len(self.hubs)])
        self.world.run(after)

    # The machine.

    @rule(revive=st.booleans())
    def kill(self, *, revive: bool) -> None:
        self.revive = revive
        self.world.kill(self.here)

    @rule(how=some(How), after=some(TIMES))
    def stop(self, how: How, after: float) -> None:
        self.revive = False
        self.world.stop(self.here, how)
        self.world.run(after)

    @precondition(lambda self: not self.world.alive(self.here))
    @rule(after=some(TIMES))
    def start(self, after: float) -> None:
        self.revive = True
        self.world.start(self.here)
        self.world.run(after)

    @rule(seconds=some((11.0, 45.0, 3600.0)))
    def suspend(self, seconds: float) -> None:
        self.world.suspended += seconds

    @rule(seconds=some((-3600.0, 0.0, 3600.0)))
    def step_clock(self, seconds: float) -> None:
        self.world.steps[self.here.machine.name] = seconds

    @rule(locked=st.booleans(), after=some(TIMES))
    def lock_journal(self, *, locked: bool, after: float) -> None:
        self.world.locked = locked
        self.world.run(after)

    # Other journals.

    @precondition(lambda self: len(self.world.lineages) < 3)
    @rule(machine=some(("one", "two")), leave=st.booleans())
    def second(self, *, machine: str, leave: bool) -> None:
        """The same profile is configured anew, on another machine or after everything was lost."""
        if not leave:
            self.world.kill(self.here)
        self.world.start(self.world.configure(machine))

    @rule()
    def save_journal(self) -> None:
        self.saved.append((self.world.save(self.here), self.here))

    @precondition(lambda self: self.saved and len(self.world.lineages) < 4)
    @rule(machine=some(("one", "two")), number=st.integers(0, 3), leave=st.booleans())
    def adopt(self, *, machine: str, number: int, leave: bool) -> None:
        """A saved journal is restored in its place, or copied to another machine where the first runs on."""
        saved, old = self.saved[number % len(self.saved)]
        if not leave:
            self.world.kill(old)
        self.world.start(self.world.adopt(saved, old, machine))  # type: ignore[arg-type]

    # People.

    @precondition(lambda self: self.messages)
    @rule(number=st.integers(0, 5), after=some(TIMES))
    def withdraw(self, number: int, after: float) -> None:
        message = self.messages[-1 - number % len(self.messages)]
        if message in self.world.hub.stored.messages:
            self.world.hub.withdraw(message)
        self.world.run(after)

    @rule(
        number=st.integers(0, 5),
        decision=some(("accept", "accept", "decline")),
        before=some((1.5, 3.0, 44.9, 45.1, 60.0)),
        after=some(TIMES),
    )
    def answer(self, number: int, decision: str, before: float, after: float) -> None:
        """A person answers something that was asked, in time or late."""
        self.world.run(before)
        asks = list(self.world.hub.stored.asks.values())
        if asks:
            self.world.answer(asks[-1 - number % len(asks)], decision)
        self._say([], after)

    @rule(said=SAID, turn=some((Turn.ASKS, Turn.ASKS_TWICE)), door=some(ASKING), decision=some(("accept", "decline")))
    def die_while_it_asks(self, said: Said, turn: Turn, door: str, decision: str) -> None:
        """Work that asks a person; the receiver dies on the way, and is started again."""
        self.here.machine.turns.append(turn)
        self.world.deaths.append((door, 0))
        self._say([said], 2.0)
        for request in list(self.world.hub.stored.asks.values()):
            self.world.answer(request, decision)
        self._say([], 3.0)

    @rule(number=st.integers(0, 5))
    def cancel(self, number: int) -> None:
        self._of_a_job("SELECT id, message FROM job ORDER BY event DESC", number, lambda job, _: cancel(self, job))

    @rule(verb=some(Verb))
    def settle(self, verb: Verb) -> None:
        self._of_a_job(
            "SELECT id, message FROM job WHERE state = 'unknown'",
            0,
            lambda job, message: settle(self, job, message, verb),
        )

    @rule(outcome=some(("abandoned", "completed", "failed", "not-accepted")), after=some(TIMES))
    def settle_at_hub(self, outcome: str, after: float) -> None:
        run = self.world.hub.open_run()
        if run is not None:
            self.world.settle_at_hub(run.message, outcome)
        self.world.run(after)

    @rule()
    def resume(self) -> None:
        if self.world.ask(self.here, resumed):
            self.world.judge.resumed(self.here)

    @invariant()
    def promises(self) -> None:
        self.world.judge.check()

    def _of_a_job(self, query: str, number: int, call: Callable[[str, str], None]) -> None:
        found = self.here.rows(query)
        if found:
            call(*found[number % len(found)])


def cancel(history: History, job: str) -> None:
    history.world.ask(history.here, lambda process: cancelled(process, job))


def settle(history: History, job: str, message: str, verb: Verb) -> None:
    if verb is Verb.RETRY:
        history.world.judge.allowed[message] += 1
    history.world.ask(history.here, lambda process: settled(process, job, verb))
