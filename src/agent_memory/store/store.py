"""The store: transactions over one database file, and what can be done inside them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import apsw

from agent_memory.domain.links import Edge, Related
from agent_memory.domain.memory import Filters, Memory, NewMemory, Patch
from agent_memory.domain.statistics import Statistics
from agent_memory.errors import Closed, OpenError, StorageError
from agent_memory.files import create_private, make_private_directory
from agent_memory.store import fulltext, links, memories, schema, statistics, vectors
from agent_memory.store.connection import (
    BUSY_DEADLINE_SECS,
    LOG_GONE,
    connect,
    has_vectors,
    keep_log,
    retry_while_locked,
    set_patience,
    transaction,
)
from agent_memory.store.filesystem import remote_file_system

if TYPE_CHECKING:
    from agent_memory.store.transfer import Arrivals

log = logging.getLogger(__name__)

JournalMode = Literal["auto", "wal", "delete"]
_MAX_READERS: Final = 8
_JOURNAL_WAIT_SECS: Final = 2.0


class Reader:
    """What one read transaction can see. All calls inside it see the same moment of the file."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def get(self, memory_id: int, now: int) -> Memory | None:
        """The memory of that id, or ``None``."""
        return memories.get(self._connection, memory_id, now)

    def by_id(self, ids: Sequence[int], now: int) -> dict[int, Memory]:
        """Those of ``ids`` that exist."""
        return memories.by_id(self._connection, ids, now)

    def newest(self, filters: Filters, limit: int | None, now: int) -> list[Memory]:
        """Memories newest first."""
        return memories.newest(self._connection, filters, limit, now)

    def keyword_blended(self, query: str, filters: Filters, limit: int, now: int, *, strict: bool) -> list[int]:
        """Ids by keyword relevance plus decay."""
        return fulltext.blended(self._connection, query, filters, limit, now, strict=strict)

    def keyword(self, query: str, filters: Filters, limit: int, *, strict: bool) -> list[int]:
        """Ids by keyword relevance."""
        return fulltext.relevance(self._connection, query, filters, limit, strict=strict)

    def nearest(self, vector: bytes, filters: Filters, count: int) -> list[int]:
        """Ids by closeness to ``vector``."""
        return vectors.nearest(self._connection, vector, filters, count)

    def decay_inputs(self, ids: Iterable[int]) -> dict[int, tuple[int, bool]]:
        """Time of last use and pinned-ness of those of ``ids`` that exist."""
        return memories.decay_inputs(self._connection, ids)

    def related(self, ids: Sequence[int]) -> dict[int, tuple[Related, ...]]:
        """The neighbours of each of ``ids``."""
        return links.related(self._connection, ids)

    def pending(self, after: int, limit: int) -> list[tuple[int, str]]:
        """Memories that wait for their vector."""
        return memories.pending(self._connection, after, limit)

    def count_pending(self) -> int:
        """How many memories wait for their vector."""
        count: int = self._connection.execute("SELECT count(*) FROM memories WHERE embedding_status = 0").get
        return count

    def statistics(self, now: int) -> Statistics:
        """Counts over the whole file."""
        return statistics.gather(self._connection, now)

    def all_memories(self, now: int) -> Iterator[Memory]:
        """Every memory by ascending id, read as it is asked for."""
        return memories.ascending(self._connection, now)

    def all_links(self) -> Iterator[tuple[Edge, int]]:
        """Every relation as stored and its creation time, by from, to and kind, read as it is asked for."""
        return links.ascending(self._connection)

    def count_links(self) -> tuple[int, int]:
        """How many relations there are, and how many more lead to no memory."""
        return links.count(self._connection)

    def embedding_pin(self) -> tuple[str | None, str | None]:
        """The model and dimension of every vector in the file, as it says."""
        return schema.embedding_pin(self._connection)


