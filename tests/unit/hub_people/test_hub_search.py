"""Search at the hub's store: what is found, in which order, by whom, and that any text is a query."""

import asyncio
import random
import string
from typing import Any

import pytest
from sqlalchemy import text
from support_hubstore import Desk, Json

from relay_receiver.hub import asks, channels, docs, enrolment, housekeeping, search, search_index, tasks
from relay_receiver.hub.errors import Refusal


def _look(hub: Desk, query: str, by: str = "owner", channel: str | None = None, **more: Any) -> Json:
    return asyncio.run(search.look(hub.store, hub.actor(by), query, channel, **more))


def _ids(hub: Desk, query: str, *args: Any, **more: Any) -> list[str]:
    return [each["id"] for each in _look(hub, query, *args, **more)["results"]]


def _doc(hub: Desk, **more: Any) -> Json:
    return dict(hub.do(docs.create, hub.actor("owner"), docs.Draft(**{"channel": hub.lab, "content": "", **more})))


def _channel(hub: Desk, name: str) -> str:
    return str(hub.do(channels.create, hub.actor("owner"), name)["id"])


def test_messages_documents_and_tasks_are_found_the_newest_first(hub: Desk) -> None:
    said = hub.post("owner", "Deploy the Café")["id"]
    plan = _doc(hub, title="Deployment plan", content="how to deploy")["id"]
    todo = hub.do(tasks.create, hub.actor("owner"), tasks.Draft(channel=hub.lab, title="deploy it"))["id"]
    hub.post("owner", "something else")
    assert _ids(hub, "deploy") == [todo, plan, said]
    assert _ids(hub, "dep") == [todo, plan, said]
    assert _ids(hub, "CAFE deploy") == [said]
    assert _ids(hub, '"deploy"') == [todo, plan, said]
    assert _ids(hub, '"deploym"') == []
    assert _ids(hub, '"the cafe"') == [said]
    assert _ids(hub, '"cafe the"') == []
    first = _look(hub, "the caf")["results"][0]
    assert (first["kind"], first["by"]["name"], first["messageKind"]) == ("message", "owner", "message")
    assert first["snippet"] == [
        {"text": "Deploy ", "hit": False},
        {"text": "the", "hit": True},
        {"text": " ", "hit": False},
        {"text": "Café", "hit": True},
    ]


def test_a_change_is_found_by_what_it_says_now(hub: Desk) -> None:
    made = _doc(hub, title="Plan", content="alpha beta")
    assert _ids(hub, "alpha") == [made["id"]]
    hub.do(docs.change, hub.actor("owner"), made["id"], docs.Change(rev=1, content="beta gamma"))
    later = hub.post("owner", "beta")["id"]
    assert _ids(hub, "alpha") == []
    assert _ids(hub, "gamma") == [made["id"]]
    assert _ids(hub, "beta") == [later, made["id"]]
    hub.do(docs.change, hub.actor("owner"), made["id"], docs.Change(rev=2, content="beta"))
    assert _ids(hub, "beta") == [made["id"], later]


def test_only_channels_of_the_caller_are_searched(hub: Desk) -> None:
    other = _channel(hub, "other")
    hub.agent("eve", channel=other)
    secret = hub.post("owner", "the secret word")["id"]
    theirs = hub.post("owner", "a word", channel=other)["id"]
    assert _ids(hub, "word") == [theirs, secret]
    assert _ids(hub, "word", "eve") == [theirs]
    assert _ids(hub, "secret", "eve") == []
    assert _ids(hub, "word", channel=hub.lab) == [secret]
    with pytest.raises(Refusal) as caught:
        _look(hub, "word", "eve", hub.lab)
    assert caught.value.status == 404


def test_pages_follow_each_other_without_holes(hub: Desk) -> None:
    made = [hub.post("owner", f"word {n}")["id"] for n in range(25)][::-1]
    found, before = [], None
    while True:
        page = _look(hub, "word", before=before, limit=10)
        found += [each["id"] for each in page["results"]]
        before = page["next"]
        if before is None:
            break
    assert found == made


def test_in_many_channels_what_is_rare_in_the_callers_is_found_too(hub: Desk) -> None:
    """The caller is in some channels of many; what it may not see stands before what it may."""
    mine = [_channel(hub, f"mine{n}") for n in range(search.FEW + 1)]
    hub.agent("eve", channel=mine[0])
    for each in mine[1:]:
        code = hub.do(enrolment.invite, hub.actor("owner"), each, person=False).code
        hub.join(code, "eve")
    seen = [hub.post("owner", "needle", channel=each)["id"] for each in mine][::-1]
    for n in range(200):
        hub.post("owner", f"needle {n}")
    assert _ids(hub, "needle", "eve", limit=2) == seen[:2]
    assert _ids(hub, "needle", "eve") == seen
    assert _ids(hub, "needle", "eve", before=_look(hub, "needle", "eve", limit=2)["next"]) == seen[2:]
    assert _ids(hub, "needl needle") == []


