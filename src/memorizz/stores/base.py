"""What all stores have in common: records that are created, read, changed, removed and listed within a scope."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from memorizz.checks import Text, check, invalid
from memorizz.errors import InvalidRecord, RecordExists
from memorizz.ports import Clock, NewId, random_id, stamp, system_clock
from memorizz.providers.base import UNSET, UserScope
from memorizz.records import Record
from memorizz.taxonomy import ID_FIELDS, MemoryType

if TYPE_CHECKING:
    from memorizz.providers.base import MemoryProvider

Records: TypeAlias = list[Record]

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_COMMON: Final = {
    "_id": Text,
    "id": Text,
    **dict.fromkeys(("agent_id", "memory_id", "thread_id", "user_id", "application_id"), str | None),
}
_FIXED: Final = ("_id", "id", "user_id", "application_id")


class Store:
    """Records of one kind, as one user of one application sees them.

    Without ``user_id`` that is everybody's; ``None`` stands for the records of nobody. A named user reads the records
    of nobody as well where the store is shared with users, but cannot change them. With ``application_id`` only the
    records of that application count. What is created belongs to that user and application.

    ``clock`` and ``new_id`` give the times and ids of what is created; the time of an update is the provider's.
    """

    memory_type: ClassVar[MemoryType]
    shared_with_users: ClassVar[bool] = False
    types: ClassVar[Mapping[str, Any]] = NOTHING
    defaults: ClassVar[Mapping[str, Any]] = NOTHING
    times: ClassVar[tuple[str, ...]] = ("timestamp",)

    def __init__(
        self,
        provider: MemoryProvider,
        *,
        user_id: UserScope = UNSET,
        application_id: str | None = None,
        clock: Clock = system_clock,
        new_id: NewId = random_id,
    ) -> None:
        self.provider = provider
        self.user_id = user_id
        self.application_id = application_id
        self._clock = clock
        self._new_id = new_id

    @property
    def id_field(self) -> str:
        """The field that identifies a record: its natural id, or ``_id`` where the store has none."""
        return ID_FIELDS.get(self.memory_type.value, "_id")

    def get(self, id: str) -> Record | None:
        """The record of that natural or physical id, or ``None`` when this scope sees none."""
        record = self._find(id)
        return record if record is not None and self._sees(record) else None

    def list(self, **equal: Any) -> Records:
        """The records that this scope sees and whose fields are as given, in the order they were added."""
        return [
            record
            for record in self.provider.scan(self.memory_type)
            if self._sees(record) and all(record.get(name) == value for name, value in equal.items())
        ]

    def update(self, id: str, /, **changes: Any) -> bool:
        """Set fields of a record and leave its others; whether this scope sees one of that id.

        Raises:
            InvalidRecord: A field breaks its rule or cannot be changed, or the record is not this user's to change.
        """
        with self._alone():
            record = self._owned(id)
            if record is None:
                return False
            self._check_changes(record, changes)
            return self._change(record, changes)

    def delete(self, id: str, /) -> bool:
        """Remove a record; whether this scope sees one of that id.

        Raises:
            InvalidRecord: The record is not this user's to remove.
        """
        with self._alone():
            record = self._owned(id)
            return record is not None and self.provider.delete_by_id(record["_id"], self.memory_type)

    def _create(self, fields: Mapping[str, Any], *, physical_id: str | None = None) -> str:
        """Keep a record and return its id: that of ``fields``, or a fresh one."""
        record, id = self._prepared(fields, physical_id)
        with self._alone():
            if self._find(id) is not None or self.provider.get(self.memory_type, record["_id"]) is not None:
                raise RecordExists(f"{self.memory_type}: {id!r}: a record of this id is there already")
            self.provider.store(record, self.memory_type)
        return id

    def _prepared(self, fields: Mapping[str, Any], physical_id: str | None = None) -> tuple[Record, str]:
        """A record that can be kept, and its id."""
        time = self._now()
        record = {**self.defaults, **dict.fromkeys(self.times, time), **fields}
        id = record.get(self.id_field)
        record[self.id_field] = id = self._new_id() if id is None else id
        for name, scope in (("user_id", self.user_id), ("application_id", self.application_id)):
            if scope is UNSET or (name == "application_id" and scope is None):
                continue
            if record.get(name) not in (None, scope):
                raise invalid(self.memory_type, id, name, f"that of this store, {scope!r}", record[name])
            record[name] = scope
        check(self.memory_type, id, record, {**_COMMON, self.id_field: Text, **self.types})
        physical = physical_id or id
        for name in ("_id", "id"):
            if record.get(name) not in (None, physical):
                rule = f"{physical!r}, for a record is kept under its {self.id_field}"
                raise invalid(self.memory_type, id, name, rule, record[name])
            record[name] = physical
        return record, id

    def _change(self, record: Record, changes: Mapping[str, Any]) -> bool:
        return self.provider.update_by_id(record["_id"], changes, self.memory_type)

    def _check_changes(self, record: Record, changes: Mapping[str, Any]) -> None:
        id = record.get(self.id_field) or record["_id"]
        for name in (*_FIXED, self.id_field):
            if name in changes and changes[name] != record.get(name):
                raise invalid(self.memory_type, id, name, f"{record.get(name)!r}, for it cannot change", changes[name])
        check(self.memory_type, id, changes, {**_COMMON, **self.types})

    def _find(self, id: str) -> Record | None:
        """The record of that id, whoever sees it: of several the one that this scope does see."""
        direct = self.provider.get(self.memory_type, id)
        if direct is not None and self._sees(direct):
            return direct
        physical = self.provider.find(self.memory_type, [id]).get(id)
        found = None if physical is None else self.provider.get(self.memory_type, physical)
        return found if found is not None and (direct is None or self._sees(found)) else direct

    def _owned(self, id: str) -> Record | None:
        """The record of that id, for changing it."""
        record = self.get(id)
        if record is not None and self.user_id is not UNSET and record.get("user_id") != self.user_id:
            raise InvalidRecord(
                f"{self.memory_type}: {id!r}: user_id must be {self.user_id!r} to change it "
                f"(got {record.get('user_id')!r}, a record that all users share)"
            )
        return record

    def _sees(self, record: Record) -> bool:
        if self.application_id is not None and record.get("application_id") != self.application_id:
            return False
        user = record.get("user_id")
        return self.user_id is UNSET or user == self.user_id or (self.shared_with_users and user is None)

    def _alone(self) -> AbstractContextManager[None]:
        """A block in which what is read stays so until it is written."""
        return self.provider.exclusive(self.memory_type)

    def _now(self) -> str:
        return stamp(self._clock())
