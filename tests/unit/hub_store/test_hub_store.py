import asyncio
import sqlite3
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select, update
from support_hubstore import desk
from support_time import WITHIN

from relay_receiver.hub import channels, engine, events, members, schema
from relay_receiver.hub.errors import Refusal, not_found
from relay_receiver.hub.store import Store
from relay_receiver.hub.tables import workspace
from relay_receiver.hub.tables_people import metadata
from relay_receiver.wire.errors import RelayError


def _space(store: Store) -> str:
    return store.write_now(members.make_workspace, "lab", at=0.0)


def test_64_writers_get_gapless_numbers_in_commit_order(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    space = _space(store)
    seen: list[Any] = []

    async def main() -> list[int]:
        store.on_commit(seen.extend)

        async def one(who: int) -> list[int]:
            return [await store.write(events.append, space, "x", {"who": who}, at=0.0) for _ in range(10)]

        return [number for numbers in await asyncio.gather(*map(one, range(64))) for number in numbers]

    given = asyncio.run(main())
    assert sorted(given) == list(range(1, 641))
    assert [row.number for row in seen] == list(range(1, 641))
    stored = store.read_now(events.rows_after, space, 0, limit=1000)
    assert [(row.number, row.tag) for row in stored] == [(row.number, row.tag) for row in seen]
    store.close()


def test_a_failing_write_undoes_only_itself_among_those_committed_together(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    space = _space(store)
    seen: list[int] = []

    def refused(conn: Connection) -> None:
        events.append(conn, space, "x", {}, at=0.0)
        raise not_found("thing")

    def broken(conn: Connection) -> None:
        events.append(conn, space, "x", {}, at=0.0)
        raise ZeroDivisionError

    async def main() -> list[Any]:
        store.on_commit(lambda rows: seen.extend(row.number for row in rows))
        gate = threading.Event()
        waits = [store.write(lambda _: gate.wait(WITHIN) and None)]
        for n in range(9):
            fn: Any = (lambda conn: events.append(conn, space, "x", {}, at=0.0), refused, broken)[n % 3]
            waits.append(store.write(fn))
        asked = [asyncio.ensure_future(each) for each in waits]
        await asyncio.sleep(0)
        gate.set()
        return (await asyncio.gather(*asked, return_exceptions=True))[1:]

    answers = asyncio.run(main())
    assert [type(each) for each in answers] == [int, Refusal, ZeroDivisionError] * 3
    assert answers[::3] == seen == [1, 2, 3]
    store.close()


def test_a_refused_write_alone_leaves_nothing(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    space = _space(store)

    def refused(conn: Connection) -> None:
        events.append(conn, space, "x", {}, at=0.0)
        raise not_found("thing")

    with pytest.raises(Refusal):
        store.write_now(refused)
    assert store.read_now(events.head, space).number == 0
    assert store.write_now(events.append, space, "x", {}, at=0.0) == 1
    store.close()


def test_a_database_that_another_process_holds_is_told_and_the_writer_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.05)
    store = Store.open(tmp_path)
    space = _space(store)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Refusal) as refusal:
        store.write_now(events.append, space, "x", {}, at=0.0)
    assert (refusal.value.status, refusal.value.code) == (503, "storage_unavailable")
    other.execute("ROLLBACK")
    other.close()
    assert store.write_now(events.append, space, "x", {}, at=0.0) == 1
    store.close()


def test_what_was_answered_is_there_after_the_next_opening(tmp_path: Path) -> None:
    with desk(tmp_path) as hub:
        said = hub.post("owner", "kept")
    store = Store.open(tmp_path)
    assert said["id"] in store.read_now(events.rows_after, hub.workspace, 0, limit=50)[-1].payload
    store.close()


def test_the_file_is_private_and_in_the_mode_that_survives_power_loss(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    for conn in (store._writer, store._reader):
        with conn.begin():
            told = [
                conn.exec_driver_sql(f"PRAGMA {each}").scalar()
                for each in ("journal_mode", "synchronous", "foreign_keys")
            ]
        assert told == ["wal", 2, 1]
    store.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / engine.FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RelayError, match="cannot be opened"):
        Store.open(tmp_path)


def _shape(path: Path) -> set[tuple[str, str]]:
    conn = sqlite3.connect(path)
    rows = conn.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    conn.close()
    return {(name, " ".join(sql.replace('"', "").replace("\n", " ").split())) for name, sql in rows}


def _columns(path: Path) -> dict[str, list[Any]]:
    conn = sqlite3.connect(path)
    found = {
        table: sorted(conn.execute(f"PRAGMA table_info({table})").fetchall(), key=lambda row: row[1])
        for table in metadata.tables
    }
    conn.close()
    return found


def test_the_history_of_upgrades_makes_the_schema_that_a_new_hub_gets(tmp_path: Path) -> None:
    new, upgraded = tmp_path / "new", tmp_path / "upgraded"
    Store.open(new).close()
    conn = engine.connect(upgraded, write=True)
    with conn.begin():
        schema.upgrade(conn, found=None)
        assert schema.version(conn) == schema.HEAD
    engine.dispose(conn)
    assert _columns(new) == _columns(upgraded)
    names = {name for name, _ in _shape(new)}
    assert names == {name for name, _ in _shape(upgraded)}
    indexes = {(name, sql) for name, sql in _shape(new) if "INDEX" in sql}
    assert indexes == {(name, sql) for name, sql in _shape(upgraded) if "INDEX" in sql}
    constraints = {sql.count("CONSTRAINT") for name, sql in _shape(new) if name == "run"}
    assert constraints == {sql.count("CONSTRAINT") for name, sql in _shape(upgraded) if name == "run"}


def test_an_older_database_is_backed_up_then_upgraded(tmp_path: Path) -> None:
    conn = engine.connect(tmp_path / engine.FILE, write=True)
    with conn.begin():
        schema.upgrade(conn, found=None, target="0001")
        conn.execute(insert(workspace).values(id="w", name="old", created_at=1.0))
    engine.dispose(conn)
    store = Store.open(tmp_path)
    assert store.read_now(schema.version) == schema.HEAD
    assert store.read_now(lambda conn: conn.execute(select(workspace.c.name)).scalars().all()) == ["old"]
    store.close()
    copy = tmp_path / f"{engine.FILE}.before-0001"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    old = sqlite3.connect(copy)
    assert old.execute("SELECT id FROM workspace").fetchall() == [("w",)]
    old.close()


def test_a_newer_schema_is_refused_with_a_sentence(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    conn = sqlite3.connect(tmp_path / engine.FILE)
    conn.execute("UPDATE alembic_version SET version_num = '9999'")
    conn.commit()
    conn.close()
    with pytest.raises(RelayError, match="newer version of the program") as error:
        Store.open(tmp_path)
    assert error.value.code == "newer_schema"


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    conn = sqlite3.connect(tmp_path / engine.FILE)
    conn.execute("CREATE TABLE theirs (x)")
    conn.close()
    with pytest.raises(RelayError, match="no hub's"):
        Store.open(tmp_path)
    with pytest.raises(RelayError, match="not supported"):
        Store.open("postgresql:///hub")


def test_numbers_and_tags_hold_what_cursors_promise(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    space = _space(store)
    for n in range(10):
        store.write_now(events.append, space, "x", {"n": n}, at=float(n))
    rows = store.read_now(events.rows_after, space, 0, limit=100)
    check = events.check_cursor
    head = store.read_now(events.head, space)
    assert head == rows[-1].cursor
    assert store.read_now(check, space, rows[4].cursor) is None
    assert store.read_now(check, space, events.Cursor(5)) is None
    assert store.read_now(check, space, events.Cursor(5, "00")) == "diverged"
    assert store.read_now(check, space, events.Cursor(11)) == "diverged"
    assert store.read_now(check, space, events.Cursor(0)) is None
    assert store.write_now(events.prune, space, now=9.0, keep=4) == 6
    assert store.read_now(check, space, rows[5].cursor) is None
    assert store.read_now(check, space, events.Cursor(6, "00")) == "diverged"
    assert store.read_now(check, space, rows[4].cursor) == "cursor_expired"
    assert [row.number for row in store.read_now(events.rows_after, space, 6, limit=2)] == [7, 8]
    assert store.read_now(events.prunable, space, now=9.0, keep=4) == 0
    store.close()


def test_events_are_pruned_by_age_too_and_never_the_last(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    space = _space(store)
    for n in range(5):
        store.write_now(events.append, space, "x", {"n": n}, at=float(n))
    assert store.write_now(events.prune, space, now=events.RETAIN_SECONDS + 2.0) == 2
    assert store.write_now(events.prune, space, now=10 * events.RETAIN_SECONDS) == 4
    assert store.read_now(events.head, space).tag is not None
    store.close()


def test_catching_up_reads_only_what_was_asked_for_in_order(tmp_path: Path) -> None:
    with desk(tmp_path) as hub:
        hub.agent("bob")
        other = hub.do(channels.create, hub.actor("owner"), "other")["id"]
        for n in range(6):
            hub.post("owner", str(n), channel=(hub.lab, other)[n % 2])
        rows = hub.store.read_now(
            events.rows_after, hub.workspace, 0, channels=[hub.lab], types=["message.created", "x"], limit=2
        )
        assert ['"content":"0"' in rows[0].payload, '"content":"2"' in rows[1].payload] == [True, True]


def test_the_head_counts_in_the_transaction_of_what_it_numbers(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    space = _space(store)

    def broken(conn: Connection) -> None:
        conn.execute(update(workspace).values(pruned=5))

    with pytest.raises(Refusal):
        store.write_now(broken)
    assert store.read_now(lambda conn: conn.execute(select(func.max(workspace.c.pruned))).scalar()) == 0
    with pytest.raises(Refusal):
        store.write_now(lambda conn: conn.execute(insert(workspace).values(id=space, name="twice", created_at=0.0)))
    store.close()


def test_one_that_listens_and_fails_leaves_nobody_waiting(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store.open(tmp_path)
    space = _space(store)

    def broken(_rows: list[Any]) -> None:
        raise ZeroDivisionError

    async def main() -> list[int]:
        store.on_commit(broken)
        async with asyncio.timeout(WITHIN):
            return [await store.write(events.append, space, "x", {}, at=0.0) for _ in range(2)]

    assert asyncio.run(main()) == [1, 2]
    assert "was not told" in caplog.text
    store.close()