def test_any_text_is_a_query(hub: Desk) -> None:
    hub.post("owner", 'He said "x AND (y" * NOT')
    chance = random.Random(7)  # noqa: S311 - the same texts in every run
    signs = string.printable + "\u0000\u202e東é\U0001f600\"'()*:^-+{}"
    for _ in range(300):
        _look(hub, "".join(chance.choices(signs, k=chance.randint(0, 30))))
    assert len(_ids(hub, "AND NOT")) == 1


def test_a_beginning_of_too_many_words_says_so(hub: Desk) -> None:
    made = [hub.post("owner", f"word{n:03}")["id"] for n in range(search.COMPLETIONS + 2)]
    told = _look(hub, "word", limit=100)
    assert "Type more of the word" in told["note"]
    assert {each["id"] for each in told["results"]} == set(made[: search.COMPLETIONS])
    assert _look(hub, "word00")["note"] is None


def test_messages_of_before_the_index_are_found_and_a_crash_indexes_nothing_twice(hub: Desk) -> None:
    made = [hub.post("owner", f"old {n}")["id"] for n in range(3)]

    with pytest.raises(KeyError):
        hub.store.write_now(lambda conn: (search_index.catch_up(conn, hub.workspace), {}["cut"]))
    assert hub.store.read_now(lambda conn: conn.execute(text("SELECT count(*) FROM search_item")).scalar()) == 0
    assert _ids(hub, "old") == made[::-1]
    hub.store.write_now(search_index.catch_up, hub.workspace)
    assert _ids(hub, "old") == made[::-1]
    hub.store.write_now(lambda conn: conn.execute(text("INSERT INTO search (search) VALUES ('integrity-check')")))


def test_a_large_backlog_is_taken_in_batches(hub: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "BATCH_EVENTS", 4)
    monkeypatch.setattr(search_index, "BATCH_CHARS", 10)
    for n in range(9):
        hub.post("owner", f"long words {n}")
    left = hub.store.write_now(search_index.catch_up, hub.workspace)
    while left:
        now = hub.store.write_now(search_index.catch_up, hub.workspace)
        assert now < left
        left = now
    assert len(_ids(hub, "words")) == 9


def test_a_search_that_cannot_index_tells_so_and_finds_what_is_there(
    hub: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = hub.post("owner", "old word")["id"]
    assert _ids(hub, "word") == [made]
    hub.post("owner", "new word")

    async def full(*_: Any, **__: Any) -> Any:
        raise Refusal(503, "storage_unavailable", "The disk is full.")

    monkeypatch.setattr(hub.store, "write", full)
    told = _look(hub, "word")
    assert ([each["id"] for each in told["results"]], told["note"]) == ([made], search.LATE)


def test_housekeeping_indexes_full_batches_at_once_and_the_rest_later(
    hub: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "BATCH_EVENTS", 4)

    def left() -> int:
        return hub.store.read_now(search_index.behind, hub.workspace)

    while left() != 13:
        hub.post("owner", "word")
    asyncio.run(housekeeping.index(hub.store, least=4))
    assert 0 < left() < 4
    asyncio.run(housekeeping.index(hub.store, least=4))
    assert left() > 0
    asyncio.run(housekeeping.index(hub.store, least=1))
    assert left() == 0


def test_requests_to_people_are_found_by_members_and_by_no_job(hub: Desk) -> None:
    bob = hub.agent("bob")
    wish = asks.Wish(channel=hub.lab, kind="input", title="Which zebra?", description="of two", operation="op")
    made = hub.do(asks.create, hub.actor("owner"), wish)["id"]
    (found,) = _look(hub, "zebra two")["results"]
    assert (found["kind"], found["id"], found["title"], found["state"]) == ("request", made, "Which zebra?", "open")
    fence = hub.take("bob")["fence"]
    _, token = hub.begin("bob", hub.ask(bob)["id"], hub.ref("job", fence=fence, claim="c"))
    assert _ids(hub, "zebra", "bob") == [made]
    job = hub.bearer(token)
    assert asyncio.run(search.look(hub.store, job, "zebra"))["results"] == []
    assert len(asyncio.run(search.look(hub.store, job, "do"))["results"]) == 1
