"""Tables of an Oracle database as provider: native columns for what they can hold, JSON for everything else."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple, get_args
from uuid import UUID

from agent_memory.errors import shorten
from memorizz.errors import ConfigurationError, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.providers import oracle_driver
from memorizz.providers.base import MemoryProvider
from memorizz.providers.contract import Capabilities, Problem
from memorizz.providers.ids import broken_rule
from memorizz.providers.oracle_check import check
from memorizz.providers.oracle_rows import Found
from memorizz.providers.oracle_schema import TABLES
from memorizz.providers.oracle_sessions import Sessions, Sql
from memorizz.providers.oracle_tables import Tables, error_code
from memorizz.providers.oracle_values import target_id
from memorizz.providers.oracle_writes import Writes
from memorizz.providers.process import OwnProcess
from memorizz.providers.values import Unreadable
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

_PAGE: Final = 500
_TAKEN: Final = 1
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_$#]{0,127}")

IndexPolicy = Literal["lazy", "none", "selected", "eager"]
SearchMode = Literal["exact", "approximate"]


class OracleConfig(NamedTuple):
    """Which database, as whom, and in which schema the tables are: the user's own unless said otherwise.

    ``dsn`` is ``host:port/service`` or a name that the driver resolves. ``pool_wait_timeout`` is how many seconds a
    thread waits for one of at most ``pool_max`` connections, and for a lock. ``embedding_provider`` has
    ``get_embedding(text)`` and is used by a restore that embeds. ``index_policy``, ``in_database_embedding``,
    ``embedding_config`` and ``vector_search_mode`` say how programs search by meaning; this provider does not search,
    it checks them and leaves indexes as they are.
    """

    user: str
    password: str
    dsn: str
    schema: str | None = None
    index_policy: IndexPolicy = "lazy"
    in_database_embedding: bool = True
    embedding_provider: Any = None
    embedding_config: dict[str, Any] | None = None
    pool_min: int = 1
    pool_max: int = 5
    pool_increment: int = 1
    vector_search_mode: SearchMode = "exact"
    pool_wait_timeout: float = 60
    read_only: bool = False

    def __repr__(self) -> str:
        return f"OracleConfig(user={self.user!r}, dsn={_without_password(self.dsn)!r}, schema={self.schema!r})"


class OracleProvider(MemoryProvider):
    """Records in the tables of one schema, with transactions and snapshots.

    Raises:
        ConfigurationError: The configuration cannot be, the driver is not installed, or there is nothing to read.
        ProviderFault: The database cannot be reached, or refused.
    """

    def __init__(
        self,
        config: OracleConfig,
        *,
        connect: Callable[[], Any] | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        """``connect`` gives connections in place of the pool, which closing gives back. ``clock`` has nanoseconds."""
        super().__init__()
        _check_config(config)
        self.config = config
        self.embedding_provider = config.embedding_provider
        self._driver: Any = oracle_driver.load()
        self._process = OwnProcess()
        self._pool: oracle_driver.Pool | None = None
        with self._faults():
            if connect is None:
                self._pool = oracle_driver.open_pool(_address(config))
                connect = self._pool.acquire
            self._sessions = Sessions(connect, self._driver)
            owner = (config.schema or config.user).upper()
            prefix = f"{config.schema}." if config.schema else ""
            self._prefix = prefix
            self._tables = Tables(self._sessions, self._driver, owner, prefix)
            self._rows = Writes(prefix, self._tables.shape, self._driver, clock or time.time_ns)
            try:
                self._tables.load()
                if config.read_only and self._tables.is_empty:
                    raise ConfigurationError(f"the schema {owner} has none of the tables to read from")
            except BaseException:
                self.close()
                raise

    @property
    def capabilities(self) -> Capabilities:
        """Atomic, with snapshots. Only the tables and columns that are made on the way stay after a failure."""
        return Capabilities(read_only=self.config.read_only, atomic=True, snapshot=True)

    def archive_target_id(self, store: MemoryType, id: str) -> str:
        """The id under which a restore keeps a record: where rows are known by a UUID, that or the one made of it."""
        return target_id(TABLES[store], id)

    def archive_prepare(self, stores: Iterable[MemoryType]) -> None:
        """Make the tables, and the column for other fields, that a restore into these stores needs."""
        self._refuse_read_only()
        with self._faults():
            self._tables.prepare(stores)

    def check(self, store: MemoryType, id: str, record: Record) -> None:
        """See ``Provider.check``: required columns, the lengths of texts, and values that a column is restricted to."""
        check(self._tables.shape(store), id, record)

    def get(self, store: MemoryType, id: str) -> Record | None:
        """See ``Provider.get``. Raises ``ProviderFault`` when the row holds no record."""
        if broken_rule(id):
            return None
        try:
            with self._reading(store) as sql:
                record = self._rows.get(sql, store, id)
        except Unreadable as error:
            raise ProviderFault(f"{store} {shorten(id)!r}: the row {error}") from None
        return None if record is None else {**record, "_id": id, "id": id}

    def find(self, store: MemoryType, ids: Iterable[str]) -> dict[str, str]:
        """See ``Provider.find``."""
        wanted = [id for id in dict.fromkeys(ids) if not broken_rule(id)]
        with self._reading(store) as sql:
            return self._rows.find(sql, store, wanted)

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """See ``Provider.scan``. Outside of a snapshot what is written meanwhile may be met or not."""
        with self._reading(store) as sql:
            keys = self._rows.keys(sql, store)
        for start in range(0, len(keys), _PAGE):
            with self._reading(store) as sql:
                page = self._rows.load(sql, store, keys[start : start + _PAGE])
            for _, found in page:
                if isinstance(found, Found):
                    yield {**found.record, "_id": found.id, "id": found.id}

    def count(self, store: MemoryType) -> int:
        """See ``Provider.count``."""
        with self._reading(store) as sql:
            return self._rows.count(sql, store)

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        """See ``Provider.put``. All of the records are written, or none."""
        for id, record in records:
            self.check(store, id, record)
        try:
            with self._writing(store) as sql:
                if records:
                    self._rows.put(sql, store, records, replace=replace)
        except _Taken:
            raise RecordExists(f"{store}: another program wrote one of the records at the same time") from None

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """See ``Provider.delete``."""
        wanted = [id for id in dict.fromkeys(ids) if not broken_rule(id)]
        with self._writing() as sql:
            return self._rows.delete(sql, store, wanted)

    def problems(self) -> list[Problem]:
        """See ``Provider.problems``."""
        found = []
        for store in MemoryType:
            with self._reading(store) as sql:
                page = self._rows.load(sql, store, self._rows.unreadable(sql, store))
            for key, row in page:
                if isinstance(row, Unreadable):
                    found.append(Problem(store, str(UUID(bytes=key)), f"the row {row}"))
        return found

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See ``Provider.snapshot``. What this thread writes meanwhile is not met either."""
        with self._faults(), self._sessions.snapshot():
            self._tables.refresh()
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See ``Provider.transaction``. One inside another can be undone by itself."""
        with self._writing():
            yield

    @contextmanager
    def exclusive(self, store: MemoryType) -> Iterator[None]:
        """See ``RecordMethods.exclusive``: the table of the store is locked. In a snapshot nothing is."""
        self._refuse_read_only()
        if self._sessions.is_in_block and not self._sessions.is_writing:
            # A preview asks whether it could write; it must not wait for those who do, nor prepare anything.
            yield
            return
        with self._writing(store) as sql:
            sql.run(f"LOCK TABLE {self._prefix}{store} IN EXCLUSIVE MODE WAIT {round(self.config.pool_wait_timeout)}")
            yield

    def close(self) -> None:
        """Release everything."""
        self._sessions.closed = True
        pool, self._pool = self._pool, None
        if pool is not None and self._process.is_here:
            try:
                pool.close(force=True)
            except self._driver.Error:
                pass

    @contextmanager
    def _reading(self, store: MemoryType) -> Iterator[Sql]:
        with self._faults(), self._sessions.reading() as sql:
            if not self._sessions.is_in_block:
                self._tables.refresh(store)
            yield sql

    @contextmanager
    def _writing(self, *stores: MemoryType) -> Iterator[Sql]:
        self._refuse_read_only()
        with self._faults():
            self._tables.prepare(stores)
            with self._sessions.transaction() as sql:
                yield sql

    def _refuse_read_only(self) -> None:
        if self.config.read_only:
            raise ReadOnlyProvider(f"Oracle at {_without_password(self.config.dsn)} was opened for reading only")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        self._process.check()
        try:
            yield
        except self._driver.Error as error:
            if error_code(error) == _TAKEN:
                raise _Taken from None
            raise ProviderFault(self._said(error)) from None

    def _said(self, error: Exception) -> str:
        """An error of the driver in one line, without what is secret."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        said = lines[0].strip()
        if self.config.password:
            said = said.replace(self.config.password, "***")
        return f"Oracle at {_without_password(self.config.dsn)}: {said}"


