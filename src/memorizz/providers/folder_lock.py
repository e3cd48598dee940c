"""The lock that all programs take that write into a folder: ``BEGIN IMMEDIATE`` on an empty SQLite file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from agent_memory.store.connection import BUSY_DEADLINE_SECS, retry_while_locked, set_patience
from memorizz.errors import ProviderFault


class LockBusy(ProviderFault):
    """Another process held the lock all the time."""


class FolderLock:
    """Held by one thread of one process at a time; that thread may take it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.RLock()
        self._depth = 0
        self._connection: apsw.Connection | None = None

    @contextmanager
    def held(self, wait: float = BUSY_DEADLINE_SECS) -> Iterator[None]:
        """Nobody else writes while the block runs.

        Raises:
            LockBusy: Another process kept it for ``wait`` seconds.
            ProviderFault: The lock file cannot be used.
        """
        with self._mutex:
            if self._depth == 0:
                self._take(wait)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and self._connection is not None:
                    self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Let go of the file; the lock can be taken again afterwards."""
        with self._mutex:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _take(self, wait: float) -> None:
        try:
            if self._connection is None:
                os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
                self._connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
            connection = self._connection
            set_patience(connection, wait)
            retry_while_locked(lambda: connection.execute("BEGIN IMMEDIATE"), wait)
        except apsw.BusyError:
            raise LockBusy(f"another program has held the lock {self._path} for {wait:g} seconds") from None
        except (OSError, apsw.Error) as error:
            raise ProviderFault(f"the lock {self._path} cannot be taken: {error}") from None
