"""The connection to one database, and what each thread is in the middle of there."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient, ReadPreference, WriteConcern
from pymongo.errors import BulkWriteError, ConnectionFailure, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.synchronous.client_session import ClientSession
from pymongo.synchronous.collection import Collection
from pymongo.synchronous.database import Database

from memorizz.errors import ConfigurationError, ProviderError, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.providers import mongodb_schema
from memorizz.providers.mongodb import MongoDBConfig, password_of
from memorizz.providers.mongodb_documents import OPTIONS
from memorizz.providers.process import OwnProcess

Documents: TypeAlias = Collection[RawBSONDocument]
T = TypeVar("T")

_PATIENCE_SECS: Final = 70
"""How long to wait for another program; longer than a server keeps the block of one that died."""

_SELECTION_MS: Final = 10_000
_CONFIRMATION_MS: Final = 30_000
_LOST_SECS: Final = 5.0
_DUPLICATE: Final = 11000
_CONFLICTS: Final = frozenset({24, 112, 246})  # LockTimeout, WriteConflict, SnapshotUnavailable
_ENDED: Final = frozenset({50, 225, 251, 290})  # among them NoSuchTransaction


class Conflict(ProviderFault):
    """Another program changed the same records at the same time."""


class _Local(threading.local):
    """What one thread is in the middle of."""

    writing: ClientSession | None = None
    reading: ClientSession | None = None
    broken: ProviderError | None = None
    watched: dict[tuple[str, str], bytes | None] | None = None


class Sessions:
    """Safe to use from many threads. Every method raises ``ProviderFault`` when the database fails."""

    def __init__(self, config: MongoDBConfig) -> None:
        self._config = config
        self._process = OwnProcess()
        self._local = _Local()
        self._mutex = threading.RLock()
        self._closed = False
        self._lost = (0.0, "")
        self._client = _client(config)
        try:
            with self.faults():
                hello = self._client.admin.command("hello")
                self.atomic = "setName" in hello or hello.get("msg") == "isdbgrid"
                self._database = self._opened()
        except BaseException:
            self._client.close()
            raise

    def documents(self, collection: str) -> Documents:
        """A collection, whose documents come as bytes: one that cannot be decoded must not hide the others."""
        return self._database.get_collection(
            collection, codec_options=OPTIONS.with_options(document_class=RawBSONDocument)
        )

    @property
    def session(self) -> ClientSession | None:
        """The session to read in: inside a transaction that one, inside a snapshot the one of then."""
        return self._local.writing or self._local.reading

    @property
    def writing(self) -> ClientSession | None:
        """The session to write in."""
        return self._local.writing

    @property
    def watched(self) -> dict[tuple[str, str], bytes | None] | None:
        """What this thread has read inside of :meth:`watching`, by collection and id, as it was the first time."""
        return self._local.watched

    def require_writable(self) -> None:
        """Raise ``ReadOnlyProvider`` where nothing is to be written."""
        if self._config.read_only:
            raise ReadOnlyProvider(f"{self._place} was opened for reading only")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block that writes as a whole where the deployment can; other programs' blocks wait meanwhile."""
        self.require_writable()
        with self.faults():
            if not self.atomic or self._local.writing is not None:
                yield
                return
        with self._mutex, self._client.start_session() as session:
            self._begin_alone(session)
            with self._block(session):
                yield

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A block whose replacing writes fail with ``Conflict`` when what it read has changed since."""
        self.require_writable()
        if self._local.watched is not None:
            yield
            return
        self._local.watched = {}
        try:
            yield
        finally:
            self._local.watched = None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A block whose reads are of the moment it begins, where the deployment can."""
        with self.faults():
            if not self.atomic or self.session is not None:
                yield
                return
            with self._client.start_session() as session:
                self._start(session)
                # Starting alone does not choose the moment, the first read does.
                self._database[mongodb_schema.LOCK].find_one({}, session=session)
                self._local.reading = session
                try:
                    yield
                finally:
                    self._local.reading = None

    def as_one(self, work: Callable[[], T]) -> T:
        """Do writes that belong together: as a whole where the deployment can, and again after a conflict."""
        self.require_writable()
        if not self.atomic or self._local.writing is not None:
            return work()
        return self.again(lambda: self._as_one(work))

    def again(self, work: Callable[[], T]) -> T:
        """Do what begins and ends a block of its own, and do it again as long as other programs get in between."""
        if self._local.writing is not None or self._local.watched is not None:
            return work()
        deadline = time.monotonic() + _PATIENCE_SECS
        pause = 0.001
        while True:
            try:
                return work()
            except Conflict:
                if time.monotonic() > deadline:
                    self._give_up()
            time.sleep(random.uniform(0, pause))
            pause = min(pause * 2, 0.1)

    def close(self) -> None:
        """Close everything."""
        if self._process.is_here and not self._closed:
            self._closed = True
            self._client.close()

    @contextmanager
    def faults(self) -> Iterator[None]:
        """A block in which what the driver raises becomes an error of ours."""
        self._process.check()
        if self._closed:
            raise ProviderFault("the provider was closed")
        self._fail_fast()
        if self._local.broken is not None:
            kind = Conflict if isinstance(self._local.broken, Conflict) else ProviderFault
            raise kind(f"{self._local.broken}, so the whole block is undone")
        try:
            yield
        except PyMongoError as error:
            fault = self._fault(error)
            if isinstance(error, ConnectionFailure):
                self._lost = (time.monotonic() + _LOST_SECS, str(fault))
            if self._local.writing is not None:
                # The server has undone the block already.
                self._local.broken = fault
            raise fault from None

    def _fail_fast(self) -> None:
        """Fail at once for a while after the server was lost: many records are not to be waited for one by one."""
        until, message = self._lost
        if time.monotonic() < until and not self._client.topology_description.has_readable_server():
            raise ProviderFault(message)

    def _as_one(self, work: Callable[[], T]) -> T:
        with self._client.start_session() as session:
            with self.faults():
                self._start(session)
            with self._block(session):
                return work()

    def _opened(self) -> Database[Any]:
        name, read_only = self._config.db_name, self._config.read_only
        database: Database[Any] = self._client.get_database(
            name,
            codec_options=OPTIONS,
            write_concern=WriteConcern("majority", wtimeout=_CONFIRMATION_MS, j=True),
            read_preference=ReadPreference.PRIMARY_PREFERRED if read_only else ReadPreference.PRIMARY,
        )
        if not read_only:
            mongodb_schema.make(database)
        elif not mongodb_schema.exists(database):
            raise ConfigurationError(f"there is no memory in {self._place} to read from")
        return database

    def _start(self, session: ClientSession) -> None:
        session.start_transaction(ReadConcern("snapshot"), WriteConcern("majority", wtimeout=_CONFIRMATION_MS, j=True))

    def _begin_alone(self, session: ClientSession) -> None:
        """Start a transaction that holds the lock."""

        def begin() -> None:
            with self.faults():
                self._start(session)
                try:
                    self._database[mongodb_schema.LOCK].update_one(
                        {"_id": mongodb_schema.WRITER}, {"$inc": {"turn": 1}}, upsert=True, session=session
                    )
                except PyMongoError as error:
                    session.abort_transaction()
                    if getattr(error, "code", None) == _DUPLICATE:
                        raise Conflict(f"{self._place}: another program has made the lock") from None
                    raise

        self.again(begin)

    @contextmanager
    def _block(self, session: ClientSession) -> Iterator[None]:
        self._local.writing = session
        try:
            yield
            with self.faults():
                self._commit(session)
        finally:
            self._local.writing = self._local.broken = None
            if session.in_transaction:
                # It says nothing when that fails: the server then undoes the block by itself.
                session.abort_transaction()

    def _commit(self, session: ClientSession) -> None:
        try:
            session.commit_transaction()
        except PyMongoError as error:
            if error.has_error_label("UnknownTransactionCommitResult"):
                raise ProviderFault(
                    f"{self._place}: the connection was lost at the end of a block; it may be written or not"
                ) from None
            raise

    def _give_up(self) -> NoReturn:
        raise ProviderFault(f"{self._place}: another program has been writing for too long") from None

    @property
    def _place(self) -> str:
        return f"the database {self._config.db_name!r}"

    def _fault(self, error: PyMongoError) -> ProviderFault | RecordExists:
        code, text = _said(error)
        if isinstance(error, ConnectionFailure):
            text = f"the server cannot be reached ({text})"
        elif code == _DUPLICATE:
            return RecordExists(f"{self._place}: a record of that identity is there already ({text})")
        elif code in _CONFLICTS:
            return Conflict(f"{self._place}: another program changed the same records at the same time")
        elif code in _ENDED:
            text = f"the server ended the block, which it allows for a limited time only ({text})"
        password = password_of(self._config.uri)
        return ProviderFault(f"{self._place}: {text.replace(password, '***') if password else text}")


