import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, insert
from sqlalchemy.pool import NullPool
from support_journal import BINDING, arrive, job_of, machine, opened, said, submitted

from relay_receiver.journal import binding as bindings
from relay_receiver.journal import engine, place, schema
from relay_receiver.journal.journal import CopiedState, Journal, JournalCorrupt, JournalError, adopt
from relay_receiver.journal.tables import metadata

SCRIPT = ScriptDirectory(str(schema.migrations()))
REVISIONS = [revision.revision for revision in reversed(list(SCRIPT.walk_revisions()))]

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{head}"
branch_labels = None
depends_on = None


def upgrade():
    op.add_column("job", sa.Column("mood", sa.Text()))
    with op.batch_alter_table("message") as table:
        table.add_column(sa.Column("colour", sa.Text(), server_default="grey", nullable=False))
    {more}
"""


def build(path: Path, revision: str) -> None:
    """Make a database of that revision, as a release that knew no later one made it."""
    conn = engine.connect(path)
    engine.begin_with(conn, engine.WRITE)
    with conn.begin():
        schema.upgrade(conn, SCRIPT, target=revision)
        conn.execute(insert(metadata.tables["place"]), at_home(path))
    engine.dispose(conn)


def at_home(path: Path) -> dict[str, Any]:
    here = place.Place.of(path, machine)
    return {
        "id": 1,
        "machine": here.machine,
        "device": here.device,
        "filesystem": here.filesystem,
        "inode": here.inode,
    }


def layout(path: Path) -> dict[tuple[str, str], list[str]]:
    """Each object of the schema with the parts of its SQL; their order, white space and quotes aside."""
    conn = sqlite3.connect(path)
    rows = conn.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    conn.close()
    return {(kind, name): parts("".join(sql.replace('"', "").split())) for kind, name, sql in rows}


def parts(sql: str) -> list[str]:
    if not sql.startswith("CREATETABLE"):
        return [sql]
    return sorted(sql[sql.index("(") + 1 : -1].split(","))


@pytest.fixture
def with_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation whose history has one revision more; returns its file."""
    history = tmp_path / "history"
    (history / "versions").mkdir(parents=True)
    for each in Path(SCRIPT.versions).glob("*.py"):
        (history / "versions" / each.name).write_text(each.read_text())
    added = history / "versions" / "9999_next.py"
    added.write_text(NEXT.format(head=schema.HEAD, more="pass"))
    monkeypatch.setattr(schema, "migrations", lambda: history)
    monkeypatch.setattr(schema, "HEAD", "9999")
    return added


def test_the_code_knows_the_head_of_the_history() -> None:
    assert SCRIPT.get_heads() == [schema.HEAD]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_database_of_every_revision_is_upgraded_to_what_the_tables_say(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "journal.sqlite3"
    build(path, revision)
    Journal.open(path, machine=machine).close()
    with create_engine(f"sqlite:///{path}", poolclass=NullPool).connect() as conn:
        assert compare_metadata(MigrationContext.configure(conn), metadata) == []
    fresh = tmp_path / "fresh.sqlite3"
    Journal.open(fresh, machine=machine).close()
    assert layout(path) == layout(fresh)


def test_an_upgrade_keeps_everything_and_leaves_a_backup(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1), said(2))
    job = submitted(journal, job_of(journal, 1))
    journal.close()
    old = schema.HEAD
    path = tmp_path / "journal.sqlite3"
    request.getfixturevalue("with_next")
    journal = Journal.open(path, machine=machine)
    assert job_of(journal, 1) == job
    assert journal.read_now(bindings.get) == BINDING.evolve(cursor="2.a", watermark=2, chain_count=1)
    assert journal.read_now(lambda conn: conn.exec_driver_sql("SELECT colour FROM message").scalars().all()) == [
        "grey",
        "grey",
    ]
    assert journal.read_now(lambda conn: conn.exec_driver_sql("PRAGMA foreign_keys").scalar_one()) == 1
    journal.close()

    backup = tmp_path / f"journal.sqlite3.before-{old}"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert not list(tmp_path.glob("*.partial"))
    with pytest.raises(CopiedState):
        Journal.open(backup, machine=machine)
    adopt(backup, machine=machine)
    restored = Journal.open(backup, machine=machine)
    assert job_of(restored, 1) == job
    restored.close()


def test_an_upgrade_that_fails_changes_nothing(tmp_path: Path, with_next: Path) -> None:
    path = tmp_path / "journal.sqlite3"
    build(path, REVISIONS[-1])
    before = layout(path)
    with_next.write_text(with_next.read_text().replace("pass", 'op.execute("SELECT no_such_thing")'))
    with pytest.raises(JournalError):
        Journal.open(path, machine=machine)
    assert layout(path) == before


def test_an_upgrade_that_breaks_references_is_taken_back(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    journal = opened(tmp_path)
    arrive(journal, said(1))
    journal.close()
    path = tmp_path / "journal.sqlite3"
    before = layout(path)
    added = request.getfixturevalue("with_next")
    added.write_text(added.read_text().replace("pass", 'op.execute("DELETE FROM message")'))
    with pytest.raises(JournalCorrupt):
        Journal.open(path, machine=machine)
    assert layout(path) == before


def test_a_copied_state_is_not_upgraded_before_it_is_adopted(tmp_path: Path, with_next: Path) -> None:
    assert with_next.exists()
    path = tmp_path / "journal.sqlite3"
    build(path, REVISIONS[-1])
    copy = tmp_path / "copy.sqlite3"
    copy.write_bytes(path.read_bytes())
    before = layout(copy)
    with pytest.raises(CopiedState):
        Journal.open(copy, machine=machine)
    assert layout(copy) == before
    adopt(copy, machine=machine)
    Journal.open(copy, machine=machine).close()
    assert layout(copy) != before


def test_an_older_schema_is_left_alone_where_no_upgrade_is_wanted(tmp_path: Path, with_next: Path) -> None:
    assert with_next.exists()
    path = tmp_path / "journal.sqlite3"
    build(path, REVISIONS[-1])
    with pytest.raises(JournalError) as refused:
        Journal.open(path, machine=machine, migrate=False)
    assert refused.value.code == "older_schema"
    assert not list(tmp_path.glob("*.before-*"))


def test_the_history_is_found_in_an_installed_package_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "relay_receiver"
    (package / "migrations" / "journal").mkdir(parents=True)
    monkeypatch.setattr(schema.relay_receiver, "__file__", str(package / "__init__.py"))
    assert schema.migrations() == package / "migrations" / "journal"
    (package / "migrations" / "journal").rmdir()
    with pytest.raises(JournalError) as broken:
        schema.migrations()
    assert broken.value.code == "broken_installation"


def test_two_processes_that_open_a_new_journal_at_once_make_it_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite3"
    first, second = engine.connect(path), engine.connect(path)

    def version(conn: Connection) -> str | None:
        with conn.begin():
            return schema.version(conn, path)

    assert version(first) is version(second) is None
    engine.dispose(first)
    Journal.open(path, machine=machine).close()
    assert version(second) == schema.HEAD
    engine.dispose(second)
