"""The port that turns texts into vectors, which service and embedders share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

Health: TypeAlias = Literal["ready", "model_missing", "unreachable"]


class Embedder(Protocol):
    """Turns each text into a vector of ``dim`` little-endian float32 of the model ``model``.

    ``embed`` raises :class:`~agent_memory.errors.EmbedderUnreachable` when nothing answers and
    :class:`~agent_memory.errors.EmbeddingRejected` for an answer that is no embedding.
    """

    @property
    def model(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def url(self) -> str: ...
    def health(self) -> Health: ...
    def embed(self, texts: Sequence[str]) -> list[bytes]: ...
    def close(self) -> None: ...