def _client(config: MongoDBConfig) -> MongoClient[Any]:
    defaults: dict[str, Any] = {"serverSelectionTimeoutMS": _SELECTION_MS, "appname": "memorizz"}
    given = config.uri.lower()
    more: dict[str, Any] = {name: value for name, value in defaults.items() if f"{name.lower()}=" not in given}
    try:
        if not given.startswith(("mongodb://", "mongodb+srv://")):
            raise ValueError
        client: MongoClient[Any] = MongoClient(config.uri, connect=False, **more)
    except (PyMongoError, ValueError, TypeError):
        # What the library says may hold the whole address.
        raise ConfigurationError("the address of the database must be like mongodb://user@host:27017") from None
    try:
        client.get_database(config.db_name)
    except (PyMongoError, ValueError, TypeError):
        client.close()
        raise ConfigurationError(f"{config.db_name!r} cannot be the name of a database") from None
    return client


def _said(error: PyMongoError) -> tuple[int | None, str]:
    """The code and the sentence of an error."""
    details: Mapping[str, Any] = {}
    if isinstance(error, BulkWriteError):
        found: Sequence[Mapping[str, Any]] = [
            *error.details.get("writeErrors", ()),
            *error.details.get("writeConcernErrors", ()),
        ]
        details = found[0] if found else {}
    elif isinstance(error, OperationFailure):
        details = error.details or {}
    text = str(details.get("errmsg") or error).splitlines()[0] if str(error) else type(error).__name__
    for end in (" (configured timeouts:", ", Timeout: ", ", full error:"):
        text = text.partition(end)[0]
    code = details.get("code")
    return code if isinstance(code, int) else None, text
