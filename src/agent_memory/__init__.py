"""Typed memory for AI agents in one SQLite file.

::

    import agent_memory

    with agent_memory.open("memory.db") as memory:
        id = memory.store("We chose SQLite.", "DECISION", tags=["storage"])
        for found in memory.search("which database?").results:
            print(found.id, found.content)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_memory._version import __version__
from agent_memory.domain.links import LinkKind, LinkResult, Related, UnlinkResult
from agent_memory.domain.memory import (
    UNSET,
    ForgetResult,
    Memory,
    MemoryType,
    SearchAnswer,
    UpdateResult,
)
from agent_memory.errors import (
    AgentMemoryError,
    Closed,
    EmbedderUnreachable,
    EmbeddingError,
    EmbeddingRejected,
    FormatTooNew,
    InvalidArgument,
    InvalidFile,
    InvalidInput,
    InvalidSetting,
    InvalidType,
    MalformedParameters,
    OpenError,
    SchemaTooNew,
    StorageError,
)

if TYPE_CHECKING:
    from agent_memory.domain.embedding import Embedder
    from agent_memory.domain.links import Edge
    from agent_memory.domain.statistics import Statistics
    from agent_memory.domain.transfer import ExportReport, GsdReport, ImportReport
    from agent_memory.service.lifecycle import SweepReport
    from agent_memory.service.memory import AgentMemory
    from agent_memory.service.ports import Clock

__all__ = [
    "UNSET",
    "AgentMemory",
    "AgentMemoryError",
    "Closed",
    "Edge",
    "Embedder",
    "EmbedderUnreachable",
    "EmbeddingError",
    "EmbeddingRejected",
    "ExportReport",
    "ForgetResult",
    "FormatTooNew",
    "GsdReport",
    "ImportReport",
    "InvalidArgument",
    "InvalidFile",
    "InvalidInput",
    "InvalidSetting",
    "InvalidType",
    "LinkKind",
    "LinkResult",
    "MalformedParameters",
    "Memory",
    "MemoryType",
    "OpenError",
    "Related",
    "SchemaTooNew",
    "SearchAnswer",
    "Statistics",
    "StorageError",
    "SweepReport",
    "UnlinkResult",
    "UpdateResult",
    "__version__",
    "open",
]


_LATER = {
    "AgentMemory": "service.memory",
    "Edge": "domain.links",
    "Embedder": "domain.embedding",
    "ExportReport": "domain.transfer",
    "GsdReport": "domain.transfer",
    "ImportReport": "domain.transfer",
    "Statistics": "domain.statistics",
    "SweepReport": "service.lifecycle",
}


def __getattr__(name: str) -> object:
    # A command that only wants the version should not pay for the service.
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _as_argument(name: str) -> str:
    return "path" if name == "db" else name


def open(
    path: str | bytes | os.PathLike[str] | None = None,
    *,
    ollama_url: str | None = None,
    strict_query: bool | None = None,
    clock: Clock | None = None,
    embedder: Embedder | None = None,
) -> AgentMemory:
    """Open a memory file, creating or upgrading it as needed.

    Without ``path`` it is ``$AGENT_MEMORY_DB`` or the default of this platform; the other settings follow
    their environment variables in the same way. ``clock`` returns UTC unix seconds; ``embedder`` replaces
    Ollama, and must give vectors of the model and dimension pinned in the file to be used.

    Raises:
        InvalidSetting: A setting breaks its rule.
        OpenError: The file cannot be opened; :class:`SchemaTooNew` when a newer version wrote it.
    """
    # The command line imports this package before it knows whether it needs a database.
    from agent_memory import app
    from agent_memory.config import Settings

    settings = Settings.resolve(db=path, ollama_url=ollama_url, strict_query=strict_query, spelled=_as_argument)
    return app.open_memory(settings, clock=clock or app.system_clock, embedder=embedder)
