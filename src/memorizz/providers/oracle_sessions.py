"""Connections of a pool: which one a thread reads and writes with, and the blocks that belong together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from memorizz.errors import ProviderFault

_FETCHED: Final = 500
_LIST_SIZES: Final = (1, 8, 64, 500)
"""How many binds a list of ids may have: few statements, which the database keeps ready."""


class Sql:
    """Statements over one connection. Values are bound by position to ``:b0``, ``:b1`` and so on."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Do something that has no result."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, _named(values))

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._connection.cursor() as cursor:
            cursor.arraysize = _FETCHED
            cursor.execute(statement, _named(values))
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    def among(self, statement: str, values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """The rows of a query for each of ``values``, whose binds stand where it says ``{}``."""
        wanted = list(values)
        for start in range(0, len(wanted), _LIST_SIZES[-1]):
            chunk = wanted[start : start + _LIST_SIZES[-1]]
            size = next(size for size in _LIST_SIZES if size >= len(chunk))
            padded = chunk + chunk[-1:] * (size - len(chunk))
            yield from self.query(statement.format(", ".join(f":b{number}" for number in range(size))), padded)

    def many(self, statement: str, rows: Iterable[Sequence[Any]], types: Sequence[Any] = ()) -> int:
        """Do a statement for each row in one go; how many rows of the table that changed."""
        named = [_named(row) for row in rows]
        if not named:
            return 0
        with self._connection.cursor() as cursor:
            sized = {name: kind for name, kind in _named(types).items() if kind is not None}
            if sized:
                cursor.setinputsizes(**sized)
            cursor.executemany(statement, named)
            return int(cursor.rowcount)


def _named(values: Sequence[Any]) -> dict[str, Any]:
    return {f"b{number}": value for number, value in enumerate(values)}


class _Session(threading.local):
    """What one thread has in use."""

    writer: Any = None
    reader: Any = None
    depth = 0


class Sessions:
    """Takes connections from a pool as a thread needs them, and gives them back. Safe to use from many threads."""

    def __init__(self, acquire: Callable[[], Any], driver: Any) -> None:
        self._acquire = acquire
        self._driver = driver
        self._session = _Session()
        self.closed = False

    @property
    def is_writing(self) -> bool:
        """Whether this thread is inside of :meth:`transaction`."""
        return self._session.writer is not None

    @property
    def is_in_block(self) -> bool:
        """Whether this thread is inside of :meth:`transaction` or :meth:`snapshot`."""
        return self.is_writing or self._session.reader is not None

    @contextmanager
    def reading(self) -> Iterator[Sql]:
        """A block that reads: inside a transaction what it wrote, inside a snapshot what there was then."""
        session = self._session
        connection = session.writer or session.reader
        if connection is not None:
            yield Sql(connection)
            return
        with self.apart() as sql:
            yield sql

    @contextmanager
    def apart(self) -> Iterator[Sql]:
        """A block with a connection of its own; what it changes is not of the transaction around it."""
        connection = self._take()
        try:
            yield Sql(connection)
        finally:
            self._give_back(connection)

    @contextmanager
    def transaction(self) -> Iterator[Sql]:
        """A block that writes as a whole; one inside another is undone by itself when it raises."""
        session = self._session
        if session.writer is not None:
            with self._savepoint() as sql:
                yield sql
            return
        connection = session.writer = self._take()
        try:
            yield Sql(connection)
            connection.commit()
        except BaseException:
            self._quietly(connection.rollback)
            raise
        finally:
            session.writer = None
            self._give_back(connection)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A block whose reads are of the moment it begins."""
        session = self._session
        if session.writer is not None or session.reader is not None:
            yield
            return
        connection = self._take()
        try:
            Sql(connection).run("SET TRANSACTION READ ONLY")
            session.reader = connection
            yield
        finally:
            session.reader = None
            self._give_back(connection)

    @contextmanager
    def _savepoint(self) -> Iterator[Sql]:
        session = self._session
        sql = Sql(session.writer)
        name = f"memorizz_{session.depth}"
        sql.run(f"SAVEPOINT {name}")
        session.depth += 1
        try:
            yield sql
        except BaseException:
            self._quietly(lambda: sql.run(f"ROLLBACK TO SAVEPOINT {name}"))
            raise
        finally:
            session.depth -= 1

    def _take(self) -> Any:
        if self.closed:
            raise ProviderFault("the provider was closed")
        connection = self._acquire()
        connection.outputtypehandler = self._whole_texts
        return connection

    def _give_back(self, connection: Any) -> None:
        self._quietly(connection.rollback)
        self._quietly(connection.close)

    def _quietly(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except self._driver.Error:
            # The connection is lost: the database has undone what it did.
            pass

    def _whole_texts(self, cursor: Any, metadata: Any) -> Any:
        """Have CLOBs as text at once, without a way to the server for each."""
        if metadata.type_code is self._driver.DB_TYPE_CLOB:
            return cursor.var(self._driver.DB_TYPE_LONG, arraysize=cursor.arraysize)
        return None
