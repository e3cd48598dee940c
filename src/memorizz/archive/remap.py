"""New ids for a copy of a memory graph, and a namespace in place of another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from memorizz.archive import references
from memorizz.archive.references import ANY, EVENT, FIELDS, NAMESPACE, OWN, SPAN, Kind
from memorizz.errors import MemoryArchiveError
from memorizz.records import Record, field, payload
from memorizz.taxonomy import MemoryType

Stores: TypeAlias = Mapping[MemoryType, list[Record]]
MakeId: TypeAlias = Callable[[], str]

_SHARED: Final = MemoryType.SHARED_MEMORY.value
_TOOLBOX: Final = MemoryType.TOOLBOX.value
_AGENTS: Final = MemoryType.MEMAGENT.value
_STORES: Final = frozenset(store.value for store in MemoryType)
_PREFIXED: Final = re.compile(r"(mem-change-|sc-).")
_SNAPSHOT: Final = "ctx-"


class IdMap:
    """Which id takes the place of which, for each kind of identifier."""

    def __init__(self) -> None:
        self._maps: dict[Kind, dict[str, str]] = {}

    def get(self, kind: Kind, value: str) -> str | None:
        """What takes the place of ``value``, or ``None``."""
        return self._maps.get(kind, {}).get(value)

    def set(self, kind: Kind, value: str, new: str) -> None:
        """Let ``new`` take the place of ``value``."""
        self._maps.setdefault(kind, {})[value] = new

    def flat(self) -> dict[str, str]:
        """Original to new id; where one text is several kinds of id, a record's counts before all others."""
        merged: dict[str, str] = {}
        kinds = sorted(self._maps, key=lambda kind: (kind not in _STORES, kind != _AGENTS, kind))
        for kind in kinds:
            for value, new in self._maps[kind].items():
                if value != new or kind == NAMESPACE:
                    merged.setdefault(value, new)
        return merged

    def rewritten(self, store: MemoryType, record: Record) -> Record:
        """``record`` of ``store`` with every structured reference that has a new id rewritten."""
        if not self._maps:
            return record

        def resolve(kind: Kind, value: str, memory_type: str | None) -> str | None:
            return self._resolve(store.value, kind, value, memory_type)

        return references.rewrite(record, resolve)

    def _resolve(self, store: str, kind: Kind, value: str, memory_type: str | None) -> str | None:
        if kind == OWN:
            return self.get(store, value) or self._anywhere(value)
        if kind == ANY:
            return self.get(memory_type or store, value) or self.get(store, value) or self._anywhere(value)
        if kind == EVENT:
            return self.get(_SHARED, value) or self.get(EVENT, value)
        if kind == NAMESPACE:
            # Entries of the journal and sessions have their own id as namespace.
            return self.get(NAMESPACE, value) or (self.get(_SHARED, value) if store == _SHARED else None)
        return self.get(kind, value)

    def _anywhere(self, value: str) -> str | None:
        """The new id of a record of any store, when that is no question."""
        found = {new for kind in _STORES if (new := self.get(kind, value)) is not None}
        return found.pop() if len(found) == 1 else None


def new_ids(stores: Stores, make_id: MakeId) -> IdMap:
    """New ids for every record and for everything that records of the archive name by an id of their own."""
    ids = IdMap()
    for store, records in stores.items():
        for record in records:
            if store is not MemoryType.TOOLBOX:
                ids.set(store.value, record["_id"], _new_id(record["_id"], make_id))
    for record in stores.get(MemoryType.TOOLBOX, []):
        ids.set(_TOOLBOX, record["_id"], _new_tool_id(record["_id"], ids, make_id))
    for store, records in stores.items():
        for record in records:
            for kind, value in _named(store, record):
                if ids.get(kind, value) is None:
                    ids.set(kind, value, _new_id(value, make_id))
    for record in stores.get(MemoryType.SHARED_MEMORY, []):
        # A snapshot is called after its span.
        span = payload(record).get("span_id")
        if isinstance(span, str) and record["_id"] == f"{_SNAPSHOT}{span}":
            ids.set(_SHARED, record["_id"], f"{_SNAPSHOT}{ids.get(SPAN, span)}")
    return ids


def namespaces(stores: Stores) -> set[str]:
    """The namespaces of the records. What is shared under its own id, as a session is, is in none."""
    found = set()
    for store, records in stores.items():
        if store is MemoryType.MEMAGENT:
            continue
        for record in records:
            value = field(record, "memory_id")
            if value is not None and not (store is MemoryType.SHARED_MEMORY and str(value) == record["_id"]):
                found.add(str(value))
    return found


def into_namespace(ids: IdMap, stores: Stores, target: str) -> None:
    """Let ``target`` take the place of the only namespace of the records.

    Raises:
        MemoryArchiveError: They have several, which must not become one.
    """
    found = namespaces(stores)
    if len(found) > 1:
        raise MemoryArchiveError(
            f"the archive has {len(found)} namespaces ({', '.join(sorted(found)[:5])}), which cannot become the one "
            f"target_memory_id {target!r}"
        )
    for namespace in found:
        ids.set(NAMESPACE, namespace, target)


def _named(store: MemoryType, record: Record) -> Iterator[tuple[Kind, str]]:
    """The identifiers, other than of records in the archive, that a record names in its own fields."""
    inner = payload(record)
    entries: list[Mapping[str, Any]] = [record] if inner is record else [record, inner]
    content = record.get("content")
    if store is MemoryType.SHARED_MEMORY and isinstance(content, Mapping) and content is not inner:
        entries.append(content)
        blackboard = content.get("blackboard")
        entries += [entry for entry in blackboard if isinstance(entry, Mapping)] if isinstance(blackboard, list) else []
    for entry in entries:
        memory_type = entry.get("memory_type")
        for name, value in entry.items():
            kind = FIELDS.get(name)
            if kind is None or kind == OWN or (kind in _STORES and kind != store.value):
                continue
            for text in references.texts(value):
                yield from _identifier(store, record, kind, text, memory_type)


def _identifier(
    store: MemoryType, record: Record, kind: Kind, text: str, memory_type: Any
) -> Iterator[tuple[Kind, str]]:
    if kind == store.value or (store is MemoryType.SHARED_MEMORY and text == record["_id"]):
        return
    if kind == ANY:
        # The journal goes on naming records that are gone: a copy must not name the original's.
        if store is MemoryType.SHARED_MEMORY and memory_type in _STORES:
            yield memory_type, text
    elif kind not in _STORES:
        yield kind, text


def _new_id(old: str, make_id: MakeId) -> str:
    """A fresh id; what tells an entry of the journal or of the cache stays in front."""
    prefix = _PREFIXED.match(old)
    return f"{prefix[1]}{make_id()}" if prefix else make_id()


def _new_tool_id(old: str, ids: IdMap, make_id: MakeId) -> str:
    agent, colon, tool = old.partition(":")
    owner = ids.get(_AGENTS, agent) if colon else None
    return f"{owner}:{tool}" if owner is not None else make_id()
