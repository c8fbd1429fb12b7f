"""Where code is in a text, against a slow description of the same."""

import random
import re

import pytest

from relay_receiver.wire.code import blanked, spans

SLOW = re.compile(r"(?ms)^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1|\Z)|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)")


@pytest.mark.parametrize("seed", range(20))
def test_code_is_where_the_slow_pattern_finds_it(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same texts in every run
    pieces = ["`", "``", "```", "````", "~~~", "\n", " ", "a", "\n```", "\n~~~~"]
    for _ in range(200):
        text = "".join(chance.choices(pieces, k=chance.randint(0, 14)))
        assert spans(text) == [match.span() for match in SLOW.finditer(text)]
        assert len(blanked(text)) == len(text)
