"""One SQLite file as provider: what belongs together is written together, and read as of one moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, cast

import apsw

from agent_memory.errors import shorten
from memorizz.errors import InvalidRecord, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.providers.base import MemoryProvider
from memorizz.providers.contract import Capabilities, Problem
from memorizz.providers.ids import broken_rule
from memorizz.providers.process import OwnProcess
from memorizz.providers.sqlite_file import open_file
from memorizz.providers.sqlite_sessions import Sessions
from memorizz.providers.values import Unreadable, decode, encode
from memorizz.records import Record, natural_id
from memorizz.taxonomy import MemoryType

_MAX_BYTES: Final = 900_000_000
_PAGE: Final = 500
_CHUNK: Final = 500

_INSERT: Final = """
INSERT INTO records (store, id, natural_id, memory_id, agent_id, user_id, data) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_REPLACE: Final = f"""{_INSERT}
ON CONFLICT (store, id) DO UPDATE SET natural_id = excluded.natural_id, memory_id = excluded.memory_id,
    agent_id = excluded.agent_id, user_id = excluded.user_id, data = excluded.data
"""


class _Taken(Exception):
    """A row of that store and id is there; what was begun is undone."""


class SQLiteConfig(NamedTuple):
    """Where the file is. ``read_only`` leaves every byte of it as it is."""

    path: str | Path
    read_only: bool = False


