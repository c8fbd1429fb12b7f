"""Which schema a journal has, and the way from an older one to this. Alembic is imported only for an upgrade."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

import relay_receiver
from relay_receiver.journal import engine, place
from relay_receiver.journal.errors import JournalCorrupt, JournalError, NewerSchema
from relay_receiver.journal.tables import metadata
from relay_receiver.processes import files

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

HEAD = "0001"
"""The newest revision in `migrations/journal`; a test holds them together."""


def version(conn: Connection, path: Path) -> str | None:
    """The revision of the file, None for an empty one.

    Raises:
        JournalCorrupt: it is a database of something else.
    """
    tables = set(conn.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars())
    if not tables:
        return None
    if "alembic_version" not in tables:
        raise JournalCorrupt(f"The file {path} is no journal.", code="journal_corrupt")
    found = conn.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
    return None if found is None else str(found)


def create(conn: Connection) -> None:
    """Make the whole of the newest schema in the current transaction."""
    metadata.create_all(conn)
    conn.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    conn.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (HEAD,))


def migrations() -> Path:
    """The journal's alembic history: inside the installed package, or at the top of a checkout."""
    package = Path(relay_receiver.__file__).parent
    for parent in (package, package.parent):
        if (found := parent / "migrations" / "journal").is_dir():
            return found
    raise JournalError(
        "This installation lacks the journal's upgrades.",
        code="broken_installation",
        hint="Install relay-receiver again.",
    )


def upgrade(conn: Connection, script: "ScriptDirectory", *, target: str = "head") -> None:
    """Run the revisions up to `target` in the current transaction."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext

    def revisions(found: Any, _context: Any) -> Any:  # noqa: ANN401 - alembic's own types
        return script._upgrade_revs(target, found)  # noqa: SLF001 - what alembic's `command.upgrade` passes

    with EnvironmentContext(Config(), script, fn=revisions, destination_rev=target) as environment:
        environment.configure(connection=conn, target_metadata=metadata, render_as_batch=True, transactional_ddl=False)
        environment.run_migrations()


def _script(found: str) -> "ScriptDirectory":
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(migrations()))
    if found not in {revision.revision for revision in script.walk_revisions()}:
        raise NewerSchema(
            f"This journal was written by a newer version of the program (schema {found}).",
            code="newer_schema",
            hint="Install that version again, or restore the backup that was made before its upgrade.",
        )
    return script


def upgrade_file(conn: Connection, path: Path, *, found: str) -> None:
    """Bring the file to the newest schema, whole or not at all, with a backup beside it.

    Raises:
        NewerSchema: this version of the program does not know the file's schema.
    """
    script = _script(found)
    back_up(path, found=found)
    driver = conn.connection.driver_connection
    assert driver is not None  # noqa: S101 - a connection in use has one
    driver.execute("PRAGMA foreign_keys = OFF")
    try:
        engine.begin_with(conn, engine.WRITE)
        with conn.begin():
            upgrade(conn, script)
            if conn.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
                raise JournalCorrupt(f"The journal {path} does not fit its new schema.", code="journal_corrupt")
    finally:
        driver.execute("PRAGMA foreign_keys = ON")


def back_up(path: Path, *, found: str) -> Path:
    """Copy the journal beside itself before an upgrade; the copy has to be adopted before it can be used.

    Args:
        found: the schema of the file, which names the copy.
    """
    target = path.with_name(f"{path.name}.before-{found}")
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    source = sqlite3.connect(path)
    try:
        copy = sqlite3.connect(partial)
        try:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            nowhere = place.NOWHERE
            copy.execute(
                "UPDATE place SET machine = ?, device = ?, filesystem = ?, inode = ?",
                (nowhere.machine, nowhere.device, nowhere.filesystem, nowhere.inode),
            )
            copy.commit()
        finally:
            copy.close()
    finally:
        source.close()
    partial.replace(target)
    files.fsync_dir(target.parent)
    return target
