import itertools

import pytest

from relay_receiver.jobs.wake import Wake, wakes

KINDS = ("request", "message", "result", "something newer")


def asked(wake: Wake, **changes: object) -> bool:
    given = {"author": "other", "kind": "message", "to": None, "mentions": (), "notice": False} | changes
    return wakes(wake, me="me", **given)  # type: ignore[arg-type]  # each case has its own types


@pytest.mark.parametrize(
    ("wake", "kind", "to", "mentioned"),
    list(itertools.product(Wake, KINDS, (None, "me", "other"), (False, True))),
)
def test_every_combination(wake: Wake, kind: str, to: str | None, *, mentioned: bool) -> None:
    expected = wake is not Wake.MANUAL and (
        (kind == "request" and to == "me") or (kind == "message" and (mentioned or wake is Wake.ALL))
    )
    mentions = ("me", "x") if mentioned else ("x",)
    assert asked(wake, kind=kind, to=to, mentions=mentions) is expected
    assert not asked(wake, kind=kind, to=to, mentions=mentions, author="me")
    assert not asked(wake, kind=kind, to=to, mentions=mentions, notice=True)


def test_a_request_to_somebody_else_is_context_even_where_it_mentions_me() -> None:
    assert not asked(Wake.ALL, kind="request", to="other", mentions=("me",))


def test_the_settings_are_stored_by_value() -> None:
    assert [str(wake) for wake in Wake] == ["manual", "addressed", "all"]
