"""Typed, directed relations between two memories, and how they read from either end."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

from agent_memory.domain.memory import MemoryType
from agent_memory.errors import InvalidArgument, shorten

MAX_EXPANDED_LINKS: Final = 10
SNIPPET_CHARACTERS: Final = 160

Direction = Literal["out", "in"]


class LinkKind(StrEnum):
    """How ``from_id`` stands to ``to_id``."""

    RELATES_TO = "relates_to"
    SUPERSEDES = "supersedes"
    CAUSED_BY = "caused_by"

    @property
    def symmetric(self) -> bool:
        """Whether a relation of this kind is the same from both ends."""
        return self is LinkKind.RELATES_TO

    def label(self, direction: Direction) -> str:
        """How the relation reads from the end that sees it in ``direction``."""
        return self.value if direction == "out" else _SEEN_FROM_TARGET[self]

    @classmethod
    def parse(cls, value: str) -> LinkKind:
        """The kind of that exact name.

        Raises:
            InvalidArgument: ``value`` is none of the three names.
        """
        try:
            return cls(value)
        except ValueError:
            raise InvalidArgument(f"kind must be one of {', '.join(cls)} (got '{shorten(str(value))}')") from None


_SEEN_FROM_TARGET: Final = {
    LinkKind.RELATES_TO: "relates_to",
    LinkKind.SUPERSEDES: "superseded_by",
    LinkKind.CAUSED_BY: "caused",
}


class Edge(NamedTuple):
    """One relation as the caller named it."""

    from_id: int
    to_id: int
    kind: LinkKind

    def stored(self) -> Edge:
        """The edge as the database keeps it: a symmetric one has its smaller id first."""
        if self.kind.symmetric and self.from_id > self.to_id:
            return Edge(self.to_id, self.from_id, self.kind)
        return self

    def to_dict(self) -> dict[str, Any]:
        """The three members every link answer starts with."""
        return {"from_id": self.from_id, "to_id": self.to_id, "kind": self.kind.value}


class LinkResult(NamedTuple):
    """Whether the relation now exists; ``missing_id`` names the memory that does not."""

    edge: Edge
    missing_id: int | None = None

    @property
    def linked(self) -> bool:
        """Whether the relation exists after the call."""
        return self.missing_id is None

    def to_dict(self) -> dict[str, Any]:
        """The documented object, echoing the ids as they were sent."""
        if self.missing_id is None:
            return {**self.edge.to_dict(), "linked": True}
        return {**self.edge.to_dict(), "linked": False, "reason": "not_found", "missing_id": self.missing_id}


class UnlinkResult(NamedTuple):
    """Whether there was such a relation, which is now gone."""

    edge: Edge
    unlinked: bool

    def to_dict(self) -> dict[str, Any]:
        """The documented object, echoing the ids as they were sent."""
        if self.unlinked:
            return {**self.edge.to_dict(), "unlinked": True}
        return {**self.edge.to_dict(), "unlinked": False, "reason": "not_found"}


class Related(NamedTuple):
    """A trimmed neighbour of a result, one hop away. ``kind`` reads from the result's side."""

    id: int
    kind: str
    direction: Direction
    type: MemoryType
    snippet: str
    tags: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The entry of a result's ``related`` list, members in documented order."""
        return {
            "id": self.id,
            "kind": self.kind,
            "direction": self.direction,
            "type": self.type.value,
            "snippet": self.snippet,
            "tags": list(self.tags),
        }


def snippet(content: str) -> str:
    """The first 160 characters (code points), followed by an ellipsis only when something was cut."""
    return content if len(content) <= SNIPPET_CHARACTERS else content[:SNIPPET_CHARACTERS] + "…"
