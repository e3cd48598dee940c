"""One MongoDB database as provider, readable by the reference implementation and the other way round.

The driver is imported with the first provider that is opened: people who use another one need not have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.errors import shorten
from memorizz.errors import ConfigurationError, InvalidRecord, ProviderFault
from memorizz.providers.base import MemoryProvider
from memorizz.providers.contract import Capabilities, Problem
from memorizz.providers.ids import broken_rule, is_text
from memorizz.providers.values import Unreadable, encode
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

if TYPE_CHECKING:
    from memorizz.providers.mongodb_collections import Collections

_MEASURED: Final = 1_000_000
_PASSWORD: Final = re.compile(r"(//[^:/@]*:)([^/]*)(@)")


class MongoDBConfig(NamedTuple):
    """Which server, as ``mongodb://user@host:27017``, and which database of it. ``read_only`` writes nothing.

    ``embedding_provider`` makes vectors for a restore that asks for them. ``lazy_vector_indexes`` and
    ``embedding_config`` are the reference implementation's, and do nothing: no vector index is made here.
    """

    uri: str
    db_name: str = "memorizz"
    lazy_vector_indexes: bool = False
    read_only: bool = False
    embedding_provider: Any = None
    embedding_config: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        """As any named tuple, but without the password and what may hold a key."""
        uri = _PASSWORD.sub(r"\1***\3", self.uri)
        return f"MongoDBConfig(uri={uri!r}, db_name={self.db_name!r}, read_only={self.read_only!r})"


class MongoDBProvider(MemoryProvider):
    """Records in one collection for each store. On a replica set or behind mongos with transactions and snapshots.

    Raises:
        ConfigurationError: The driver is missing, the address is none, or there is nothing to read from.
        ProviderFault: The server cannot be reached, or failed.
    """

    def __init__(self, config: MongoDBConfig) -> None:
        super().__init__()
        self.config = config
        self._collections = _collections(config)
        self._sessions = self._collections.sessions

    @property
    def capabilities(self) -> Capabilities:
        """Atomic with snapshots, unless the server stands alone."""
        atomic = self._sessions.atomic
        return Capabilities(read_only=self.config.read_only, atomic=atomic, snapshot=atomic)

    def check(self, store: MemoryType, id: str, record: Record) -> None:
        """See ``Provider.check``: an id has 1 to 512 characters; a document not more than 16 MiB."""
        rule = broken_rule(id)
        if rule is not None:
            raise InvalidRecord(f"{store} {shorten(id)!r}: the id {rule}")
        # No document has more than sixteen bytes for a character of its text.
        if len(encode(store, id, record)) > _MEASURED:
            size, most = self._collections.measure(store, id, record)
            if size > most:
                raise InvalidRecord(
                    f"{store} {shorten(id)!r}: the document of {size} bytes is bigger than {most} bytes"
                )

    def get(self, store: MemoryType, id: str) -> Record | None:
        """See ``Provider.get``. Raises ``ProviderFault`` when the document holds no record."""
        if not is_text(id):
            return None
        try:
            return self._collections.get(store, id)
        except Unreadable as error:
            raise ProviderFault(f"{store} {shorten(id)!r}: the document {error}") from None

    def find(self, store: MemoryType, ids: Iterable[str]) -> dict[str, str]:
        """See ``Provider.find``."""
        return self._collections.find(store, [id for id in dict.fromkeys(ids) if is_text(id)])

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """See ``Provider.scan``: documents of other programs come first, as the server lists them.

        Outside of a snapshot what is written meanwhile may be met or not.
        """
        return self._collections.scan(store)

    def count(self, store: MemoryType) -> int:
        """See ``Provider.count``."""
        return self._collections.count(store)

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        """See ``Provider.put``. All of the records are written, or none, where the deployment is atomic."""
        for id, record in records:
            self.check(store, id, record)
        self._sessions.as_one(lambda: self._collections.put(store, records, replace=replace))

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """See ``Provider.delete``."""
        wanted = [id for id in dict.fromkeys(ids) if is_text(id)]
        return self._sessions.as_one(lambda: self._collections.delete(store, wanted))

    def problems(self) -> list[Problem]:
        """See ``Provider.problems``."""
        return self._collections.problems()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See ``Provider.snapshot``. What this thread writes meanwhile is not met either."""
        with self._sessions.snapshot():
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See ``Provider.transaction``. One inside another is a part of it.

        Other programs' blocks wait meanwhile. Raises ``ProviderFault``, and nothing is written, when another program
        changed the same records without one.
        """
        with self._sessions.transaction():
            yield

    def exclusive(self, store: MemoryType) -> AbstractContextManager[None]:  # noqa: ARG002
        """A block in which nobody else changes what it reads: on a server that stands alone, it fails if they do."""
        return self._sessions.transaction() if self._sessions.atomic else self._sessions.watching()

    def compare_and_swap_shared_memory(self, id: str, expected_revision: int, data: Any) -> bool:
        """See ``MemoryProvider.compare_and_swap_shared_memory``."""
        swap = super().compare_and_swap_shared_memory
        return self._sessions.again(lambda: swap(id, expected_revision, data))

    def close(self) -> None:
        """Release everything."""
        self._sessions.close()

    # What these read and write belongs together: where another program gets in between, they begin again.

    def _write(self, operation: str, store: MemoryType, records: Mapping[str, Record]) -> None:
        write = super()._write
        self._sessions.again(lambda: write(operation, store, records))

    def _change(self, operation: str, store: MemoryType, id: str, data: Any) -> bool:
        change = super()._change
        return self._sessions.again(lambda: change(operation, store, id, data))

    def _remove(self, operation: str, store: MemoryType, ids: list[str]) -> int:
        remove = super()._remove
        return self._sessions.again(lambda: remove(operation, store, ids))

    def _keep_agent(self, operation: str, record: Record) -> str:
        keep = super()._keep_agent
        return self._sessions.again(lambda: keep(operation, record))


def password_of(uri: str) -> str | None:
    """The password that an address holds, for leaving it out of messages."""
    found = _PASSWORD.search(uri)
    return found.group(2) if found else None


def _collections(config: MongoDBConfig) -> Collections:
    try:
        from memorizz.providers.mongodb_collections import Collections
    except ImportError:
        raise ConfigurationError(
            "the provider mongodb needs the library pymongo: pip install 'agent-memory[mongodb]'"
        ) from None
    return Collections(config)
