"""The methods by which people keep records, made of those that every provider has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, Literal, TypeAlias
from uuid import uuid4

from memorizz.errors import InvalidRecord
from memorizz.providers.contract import Provider
from memorizz.providers.recording import Recording
from memorizz.providers.values import normalise, said_by
from memorizz.records import Record
from memorizz.taxonomy import USER_STORES, MemoryType


class Unset(Enum):
    """The type of :data:`UNSET`."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET
"""An argument that was not given, where ``None`` means something."""

UserScope: TypeAlias = str | Literal[Unset.UNSET] | None
"""A user's records, those of nobody (``None``), or all."""

_SHARED_WITH_USERS: Final = frozenset({MemoryType.KNOWLEDGE_BASE, MemoryType.SKILLBOX, MemoryType.TOOLBOX})
_FILTERED_BY_USER: Final = USER_STORES | _SHARED_WITH_USERS


class RecordMethods(Recording, Provider):
    """Storing, reading and changing records of any store.

    ``memory_store_type`` is a :class:`MemoryType` or its key; an unknown key raises ``ValueError``.
    """

    def exclusive(self, store: MemoryType) -> AbstractContextManager[None]:  # noqa: ARG002
        """A block in which nobody else changes records of ``store``, as far as the provider can see to that."""
        return self.transaction()

    def store(
        self,
        data: Any = None,
        memory_store_type: MemoryType | str | None = None,
        memory_id: str | None = None,
        memory_unit: Any = None,
    ) -> str:
        """Keep a record and return its physical id; one of the same id is replaced.

        ``data``, or ``memory_unit`` in its place, is a mapping or an object with ``to_dict`` or ``model_dump``. The id
        is its ``_id`` or ``id``, in the tool log its ``tool_log_id``, for agents their ``agent_id``; without them a
        fresh one. ``timestamp`` is the time of the call where it is missing. ``memory_id`` is the namespace of a record
        that names none. Without ``memory_store_type`` the record's ``memory_type`` says which store it is for.

        Raises:
            InvalidRecord: It says for no store, or the provider cannot hold it.
        """
        store, id, record = self._row(memory_unit if data is None else data, memory_store_type)
        if memory_id is not None and record.get("memory_id") is None:
            record["memory_id"] = memory_id
        self._write("store", store, {id: record})
        return id

    def store_many(self, rows: Iterable[Any], memory_store_type: MemoryType | str | None = None) -> list[str]:
        """Keep records together, as :meth:`store` does one; return their ids in the order of ``rows``."""
        made = [self._row(row, memory_store_type) for row in rows]
        by_store: dict[MemoryType, dict[str, Record]] = {}
        for store, id, record in made:
            by_store.setdefault(store, {})[id] = record
        with self.transaction():
            for store, records in by_store.items():
                self._write("store_many", store, records)
        return [id for _, id, _ in made]

    def retrieve_by_id(self, id: str, memory_store_type: MemoryType | str) -> Record | None:
        """The record of that physical id, or ``None``."""
        return self.get(MemoryType.parse(memory_store_type), str(id))

    def retrieve_by_name(self, name: str, memory_store_type: MemoryType | str) -> Record | None:
        """The first record of that ``name``, or ``None``."""
        return next((row for row in self.scan(MemoryType.parse(memory_store_type)) if row.get("name") == name), None)

    def list_all(self, memory_store_type: MemoryType | str, user_id: UserScope = UNSET) -> list[Record]:
        """The records of a store, in the order they were added.

        A user sees the own records, ``None`` those without user. In the knowledge base, skillbox and toolbox a user
        sees the latter as well. Stores whose records belong to no user are not filtered.
        """
        store = MemoryType.parse(memory_store_type)
        rows = self.scan(store)
        if user_id is UNSET or store not in _FILTERED_BY_USER:
            return list(rows)
        seen = {user_id, None} if store in _SHARED_WITH_USERS else {user_id}
        return [row for row in rows if row.get("user_id") in seen]

    def update_by_id(self, id: str, data: Any, memory_store_type: MemoryType | str) -> bool:
        """Set fields of a record, leave its others, and note the time in ``updated_at``; whether there was one."""
        return self._change("update_by_id", MemoryType.parse(memory_store_type), str(id), data)

    def delete_by_id(self, id: str, memory_store_type: MemoryType | str) -> bool:
        """Remove the record of that physical id; whether there was one."""
        return self._remove("delete_by_id", MemoryType.parse(memory_store_type), [str(id)]) > 0

    def delete_by_name(self, name: str, memory_store_type: MemoryType | str) -> bool:
        """Remove the first record of that ``name``; whether there was one."""
        store = MemoryType.parse(memory_store_type)
        with self.exclusive(store):
            found = self.retrieve_by_name(name, store)
            return found is not None and self._remove("delete_by_name", store, [found["_id"]]) > 0

    def delete_all(self, memory_store_type: MemoryType | str) -> int:
        """Remove every readable record of a store and return how many there were."""
        store = MemoryType.parse(memory_store_type)
        with self.exclusive(store):
            return self._remove("delete_all", store, [row["_id"] for row in self.scan(store)])

    def _row(self, data: Any, memory_store_type: MemoryType | str | None) -> tuple[MemoryType, str, Record]:
        """Store, id and record of what is to be kept."""
        data = said_by(data)
        if memory_store_type is None:
            said = data.get("memory_type") if isinstance(data, Mapping) else None
            if not isinstance(said, str):
                raise InvalidRecord("memory_store_type must say which store a record without memory_type is for")
            memory_store_type = said
        store = MemoryType.parse(memory_store_type)
        record = normalise(store, data)
        names = {MemoryType.MEMAGENT: ("agent_id", "_id", "id"), MemoryType.TOOL_LOG: ("_id", "id", "tool_log_id")}
        found = (record.get(name) for name in names.get(store, ("_id", "id")))
        id = next((str(value) for value in found if value), None) or str(uuid4())
        if store is MemoryType.MEMAGENT:
            record["agent_id"] = id
        if record.get("timestamp") is None:
            record["timestamp"] = now()
        return store, id, record

    def _write(self, operation: str, store: MemoryType, records: Mapping[str, Record]) -> None:
        with self._reported(store):
            before = {id: self.get(store, id) for id in records} if self._records() else {}
            self.put(store, list(records.items()), replace=True)
            for id, record in before.items():
                self._report(operation, store, id, record, {**records[id], "_id": id, "id": id})

    def _change(self, operation: str, store: MemoryType, id: str, data: Any) -> bool:
        changes = normalise(store, data)
        with self.exclusive(store):
            before = self.get(store, id)
            if before is None:
                return False
            after = {**before, **changes, "_id": id, "id": id, "updated_at": now()}
            self.put(store, [(id, after)], replace=True)
            self._report(operation, store, id, before, after)
        return True

    def _remove(self, operation: str, store: MemoryType, ids: list[str]) -> int:
        with self._reported(store):
            before = {id: self.get(store, id) for id in ids} if self._records() else {}
            removed = self.delete(store, ids)
            for id, record in before.items():
                if record is not None:
                    self._report(operation, store, id, record, None)
        return removed

    @contextmanager
    def _reported(self, store: MemoryType) -> Iterator[None]:
        """A block that changes records and reports that: both together, where the provider can."""
        if self._records():
            with self.exclusive(store):
                yield
        else:
            yield


def now() -> str:
    """The time, as ISO text in UTC."""
    return datetime.now(UTC).isoformat()
