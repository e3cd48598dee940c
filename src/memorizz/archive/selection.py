"""Which records belong to an export, under which ids, and what they refer to outside of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from memorizz.archive import references
from memorizz.archive.redaction import parse
from memorizz.archive.values import to_json
from memorizz.errors import MemoryArchiveError
from memorizz.providers.contract import Provider
from memorizz.providers.record_methods import UNSET, UserScope
from memorizz.records import Record, field, payload, record_id
from memorizz.taxonomy import CONTEXT_PREFIX, HISTORY_HEAD, HISTORY_PREFIX, ID_FIELDS, MemoryType


class Request(NamedTuple):
    """What to export. ``types`` are the stores; ``user_id`` is ``UNSET`` for everybody and ``None`` for nobody."""

    agent_id: str | None = None
    memory_id: str | None = None
    types: frozenset[MemoryType] = frozenset(MemoryType)
    include_delegates: bool = True
    include_history: bool = True
    include_context: bool = True
    include_embeddings: bool = False
    user_id: UserScope = UNSET
    application_id: str | None = None


class Row(NamedTuple):
    """One stored record with the fields that count."""

    record: Record
    payload: Mapping[str, Any]

    def field(self, name: str) -> Any:
        """The field of the payload or, failing that, of the record."""
        return field(self.record, name, self.payload)

    @property
    def namespace(self) -> Any:
        """The namespace the record is in."""
        found = self.field("memory_id")
        return self.record.get("namespace") if found is None else found

    @property
    def owner(self) -> Any:
        """The agent it belongs to."""
        found = self.field("agent_id")
        return self.field("owner_agent_id") if found is None else found


class Selection(NamedTuple):
    """The chosen records by store, in the provider's order and with their ids set, and what is to be said of them.

    ``renamed`` counts, for each store, records that share their natural id with another and got their own id for it.
    """

    agent_ids: list[str]
    records: dict[MemoryType, list[Record]]
    renamed: dict[MemoryType, int]


def select(provider: Provider, request: Request) -> Selection:
    """Read the stores and choose.

    Raises:
        MemoryArchiveError: The agent is not there, or not in the scope.
        InvalidRecord: A record has no id.
        ProviderFault: The storage failed.
    """
    kinds = request.types | ({MemoryType.MEMAGENT} if request.agent_id is not None else frozenset())
    rows = {store: [_row(record) for record in provider.scan(store)] for store in sorted(kinds)}
    visible = _in_scope(rows, request)
    closure = _closure(visible.get(MemoryType.MEMAGENT, []), request)
    chosen = {
        store: [row for row in visible[store] if _is_wanted(store, row, closure, request)]
        for store in sorted(request.types)
    }
    return _identified(sorted(closure.agents) if request.agent_id is not None else [], chosen)


def external_references(records: Mapping[MemoryType, Iterable[Record]]) -> list[str]:
    """What the records refer to that is not among them, sorted."""
    inside: set[str] = set()
    outside: set[str] = set()
    for store_records in records.values():
        for record in store_records:
            inside.add(record["_id"])
            found = payload(record).get("record_id")
            if isinstance(found, str):
                inside.add(found)
    for store_records in records.values():
        for record in store_records:
            inner = payload(record)
            for name in references.EXTERNAL:
                outside.update(references.texts(inner.get(name) or record.get(name)))
    return sorted(outside - inside)


class _Closure(NamedTuple):
    agents: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    knowledge_bases: frozenset[str] = frozenset()


def _row(record: Record) -> Row:
    copy = to_json(record)
    return Row(copy, payload(copy))


def _in_scope(rows: dict[MemoryType, list[Row]], request: Request) -> dict[MemoryType, list[Row]]:
    """The rows that the tenant may see; an agent is seen by whoever has records in its namespaces."""

    def is_application(row: Row) -> bool:
        return request.application_id is None or row.field("application_id") == request.application_id

    def is_user(row: Row) -> bool:
        return request.user_id is UNSET or row.field("user_id") == request.user_id

    visible: dict[MemoryType, list[Row]] = {
        store: [row for row in found if is_application(row) and is_user(row)]
        for store, found in rows.items()
        if store is not MemoryType.MEMAGENT
    }
    others = [row for found in visible.values() for row in found]
    namespaces = {row.namespace for row in others if isinstance(row.namespace, str)}
    bases = {row.field("knowledge_base_id") for row in others if isinstance(row.field("knowledge_base_id"), str)}
    if MemoryType.MEMAGENT in rows:
        visible[MemoryType.MEMAGENT] = [
            row
            for row in rows[MemoryType.MEMAGENT]
            if is_application(row)
            and (
                is_user(row)
                or not namespaces.isdisjoint(references.texts(row.record.get("memory_ids")))
                or not bases.isdisjoint(references.texts(row.record.get("knowledge_base_ids")))
            )
        ]
    return visible


def _closure(agents: list[Row], request: Request) -> _Closure:
    """The agent that is exported and those it delegates to, directly or not."""
    if request.agent_id is None:
        return _Closure()
    known = {record_id(MemoryType.MEMAGENT, row.record): row.record for row in agents}
    if request.agent_id not in known:
        raise MemoryArchiveError(f"agents: there is no agent {request.agent_id!r} in the scope of this export")
    found = {request.agent_id}
    waiting = [request.agent_id]
    while waiting and request.include_delegates:
        for delegate in references.texts(known[waiting.pop()].get("delegates")):
            if delegate in known and delegate not in found:
                found.add(delegate)
                waiting.append(delegate)
    own = {request.memory_id} if request.memory_id is not None else set()
    return _Closure(
        frozenset(found),
        frozenset(own.union(*(references.texts(known[agent].get("memory_ids")) for agent in found))),
        frozenset(set().union(*(references.texts(known[agent].get("knowledge_base_ids")) for agent in found))),
    )


def _is_wanted(store: MemoryType, row: Row, closure: _Closure, request: Request) -> bool:
    kind = row.payload.get("record_type")
    if isinstance(kind, str):
        # A head is where one program's journal goes on; another begins its own.
        if kind == HISTORY_HEAD or (kind.startswith(HISTORY_PREFIX) and not request.include_history):
            return False
        if kind.startswith(CONTEXT_PREFIX) and not request.include_context:
            return False
    if store is MemoryType.MEMAGENT:
        in_agents = request.agent_id is None or record_id(store, row.record) in closure.agents
        names = references.texts(row.record.get("memory_ids"))
        return in_agents and (request.memory_id is None or request.memory_id in names)
    if request.agent_id is not None and not _belongs(row, closure):
        return False
    return request.memory_id is None or row.namespace == request.memory_id


def _belongs(row: Row, closure: _Closure) -> bool:
    if row.owner in closure.agents or row.record.get("knowledge_base_id") in closure.knowledge_bases:
        return True
    if row.owner is None and row.namespace in closure.namespaces:
        return True
    participants = row.payload.get("participant_agent_ids") or row.payload.get("participants")
    return not closure.agents.isdisjoint(references.texts(participants))


def _identified(agent_ids: list[str], chosen: Mapping[MemoryType, list[Row]]) -> Selection:
    """The rows under the ids they have in the archive, with references by other ids of theirs rewritten."""
    records: dict[MemoryType, list[Record]] = {}
    aliases: dict[MemoryType, dict[str, str]] = {}
    renamed: dict[MemoryType, int] = {}
    for store, rows in chosen.items():
        taken: set[str] = set()
        # Ids that rows have of their own must not be given away: natural ids come first.
        records[store], aliases[store] = [], {}
        for row in rows:
            record = dict(row.record)
            own = str(record.get("_id") or record.get("id") or "")
            identifier = record_id(store, record)
            if identifier in taken:
                renamed[store] = renamed.get(store, 0) + 1
                identifier = _free(own, taken)
                record[ID_FIELDS[store.value]] = identifier
            taken.add(identifier)
            for name in ("_id", "id", "row_id"):
                if isinstance(record.get(name), str) and record[name] != identifier:
                    aliases[store].setdefault(record[name], identifier)
            record["_id"] = record["id"] = identifier
            if store is MemoryType.SHARED_MEMORY and isinstance(record.get("content"), str):
                record["content"] = parse(record["content"]) or record["content"]
            records[store].append(record)
    if any(aliases.values()):
        resolve_in = {store: _resolver(store, aliases) for store in records}
        records = {
            store: [references.rewrite(record, resolve_in[store]) for record in found]
            for store, found in records.items()
        }
    return Selection(agent_ids, records, renamed)


def _free(own: str, taken: set[str]) -> str:
    wanted = own
    number = 2
    while not wanted or wanted in taken:
        wanted = f"{own}~{number}"
        number += 1
    return wanted


def _resolver(store: MemoryType, aliases: Mapping[MemoryType, Mapping[str, str]]) -> references.Resolve:
    def resolve(kind: references.Kind, value: str, memory_type: str | None) -> str | None:
        if kind == references.OWN:
            return aliases[store].get(value)
        if kind == references.ANY:
            kind = memory_type or store.value
        return aliases.get(MemoryType(kind), {}).get(value) if kind in set(MemoryType) else None

    return resolve
