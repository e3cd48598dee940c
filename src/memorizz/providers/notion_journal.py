"""What this machine knows of a data source: its pages, what became of each write, and the ids of its properties."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, cast

import apsw

from agent_memory.files import make_private_directory
from agent_memory.store.connection import BUSY_DEADLINE_SECS, connect, retry_while_locked, set_patience
from memorizz.errors import ConfigurationError, ProviderFault
from memorizz.taxonomy import MemoryType

CREATING: Final = "creating"
UNCERTAIN: Final = "uncertain"
PENDING: Final = "pending"
INDEXED: Final = "indexed"
STORED: Final = "stored"
DELETED: Final = "deleted"
DELETE_PENDING: Final = "delete_pending"
DELETE_UNCERTAIN: Final = "delete_uncertain"
NOT_CREATED: Final = "not_created"
ABANDONED: Final = "abandoned"

LIVE: Final = frozenset({PENDING, INDEXED, STORED})
"""A page is there, as far as this machine knows."""

UNRESOLVED: Final = frozenset({CREATING, UNCERTAIN, DELETE_PENDING, DELETE_UNCERTAIN})
"""What became of a write is not known."""

NOT_PROJECTED: Final = frozenset({MemoryType.MEMAGENT, MemoryType.SHARED_MEMORY, MemoryType.TOOL_LOG})
"""Stores whose records are not searched by meaning: they are ``stored`` at once, never ``pending``."""

_APPLICATION_ID: Final = 0x4D5A4E31
_SCHEMA: Final = f"""
CREATE TABLE records (
    source_id   TEXT NOT NULL,
    memory_type TEXT NOT NULL,
    page_id     TEXT,
    fingerprint TEXT NOT NULL,
    status      TEXT NOT NULL,
    added       INTEGER NOT NULL,
    PRIMARY KEY (source_id, memory_type)
) WITHOUT ROWID;
CREATE INDEX records_status ON records(status);
CREATE INDEX records_added ON records(added);
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION_ID};
"""
_WRITE: Final = """
INSERT INTO records (source_id, memory_type, page_id, fingerprint, status, added) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET page_id = excluded.page_id, fingerprint = excluded.fingerprint, status = excluded.status,
    added = excluded.added
"""


class Entry(NamedTuple):
    """One record's line."""

    id: str
    store: MemoryType
    page_id: str | None
    fingerprint: str
    status: str
    added: int


