"""What a storage provider is: a few methods over store, id and record, and what it says it can do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, runtime_checkable

from memorizz.records import Record
from memorizz.taxonomy import MemoryType


class Capabilities(NamedTuple):
    """What a provider can do.

    ``read_only``: every write raises ``ReadOnlyProvider``. ``atomic``: what is done inside ``transaction`` happens as
    a whole or not at all. ``snapshot``: what is read inside ``snapshot`` is of one moment.
    """

    read_only: bool = False
    atomic: bool = False
    snapshot: bool = False


class Problem(NamedTuple):
    """Something stored that cannot be read, or is not listed where it should be."""

    store: MemoryType
    id: str
    message: str


@runtime_checkable
class Provider(Protocol):
    """Keeps records by store and physical id. Safe to use from many threads.

    A restore also uses two methods that not every provider has. ``archive_target_id(store, id) -> str`` is the id that
    a record gets where ids have a form of their own; it stays as it is when it is given again.
    ``archive_prepare(stores)`` is called before the transaction of a restore that writes into these stores.

    Every method raises ``ProviderFault`` when the storage below fails. A record that is returned is the caller's own
    copy and has its physical id in ``_id`` and ``id``.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    def check(self, store: MemoryType, id: str, record: Record) -> None:
        """Do nothing for a record that :meth:`put` would take.

        Raises:
            InvalidRecord: The provider cannot hold it: its id, size or a value; the message says which rule.
        """
        ...

    def get(self, store: MemoryType, id: str) -> Record | None:
        """The record of that physical id, or ``None``."""
        ...

    def find(self, store: MemoryType, ids: Iterable[str]) -> dict[str, str]:
        """For those of ``ids`` that a record has as natural id or, failing that, as physical id: the physical id."""
        ...

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """Every readable record, in the order they were added. What cannot be read is among :meth:`problems`."""
        ...

    def count(self, store: MemoryType) -> int:
        """How many records :meth:`scan` yields."""
        ...

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        """Write records under their physical ids; all are durable when it returns.

        Raises:
            InvalidRecord: As :meth:`check` says; nothing was written.
            RecordExists: One of the ids is taken and ``replace`` is not set; nothing was written.
            ReadOnlyProvider: Nothing was written.
        """
        ...

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """Remove records by physical id and return how many there were."""
        ...

    def problems(self) -> list[Problem]:
        """What is stored but cannot be read, or is not in the index."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """A block whose reads, by this thread, are of one moment where ``capabilities.snapshot`` says so."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """A block whose writes, by this thread, happen as a whole where ``capabilities.atomic`` says so.

        Elsewhere they are only made cheaper together.
        """
        ...

    def close(self) -> None:
        """Release everything; calling it again does nothing."""
        ...
