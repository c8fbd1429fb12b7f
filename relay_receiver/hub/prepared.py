"""Statements that are compiled once: on the hub's hot paths the text goes to the driver as it is."""

from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import DBAPIError, MultipleResultsFound, NoResultFound
from sqlalchemy.sql.compiler import SQLCompiler

Row = Any
"""A named tuple; its columns are also its attributes, and `_mapping` has them by name."""


class Found:
    """What a statement came to, read whole; speaks as Core's result does."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: Sequence[Row], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def all(self) -> Sequence[Row]:
        """All rows."""
        return self._rows

    def first(self) -> Row | None:
        """The first row, if there is one."""
        return self._rows[0] if self._rows else None

    def one_or_none(self) -> Row | None:
        """The only row, if there is one.

        Raises:
            MultipleResultsFound: there are more.
        """
        if len(self._rows) > 1:
            raise MultipleResultsFound("there is more than one row")
        return self.first()

    def one(self) -> Row:
        """The only row.

        Raises:
            NoResultFound: there is none.
            MultipleResultsFound: there are more.
        """
        row = self.one_or_none()
        if row is None:
            raise NoResultFound("there is no row")
        return row

    def scalar(self) -> Any:  # noqa: ANN401 - a value of any column
        """The first value of the first row; None without one."""
        return self._rows[0][0] if self._rows else None

    def scalar_one(self) -> Any:  # noqa: ANN401 - a value of any column
        """The first value of the only row.

        Raises:
            NoResultFound: there is none.
        """
        return self.one()[0]

    def scalars(self) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self._rows]


class Prepared:
    """A Core statement, compiled at its first use for the dialect at hand.

    It takes plain values (texts, numbers, None) by the names of its parameters, and rows come back as the driver
    gives them. It cannot hold an expanding `IN`. It goes past Core, which takes several times as long as SQLite does.
    """

    __slots__ = ("_compiled", "_row", "_statement")

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {}
        self._row: Any = None

    def __call__(self, conn: Connection, **values: Any) -> Found:  # noqa: ANN401 - values of any column
        """Run it in the transaction that `conn` is in; a parameter that is not named takes the statement's own value.

        Raises:
            DBAPIError: as Core raises it.
        """
        words, names, fixed = self._compiled.get(conn.dialect.name) or self._compile(conn)
        given = tuple([values[n] if n in values else fixed[n] for n in names])
        driver: Any = conn.connection.driver_connection
        try:
            cursor = driver.execute(words, given)
            rows = cursor.fetchall() if cursor.description else ()
        except Exception as error:
            raise _translated(conn, words, given, error) from error
        if not rows:
            return Found((), cursor.rowcount)
        make = self._row or self._row_type(cursor.description)
        return Found([make(row) for row in rows], cursor.rowcount)

    def _row_type(self, description: Sequence[Sequence[Any]]) -> Any:  # noqa: ANN401 - a class method
        made = namedtuple("Row", [column[0] for column in description], rename=True)  # type: ignore[misc]  # noqa: PYI024 - of columns known then
        made._mapping = property(_mapping)  # type: ignore[attr-defined]  # noqa: SLF001 - as Core's rows have it
        self._row = made._make
        return self._row

    def _compile(self, conn: Connection) -> tuple[str, tuple[str, ...], dict[str, Any]]:
        compiled = self._statement.compile(conn)  # type: ignore[attr-defined]  # every executable here is a clause
        assert isinstance(compiled, SQLCompiler)  # noqa: S101 - narrows the type
        found = compiled.string, tuple(compiled.positiontup or ()), dict(compiled.params)
        self._compiled[conn.dialect.name] = found
        return found


def _mapping(row: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a named tuple
    named: Mapping[str, Any] = row._asdict()
    return named


def _translated(conn: Connection, words: str, given: tuple[Any, ...], error: Exception) -> BaseException:
    """The error as Core would raise it."""
    base = conn.dialect.loaded_dbapi.Error
    if not isinstance(error, base):
        return error
    told: BaseException = DBAPIError.instance(words, given, error, base, dialect=conn.dialect)
    return told
