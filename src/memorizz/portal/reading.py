"""What a record looks like to a person, and finding records by words."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from memorizz.archive.redaction import redact
from memorizz.records import Record, field, payload
from memorizz.taxonomy import ID_FIELDS, MemoryType


class Store(NamedTuple):
    """How pages call a store: in addresses, in headings, and in a sentence."""

    type: MemoryType
    slug: str
    title: str
    about: str


STORES: Final = (
    Store(MemoryType.PERSONAS, "personas", "Personas", "Who agents are: role, goals and background."),
    Store(MemoryType.TOOLBOX, "toolbox", "Toolbox", "The tools that agents can call, as data."),
    Store(MemoryType.SKILLBOX, "skillbox", "Skillbox", "Skills: instructions that worked and are kept."),
    Store(MemoryType.WORKFLOW_MEMORY, "workflow-memory", "Workflows", "Steps that were taken, and their outcome."),
    Store(MemoryType.CONVERSATION_MEMORY, "conversations", "Conversations", "Messages, by thread and namespace."),
    Store(MemoryType.KNOWLEDGE_BASE, "knowledge-base", "Knowledge base", "Facts and documents that last."),
    Store(MemoryType.SHORT_TERM_MEMORY, "short-term", "Short-term memory", "What matters for a while only."),
    Store(MemoryType.ENTITY_MEMORY, "entity", "Entities", "People, places and things, with attributes and relations."),
    Store(MemoryType.SUMMARIES, "summaries", "Summaries", "What conversations came down to."),
    Store(MemoryType.SHARED_MEMORY, "shared", "Shared memory", "Sessions of several agents, history and context."),
    Store(MemoryType.SEMANTIC_CACHE, "cache", "Semantic cache", "Answers kept for questions asked again."),
    Store(MemoryType.TOOL_LOG, "tool-log", "Tool log", "Calls of tools and what came of them."),
    Store(MemoryType.MEMAGENT, "agents", "Agents", "Configurations of agents."),
)
BY_SLUG: Final = {store.slug: store for store in STORES}
BY_TYPE: Final = {store.type: store for store in STORES}

_TITLES: Final = (
    "name",
    "title",
    "query",
    "tool_name",
    "content",
    "summary_content",
    "summary",
    "description",
    "value",
)
_WORD: Final = re.compile(r"\w+")
_K1: Final = 1.2
_B: Final = 0.75


def title(store: MemoryType, record: Record) -> str:
    """One line that tells the record from others, without credentials."""
    record = redact(store, record).record
    inner = payload(record)
    kind = inner.get("record_type")
    if isinstance(kind, str):
        target = inner.get("target_record_id")
        return f"{kind.replace('_', ' ')}{f' of {target}' if isinstance(target, str) else ''}"
    for name in _TITLES:
        value = inner.get(name)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:200]
    return str(record.get(ID_FIELDS.get(store.value, "_id")) or record.get("_id"))


def when(record: Mapping[str, Any]) -> str:
    """The last time that the record says of itself, to the minute, or nothing."""
    for name in ("updated_at", "timestamp", "created_at"):
        value = field(dict(record), name)
        if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", value):
            return f"{value[:10]} {value[11:16]}"
    return ""


def text(value: Any) -> str:
    """Everything readable in a record, for searching: texts and numbers at any depth, no vectors."""
    return "\n".join(_texts(value))


def matches(record: Record, query: str) -> bool:
    """Whether every word of ``query`` is somewhere in the record, whatever its case."""
    if not query:
        return True
    haystack = text(record).casefold()
    return all(word in haystack for word in query.casefold().split())


class Field(NamedTuple):
    """One field of a record as it is shown: ``kind`` is ``text``, ``data`` or ``note``."""

    name: str
    value: str
    kind: str


def fields(record: Record) -> list[Field]:
    """The fields of a record, its text first."""
    shown = [_field(name, value) for name, value in record.items()]
    first = [item for item in shown if item.name in _TITLES and item.kind == "text"]
    return [*first, *(item for item in shown if item not in first)]


class Recalled(NamedTuple):
    """A record that a query recalls, and how well it fits."""

    store: Store
    record: Record
    score: float


def recall(records: Mapping[MemoryType, Iterable[Record]], query: str, limit: int) -> list[Recalled]:
    """The records that fit the words of ``query`` best (BM25, https://en.wikipedia.org/wiki/Okapi_BM25)."""
    wanted = set(_words(query))
    counted = [
        (BY_TYPE[store], record, Counter(_words(text(record)))) for store, found in records.items() for record in found
    ]
    if not wanted or not counted:
        return []
    average = sum(words.total() for _, _, words in counted) / len(counted) or 1.0
    holding = {word: sum(word in words for _, _, words in counted) for word in wanted}
    found = [
        Recalled(store, record, score)
        for store, record, words in counted
        if (score := _score(words, holding, len(counted), average)) > 0
    ]
    return sorted(found, key=lambda item: -item.score)[:limit]


def _score(words: Counter[str], holding: Mapping[str, int], documents: int, average: float) -> float:
    length = _K1 * (1 - _B + _B * words.total() / average)
    return sum(
        math.log(1 + (documents - holders + 0.5) / (holders + 0.5)) * words[word] * (_K1 + 1) / (words[word] + length)
        for word, holders in holding.items()
        if words[word]
    )


def _words(said: str) -> Sequence[str]:
    return _WORD.findall(said.casefold())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        if not _is_vector(value):
            for item in value:
                yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _is_vector(value: list[Any]) -> bool:
    return len(value) > 16 and all(isinstance(item, int | float) for item in value)


def _field(name: str, value: Any) -> Field:
    if isinstance(value, list) and _is_vector(value):
        return Field(name, f"a vector of {len(value)} numbers", "note")
    if value is None or value == "" or value == [] or value == {}:
        return Field(name, "empty", "note")
    if isinstance(value, str):
        return Field(name, value, "text")
    return Field(name, json.dumps(value, ensure_ascii=False, indent=2), "data")
