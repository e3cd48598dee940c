"""What a record says about itself: its identity, its payload, its owner, namespace and tenant. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from memorizz.errors import InvalidRecord
from memorizz.taxonomy import CONTEXT_PREFIX, HISTORY_PREFIX, ID_FIELDS, MemoryType

Record: TypeAlias = dict[str, Any]
"""One row of a store: a JSON object."""


def payload(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields that count: those of the journal or context entry inside ``content``, else the record's own.

    Such entries are stored under their own id as namespace, so the record around them says nothing of their owner.
    """
    content = record.get("content")
    if isinstance(content, str) and content.lstrip()[:1] == "{":
        try:
            content = json.loads(content)
        except (ValueError, RecursionError):
            return record
    if isinstance(content, Mapping):
        kind = content.get("record_type")
        if isinstance(kind, str) and kind.startswith((HISTORY_PREFIX, CONTEXT_PREFIX)):
            return content
    return record


def field(record: Mapping[str, Any], name: str, inner: Mapping[str, Any] | None = None) -> Any:
    """The value of a field of the payload or, where that is null or missing, of the record around it."""
    inner = payload(record) if inner is None else inner
    value = inner.get(name)
    return record.get(name) if value is None else value


def said(record: Mapping[str, Any], name: str, inner: Mapping[str, Any] | None = None) -> list[Any]:
    """What the payload and the record around it say in a field, without nulls.

    Whose a record is has to be true of both: programs differ in where they look.
    """
    inner = payload(record) if inner is None else inner
    outer = record.get(name)
    value = inner.get(name)
    return [found for found in ((value,) if inner is record else (value, outer)) if found is not None]


def record_id(store: MemoryType, record: Mapping[str, Any]) -> str:
    """The id a record has in an archive: its natural id, else ``_id``, ``id`` or the payload's ``record_id``.

    Raises:
        InvalidRecord: It has none of them.
    """
    natural = ID_FIELDS.get(store.value)
    candidates = [record.get(name) for name in (natural, "_id", "id") if name is not None]
    for value in (*candidates, payload(record).get("record_id")):
        if value:
            return str(value)
    raise InvalidRecord(f"{store}: a record has no id (its fields are {', '.join(sorted(record)) or 'none'})")


def natural_id(store: MemoryType, record: Mapping[str, Any]) -> str | None:
    """The natural id of a record, or ``None`` when its store has no such field or the record leaves it empty."""
    name = ID_FIELDS.get(store.value)
    value = None if name is None else record.get(name)
    return str(value) if value else None
