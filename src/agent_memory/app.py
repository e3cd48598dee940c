"""The composition root: settings in, an opened memory out. The one place that names concrete classes."""

from __future__ import annotations

import logging
import time

from agent_memory.config import Settings
from agent_memory.domain.embedding import Embedder
from agent_memory.embed.ollama import OllamaEmbedder
from agent_memory.service.memory import AgentMemory
from agent_memory.service.ports import Clock
from agent_memory.store.store import SQLiteStore

# A program that has not set up logging wants to hear nothing from a library.
logging.getLogger("agent_memory").addHandler(logging.NullHandler())


def system_clock() -> int:
    """UTC unix seconds."""
    return int(time.time())


def open_memory(
    settings: Settings, *, clock: Clock = system_clock, embedder: Embedder | None = None, counts_uses: bool = True
) -> AgentMemory:
    """The memory that ``settings`` describe; without ``counts_uses`` searching it leaves it as it is.

    Raises:
        OpenError: The database cannot be opened.
    """
    store = SQLiteStore(settings.db, settings.journal)
    if embedder is None:
        embedder = OllamaEmbedder(settings.ollama_url)
    return AgentMemory(store, embedder, clock, strict_query=settings.strict_query, counts_uses=counts_uses)
