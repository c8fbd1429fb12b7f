"""Which schema a hub's database has, and the way from an older one to this. Alembic is imported only for an upgrade."""

import sqlite3
from pathlib import Path

from sqlalchemy import Connection, inspect, text

import relay_receiver
from relay_receiver.hub.tables_search import INDEX, metadata
from relay_receiver.wire.errors import RelayError

HEAD = "0002"
"""The newest revision in `migrations/hub`; a test holds them together."""


def version(conn: Connection) -> str | None:
    """The revision of the database, None for an empty one.

    Raises:
        RelayError: it is a database of something else.
    """
    tables = set(inspect(conn).get_table_names())
    if not tables:
        return None
    if "alembic_version" not in tables or "workspace" not in tables:
        raise RelayError("This database is no hub's.", code="not_a_hub", hint="Name another with --data or --database.")
    return str(conn.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


def create(conn: Connection) -> None:
    """Make the whole of the newest schema in the current transaction."""
    metadata.create_all(conn)
    conn.execute(text(INDEX))
    conn.execute(
        text(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
            "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
        )
    )
    conn.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def migrations() -> Path:
    """The hub's alembic history: inside the installed package, or at the top of a checkout."""
    package = Path(relay_receiver.__file__).parent
    for parent in (package, package.parent):
        if (found := parent / "migrations" / "hub").is_dir():
            return found
    raise RelayError(
        "This installation lacks the hub's upgrades.",
        code="broken_installation",
        hint="Install relay-receiver again.",
    )


def upgrade(conn: Connection, *, found: str | None, target: str = "head") -> None:
    """Bring an older schema, or none (`found` is None), to `target` in the current transaction.

    Raises:
        RelayError: this version of the program does not know the database's schema.
    """
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(migrations()))
    if found is not None and found not in {revision.revision for revision in script.walk_revisions()}:
        raise RelayError(
            f"This hub's database was written by a newer version of the program (schema {found}).",
            code="newer_schema",
            hint="Install that version again, or restore the backup that was made before its upgrade.",
        )
    with EnvironmentContext(
        Config(),
        script,
        fn=lambda revision, _: script._upgrade_revs(target, revision),  # noqa: SLF001 - what alembic's own command passes
        destination_rev=target,
    ) as environment:
        environment.configure(connection=conn, target_metadata=metadata, render_as_batch=True, transactional_ddl=False)
        environment.run_migrations()


def back_up(path: Path, *, found: str) -> Path:
    """Copy the database beside itself, mode 0600, before an upgrade.

    Args:
        found: the schema of the file, which names the copy.
    """
    target = path.with_name(f"{path.name}.before-{found}")
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    source, copy = sqlite3.connect(path), sqlite3.connect(partial)
    try:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy.close()
        source.close()
    partial.replace(target)
    return target
