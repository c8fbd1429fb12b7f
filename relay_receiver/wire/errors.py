"""The root of the errors that a person sees: one sentence, a stable code, and what to do next."""

from typing import Any


class RelayError(Exception):
    """Something that a user must be told.

    Attributes:
        sentence: one sentence for a person.
        code: a stable word for programs, snake case.
        hint: what to do next, as a sentence or a line to type; None where nothing can be done.
        data: more facts for programs.
    """

    def __init__(self, sentence: str, *, code: str = "error", hint: str | None = None, **data: Any) -> None:  # noqa: ANN401 - JSON values
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code
        self.hint = hint
        self.data = data