class Writer(Reader):
    """What one write transaction can do; it holds the file's write lock."""

    def __init__(self, connection: apsw.Connection, *, has_vectors: bool) -> None:
        super().__init__(connection)
        self._has_vectors = has_vectors

    def insert(self, new: NewMemory, vector: bytes | None, now: int) -> int:
        """Add a memory, with its vector where there is one, and return its id."""
        memory_id = memories.insert(self._connection, new, 0 if vector is None else 1, now)
        self._write_vector(memory_id, vector)
        return memory_id

    def patch(self, memory_id: int, changes: Patch, now: int) -> None:
        """Write what ``changes`` sets, in place, and count a use."""
        memories.patch(self._connection, memory_id, changes, now)

    def set_vector(self, memory_id: int, vector: bytes | None) -> None:
        """Make ``vector`` the one that matches the memory's content; ``None`` leaves it pending without one."""
        self._write_vector(memory_id, vector)
        memories.set_embedding_status(self._connection, memory_id, 0 if vector is None else 1)

    def waits_for(self, memory_id: int, content: str) -> bool:
        """Whether the memory still holds ``content`` and has no vector for it."""
        return memories.waits_for(self._connection, memory_id, content)

    def touch(self, ids: Sequence[int], now: int) -> None:
        """Count one use of each of ``ids``."""
        memories.touch(self._connection, ids, now)

    def delete(self, memory_id: int) -> bool:
        """Remove a memory with its vector and links. False when there was none."""
        if self._has_vectors:
            vectors.delete(self._connection, memory_id)
        return memories.delete(self._connection, memory_id)

    def delete_expired(self, now: int) -> int:
        """Remove the expired memories, and any vector that belongs to none, and return how many expired."""
        expired = memories.delete_expired(self._connection, now)
        if self._has_vectors:
            vectors.delete_orphans(self._connection)
        return expired

    def materialize_decay(self, after: int, now: int) -> tuple[int, int | None]:
        """Write the decay scores of the next batch of memories after an id."""
        return memories.materialize_decay(self._connection, after, now)

    def link(self, edge: Edge, now: int) -> None:
        """Add a relation, as stored."""
        links.insert(self._connection, edge, now)

    def unlink(self, edge: Edge) -> bool:
        """Remove a relation, as stored. False when there was none."""
        return links.delete(self._connection, edge)

    @contextmanager
    def arriving(self) -> Iterator[Arrivals]:
        """Adding memories and links from elsewhere, each once."""
        # Only an import pays for what hashing loads.
        from agent_memory.store import transfer

        if self._has_vectors:
            # Ids may be used again: a vector without a memory must not wait for the next of its id.
            vectors.delete_orphans(self._connection)
        with transfer.arriving(self._connection) as arrivals:
            yield arrivals

    def _write_vector(self, memory_id: int, vector: bytes | None) -> None:
        if not self._has_vectors:
            return
        if vector is None:
            # An id may be used again, and the file may still hold a vector of its former memory.
            vectors.delete(self._connection, memory_id)
        else:
            vectors.put(self._connection, memory_id, vector)


