"""An agent's whole memory graph and its portable archives.

::

    from memorizz import FileSystemConfig, FileSystemProvider, KnowledgeBase, MemoryArchive

    with FileSystemProvider(FileSystemConfig(root_path="./memory")) as provider:
        KnowledgeBase(provider).create("High water is at 06:40.", memory_id="tides")
        MemoryArchive(provider).export_file("./tides.memorizz.json", memory_id="tides")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_memory._version import __version__
    from memorizz.agents import MemAgentModel
    from memorizz.context import ContextSnapshots
    from memorizz.errors import (
        ArchiveConflict,
        ConfigurationError,
        InvalidRecord,
        MemorizzError,
        MemoryArchiveError,
        ProviderError,
        ProviderFault,
        ReadOnlyProvider,
        RecordExists,
    )
    from memorizz.history import MemoryHistory, enable_memory_history, memory_change_context
    from memorizz.memory_archive import MemoryArchive
    from memorizz.providers.base import UNSET, MemoryProvider
    from memorizz.providers.filesystem import FileSystemConfig, FileSystemProvider
    from memorizz.providers.mongodb import MongoDBConfig, MongoDBProvider
    from memorizz.providers.notion import NotionConfig, NotionProvider
    from memorizz.providers.oracle import OracleConfig, OracleProvider
    from memorizz.providers.postgres import PostgresConfig, PostgresProvider
    from memorizz.providers.sqlite import SQLiteConfig, SQLiteProvider
    from memorizz.providers.typed import AgentMemoryConfig, AgentMemoryProvider
    from memorizz.stores.conversations import ConversationMemory
    from memorizz.stores.entities import EntityMemory
    from memorizz.stores.knowledge_base import KnowledgeBase
    from memorizz.stores.personas import Persona
    from memorizz.stores.semantic_cache import SemanticCache
    from memorizz.stores.shared_memory import SharedMemory
    from memorizz.stores.short_term import ShortTermMemory
    from memorizz.stores.skills import Skillbox
    from memorizz.stores.summaries import Summaries
    from memorizz.stores.tool_log import ToolLog
    from memorizz.stores.toolbox import Toolbox
    from memorizz.stores.workflows import WorkflowMemory
    from memorizz.taxonomy import MemoryType
    from memorizz.timeline import TimelinePage

__all__ = [
    "UNSET",
    "AgentMemoryConfig",
    "AgentMemoryProvider",
    "ArchiveConflict",
    "ConfigurationError",
    "ContextSnapshots",
    "ConversationMemory",
    "EntityMemory",
    "FileSystemConfig",
    "FileSystemProvider",
    "InvalidRecord",
    "KnowledgeBase",
    "MemAgentModel",
    "MemorizzError",
    "MemoryArchive",
    "MemoryArchiveError",
    "MemoryHistory",
    "MemoryProvider",
    "MemoryType",
    "MongoDBConfig",
    "MongoDBProvider",
    "NotionConfig",
    "NotionProvider",
    "OracleConfig",
    "OracleProvider",
    "Persona",
    "PostgresConfig",
    "PostgresProvider",
    "ProviderError",
    "ProviderFault",
    "ReadOnlyProvider",
    "RecordExists",
    "SQLiteConfig",
    "SQLiteProvider",
    "SemanticCache",
    "SharedMemory",
    "ShortTermMemory",
    "Skillbox",
    "Summaries",
    "TimelinePage",
    "ToolLog",
    "Toolbox",
    "WorkflowMemory",
    "__version__",
    "enable_memory_history",
    "memory_change_context",
]

_HOMES = {
    "__version__": "agent_memory._version",
    "MemAgentModel": "memorizz.agents",
    "ContextSnapshots": "memorizz.context",
    "MemoryArchive": "memorizz.memory_archive",
    "MemoryType": "memorizz.taxonomy",
    "ConversationMemory": "memorizz.stores.conversations",
    "EntityMemory": "memorizz.stores.entities",
    "KnowledgeBase": "memorizz.stores.knowledge_base",
    "Persona": "memorizz.stores.personas",
    "SemanticCache": "memorizz.stores.semantic_cache",
    "SharedMemory": "memorizz.stores.shared_memory",
    "ShortTermMemory": "memorizz.stores.short_term",
    "Skillbox": "memorizz.stores.skills",
    "Summaries": "memorizz.stores.summaries",
    "ToolLog": "memorizz.stores.tool_log",
    "Toolbox": "memorizz.stores.toolbox",
    "WorkflowMemory": "memorizz.stores.workflows",
    "TimelinePage": "memorizz.timeline",
    **dict.fromkeys(
        (
            "ArchiveConflict",
            "ConfigurationError",
            "InvalidRecord",
            "MemorizzError",
            "MemoryArchiveError",
            "ProviderError",
            "ProviderFault",
            "ReadOnlyProvider",
            "RecordExists",
        ),
        "memorizz.errors",
    ),
    **dict.fromkeys(("MemoryHistory", "enable_memory_history", "memory_change_context"), "memorizz.history"),
    **dict.fromkeys(("UNSET", "MemoryProvider"), "memorizz.providers.base"),
    **dict.fromkeys(("FileSystemConfig", "FileSystemProvider"), "memorizz.providers.filesystem"),
    **dict.fromkeys(("AgentMemoryConfig", "AgentMemoryProvider"), "memorizz.providers.typed"),
    **dict.fromkeys(("MongoDBConfig", "MongoDBProvider"), "memorizz.providers.mongodb"),
    **dict.fromkeys(("OracleConfig", "OracleProvider"), "memorizz.providers.oracle"),
    **dict.fromkeys(("PostgresConfig", "PostgresProvider"), "memorizz.providers.postgres"),
    **dict.fromkeys(("NotionConfig", "NotionProvider"), "memorizz.providers.notion"),
    **dict.fromkeys(("SQLiteConfig", "SQLiteProvider"), "memorizz.providers.sqlite"),
}


def __getattr__(name: str) -> object:
    # A command that only wants the version should not pay for a provider.
    if name in _HOMES:
        from importlib import import_module

        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
