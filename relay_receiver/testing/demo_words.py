"""What the demo asks of its agents, in the words that each kind of agent understands."""

from dataclasses import dataclass
from typing import Protocol

LAST = 5
"""The number at which the agents stop counting: the hop that the chain guard holds back by default."""
SLOW_SECONDS = 4


class Words(Protocol):
    """The requests of the demo."""

    def add(self, first: int, second: int) -> str:
        """Ask for a sum."""
        ...

    def slow(self) -> str:
        """Ask for some seconds of work, which leave one line in the file `starts`."""
        ...

    def count(self, other: str, *, me: str, number: int = 1) -> str:
        """Ask `me` to say a number, and to ask `other` for the next."""
        ...

    def aside(self) -> str:
        """Ask something in between."""
        ...


@dataclass(frozen=True, slots=True)
class ProgramWords:
    """The sentences of `testing.agent_program`."""

    def add(self, first: int, second: int) -> str:
        """Ask for a sum."""
        return f"Add {first} and {second}."

    def slow(self) -> str:
        """Ask for some seconds of work."""
        return f"Work for {SLOW_SECONDS} seconds."

    def count(self, other: str, *, me: str, number: int = 1) -> str:  # noqa: ARG002 - the program knows its name
        """Ask for a number, and to go on."""
        return f"Count to {LAST} with {other}, beginning with {number}."

    def aside(self) -> str:
        """Ask something in between."""
        return "How many jobs have you had?"


@dataclass(frozen=True, slots=True)
class ModelWords:
    """Requests to a model that has `relay mcp` as its tools."""

    def add(self, first: int, second: int) -> str:
        """Ask for a sum."""
        return f"Add {first} and {second}. Answer with the number alone."

    def slow(self) -> str:
        """Ask for some seconds of work."""
        return (
            f"Run exactly this command, once, and wait for its end: `echo started >> starts; sleep {SLOW_SECONDS}`. "
            "Then answer with the one word: done."
        )

    def count(self, other: str, *, me: str, number: int = 1) -> str:
        """Ask for a number, and to go on."""
        following = f"the next number after yours, and with the names {other} and {me} exchanged"
        return (
            f"We count to {LAST}. Your name is {me}, your number is {number}. If your number is below {LAST}, call "
            f'the relay tool `send` once, with to="{other}" and as content this whole text with {following}; do not '
            "wait for its answer. In any case, answer with your number alone."
        )

    def aside(self) -> str:
        """Ask something in between."""
        return "Which number did you say last? Answer with the number alone."