class SQLiteStore:
    """One database file: one writing connection a process, and reading connections beside it.

    Safe to use from many threads. Not from a forked child: open the file there instead.
    """

    def __init__(self, path: Path, journal: JournalMode = "auto") -> None:
        """Open ``path``, creating or migrating it as needed.

        Raises:
            OpenError: It cannot be created, read, backed up or migrated, or is not an agent-memory database.
        """
        self.path = path
        self._process = os.getpid()
        self._write_lock = threading.Lock()
        self._reader_slots = threading.Semaphore(_MAX_READERS)
        self._idle_readers: list[apsw.Connection] = []
        self._closed = False
        try:
            _create(path)
            self._writer = _open(path, journal)
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
            raise OpenError(
                f"opening database at {path}: {error} — the file and its directory must be readable and writable, "
                "since SQLite keeps its log beside the file"
            ) from error
        except (OSError, ValueError, apsw.Error) as error:
            # A ValueError is how Python refuses a name that no file can have.
            raise OpenError(f"opening database at {path}: {error}") from error
        self.has_vectors = has_vectors(self._writer)
        self._identity = _identity(path)

    @property
    def inherited(self) -> bool:
        """Whether this is the copy that a forked child got of its parent's store."""
        return os.getpid() != self._process

    @contextmanager
    def reading(self, operation: str) -> Iterator[Reader]:
        """A read transaction for ``operation``, the word a storage fault is reported with.

        Raises:
            StorageError: The database failed; the detail is in the log.
        """
        self._check_open()
        with _faults(operation), self._reader_slots:
            connection = self._idle_reader() or connect(self.path)
            try:
                with transaction(connection, write=False):
                    yield Reader(connection)
            except BaseException:
                # A statement that was interrupted may still hold its view of the file, as long as the exception lives.
                connection.close(force=True)
                raise
            if self._closed:
                connection.close()
            else:
                self._idle_readers.append(connection)

    @contextmanager
    def writing(
        self, operation: str, wait: float = BUSY_DEADLINE_SECS, log_level: int = logging.ERROR
    ) -> Iterator[Writer]:
        """A write transaction for ``operation``, waiting up to ``wait`` seconds for other processes to end theirs.

        Raises:
            StorageError: The database failed or stayed locked; the detail is in the log, at ``log_level``.
        """
        self._check_open()
        with _faults(operation, log_level):
            if not self._write_lock.acquire(timeout=wait):
                raise apsw.BusyError("another thread of this process is still writing")
            try:
                self._check_open()
                with transaction(self._writer, write=True, wait=wait):
                    yield Writer(self._writer, has_vectors=self.has_vectors)
            finally:
                self._write_lock.release()

    def close(self) -> None:
        """Close all connections; calling it again does nothing."""
        if self._closed or self.inherited:
            return
        self._closed = True
        with self._write_lock:
            while self._idle_readers:
                self._idle_readers.pop().close()
            self._writer.close()

    def _idle_reader(self) -> apsw.Connection | None:
        try:
            return self._idle_readers.pop()
        except IndexError:
            return None

    def _check_open(self) -> None:
        if self._closed:
            raise Closed(f"the memory at {self.path} is closed")
        if self.inherited:
            raise Closed(f"the memory at {self.path} was opened before this process was forked; open it again here")
        if _identity(self.path) != self._identity:
            # What is written to a file that has no name any more is lost with the last program that has it open.
            raise Closed(f"the file {self.path} was moved, replaced or removed while it was open; restart this program")


@contextmanager
def _faults(operation: str, log_level: int = logging.ERROR) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, memories.CorruptRow, UnicodeDecodeError) as error:
        log.log(log_level, "%s failed: %s: %s", operation, type(error).__name__, error)
        raise StorageError(operation) from error


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells the file of that name from any other, or ``None`` when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _create(path: Path) -> None:
    make_private_directory(path.parent)
    try:
        os.close(create_private(path))
    except FileExistsError:
        pass


def _open(path: Path, journal: JournalMode) -> apsw.Connection:
    connection = connect(path)
    try:
        _check_ours(connection, path)
        schema.migrate(connection, path)
        _set_journal(connection, path, journal)
        _smoke_test(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_ours(connection: apsw.Connection, path: Path) -> None:
    try:
        retry_while_locked(lambda: schema.check_ours(connection, path))
    except OpenError:
        # A file that is not for this program stays as it is, log and all.
        keep_log(connection, path)
        raise


def _set_journal(connection: apsw.Connection, path: Path, journal: JournalMode) -> None:
    remote = remote_file_system(path) if journal == "auto" else None
    if remote is not None:
        log.warning("%s is on a %s file system: using a rollback journal instead of WAL", path, remote)
    wanted = "delete" if journal == "delete" or remote is not None else "wal"
    set_patience(connection, _JOURNAL_WAIT_SECS)
    try:
        mode = retry_while_locked(lambda: connection.execute(f"PRAGMA journal_mode = {wanted}").get, _JOURNAL_WAIT_SECS)
    except apsw.BusyError:
        # It can only be changed while nobody else has the file open.
        mode = connection.execute("PRAGMA journal_mode").get
        log.warning("%s is in use with the journal mode %s, which stays; %s was asked for", path, mode, wanted)
    set_patience(connection, BUSY_DEADLINE_SECS)
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}")


def _smoke_test(connection: apsw.Connection, path: Path) -> None:
    tables = ["memories_fts", "memory_links", "meta"]
    if has_vectors(connection):
        tables.append("vec_memories")
    for table in tables:
        try:
            connection.execute(f"SELECT 1 FROM {table} LIMIT 1").get  # noqa: B018
        except apsw.IOError as error:
            raise OpenError(f"opening database at {path}: {error}; {LOG_GONE}") from error
        except apsw.Error as error:
            raise OpenError(
                f"opening database at {path}: {table} is unusable ({error}) — run `agent-memory doctor` on it"
            ) from error
