"""Which fields of a record refer to what, and how such references are rewritten."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from agent_memory.domain.bounds import replace_surrogates
from memorizz.archive.redaction import parse
from memorizz.records import Record
from memorizz.taxonomy import ID_FIELDS, MemoryType

Kind: TypeAlias = str
"""What an identifier identifies: a record of a store (the store's key), or one of the kinds below."""

OWN: Final = "own"
"""A record of the very store that the reference stands in."""
ANY: Final = "any"
"""A record of a store that the entry around the reference names in ``memory_type``, or of any."""
NAMESPACE: Final = "namespace"
THREAD: Final = "thread"
RUN: Final = "run"
TURN: Final = "turn"
TRACE: Final = "trace"
SPAN: Final = "span"
SESSION: Final = "session"
KNOWLEDGE_BASE: Final = "knowledge base"
EVENT: Final = "event"

_AGENT: Final = MemoryType.MEMAGENT.value
_MESSAGE: Final = MemoryType.CONVERSATION_MEMORY.value

FIELDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        **dict.fromkeys(("memory_id", "memory_ids", "trace_memory_id", "namespace"), NAMESPACE),
        **dict.fromkeys(("thread_id", "thread_ids", "origin_thread_id", "associated_thread_ids"), THREAD),
        "run_id": RUN,
        "turn_id": TURN,
        **dict.fromkeys(("trace_id", "root_trace_id"), TRACE),
        **dict.fromkeys(("span_id", "parent_span_id"), SPAN),
        "session_id": SESSION,
        **dict.fromkeys(("knowledge_base_id", "knowledge_base_ids"), KNOWLEDGE_BASE),
        **dict.fromkeys(("event_id", "previous_event_id"), EVENT),
        **dict.fromkeys(
            (
                "agent_id", "owner_agent_id", "initiator", "actor", "history_actor", "delegates", "access_list",
                "participant_agent_ids", "participants", "assigned_agent_id", "completed_by", "root_agent_id",
                "delegate_agent_ids", "sub_agent_ids",
            ),
            _AGENT,
        ),
        **dict.fromkeys(("source_message_ids", "original_memory_ids", "message_ids", "covered_message_ids"), _MESSAGE),
        **dict.fromkeys(
            (
                "_id", "id", "row_id", "source_id", "source_ids", "source_record_ids", "parent_source_id",
                "linked_source_ids", "parent_id", "supersedes", "supersedes_id", "superseded_by", "duplicate_of",
                "derived_from",
            ),
            OWN,
        ),
        **dict.fromkeys(("record_id", "target_record_id"), ANY),
        **dict.fromkeys(("source_workflow_ids", "exemplar_workflow_id"), MemoryType.WORKFLOW_MEMORY.value),
        **dict.fromkeys(("promoted_skill_id", "skills_activated"), MemoryType.SKILLBOX.value),
        **{name: store for store, name in ID_FIELDS.items()},
    }
)  # fmt: skip
"""Field to what its text, or the texts in its list, identify, at any depth of a record."""

EXTERNAL: Final = (
    "delegates", "source_message_ids", "source_record_ids", "supersedes", "supersedes_id", "duplicate_of",
    "previous_event_id", "target_record_id",
)  # fmt: skip
"""The fields whose references an archive names when it does not hold what they refer to."""

# Names of fields and what became of them, not references.
_OPAQUE: Final = frozenset({"field_changes", "changed_fields"})

# What tools and models were given and said. An id there may be anybody's.
_FOREIGN: Final = frozenset(
    {
        "parameters", "input_schema", "properties", "$defs", "deprecated_arguments", "args", "arguments", "result",
        "steps", "messages", "tools",
    }
)  # fmt: skip

# A name that people give, or a link that stays explicit when what it leads to is not in the archive.
_ONLY_FOLLOWED: Final = frozenset({"namespace", "previous_event_id"})

Resolve: TypeAlias = Callable[[Kind, str, str | None], str | None]
"""``resolve(kind, value, memory_type)``: what takes the place of a reference, or ``None`` to leave it."""


