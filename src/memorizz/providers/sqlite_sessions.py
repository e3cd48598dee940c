"""Connections to one file: for each thread one to write, and one more that stands still during a snapshot."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

from agent_memory.store.connection import transaction
from memorizz.errors import ProviderFault


class _Session:
    """What one thread has open."""

    def __init__(self) -> None:
        self.main: apsw.Connection | None = None
        self.still: apsw.Connection | None = None
        self.writing = 0
        self.reading = 0

    def close(self) -> None:
        for connection in (self.main, self.still):
            if connection is not None:
                connection.close()


class Sessions:
    """Opens what a thread needs when it needs it. Safe to use from many threads."""

    def __init__(self, connect: Callable[[], apsw.Connection], *, table: str = "records") -> None:
        """``connect`` opens the file, in which there is ``table``."""
        self._connect = connect
        self._table = table
        self._local = threading.local()
        self._all: weakref.WeakSet[_Session] = weakref.WeakSet()
        self._mutex = threading.Lock()
        self._write_lock = threading.RLock()
        self._closed = False

    def reader(self) -> apsw.Connection:
        """The connection to read from: inside a transaction the writing one, inside a snapshot the one of then."""
        session = self._session()
        if session.reading and not session.writing and session.still is not None:
            return session.still
        return self.writer()

    def writer(self) -> apsw.Connection:
        """The connection to write to."""
        session = self._session()
        if session.main is None:
            session.main = self._connect()
        return session.main

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """A block that writes as a whole; one inside another is undone by itself when it raises."""
        session = self._session()
        connection = self.writer()
        with self._write_lock:
            # An apsw connection as a context manager is a savepoint.
            block = connection if session.writing else transaction(connection, write=True)
            with block:
                session.writing += 1
                try:
                    yield connection
                finally:
                    session.writing -= 1

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A block whose reads are of the moment it begins. Inside a transaction every block is."""
        session = self._session()
        if session.writing or session.reading:
            yield
            return
        if session.still is None:
            session.still = self._connect()
        with transaction(session.still, write=False):
            # BEGIN alone does not choose the moment, the first read does.
            session.still.execute(f"SELECT 1 FROM {self._table} LIMIT 1").fetchall()
            session.reading = 1
            try:
                yield
            finally:
                session.reading = 0

    def close(self) -> None:
        """Close everything that any thread has open."""
        with self._mutex:
            self._closed = True
            for session in list(self._all):
                session.close()

    def _session(self) -> _Session:
        if self._closed:
            raise ProviderFault("the provider was closed")
        session: _Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = _Session()
            with self._mutex:
                self._all.add(session)
        return session
