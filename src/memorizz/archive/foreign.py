"""Providers of other makers, which have the methods of the reference instead of ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from memorizz.archive.values import to_json
from memorizz.errors import InvalidRecord, MemorizzError, ProviderFault, RecordExists
from memorizz.providers.contract import Capabilities, Problem, Provider
from memorizz.records import Record, natural_id
from memorizz.taxonomy import MemoryType


def as_provider(given: Any) -> Provider:
    """``given`` itself when it fulfils the contract, else behind an adapter."""
    return given if isinstance(given, Provider) else ForeignProvider(given)


class ForeignProvider:
    """A provider with ``list_all(kind)`` and ``store(data, memory_store_type=kind)``.

    Where it has them, ``list_archive_records(kind)``, ``store_archive_record(kind, id, data, replace=, reembed=)``,
    ``validate_archive_record(kind, id, data)``, ``delete_by_id(id, kind)`` and ``read_only`` are used as well. It
    has to keep the ids it is given.
    """

    def __init__(self, given: Any) -> None:
        self._given = given
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

    def get(self, store: MemoryType, id: str) -> Record | None:
        """Look through all records."""
        return next((record for record in self.scan(store) if record["_id"] == id), None)

    def find(self, store: MemoryType, ids: Iterable[str]) -> dict[str, str]:
        """Look through all records once."""
        wanted = set(ids)
        naturals: dict[str, str] = {}
        own: dict[str, str] = {}
        for record in self.scan(store):
            natural = natural_id(store, record)
            if natural in wanted:
                naturals.setdefault(str(natural), record["_id"])
            if record["_id"] in wanted:
                own[record["_id"]] = record["_id"]
        return own | naturals

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """What the provider lists."""
        listing = getattr(self._given, "list_archive_records", None) or self._given.list_all
        for record in self._call(listing, store):
            copy = to_json(record)
            own = copy.get("_id") or copy.get("id")
            if own:
                copy["_id"] = copy["id"] = str(own)
            yield copy

    def count(self, store: MemoryType) -> int:
        """The number of records listed."""
        return sum(1 for _ in self.scan(store))

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        """Hand over one record after the other."""
        if not replace and (taken := self.find(store, [id for id, _ in records])):
            raise RecordExists(f"{store} {next(iter(taken))!r:.80}: there is such a record already")
        for id, record in records:
            method = getattr(self._given, "store_archive_record", None)
            if method is None:
                kept = self._call(self._given.store, record, memory_store_type=store)
            else:
                kept = self._call(method, store, id, record, replace=replace, reembed=False)
            if str(kept) != id:
                raise ProviderFault(f"{store} {id!r:.80}: the provider gave the record another id, {str(kept)!r:.80}")

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """Remove one record after the other."""
        if not hasattr(self._given, "delete_by_id"):
            raise ProviderFault(f"{store}: the provider has no delete_by_id")
        return sum(bool(self._call(self._given.delete_by_id, id, store)) for id in ids)

    def problems(self) -> list[Problem]:
        """None that such a provider could tell."""
        return []

    def snapshot(self) -> AbstractContextManager[None]:
        """A block like any other."""
        return nullcontext()

    def transaction(self) -> AbstractContextManager[None]:
        """A block like any other."""
        return nullcontext()

    def close(self) -> None:
        """Nothing: whoever opened it closes it."""

    def _call(self, method: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except MemorizzError:
            raise
        except Exception as error:  # another maker's provider may fail in any way
            raise ProviderFault(f"{self.class_name}: {type(error).__name__}: {error}") from error
