"""The tables of an Oracle schema that hold a memory graph, as data, and the statements that make them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from memorizz.taxonomy import ID_FIELDS, MemoryType

EXTRAS: Final = "archive_extras"
"""The column for the fields of a record that have none of their own."""

ID: Final = "id"
VECTOR_COLUMN: Final = "embedding"


class Kind(Enum):
    """What a column holds, and so how a JSON value becomes one of its."""

    TEXT = "VARCHAR2"
    CLOB = "CLOB"
    JSON = "JSON text, which the database checks"
    DOCUMENT = "JSON text, or any other"
    NUMBER = "NUMBER"
    SCORE = "NUMBER(3, 2)"
    FLAG = "NUMBER(1)"
    TIME = "TIMESTAMP"
    VECTOR = "VECTOR"


LARGE: Final = frozenset({Kind.CLOB, Kind.JSON, Kind.DOCUMENT})
"""What is kept in CLOBs."""


class Column(NamedTuple):
    """A column of a table.

    ``size`` is the greatest number of characters of a text, ``choices`` are the values that it may have, ``default`` is
    what it holds when a record says nothing, ``field`` is what records call it when that differs. ``instead`` is the
    field whose value it takes when a record does not have its own.
    """

    name: str
    kind: Kind
    size: int = 0
    required: bool = False
    choices: tuple[str, ...] = ()
    default: str | None = None
    field: str = ""
    instead: str = ""

    @property
    def key(self) -> str:
        """The field of a record that this column holds."""
        return self.field or self.name


class Table(NamedTuple):
    """The table of a store, which has the store's name.

    With ``keeps_uuids`` the id of a record is its row's key, so it is a UUID; elsewhere the key follows from the id,
    which is text. ``natural`` is the column of the natural id; it is unique, but for the cache.
    """

    store: MemoryType
    columns: tuple[Column, ...]
    keeps_uuids: bool = False

    @property
    def name(self) -> str:
        """What the table is called."""
        return self.store.value

    @property
    def natural(self) -> str | None:
        """The column of the natural id."""
        return ID_FIELDS.get(self.store.value)

    @property
    def is_unique(self) -> bool:
        """Whether no two rows may have the same natural id."""
        return self.natural is not None and not self.keeps_uuids

    @property
    def has_agent(self) -> bool:
        """Whether ``agent_id`` must be that of an agent that is there."""
        return self.store in OF_AGENTS


OF_AGENTS: Final = (MemoryType.PERSONAS, MemoryType.TOOLBOX, MemoryType.SKILLBOX)
"""The stores whose rows refer to an agent by a foreign key."""


def _text(size: int, *names: str, required: bool = False) -> tuple[Column, ...]:
    return tuple(Column(name, Kind.TEXT, size, required) for name in names)


def _of(kind: Kind, *names: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name in names)


def _content(name: str = "content") -> Column:
    return Column(name, Kind.CLOB, required=True)


def _choice(name: str, *choices: str, required: bool = False, default: str | None = None) -> Column:
    return Column(name, Kind.TEXT, 20 if default else 50, required, choices, default)


_NAMESPACE: Final = _text(255, "memory_id", required=True)
_NAME: Final = _text(255, "name", required=True)
_EMBEDDING: Final = _of(Kind.VECTOR, VECTOR_COLUMN)
_MADE: Final = _of(Kind.TIME, "created_at")
_CHANGED: Final = _of(Kind.TIME, "created_at", "updated_at")
_KEPT: Final = (
    *_of(Kind.TIME, "last_accessed_at"),
    *_text(32, "retention_state"),
    *_of(Kind.JSON, "retention_meta"),
)
_USED: Final = (*_of(Kind.SCORE, "importance"), *_of(Kind.NUMBER, "access_count"), *_KEPT)


def _table(store: MemoryType, *columns: Column, keeps_uuids: bool = False) -> Table:
    natural = ID_FIELDS.get(store.value)
    own = () if natural is None else _text(255, natural, required=True)
    return Table(store, (*own, *columns), keeps_uuids)


TABLES: Final = {
    table.store: table
    for table in (
        _table(
            MemoryType.MEMAGENT,
            *_text(255, "name"), *_of(Kind.CLOB, "instruction"), *_text(50, "application_mode"),
            *_of(Kind.NUMBER, "max_steps"), *_text(50, "tool_access"),
            *_of(Kind.FLAG, "semantic_cache", "is_favorite", "verbose"), *_CHANGED, *_EMBEDDING,
        ),
        _table(
            MemoryType.PERSONAS,
            *_NAME, Column("role_type", Kind.TEXT, 50, field="role"), *_of(Kind.CLOB, "background"),
            *_of(Kind.JSON, "traits", "expertise"), *_of(Kind.CLOB, "goals"), *_of(Kind.NUMBER, "version"),
            *_of(Kind.JSON, "evolution_history"), *_text(255, "memory_id", "agent_id"), *_CHANGED, *_EMBEDDING,
        ),
        _table(
            MemoryType.TOOLBOX,
            *_NAME, *_of(Kind.CLOB, "description"), *_text(4000, "signature"), *_of(Kind.CLOB, "docstring"),
            *_text(50, "tool_type"),
            *_of(Kind.JSON, "parameters", "input_schema", "tool_policy", "aliases", "deprecated_arguments", "queries"),
            *_text(1000, "import_reference"), *_text(255, "memory_id", "agent_id", "user_id"), *_CHANGED, *_EMBEDDING,
        ),
        _table(
            MemoryType.SKILLBOX,
            *_NAME, *_of(Kind.CLOB, "description", "content"),
            *_of(Kind.JSON, "preconditions", "tools_used", "queries"),
            *_text(255, "agent_id", "user_id", "source_canonical_hash"), *_of(Kind.JSON, "source_workflow_ids"),
            *_text(255, "exemplar_workflow_id"),
            _choice("status", "candidate", "shadow", "active", "deprecated", "demoted"),
            _choice("injection_role", "user", "developer", required=True, default="user"),
            *_of(Kind.NUMBER, "version"), *_of(Kind.TIME, "promoted_at", "demoted_at"),
            *_of(Kind.CLOB, "demotion_reason"), *_of(Kind.JSON, "baseline", "stats"), *_CHANGED, *_EMBEDDING,
        ),
        _table(
            MemoryType.CONVERSATION_MEMORY,
            *_NAMESPACE, *_text(255, "thread_id"),
            _choice("role", "user", "assistant", "system", "tool", required=True), _content(),
            *_of(Kind.TIME, "timestamp"), *_text(255, "agent_id", "user_id", "summary_id"), *_USED, *_EMBEDDING,
            keeps_uuids=True,
        ),
        _table(
            MemoryType.KNOWLEDGE_BASE,
            # The chunks of a document are in no namespace.
            _NAMESPACE[0]._replace(instead="knowledge_base_id"), _content(), *_text(50, "memory_type"),
            *_of(Kind.SCORE, "importance"),
            *_of(Kind.TIME, "last_accessed"), *_of(Kind.NUMBER, "access_count"), *_text(255, "agent_id", "user_id"),
            *_text(64, "knowledge_base_id"), *_text(255, "namespace"), *_of(Kind.NUMBER, "chunk_index", "chunk_count"),
            *_text(32, "chunking_strategy"), *_text(512, "source_id", "parent_source_id"),
            *_of(Kind.DOCUMENT, "linked_source_ids", "metadata"), *_text(32, "status"), *_text(255, "superseded_by"),
            *_of(Kind.TIME, "superseded_at"), *_KEPT, *_CHANGED, *_EMBEDDING,
            keeps_uuids=True,
        ),
        _table(
            MemoryType.SHORT_TERM_MEMORY,
            *_NAMESPACE, _content(), *_text(50, "memory_type"), *_of(Kind.NUMBER, "ttl"),
            *_text(255, "agent_id", "user_id"), *_of(Kind.DOCUMENT, "metadata"), *_MADE, *_of(Kind.TIME, "expires_at"),
            *_EMBEDDING,
            keeps_uuids=True,
        ),
        _table(
            MemoryType.WORKFLOW_MEMORY,
            *_NAME, *_of(Kind.CLOB, "description"), *_of(Kind.JSON, "steps"), *_of(Kind.NUMBER, "current_step"),
            _choice("status", "pending", "running", "completed", "failed", "cancelled"), *_of(Kind.JSON, "outcome"),
            *_text(255, "memory_id", "agent_id", "user_id"), *_of(Kind.CLOB, "user_query"),
            *_text(255, "canonical_hash"), *_of(Kind.JSON, "canonical_signature"), *_of(Kind.NUMBER, "step_count"),
            *_text(255, "promoted_skill_id"), *_of(Kind.JSON, "skills_activated", "shadow_evaluations"), *_USED,
            *_CHANGED, *_EMBEDDING,
        ),
        _table(
            MemoryType.SHARED_MEMORY,
            *_NAMESPACE, _content(), *_text(50, "memory_type"), _choice("scope", "global", "team", "private"),
            *_text(255, "owner_agent_id"), *_of(Kind.JSON, "access_list"), *_CHANGED, *_EMBEDDING,
            keeps_uuids=True,
        ),
        _table(
            MemoryType.SUMMARIES,
            _content(), *_of(Kind.JSON, "source_message_ids"), *_text(50, "summary_type"),
            *_text(255, "memory_id", "agent_id", "user_id", "thread_id"),
            *_of(Kind.NUMBER, "period_start", "period_end", "memory_units_count"), *_USED, *_MADE, *_EMBEDDING,
        ),
        _table(
            MemoryType.SEMANTIC_CACHE,
            _content("query_text")._replace(instead="query"), _content("response"),
            _choice("scope", "local", "global", "agent"),
            *_of(Kind.SCORE, "similarity_threshold"), *_of(Kind.NUMBER, "hit_count"),
            *_text(255, "agent_id", "memory_id", "session_id", "user_id"), *_of(Kind.JSON, "metadata"), *_MADE,
            *_of(Kind.TIME, "expires_at", "last_accessed"), *_EMBEDDING,
            keeps_uuids=True,
        ),
        _table(
            MemoryType.ENTITY_MEMORY,
            *_text(255, "name", "entity_type"), *_of(Kind.DOCUMENT, "attributes", "relations", "metadata"),
            *_text(255, "memory_id", "agent_id", "user_id"), *_USED, *_CHANGED, *_EMBEDDING,
        ),
        _table(
            MemoryType.TOOL_LOG,
            *_text(255, "tool_name", required=True), *_of(Kind.CLOB, "arguments", "result"),
            *_of(Kind.FLAG, "success"), *_of(Kind.CLOB, "error"), *_text(32, "outcome"),
            *_of(Kind.CLOB, "outcome_details"), *_of(Kind.TIME, "timestamp"),
            *_text(255, "agent_id", "tool_call_id", "thread_id", "memory_id", "user_id"),
        ),
    )
}  # fmt: skip
"""The table of each store. Agents come first: others refer to them."""

SIDE_TABLES: Final = {
    "agent_llm_configs": (
        "agent_id RAW(16) PRIMARY KEY REFERENCES {0}agents (id), provider VARCHAR2(255 CHAR) NOT NULL, "
        "model VARCHAR2(255 CHAR) NOT NULL, temperature NUMBER, max_tokens NUMBER, top_p NUMBER, "
        "frequency_penalty NUMBER, presence_penalty NUMBER, "
        "additional_config CLOB CHECK (additional_config IS JSON)"
    ),
    "agent_memories": (
        "agent_id RAW(16) NOT NULL REFERENCES {0}agents (id), memory_id VARCHAR2(255 CHAR) NOT NULL, "
        "PRIMARY KEY (agent_id, memory_id)"
    ),
    "agent_knowledge_bases": (
        "agent_id RAW(16) NOT NULL REFERENCES {0}agents (id), knowledge_base_id VARCHAR2(64 CHAR) NOT NULL, "
        "PRIMARY KEY (agent_id, knowledge_base_id)"
    ),
    "agent_delegates": (
        "agent_id RAW(16) NOT NULL REFERENCES {0}agents (id), delegate_agent_id RAW(16) NOT NULL "
        "REFERENCES {0}agents (id), PRIMARY KEY (agent_id, delegate_agent_id)"
    ),
    "summary_message_links": (
        "summary_id RAW(16) NOT NULL REFERENCES {0}summaries (id), message_id RAW(16) NOT NULL "
        "REFERENCES {0}conversation_memory (id), position NUMBER, PRIMARY KEY (summary_id, message_id)"
    ),
}
"""What is kept beside agents and summaries."""

LINK_SIZES: Final = {"memory_ids": 255, "knowledge_base_ids": 64}
"""The greatest length of the texts in these lists of an agent."""

_TYPES: Final = {Kind.TEXT: "VARCHAR2({} CHAR)", **dict.fromkeys(LARGE, "CLOB")}


def definitions(prefix: str) -> Iterator[tuple[str, str]]:
    """The name of each table and the statement that makes it, in an order that works. ``prefix`` names the schema."""
    for table in TABLES.values():
        columns = [_definition(table, column, prefix) for column in table.columns]
        extras = f"{EXTRAS} CLOB CHECK ({EXTRAS} IS JSON)"
        yield (
            table.name,
            f"CREATE TABLE {prefix}{table.name} ({', '.join(['id RAW(16) PRIMARY KEY', *columns, extras])})",
        )
    for name, columns_of in SIDE_TABLES.items():
        yield name, f"CREATE TABLE {prefix}{name} ({columns_of.format(prefix)})"


def _definition(table: Table, column: Column, prefix: str) -> str:
    words = [column.name, _TYPES.get(column.kind, column.kind.value).format(column.size)]
    if column.default is not None:
        words.append(f"DEFAULT '{column.default}'")
    if column.required:
        words.append("NOT NULL")
    if table.is_unique and column.name == table.natural:
        words.append("UNIQUE")
    if table.has_agent and column.name == "agent_id":
        words.append(f"REFERENCES {prefix}agents (agent_id)")
    if column.kind is Kind.JSON:
        words.append(f"CHECK ({column.name} IS JSON)")
    if column.choices:
        words.append(f"CHECK ({column.name} IN ({', '.join(repr(choice) for choice in column.choices)}))")
    return " ".join(words)