class SQLiteProvider(MemoryProvider):
    """Records in one file, with transactions and snapshots.

    Raises:
        ConfigurationError: The file is another program's or a newer version's, or cannot be made.
        ProviderFault: The storage failed.
    """

    def __init__(self, config: SQLiteConfig) -> None:
        super().__init__()
        self.config = config
        self.path = Path(config.path).expanduser().absolute()
        self._process = OwnProcess()
        self._sessions = Sessions(lambda: open_file(self.path, read_only=config.read_only))
        with self._faults():
            # Only here: a thread that comes later must not find a fresh file in place of one that was moved away.
            open_file(self.path, read_only=config.read_only, make=not config.read_only).close()

    @property
    def capabilities(self) -> Capabilities:
        """Atomic, with snapshots."""
        return Capabilities(read_only=self.config.read_only, atomic=True, snapshot=True)

    def check(self, store: MemoryType, id: str, record: Record) -> None:
        """See ``Provider.check``: an id has 1 to 512 characters, a record less than 900 MB."""
        _row(store, id, record)

    def get(self, store: MemoryType, id: str) -> Record | None:
        """See ``Provider.get``. Raises ``ProviderFault`` when the row holds no record."""
        if broken_rule(id):
            return None
        with self._faults():
            data = self._sessions.reader().execute(
                "SELECT data FROM records WHERE store = ? AND id = ?", (store.value, id)
            )
            row = data.get
        try:
            return None if row is None else {**decode(row), "_id": id, "id": id}
        except Unreadable as error:
            raise ProviderFault(f"{store} {shorten(id)!r}: the row {error}") from None

    def find(self, store: MemoryType, ids: Iterable[str]) -> dict[str, str]:
        """See ``Provider.find``."""
        wanted = [id for id in dict.fromkeys(ids) if not broken_rule(id)]
        found: dict[str, str] = {}
        with self._faults():
            for column in ("natural_id", "id"):
                for start in range(0, len(wanted), _CHUNK):
                    chunk = [id for id in wanted[start : start + _CHUNK] if id not in found]
                    marks = ", ".join("?" * len(chunk))
                    rows = self._sessions.reader().execute(
                        f"SELECT {column}, id FROM records WHERE store = ? AND {column} IN ({marks}) ORDER BY position",
                        (store.value, *chunk),
                    )
                    for key, id in rows:
                        found.setdefault(key, id)
        return found

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """See ``Provider.scan``. Outside of a snapshot what is written meanwhile may be met or not."""
        for id, data in self._rows(store):
            try:
                yield {**decode(data), "_id": id, "id": id}
            except Unreadable:
                continue

    def count(self, store: MemoryType) -> int:
        """See ``Provider.count``."""
        with self._faults():
            found: int = (
                self._sessions.reader()
                .execute("SELECT count(*) FROM records WHERE store = ? AND json_valid(data)", (store.value,))
                .get
            )
        return found

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        """See ``Provider.put``. All of the records are written, or none."""
        rows = [_row(store, id, record) for id, record in records]
        try:
            with self._writing() as connection:
                connection.executemany(_REPLACE if replace else _INSERT, rows)
        except _Taken:
            raise RecordExists(f"{store} {self._taken(store, records)}") from None

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """See ``Provider.delete``."""
        wanted = [(store.value, id) for id in dict.fromkeys(ids) if not broken_rule(id)]
        with self._writing() as connection:
            before = connection.total_changes()
            connection.executemany("DELETE FROM records WHERE store = ? AND id = ?", wanted)
            return connection.total_changes() - before

    def problems(self) -> list[Problem]:
        """See ``Provider.problems``."""
        found = []
        for store in MemoryType:
            for id, data in self._rows(store):
                try:
                    decode(data)
                except Unreadable as error:
                    found.append(Problem(store, id, f"the row {error}"))
        return found

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See ``Provider.snapshot``. What this thread writes meanwhile is not met either."""
        with self._faults(), self._sessions.snapshot():
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See ``Provider.transaction``. One inside another can be undone by itself."""
        with self._writing():
            yield

    def close(self) -> None:
        """Release everything."""
        if self._process.is_here:
            self._sessions.close()

    def _rows(self, store: MemoryType) -> Iterator[tuple[str, str]]:
        # By pages: an open cursor would keep the file's log from being written back, and bar this thread from writing.
        last = 0
        while True:
            with self._faults():
                rows = self._sessions.reader().execute(
                    "SELECT position, id, data FROM records WHERE store = ? AND position > ? ORDER BY position LIMIT ?",
                    (store.value, last, _PAGE),
                )
                page = cast("list[tuple[int, str, str]]", rows.fetchall())
            for position, id, data in page:
                last = position
                yield id, data
            if len(page) < _PAGE:
                return

    def _taken(self, store: MemoryType, records: Sequence[tuple[str, Record]]) -> str:
        seen = set()
        for id, _ in records:
            if id in seen:
                return f"{shorten(id)!r}: the id is given twice"
            seen.add(id)
            taken = self._sessions.writer().execute(
                "SELECT 1 FROM records WHERE store = ? AND id = ?", (store.value, id)
            )
            if taken.get is not None:
                return f"{shorten(id)!r}: a record of this id is there already"
        return "a record is there already"

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        if self.config.read_only:
            raise ReadOnlyProvider(f"{self.path} was opened for reading only")
        with self._faults(), self._sessions.transaction() as connection:
            yield connection

    @contextmanager
    def _faults(self) -> Iterator[None]:
        self._process.check()
        try:
            yield
        except apsw.ConstraintError:
            raise _Taken from None
        except apsw.Error as error:
            raise ProviderFault(f"{self.path}: {error}") from None


def _row(
    store: MemoryType, id: str, record: Record
) -> tuple[str, str, str | None, str | None, str | None, str | None, str]:
    rule = broken_rule(id)
    if rule is not None:
        raise InvalidRecord(f"{store} {shorten(id)!r}: the id {rule}")
    data = encode(store, id, record)
    if len(data) > _MAX_BYTES // 4 and len(data.encode()) > _MAX_BYTES:
        raise InvalidRecord(f"{store} {shorten(id)!r}: the record is bigger than {_MAX_BYTES} bytes")
    memory, agent, user = (_text(record.get(name)) for name in ("memory_id", "agent_id", "user_id"))
    return store.value, id, natural_id(store, record), memory, agent, user, data


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