class _Taken(Exception):
    """A row of that key is there; what was begun is undone."""


def _without_password(dsn: str) -> str:
    return dsn.rpartition("@")[2]


def _address(config: OracleConfig) -> oracle_driver.Address:
    return oracle_driver.Address(
        config.user,
        config.password,
        config.dsn,
        config.pool_min,
        config.pool_max,
        config.pool_increment,
        config.pool_wait_timeout,
    )


def _check_config(config: OracleConfig) -> None:
    for name in ("user", "password", "dsn"):
        value = getattr(config, name)
        if not isinstance(value, str) or not value:
            raise ConfigurationError(f"the option {name!r} of the provider 'oracle' must be text that is not empty")
    if config.schema is not None and not (isinstance(config.schema, str) and _NAME.fullmatch(config.schema)):
        raise ConfigurationError(f"schema must be the name of a schema, without quotes (got {config.schema!r:.80})")
    for name, kind in (("index_policy", IndexPolicy), ("vector_search_mode", SearchMode)):
        if getattr(config, name) not in get_args(kind):
            raise ConfigurationError(
                f"{name} must be one of {', '.join(get_args(kind))} (got {getattr(config, name)!r:.80})"
            )
    sizes = (config.pool_min, config.pool_max, config.pool_increment)
    if (
        any(type(size) is not int for size in sizes)
        or not 0 <= config.pool_min <= config.pool_max
        or min(sizes[1:]) < 1
    ):
        raise ConfigurationError(
            "pool_max and pool_increment must be whole numbers from 1, and pool_min one from 0 to pool_max "
            f"(got {config.pool_min}, {config.pool_max} and {config.pool_increment})"
        )
    if not isinstance(config.pool_wait_timeout, int | float) or not 0 < config.pool_wait_timeout <= 86_400:
        raise ConfigurationError(
            f"pool_wait_timeout must be a number of seconds up to 86400 (got {config.pool_wait_timeout!r:.80})"
        )
