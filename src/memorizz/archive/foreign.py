"""Providers of other makers, which have the methods of the reference instead of ours."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from memorizz.archive.values import to_json
from memorizz.errors import InvalidRecord, MemorizzError, MemoryArchiveError, ProviderFault, RecordExists
from memorizz.providers.contract import Capabilities, Problem, Provider
from memorizz.records import Record, natural_id
from memorizz.taxonomy import MemoryType


def as_provider(given: Any) -> Provider:
    """``given`` itself when it fulfils the contract, else behind an adapter."""
    return given if isinstance(given, Provider) else ForeignProvider(given)


class ForeignProvider:
    """A provider with ``list_all(kind)`` and ``store(data, memory_store_type=kind)``.

    Where it has them, ``list_archive_records(kind)``, ``store_archive_record(kind, id, data, replace=, reembed=)``,
    ``validate_archive_record(kind, id, data)``, ``archive_target_id(kind, id)``, ``delete_by_id(id, kind)`` and
    ``read_only`` are used as well. It has to keep the ids it is given. All it can do to find a record is to list them
    all; inside a snapshot or a transaction each store is listed once.
    """

    def __init__(self, given: Any) -> None:
        self._given = given
        self._block = _Block()
        self.embedding_provider = getattr(given, "embedding_provider", None)
        self.recorder = None
        if hasattr(given, "archive_target_id"):
            self.archive_target_id = given.archive_target_id

    @property
    def capabilities(self) -> Capabilities:
        """Nothing but what ``read_only`` says."""
        return Capabilities(read_only=bool(getattr(self._given, "read_only", False)))

    @property
    def class_name(self) -> str:
        """The name of the provider's own class."""
        return type(self._given).__name__

    def check(self, store: MemoryType, id: str, record: Record) -> None:
        """Ask ``validate_archive_record``."""
        validate = getattr(self._given, "validate_archive_record", None)
        if validate is not None:
            try:
                validate(store, id, record)
            except ValueError as error:
                raise InvalidRecord(f"{store} {id!r:.80}: {error}") from error
            except Exception as error:  # another maker's provider may fail in any way
                raise self._fault(error) from error

    def get(self, store: MemoryType, id: str) -> Record | None:
        """Look through all records."""
        found = self._listed(store).get(id)
        return None if found is None else dict(found)

    def find(self, store: MemoryType, ids: Iterable[str]) -> dict[str, str]:
        """Look through all records."""
        wanted = set(ids)
        listed = self._listed(store)
        naturals: dict[str, str] = {}
        for id, record in listed.items():
            natural = natural_id(store, record)
            if natural in wanted:
                naturals.setdefault(str(natural), id)
        return {id: id for id in wanted & listed.keys()} | naturals

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """What the provider lists."""
        listing = getattr(self._given, "list_archive_records", None) or self._given.list_all
        for record in self._call(lambda: list(listing(store))):
            try:
                copy = to_json(record)
            except MemoryArchiveError as error:
                raise MemoryArchiveError(f"{store}: a record of the provider cannot be read: {error}") from None
            own = copy.get("_id") or copy.get("id") or natural_id(store, copy)
            if own:
                copy["_id"] = copy["id"] = str(own)
            yield copy

    def count(self, store: MemoryType) -> int:
        """The number of records listed."""
        return sum(1 for _ in self.scan(store))

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        """Hand over one record after the other."""
        listed = self._listed(store)
        taken = next((id for id, _ in records if id in listed), None)
        if taken is not None and not replace:
            raise RecordExists(f"{store} {taken!r:.80}: there is such a record already")
        for id, record in records:
            # Should the provider fail, it may hold the record nevertheless.
            self._block.forget(store)
            method = getattr(self._given, "store_archive_record", None)
            if method is None:
                kept = self._call(self._given.store, record, memory_store_type=store)
            else:
                kept = self._call(method, store, id, record, replace=replace, reembed=False)
            if str(kept) != id:
                raise ProviderFault(
                    f"{store} {id!r:.80}: the provider gave the record another id, {str(kept)!r:.80}, under which it is"
                )
            listed[id] = record
            self._block.remember(store, listed)

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """Remove one record after the other."""
        if not hasattr(self._given, "delete_by_id"):
            raise ProviderFault(f"{store}: the provider has no delete_by_id")
        self._block.forget(store)
        return sum(bool(self._call(self._given.delete_by_id, id, store)) for id in ids)

    def problems(self) -> list[Problem]:
        """None that such a provider could tell."""
        return []

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A block in which each store is listed once."""
        with self._block.begun():
            yield

    def transaction(self) -> AbstractContextManager[None]:
        """A block in which each store is listed once."""
        return self.snapshot()

    def close(self) -> None:
        """Nothing: whoever opened it closes it."""

    def _listed(self, store: MemoryType) -> dict[str, Record]:
        """The records by id."""
        found = self._block.recall(store)
        if found is None:
            found = {}
            for record in self.scan(store):
                if record.get("_id"):
                    found.setdefault(record["_id"], record)
            self._block.remember(store, found)
        return found

    def _call(self, method: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except MemorizzError:
            raise
        except Exception as error:  # another maker's provider may fail in any way
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> ProviderFault:
        return ProviderFault(f"{self.class_name}: {type(error).__name__}: {error}")


class _Block(threading.local):
    """What this thread has listed since a block began; nothing outside of one."""

    def __init__(self) -> None:
        self._depth = 0
        self._stores: dict[MemoryType, dict[str, Record]] = {}

    @contextmanager
    def begun(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._stores = {}

    def recall(self, store: MemoryType) -> dict[str, Record] | None:
        return self._stores.get(store)

    def remember(self, store: MemoryType, listed: dict[str, Record]) -> None:
        if self._depth:
            self._stores[store] = listed

    def forget(self, store: MemoryType) -> None:
        self._stores.pop(store, None)
