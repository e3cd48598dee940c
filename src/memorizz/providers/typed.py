"""An agent-memory database as a provider: its typed memories are records of the knowledge base."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, cast

import apsw

from agent_memory.domain import bounds
from agent_memory.errors import InvalidInput, OpenError, shorten
from agent_memory.store import memories, schema
from agent_memory.store.connection import connect
from agent_memory.store.store import SQLiteStore
from memorizz.errors import ConfigurationError, InvalidRecord, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.providers import typed_records
from memorizz.providers.base import MemoryProvider
from memorizz.providers.contract import Capabilities, Problem
from memorizz.providers.ids import broken_rule
from memorizz.providers.process import OwnProcess
from memorizz.providers.sqlite_sessions import Sessions
from memorizz.providers.typed_file import TABLES, TypedFile
from memorizz.providers.values import Unreadable, decode, encode
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

_STORE: Final = MemoryType.KNOWLEDGE_BASE
_PAGE: Final = 500


class AgentMemoryConfig(NamedTuple):
    """Where the database is. ``read_only`` leaves every byte of it as it is."""

    path: str | Path
    read_only: bool = False


class AgentMemoryProvider(MemoryProvider):
    """Typed memories as records of the knowledge base. Every other store is empty and takes nothing.

    A record that was stored here comes back as it was, but for what other programs have changed since. What the typed
    memory has no place for is in tables of this provider in the same file, which other programs pass over.

    Raises:
        ConfigurationError: The file is another program's or a newer version's, or cannot be made.
        ProviderFault: The storage failed.
    """

    def __init__(self, config: AgentMemoryConfig) -> None:
        super().__init__()
        self.config = config
        self.path = Path(config.path).expanduser().absolute()
        self._process = OwnProcess()
        self._sessions = Sessions(self._connect, table="memories")
        try:
            if config.read_only:
                self._check_current()
            else:
                SQLiteStore(self.path).close()
                with self._writing() as connection:
                    connection.execute(TABLES)
        except OpenError as error:
            raise ConfigurationError(str(error)) from None
        with self._faults():
            present = self._sessions.reader().execute("SELECT 1 FROM sqlite_master WHERE name = 'memorizz_records'")
            self._has_tables = present.get is not None

    @property
    def capabilities(self) -> Capabilities:
        """Atomic, with snapshots."""
        return Capabilities(read_only=self.config.read_only, atomic=True, snapshot=True)

    def check(self, store: MemoryType, id: str, record: Record) -> None:
        """See ``Provider.check``: the knowledge base only, ids of 1 to 512 characters, content as a typed memory."""
        where = f"{store} {shorten(id)!r}"
        if store is not _STORE:
            raise InvalidRecord(f"{where}: an agent-memory database holds records of the knowledge base only")
        rule = broken_rule(id)
        if rule is not None:
            raise InvalidRecord(f"{where}: the id {rule}")
        encode(store, id, record)
        content = record.get("content")
        try:
            if not isinstance(content, str):
                raise InvalidRecord(f"{where}: content must be a text (got {type(content).__name__})")
            bounds.check_content(content)
        except InvalidInput as error:
            raise InvalidRecord(f"{where}: {error}") from None

    def get(self, store: MemoryType, id: str) -> Record | None:
        """See ``Provider.get``."""
        if store is not _STORE or broken_rule(id):
            return None
        with self._faults():
            file = self._file(self._sessions.reader())
            memory_id = file.memory_id(id)
            return None if memory_id is None else next(iter(file.records([memory_id])), None)

    def find(self, store: MemoryType, ids: Iterable[str]) -> dict[str, str]:
        """See ``Provider.find``. Records of the knowledge base have no natural id."""
        if store is not _STORE:
            return {}
        with self._faults():
            file = self._file(self._sessions.reader())
            return {id: id for id in _usable(ids) if file.memory_id(id) is not None}

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """See ``Provider.scan``: in the order of the memories' ids."""
        last = 0
        more = store is _STORE
        while more:
            with self._faults():
                connection = self._sessions.reader()
                ids = [
                    id
                    for (id,) in connection.execute(
                        "SELECT id FROM memories WHERE id > ? ORDER BY id LIMIT ?", (last, _PAGE)
                    )
                ]
                page = self._file(connection).records(ids)
            yield from page
            more = len(ids) == _PAGE
            last = ids[-1] if ids else last

    def count(self, store: MemoryType) -> int:
        """See ``Provider.count``."""
        if store is not _STORE:
            return 0
        with self._faults():
            found: int = self._sessions.reader().execute("SELECT count(*) FROM memories").get
        return found

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        """See ``Provider.put``. All of the records are written, or none."""
        for id, record in records:
            self.check(store, id, record)
        with self._writing() as connection:
            file = self._file(connection)
            written: dict[str, int] = {}
            for id, record in records:
                before = file.memory_id(id)
                if not replace and (before is not None or id in written):
                    raise RecordExists(f"{store} {shorten(id)!r}: a record of this id is there already")
                written[id] = file.write(id, {**record, "_id": id, "id": id}, before)
            for id, record in records:
                file.relate(written[id], typed_records.links(record))
            file.settle(written)

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """See ``Provider.delete``."""
        if self.config.read_only:
            raise ReadOnlyProvider(f"{self.path} was opened for reading only")
        if store is not _STORE:
            return 0
        with self._writing() as connection:
            file = self._file(connection)
            found = {memory_id for id in _usable(ids) if (memory_id := file.memory_id(id)) is not None}
            for memory_id in found:
                file.drop_vector(memory_id)
                memories.delete(connection, memory_id)
        return len(found)

    def problems(self) -> list[Problem]:
        """See ``Provider.problems``: records kept here that cannot be read. `agent-memory doctor` finds all others."""
        if not self._has_tables:
            return []
        found = []
        with self._faults():
            rows = self._sessions.reader().execute("SELECT record_id, body FROM memorizz_records").fetchall()
        for id, body in cast("list[tuple[str, str]]", rows):
            try:
                decode(body)
            except Unreadable as error:
                found.append(Problem(_STORE, id, f"what is kept of it {error}"))
        return found

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See ``Provider.snapshot``."""
        with self._faults(), self._sessions.snapshot():
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See ``Provider.transaction``."""
        with self._writing():
            yield

    def close(self) -> None:
        """Release everything."""
        if self._process.is_here:
            self._sessions.close()

    def _connect(self) -> apsw.Connection:
        return connect(self.path, read_only=self.config.read_only)

    def _check_current(self) -> None:
        with self._faults():
            found = schema.check_ours(self._sessions.reader(), self.path)
        if found != schema.LATEST:
            raise ConfigurationError(
                f"{self.path} has schema version {found}; open it for writing once, which brings it to {schema.LATEST}"
            )

    def _file(self, connection: apsw.Connection) -> TypedFile:
        return TypedFile(connection, kept=self._has_tables)

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
        except (apsw.Error, memories.CorruptRow) as error:
            raise ProviderFault(f"{self.path}: {error}") from None


def _usable(ids: Iterable[str]) -> Iterator[str]:
    return (id for id in dict.fromkeys(ids) if not broken_rule(id))
