"""The thirteen stores: their categories, the fields that identify their records, and those that refer to records."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class MemoryType(StrEnum):
    """The stores, by the key they have in archives and folders, in the order an archive lists them."""

    PERSONAS = "personas"
    TOOLBOX = "toolbox"
    ENTITY_MEMORY = "entity_memory"
    SHORT_TERM_MEMORY = "short_term_memory"
    KNOWLEDGE_BASE = "knowledge_base"
    CONVERSATION_MEMORY = "conversation_memory"
    WORKFLOW_MEMORY = "workflow_memory"
    SKILLBOX = "skillbox"
    MEMAGENT = "agents"
    SHARED_MEMORY = "shared_memory"
    SUMMARIES = "summaries"
    SEMANTIC_CACHE = "semantic_cache"
    TOOL_LOG = "tool_log"

    LONG_TERM_MEMORY = "knowledge_base"
    """Another name of ``KNOWLEDGE_BASE``."""

    @classmethod
    def parse(cls, value: str) -> MemoryType:
        """The store of that key; ``long_term_memory``, in any case, is the knowledge base.

        Raises:
            ValueError: There is none of that key; the message lists all.
        """
        if value.lower() == "long_term_memory":
            return cls.KNOWLEDGE_BASE
        try:
            return cls(value)
        except ValueError:
            raise ValueError(f"unknown memory type {value!r}; expected one of {', '.join(cls)}") from None


TAXONOMY: Final = MappingProxyType(
    {
        MemoryType.PERSONAS.value: "long_term.semantic",
        MemoryType.TOOLBOX.value: "long_term.procedural",
        MemoryType.ENTITY_MEMORY.value: "long_term.semantic",
        MemoryType.SHORT_TERM_MEMORY.value: "short_term",
        MemoryType.KNOWLEDGE_BASE.value: "long_term.semantic",
        MemoryType.CONVERSATION_MEMORY.value: "long_term.episodic",
        MemoryType.WORKFLOW_MEMORY.value: "long_term.procedural",
        MemoryType.SKILLBOX.value: "long_term.procedural",
        MemoryType.MEMAGENT.value: "agent_configuration",
        MemoryType.SHARED_MEMORY.value: "coordination",
        MemoryType.SUMMARIES.value: "long_term.episodic",
        MemoryType.SEMANTIC_CACHE.value: "short_term",
        MemoryType.TOOL_LOG.value: "long_term.episodic",
    }
)
"""Store key to category."""

ID_FIELDS: Final = MappingProxyType(
    {
        MemoryType.MEMAGENT.value: "agent_id",
        MemoryType.PERSONAS.value: "persona_id",
        MemoryType.TOOLBOX.value: "tool_id",
        MemoryType.SKILLBOX.value: "skill_id",
        MemoryType.WORKFLOW_MEMORY.value: "workflow_id",
        MemoryType.SUMMARIES.value: "summary_id",
        MemoryType.ENTITY_MEMORY.value: "entity_id",
        MemoryType.TOOL_LOG.value: "tool_log_id",
        MemoryType.SEMANTIC_CACHE.value: "cache_key",
    }
)
"""Store key to the field that holds a record's natural id. The other four stores have none."""

USER_STORES: Final = frozenset(
    {
        MemoryType.CONVERSATION_MEMORY,
        MemoryType.KNOWLEDGE_BASE,
        MemoryType.SHORT_TERM_MEMORY,
        MemoryType.WORKFLOW_MEMORY,
        MemoryType.SUMMARIES,
        MemoryType.SEMANTIC_CACHE,
        MemoryType.ENTITY_MEMORY,
        MemoryType.TOOL_LOG,
        MemoryType.SKILLBOX,
    }
)
"""The stores whose records belong to one user, in their field ``user_id``."""

HISTORY_PREFIX: Final = "memory_history_"
CONTEXT_PREFIX: Final = "observability_"
HISTORY_CHANGE: Final = "memory_history_change"
HISTORY_HEAD: Final = "memory_history_head"
CONTEXT_SNAPSHOT: Final = "observability_context_snapshot"