class Journal:
    """One SQLite file of mode 0600; without a path it is kept in memory. Safe to use from many threads.

    Raises:
        ConfigurationError: The file is another program's, or is about another data source.
        ProviderFault: It cannot be used.
    """

    def __init__(self, path: Path | None, data_source_id: str) -> None:
        self.path = path
        self._mutex = threading.Lock()
        with self._faults():
            self._connection = _opened(path)
            try:
                found = self.setting("data_source_id")
                if found is None:
                    self.set("data_source_id", data_source_id)
                elif found != data_source_id:
                    raise ConfigurationError(f"{path} is about the Notion data source {found}, not {data_source_id}")
            except BaseException:
                self._connection.close()
                raise

    def setting(self, key: str) -> str | None:
        """The value that was set, or ``None``."""
        found: str | None = self._run("SELECT value FROM settings WHERE key = ?", [key]).get
        return found

    def set(self, key: str, value: str) -> None:
        """Remember a value."""
        self._run("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", [key, value])

    def properties(self) -> dict[str, str]:
        """The ids of the properties by their first names; empty where they are not known."""
        found: dict[str, str] = json.loads(self.setting("property_ids") or "{}")
        return found

    def remember(self, properties: Mapping[str, str]) -> None:
        """Remember the ids of the properties."""
        self.set("property_ids", json.dumps(dict(properties)))

    def write(self, entry: Entry) -> None:
        """Set a record's line."""
        store = entry.store.value
        self._run(_WRITE, [entry.id, store, entry.page_id, entry.fingerprint, entry.status, entry.added])

    def mark(self, store: MemoryType, id: str, status: str) -> None:
        """Set the status of a record's line; one that is not there stays so."""
        self._run("UPDATE records SET status = ? WHERE source_id = ? AND memory_type = ?", [status, id, store.value])

    def entry(self, store: MemoryType, id: str) -> Entry | None:
        """A record's line."""
        return next(iter(self._entries("WHERE source_id = ? AND memory_type = ?", [id, store.value])), None)

    def entries(self, statuses: Iterable[str], store: MemoryType | None = None) -> list[Entry]:
        """The lines of these statuses, in the order the records were added."""
        wanted = sorted(statuses)
        marks = ", ".join("?" * len(wanted))
        where = f"WHERE status IN ({marks})"
        if store is not None:
            return self._entries(f"{where} AND memory_type = ? ORDER BY added", [*wanted, store.value])
        return self._entries(f"{where} ORDER BY added", wanted)

    def last_added(self) -> int:
        """The latest moment at which a record was added."""
        found: int = self._run("SELECT coalesce(max(added), 0) FROM records", []).get
        return found

    def counts(self) -> dict[str, Counter[str]]:
        """For each status how many lines there are of each store."""
        found: dict[str, Counter[str]] = {}
        rows = self._run("SELECT status, memory_type, count(*) FROM records GROUP BY status, memory_type", [])
        for status, store, count in cast("list[tuple[str, str, int]]", rows.fetchall()):
            found.setdefault(status, Counter())[store] = count
        return found

    def close(self) -> None:
        """Let go of the file."""
        with self._mutex:
            self._connection.close()

    def _entries(self, where: str, values: Sequence[str]) -> list[Entry]:
        columns = "source_id, memory_type, page_id, fingerprint, status, added"
        with self._mutex, self._faults():
            rows = self._connection.execute(f"SELECT {columns} FROM records {where}", tuple(values)).fetchall()
        return [
            Entry(id, MemoryType(store), page_id, fingerprint, status, added)
            for id, store, page_id, fingerprint, status, added in cast(
                "list[tuple[str, str, str, str, str, int]]", rows
            )
        ]

    def _run(self, statement: str, values: Sequence[str | int | None]) -> apsw.Cursor:
        with self._mutex, self._faults():
            return retry_while_locked(lambda: self._connection.execute(statement, tuple(values)))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (OSError, apsw.Error) as error:
            raise ProviderFault(f"the Notion journal {self.path} cannot be used: {error}") from None


def remembered_properties(path: Path) -> dict[str, str]:
    """The ids of properties that a journal knows, which is left as it is; empty where there is none."""
    try:
        connection = connect(path, read_only=True)
        try:
            found = connection.execute("SELECT value FROM settings WHERE key = 'property_ids'").get
        finally:
            connection.close()
    except apsw.Error:
        return {}
    known: dict[str, str] = json.loads(found or "{}")
    return known


def _opened(path: Path | None) -> apsw.Connection:
    if path is None:
        connection = apsw.Connection(":memory:")
        connection.execute(_SCHEMA)
        return connection
    make_private_directory(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        set_patience(connection, BUSY_DEADLINE_SECS)
        _make(connection, path)
        # What a loss of power takes from it is found again by asking Notion.
        retry_while_locked(lambda: connection.execute("PRAGMA journal_mode = WAL"))
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _make(connection: apsw.Connection, path: Path) -> None:
    try:
        if connection.execute("PRAGMA application_id").get == _APPLICATION_ID:
            return
        retry_while_locked(lambda: connection.execute("BEGIN IMMEDIATE"))
        try:
            found = connection.execute("PRAGMA application_id").get
            if found == 0 and not connection.execute("SELECT count(*) FROM sqlite_schema").get:
                connection.execute(_SCHEMA)
                found = _APPLICATION_ID
        finally:
            connection.execute("COMMIT")
    except apsw.NotADBError:
        found = None
    if found != _APPLICATION_ID:
        raise ConfigurationError(f"{path} is no Notion journal of this program; set state_path to another file")
