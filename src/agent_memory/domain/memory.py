"""A memory, its type, the patch that changes it, and the shapes every door shows."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from agent_memory.errors import InvalidType

if TYPE_CHECKING:
    from agent_memory.domain.links import Related


class MemoryType(StrEnum):
    """The six categories, spelled in upper case and compared case-sensitively."""

    DECISION = "DECISION"
    PATTERN = "PATTERN"
    ERROR = "ERROR"
    TODO = "TODO"
    ARCHITECTURE = "ARCHITECTURE"
    CONSTRAINT = "CONSTRAINT"

    @property
    def pinned(self) -> bool:
        """Whether memories of this type fade six times slower."""
        return self in PINNED_TYPES

    @classmethod
    def parse(cls, value: str) -> MemoryType:
        """The type of that exact name.

        Raises:
            InvalidType: ``value`` is none of the six names.
        """
        try:
            return cls(value)
        except ValueError:
            raise InvalidType(value, ", ".join(cls)) from None


PINNED_TYPES: Final = frozenset({MemoryType.DECISION, MemoryType.ARCHITECTURE, MemoryType.CONSTRAINT})


class Unset(Enum):
    """The type of :data:`UNSET`, which tells "leave it alone" from ``None``, "clear it"."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return self.value


UNSET: Final = Unset.UNSET
UnsetType: TypeAlias = Literal[Unset.UNSET]


class NewMemory(NamedTuple):
    """A validated memory that has no id yet. ``ttl_secs`` counts from the time it is stored."""

    content: str
    type: MemoryType
    tags: tuple[str, ...] = ()
    source: str | None = None
    scope: str | None = None
    ttl_secs: int | None = None


class Patch(NamedTuple):
    """A validated merge patch: a field that is ``UNSET`` stays, ``None`` clears where clearing is legal."""

    content: str | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    scope: str | UnsetType | None = UNSET
    ttl_secs: int | UnsetType | None = UNSET


class Filters(NamedTuple):
    """Which memories a search or a list looks at; ``None`` switches a filter off.

    ``tag`` equals one whole tag, case-sensitively. ``scope`` never matches a memory without a scope.
    """

    type: MemoryType | None = None
    tag: str | None = None
    scope: str | None = None

    def __bool__(self) -> bool:
        return self.type is not None or self.tag is not None or self.scope is not None


class Memory(NamedTuple):
    """One stored memory as read at some moment.

    Times are UTC unix seconds. ``decay_score`` is in (0, 1] and computed for the moment of reading.
    ``embedding_status`` is 1 when the stored vector matches ``content`` and 0 while it is pending.
    ``related`` is ``None`` unless the caller asked to expand links.
    """

    id: int
    content: str
    type: MemoryType
    tags: tuple[str, ...]
    source: str | None
    scope: str | None
    decay_score: float
    access_count: int
    created_at: int
    last_accessed: int
    expires_at: int | None
    embedding_status: int
    related: tuple[Related, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The result row of search and list on every door, members in documented order."""
        row: dict[str, Any] = {
            "id": self.id,
            "content": self.content,
            "type": self.type.value,
            "tags": list(self.tags),
            "scope": self.scope,
            "decay_score": self.decay_score,
            "created_at": self.created_at,
            "last_accessed": self.last_accessed,
        }
        if self.related is not None:
            row["related"] = [related.to_dict() for related in self.related]
        return row

    def to_full_dict(self) -> dict[str, Any]:
        """Everything that is known of the memory, for ``show``: the result row and the members it leaves out."""
        row = self.to_dict()
        related = row.pop("related", None)
        row.update(
            source=self.source,
            access_count=self.access_count,
            expires_at=self.expires_at,
            embedding_status=self.embedding_status,
        )
        if related is not None:
            row["related"] = related
        return row


SearchMode: TypeAlias = Literal["hybrid", "keyword"]


class SearchAnswer(NamedTuple):
    """What a search found, best first, and the mode that really ran."""

    search_mode: SearchMode
    results: tuple[Memory, ...]

    def to_dict(self) -> dict[str, Any]:
        """The documented envelope."""
        return {"search_mode": self.search_mode, "results": [memory.to_dict() for memory in self.results]}


class UpdateResult(NamedTuple):
    """The memory after a patch, or ``memory=None`` when no memory has that id."""

    id: int
    memory: Memory | None

    @property
    def updated(self) -> bool:
        """Whether there was a memory to update."""
        return self.memory is not None

    def to_dict(self) -> dict[str, Any]:
        """The full memory with its embedding status, or the documented not-found object."""
        if self.memory is None:
            return {"id": self.id, "updated": False, "reason": "not_found"}
        return {**self.memory.to_dict(), "embedding_status": self.memory.embedding_status}


class ForgetResult(NamedTuple):
    """Whether a memory of that id existed and is now gone."""

    id: int
    deleted: bool

    def to_dict(self) -> dict[str, Any]:
        """The documented object; a reason stands only beside ``deleted: false``."""
        if self.deleted:
            return {"id": self.id, "deleted": True}
        return {"id": self.id, "deleted": False, "reason": "not_found"}
