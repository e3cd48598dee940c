"""Counts over a whole memory file."""

from __future__ import annotations

from typing import Any, NamedTuple


class Statistics(NamedTuple):
    """How much of what is in the file. Times are unix seconds, sizes bytes; ``by_scope`` names global ``null``."""

    memories: int
    by_type: dict[str, int]
    by_scope: dict[str | None, int]
    links: int
    expired: int
    embedded: int
    pending: int
    oldest: int | None
    newest: int | None
    embedding_model: str
    embedding_dim: int | None
    schema_version: int
    file_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """The members in order, for JSON."""
        return {**self._asdict(), "by_scope": [{"scope": scope, "memories": n} for scope, n in self.by_scope.items()]}
