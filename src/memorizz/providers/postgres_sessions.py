"""Connections to one database: borrowed for a statement, or by a thread for a transaction and for a snapshot."""

from __future__ import annotations

import selectors
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from memorizz.errors import ConfigurationError, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.providers.postgres import PostgresConfig
from memorizz.providers.postgres_schema import Schema
from memorizz.providers.process import OwnProcess

Connection: TypeAlias = psycopg.Connection[Any]

_CONNECT_SECS: Final = 10
_PATIENCE: Final = "30s"
_IDLE: Final = 4
_SETTINGS: Final = """
SELECT set_config('lock_timeout', CASE current_setting('lock_timeout') WHEN '0' THEN %s ELSE
        current_setting('lock_timeout') END, false),
    CASE WHEN %s THEN set_config('default_transaction_read_only', 'on', false) END
"""


class _Local(threading.local):
    """What one thread is in the middle of."""

    writing: Connection | None = None
    reading: Connection | None = None


class Sessions:
    """Opens what is needed when it is needed. Safe to use from many threads.

    Every method raises ``ProviderFault`` when the database fails; what it says holds no password.
    """

    def __init__(self, config: PostgresConfig) -> None:
        self._config = config
        self._schema = Schema(config.schema)
        self._parameters = _parameters(config.url)
        self._process = OwnProcess()
        self._local = _Local()
        self._mutex = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False
        with self._faults():
            # Only here: a connection that comes later must not find fresh tables in place of those that were dropped.
            self._give_back(self._connect(make=not config.read_only))

    def read(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of one of the queries: inside a transaction as it has them, inside a snapshot as of then."""
        with self._faults():
            connection = self._local.writing or self._local.reading
            if connection is not None:
                return connection.execute(self._schema.queries[query], parameters).fetchall()
            with self._borrowed() as connection:
                return connection.execute(self._schema.queries[query], parameters).fetchall()

    def write(self, query: str, *parameters: Any) -> int:
        """Do one of the queries inside a transaction, and say how many rows it was about."""
        assert self._local.writing is not None
        with self._faults():
            return self._local.writing.execute(self._schema.queries[query], parameters).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block that writes as a whole; one inside another is undone by itself when it raises.

        One of them is under way in a schema at a time. Raises ``ReadOnlyProvider`` where nothing is to be written.
        """
        if self._config.read_only:
            raise ReadOnlyProvider(f"{self._place} was opened for reading only")
        with self._faults():
            outer = self._local.writing
            if outer is not None:
                with outer.transaction():
                    yield
                return
            with self._borrowed() as connection, self._block(connection, b"BEGIN; " + self._schema.lock):
                self._local.writing = connection
                try:
                    yield
                finally:
                    self._local.writing = None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A block whose reads are of the moment it begins. Inside a transaction nobody else writes anyway."""
        with self._faults():
            if self._local.writing is not None or self._local.reading is not None:
                yield
                return
            # BEGIN alone does not choose the moment, the first query does.
            begin = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1"
            with self._borrowed() as connection, self._block(connection, begin):
                self._local.reading = connection
                try:
                    yield
                finally:
                    self._local.reading = None

    def restrict(self, role: str, user_id: str | None) -> None:
        """Let a role see the rows of one user only."""
        with self.transaction(), self._faults():
            assert self._local.writing is not None
            self._local.writing.execute(self._schema.restriction(role, user_id))

    def close(self) -> None:
        """Close everything; what a thread is in the middle of, when it is through."""
        if not self._process.is_here:
            # The connections are the parent's.
            return
        with self._mutex:
            self._closed = True
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    @contextmanager
    def _block(self, connection: Connection, begin: bytes) -> Iterator[None]:
        try:
            connection.execute(begin, prepare=False)
            yield
            self._commit(connection)
        except BaseException:
            try:
                connection.execute(b"ROLLBACK")
            except psycopg.Error:
                # It is lost, and with it the server undoes the block.
                connection.close()
            raise

    def _commit(self, connection: Connection) -> None:
        if connection.info.transaction_status == TransactionStatus.INERROR:
            # The server would take this for a rollback, and say nothing.
            raise ProviderFault(f"{self._place}: a statement of the block had failed, so the whole block is undone")
        ready = not connection.closed
        try:
            connection.execute(b"COMMIT")
        except psycopg.OperationalError:
            if ready and connection.closed:
                raise ProviderFault(
                    f"{self._place}: the connection was lost at the end of a block; it may be written or not"
                ) from None
            raise

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def _take(self) -> Connection:
        while True:
            with self._mutex:
                if not self._idle:
                    break
                connection = self._idle.pop()
            if _is_silent(connection):
                return connection
            connection.close()
        return self._connect()

    def _give_back(self, connection: Connection) -> None:
        with self._mutex:
            usable = connection.info.transaction_status == TransactionStatus.IDLE
            if usable and not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self, *, make: bool = False) -> Connection:
        connection: Connection = psycopg.connect(**self._parameters, autocommit=True)
        try:
            connection.execute(_SETTINGS, (_PATIENCE, self._config.read_only))
            if not self._schema.check(connection):
                if not make:
                    use = "read from" if self._config.read_only else "write to"
                    raise ConfigurationError(f"there is no memory in {self._place} to {use}")
                self._schema.make(connection)
                self._schema.check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def _place(self) -> str:
        database = self._parameters.get("dbname")
        return f"the schema {self._schema.name!r} of {f'the database {database!r}' if database else 'the database'}"

    @contextmanager
    def _faults(self) -> Iterator[None]:
        self._process.check()
        if self._closed:
            raise ProviderFault("the provider was closed")
        try:
            yield
        except errors.UniqueViolation:
            raise RecordExists(f"{self._place}: a record of one of these ids is there already") from None
        except errors.LockNotAvailable:
            raise ProviderFault(f"{self._place}: another program has been writing for too long") from None
        except errors.ReadOnlySqlTransaction:
            raise ReadOnlyProvider(f"{self._place} is for reading only") from None
        except psycopg.Error as error:
            raise ProviderFault(f"{self._place}: {self._sentence(error)}") from None

    def _sentence(self, error: psycopg.Error) -> str:
        text = error.diag.message_primary or next(iter(str(error).splitlines()), "") or type(error).__name__
        password = self._parameters.get("password")
        return text.replace(str(password), "***") if password else text


def _parameters(url: str) -> dict[str, Any]:
    try:
        found = conninfo_to_dict(url)
    except (psycopg.Error, ValueError):
        # What the library says holds the whole address.
        raise ConfigurationError(
            "the address of the database must be like postgresql://user@host:5432/database"
        ) from None
    defaults = {"connect_timeout": _CONNECT_SECS, "fallback_application_name": "memorizz"}
    return {**defaults, **found, "client_encoding": "utf8"}


def _is_silent(connection: Connection) -> bool:
    """Whether nothing came while it was idle: a server says something to a client only when it leaves."""
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(connection.fileno(), selectors.EVENT_READ)
        except (psycopg.Error, ValueError, OSError):
            return False
        return not selector.select(0)