def texts(value: Any) -> Iterator[str]:
    """The references in the value of a field: a text, or those in a list. Half a character is no part of an id."""
    for item in value if isinstance(value, list) else (value,):
        if isinstance(item, str) and (item.isascii() or replace_surrogates(item) == item):
            yield item


def entry(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The journal's entry, captured context or session in the ``content`` of a record, or ``None``.

    These keep their fields there, as an object or as its JSON text; any other text is prose.
    """
    content = record.get("content")
    parsed = parse(content) if isinstance(content, str) else content
    if isinstance(parsed, dict) and ("record_type" in parsed or "blackboard" in parsed):
        return parsed
    return None


def rewrite(record: Record, resolve: Resolve) -> Record:
    """``record`` with every structured reference resolved, also those in the JSON text of its ``content``."""
    rewritten = _object(record, resolve, None)
    if isinstance(record.get("content"), str):
        found = entry(record)
        if found is not None:
            inner = _object(found, resolve, None)
            if inner != found:
                rewritten["content"] = json.dumps(inner, ensure_ascii=False, sort_keys=True)
    return rewritten


def named(record: Mapping[str, Any]) -> Iterator[tuple[Kind, str, str | None]]:
    """Everything that a record calls by an id, as arguments for a :data:`Resolve`.

    Left out are ids of records in lists of ancestors, and whatever stands in the data of tools and models.
    """
    yield from _named(record, None)
    if isinstance(record.get("content"), str):
        yield from _named(entry(record) or {}, None)


def _named(value: Any, around: str | None) -> Iterator[tuple[Kind, str, str | None]]:
    if isinstance(value, list):
        for item in value:
            yield from _named(item, around)
    if not isinstance(value, Mapping):
        return
    memory_type = _memory_type(value, around)
    for name, item in value.items():
        if name in _OPAQUE or name in _FOREIGN or name in _ONLY_FOLLOWED:
            continue
        kind = FIELDS.get(name)
        if kind is not None and not (kind == ANY and "relation" in value):
            for text in texts(item):
                yield kind, text, memory_type
        if isinstance(item, Mapping | list):
            yield from _named(item, memory_type)


def _object(value: Mapping[str, Any], resolve: Resolve, around: str | None) -> dict[str, Any]:
    memory_type = _memory_type(value, around)
    made = {}
    for name, item in value.items():
        if name in _OPAQUE:
            made[name] = item
        elif name == "thread_titles" and isinstance(item, dict):
            made[name] = {_title(key, resolve): title for key, title in item.items()}
        elif name in FIELDS and isinstance(item, str | list):
            made[name] = _reference(FIELDS[name], item, resolve, memory_type)
        elif name == "persona" and isinstance(item, dict):
            made[name] = _persona(item, resolve)
        else:
            made[name] = _value(item, resolve, memory_type)
    return made


def _memory_type(value: Mapping[str, Any], around: str | None) -> str | None:
    said = value.get("memory_type")
    return said if isinstance(said, str) else around


def _value(value: Any, resolve: Resolve, around: str | None) -> Any:
    if isinstance(value, dict):
        return _object(value, resolve, around)
    if isinstance(value, list):
        return [_value(item, resolve, around) for item in value]
    return value


def _reference(kind: Kind, value: str | Iterable[Any], resolve: Resolve, memory_type: str | None) -> Any:
    if isinstance(value, str):
        found = resolve(kind, value, memory_type)
        return value if found is None else found
    return [
        _reference(kind, item, resolve, memory_type) if isinstance(item, str) else _value(item, resolve, memory_type)
        for item in value
    ]


def _title(key: str, resolve: Resolve) -> str:
    return resolve(THREAD, key, None) or resolve(NAMESPACE, key, None) or key


def _persona(value: Mapping[str, Any], resolve: Resolve) -> dict[str, Any]:
    made = _object(value, resolve, None)
    stored, id = value.get("storage_id"), value.get("persona_id")
    if isinstance(stored, str):
        found = resolve(MemoryType.PERSONAS.value, stored, None)
        if found is None and isinstance(id, str):
            # Where the persona is written when it is restored.
            found = resolve(MemoryType.PERSONAS.value, id, None)
        made["storage_id"] = stored if found is None else found
    return made
