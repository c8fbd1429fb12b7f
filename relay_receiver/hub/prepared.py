"""Statements that are compiled once: on the hub's hot paths the text goes to the driver as it is."""

from typing import Any

from sqlalchemy import Connection, CursorResult, Executable
from sqlalchemy.sql.compiler import SQLCompiler


class Prepared:
    """A Core statement, compiled at its first use for the dialect at hand.

    It takes plain values (texts, numbers, None) by the names of its parameters, and rows come back as the driver
    gives them. It cannot hold an expanding `IN`.
    """

    __slots__ = ("_compiled", "_statement")

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {}

    def __call__(self, conn: Connection, **values: Any) -> CursorResult[*tuple[Any, ...]]:  # noqa: ANN401 - values of any column
        """Run it; a parameter that is not named takes the statement's own value."""
        words, names, fixed = self._compiled.get(conn.dialect.name) or self._compile(conn)
        return conn.exec_driver_sql(words, tuple([values[n] if n in values else fixed[n] for n in names]))

    def _compile(self, conn: Connection) -> tuple[str, tuple[str, ...], dict[str, Any]]:
        compiled = self._statement.compile(conn)  # type: ignore[attr-defined]  # every executable here is a clause
        assert isinstance(compiled, SQLCompiler)  # noqa: S101 - narrows the type
        found = compiled.string, tuple(compiled.positiontup or ()), dict(compiled.params)
        self._compiled[conn.dialect.name] = found
        return found
