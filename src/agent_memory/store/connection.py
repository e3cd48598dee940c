"""The one place that opens SQLite connections.

Every connection waits for locks with a jittered back-off up to a deadline, checks foreign keys and, where
sqlite-vec is installed, knows the ``vec0`` module.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import apsw

BUSY_DEADLINE_SECS: Final = 30.0
_LONGEST_PAUSE_SECS: Final = 0.02
LOG_GONE: Final = (
    "the log beside the file (-wal, -shm) may have been removed or replaced while a program has it open: end all "
    "clients and servers normally, without killing them, then run `agent-memory doctor`"
)
_LOCK_ERRORS: Final = (apsw.BusyError, apsw.LockedError)

T = TypeVar("T")


def connect(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """A connection to an existing file; a ``read_only`` one leaves every byte of it as it is.

    Raises:
        apsw.Error: The file is missing, unreadable or not a database.
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    if read_only:
        # A connection opened as read-only would leave an empty log behind.
        connection.execute("PRAGMA query_only = ON")
        keep_log(connection, path)
    set_patience(connection, BUSY_DEADLINE_SECS)
    connection.execute("PRAGMA foreign_keys = ON")
    extension = vector_extension()
    if extension is not None:
        connection.enable_load_extension(True)
        connection.load_extension(extension)
        connection.enable_load_extension(False)
    return connection


def keep_log(connection: apsw.Connection, path: Path) -> None:
    """Let closing ``connection`` not write a log that another process left behind into ``path``."""
    if log_size(path) > 0:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def log_size(path: Path) -> int:
    """The size in bytes of the write-ahead log beside ``path``, 0 when there is none."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except FileNotFoundError:
        return 0


def vector_extension() -> str | None:
    """The path of sqlite-vec's loadable extension, or ``None`` where the package is not installed.

    The package itself is not imported: that would pull numpy.
    """
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        return None
    return str(Path(spec.submodule_search_locations[0]) / "vec0")


def has_vectors(connection: apsw.Connection) -> bool:
    """Whether this connection can read and write ``vec0`` tables."""
    return bool(connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'vec0'").get)


@contextmanager
def transaction(connection: apsw.Connection, *, write: bool, wait: float = BUSY_DEADLINE_SECS) -> Iterator[None]:
    """One transaction: committed when the block ends, rolled back when it raises.

    A writing one takes the write lock at once, waiting up to ``wait`` seconds, so it never has to be upgraded
    and refused half-way.
    """
    set_patience(connection, wait)
    retry_while_locked(lambda: connection.execute("BEGIN IMMEDIATE" if write else "BEGIN"), wait)
    set_patience(connection, BUSY_DEADLINE_SECS)
    try:
        yield
        retry_while_locked(lambda: connection.execute("COMMIT"))
    except BaseException:
        # Some faults (a full disk, an I/O error) make SQLite roll back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def triggers_off(connection: apsw.Connection) -> Iterator[None]:
    """Statements inside do not fire triggers.

    For updates that leave ``content`` alone: the file's update trigger would rewrite the full-text entry of
    each touched row with what it already holds.
    """
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    try:
        yield
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)


def set_patience(connection: apsw.Connection, seconds: float) -> None:
    """Let ``connection`` wait up to ``seconds`` for each lock."""
    connection.set_busy_handler(_patience(seconds))


def retry_while_locked(action: Callable[[], T], seconds: float = BUSY_DEADLINE_SECS) -> T:
    """``action()``, repeated while the database is locked: some locks are refused without asking the busy handler."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return action()
        except _LOCK_ERRORS:
            if time.monotonic() >= deadline:
                raise
            _pause()


def _patience(seconds: float) -> Callable[[int], bool]:
    deadline = 0.0

    def wait(calls: int) -> bool:
        nonlocal deadline
        if calls == 0:
            deadline = time.monotonic() + seconds
        if time.monotonic() >= deadline:
            return False
        _pause()
        return True

    return wait


def _pause() -> None:
    # Jitter keeps processes that collided once from colliding again in step.
    time.sleep(_LONGEST_PAUSE_SECS * (1 + os.urandom(1)[0]) / 256)
