"""New ids for a copy of a memory graph, and a namespace in place of another."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from memorizz.archive import references
from memorizz.archive.references import ANY, EVENT, NAMESPACE, OWN, SESSION, SPAN, THREAD, Kind
from memorizz.errors import MemoryArchiveError
from memorizz.records import Record, field, payload
from memorizz.taxonomy import MemoryType

Stores: TypeAlias = Mapping[MemoryType, list[Record]]
MakeId: TypeAlias = Callable[[], str]

_SHARED: Final = MemoryType.SHARED_MEMORY.value
_TOOLBOX: Final = MemoryType.TOOLBOX.value
_AGENTS: Final = MemoryType.MEMAGENT.value
_PERSONAS: Final = MemoryType.PERSONAS.value
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
    for record in stores.get(MemoryType.MEMAGENT, []):
        titles = record.get("thread_titles")
        for key in titles if isinstance(titles, dict) else ():
            if ids.get(NAMESPACE, key) is None and ids.get(THREAD, key) is None:
                ids.set(THREAD, key, make_id())
    for record in stores.get(MemoryType.SHARED_MEMORY, []):
        # A snapshot is called after its span.
        span = payload(record).get("span_id")
        if isinstance(span, str) and record["_id"] == f"{_SNAPSHOT}{span}":
            ids.set(_SHARED, record["_id"], f"{_SNAPSHOT}{ids.get(SPAN, span)}")
    for record in stores.get(MemoryType.SEMANTIC_CACHE, []):
        _derive_cache_key(ids, record)
    return ids


def namespaces(stores: Stores) -> set[str]:
    """The namespaces of the records. A session, its history, and what is shared under its own id are in none."""
    shared = stores.get(MemoryType.SHARED_MEMORY, [])
    alone = {str(value) for record in shared if _is_its_own(record, str(value := record.get("memory_id")))}
    found = set()
    for store, records in stores.items():
        if store is MemoryType.MEMAGENT:
            continue
        for record in records:
            value = field(record, "memory_id")
            if value is not None and not (store is MemoryType.SHARED_MEMORY and str(value) in alone):
                found.add(str(value))
    return found


def into_namespace(ids: IdMap, stores: Stores, target: str) -> None:
    """Let ``target`` take the place of the only namespace of the records.

    Raises:
        MemoryArchiveError: They have several, or an agent has ``target`` already: several must not become one.
    """
    found = namespaces(stores)
    if len(found) > 1:
        raise MemoryArchiveError(
            f"the archive has {len(found)} namespaces ({', '.join(sorted(found)[:5])}), which cannot become the one "
            f"target_memory_id {target!r}"
        )
    for agent in stores.get(MemoryType.MEMAGENT, []):
        if found and target not in found and target in references.texts(agent.get("memory_ids")):
            raise MemoryArchiveError(
                f"agents {agent['_id']!r:.80} has the namespace {target!r:.80} beside {found.pop()!r:.80}: the records "
                "of both would become one with that target_memory_id"
            )
    for namespace in found:
        ids.set(NAMESPACE, namespace, target)


def _is_its_own(record: Record, namespace: str) -> bool:
    if namespace == record["_id"]:
        return True
    inner = references.entry(record)
    return inner is not None and "record_type" not in inner


def _named(store: MemoryType, record: Record) -> Iterator[tuple[Kind, str]]:
    """The identifiers, other than of records in the archive, that are the graph's own and need to be new in a copy."""
    for kind, text, memory_type in references.named(record):
        if store is MemoryType.SHARED_MEMORY and text == record["_id"]:
            continue
        if kind == ANY:
            # The journal goes on naming records that are gone: a copy must not name the original's.
            if store is MemoryType.SHARED_MEMORY and memory_type in _STORES:
                yield memory_type, text
        elif kind == _PERSONAS:
            # An agent holds its persona itself, and may do so without the record.
            yield kind, text
        elif kind not in _STORES and kind != OWN:
            yield kind, text


def _derive_cache_key(ids: IdMap, record: Record) -> None:
    """A key that follows from what was asked follows from it in the copy too, so that it is found there."""
    agent, session = record.get("agent_id"), record.get("session_id")
    if record["_id"] != _cache_key(record, session, agent):
        return
    key = _cache_key(
        record,
        ids.get(SESSION, session) if isinstance(session, str) else session,
        ids.get(_AGENTS, agent) or agent if isinstance(agent, str) else agent,
    )
    if key != record["_id"]:
        ids.set(MemoryType.SEMANTIC_CACHE.value, record["_id"], key)


def _cache_key(record: Record, session: Any, agent: Any) -> str:
    """The key as ``memorizz.stores.semantic_cache`` makes it."""
    asked = [record.get("query"), session, record.get("user_id"), agent, record.get("application_id")]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def _new_id(old: str, make_id: MakeId) -> str:
    """A fresh id; what tells an entry of the journal or of the cache stays in front."""
    prefix = _PREFIXED.match(old)
    return f"{prefix[1]}{make_id()}" if prefix else make_id()


def _new_tool_id(old: str, ids: IdMap, make_id: MakeId) -> str:
    agent, colon, tool = old.partition(":")
    owner = ids.get(_AGENTS, agent) if colon else None
    return f"{owner}:{tool}" if owner is not None else make_id()
