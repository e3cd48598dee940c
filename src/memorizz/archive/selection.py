"""Which records belong to an export, under which ids, and what they refer to outside of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from memorizz.archive import references
from memorizz.archive.canonical import canonical
from memorizz.archive.redaction import parse
from memorizz.archive.values import check_json, to_json
from memorizz.errors import MemoryArchiveError
from memorizz.providers.contract import Provider
from memorizz.providers.record_methods import UNSET, UserScope
from memorizz.records import Record, field, payload, record_id, said
from memorizz.taxonomy import CONTEXT_PREFIX, HISTORY_HEAD, HISTORY_PREFIX, ID_FIELDS, MemoryType


class Request(NamedTuple):
    """What to export. ``types`` are the stores; ``user_id`` is ``UNSET`` for everybody and ``None`` for nobody.

    ``visible_agents`` are the agents whose records may be seen; ``None`` stands for all.
    """

    agent_id: str | None = None
    memory_id: str | None = None
    types: frozenset[MemoryType] = frozenset(MemoryType)
    include_delegates: bool = True
    include_history: bool = True
    include_context: bool = True
    include_embeddings: bool = False
    user_id: UserScope = UNSET
    application_id: str | None = None
    visible_agents: frozenset[str] | None = None


class Row(NamedTuple):
    """One stored record with the fields that count."""

    record: Record
    payload: Mapping[str, Any]

    def field(self, name: str) -> Any:
        """The field of the payload or, failing that, of the record."""
        return field(self.record, name, self.payload)

    def is_of(self, name: str, value: Any) -> bool:
        """Whether the payload and the record both say ``value`` in a field that is about whose it is, or nothing."""
        return all(found == value for found in said(self.record, name, self.payload) or [None])

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

    ``renamed`` are, for each store, the records that share their natural id with another: the id they have in the
    archive for want of that one, to the natural id. ``hidden`` counts, for each store, those that were chosen but are
    of agents that may not be seen.
    """

    agent_ids: list[str]
    records: dict[MemoryType, list[Record]]
    renamed: dict[MemoryType, dict[str, str]]
    hidden: dict[MemoryType, int] = {}  # noqa: RUF012 - a tuple's default, never changed


def select(provider: Provider, request: Request) -> Selection:
    """Read the stores and choose.

    Raises:
        MemoryArchiveError: The agent is not there, or not in the scope.
        InvalidRecord: A record has no id.
        ProviderFault: The storage failed.
    """
    needs_agents = request.agent_id is not None or request.visible_agents is not None
    kinds = request.types | ({MemoryType.MEMAGENT} if needs_agents else frozenset())
    rows = {store: [_row(store, record) for record in provider.scan(store)] for store in sorted(kinds)}
    visible = _in_scope(rows, request)
    closure = _closure(visible.get(MemoryType.MEMAGENT, []), request)
    chosen = {
        store: [row for row in visible[store] if _is_wanted(store, row, closure, request)]
        for store in sorted(request.types)
    }
    agent_ids = closure.agents if request.agent_id is not None else frozenset()
    if request.visible_agents is None:
        return _identified(sorted(agent_ids), chosen)
    private = _private_namespaces(rows.get(MemoryType.MEMAGENT, []), request.visible_agents)
    shown = {
        store: [row for row in found if _is_visible(store, row, request.visible_agents, private)]
        for store, found in chosen.items()
    }
    hidden = {store: len(found) - len(shown[store]) for store, found in chosen.items()}
    selection = _identified(sorted(agent_ids & request.visible_agents), shown)
    return selection._replace(hidden={store: count for store, count in hidden.items() if count})


def agents_of(store: MemoryType, record: Record) -> set[str]:
    """The agents that a record belongs to: itself, its owners, those that took part in it."""
    found = set() if store is not MemoryType.MEMAGENT else {record_id(store, record)}
    for name in ("agent_id", "owner_agent_id", "participant_agent_ids", "participants"):
        for value in said(record, name):
            found.update(references.texts([*value, *value.values()] if isinstance(value, dict) else value))
    return found


def _private_namespaces(agents: list[Row], visible: frozenset[str]) -> set[str]:
    """The namespaces of agents that may not be seen and of no other."""
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for row in agents:
        is_visible = record_id(MemoryType.MEMAGENT, row.record) in visible
        names[is_visible].update(references.texts(row.record.get("memory_ids")))
    return names[False] - names[True]


def _is_visible(store: MemoryType, row: Row, visible: frozenset[str], private: set[str]) -> bool:
    """Whether a record is of agents that may be seen, or of none and in no namespace of one that may not."""
    owners = agents_of(store, row.record)
    return visible.issuperset(owners) and not (not owners and row.namespace in private)


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


def _row(store: MemoryType, record: Record) -> Row:
    try:
        copy = to_json(record)
    except MemoryArchiveError as error:
        raise MemoryArchiveError(f"{store} {record_id(store, record)!r:.80}: {error}") from None
    return Row(copy, payload(copy))


def _in_scope(rows: dict[MemoryType, list[Row]], request: Request) -> dict[MemoryType, list[Row]]:
    """The rows that the tenant may see; an agent is seen by whoever has records in its namespaces."""

    def is_application(row: Row) -> bool:
        return request.application_id is None or row.is_of("application_id", request.application_id)

    def is_user(row: Row) -> bool:
        return request.user_id is UNSET or row.is_of("user_id", request.user_id)

    visible: dict[MemoryType, list[Row]] = {
        store: [row for row in found if is_application(row) and is_user(row)]
        for store, found in rows.items()
        if store is not MemoryType.MEMAGENT
    }
    others = [row for found in visible.values() for row in found]
    namespaces = {row.namespace for row in others if isinstance(row.namespace, str)}
    bases = {base for row in others if isinstance(base := row.field("knowledge_base_id"), str)}
    agents = [
        row
        for row in rows.get(MemoryType.MEMAGENT, [])
        if is_application(row)
        and (
            is_user(row)
            or not namespaces.isdisjoint(references.texts(row.record.get("memory_ids")))
            or not bases.isdisjoint(references.texts(row.record.get("knowledge_base_ids")))
        )
    ]
    if isinstance(request.user_id, str):
        titled = namespaces | {thread for row in others if isinstance(thread := row.field("thread_id"), str)}
        agents = [row if is_user(row) else _with_titles_of(row, titled) for row in agents]
    if MemoryType.MEMAGENT in rows:
        visible[MemoryType.MEMAGENT] = agents
    return visible


def _with_titles_of(row: Row, threads: set[str]) -> Row:
    """A shared agent without the titles of other users' threads."""
    titles = row.record.get("thread_titles")
    if not isinstance(titles, dict):
        return row
    record = {**row.record, "thread_titles": {key: title for key, title in titles.items() if key in threads}}
    return Row(record, record)


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
    base = row.record.get("knowledge_base_id")
    if not closure.agents.isdisjoint(references.texts(row.owner)):
        return True
    if not closure.knowledge_bases.isdisjoint(references.texts(base)):
        return True
    if row.owner is None and not closure.namespaces.isdisjoint(references.texts(row.namespace)):
        return True
    participants = row.payload.get("participant_agent_ids") or row.payload.get("participants")
    return not closure.agents.isdisjoint(references.texts(participants))


def _identified(agent_ids: list[str], chosen: Mapping[MemoryType, list[Row]]) -> Selection:
    """The rows under the ids they have in the archive, with references by other ids of theirs rewritten."""
    records: dict[MemoryType, list[Record]] = {}
    aliases: dict[MemoryType, dict[str, str]] = {}
    renamed: dict[MemoryType, dict[str, str]] = {}
    for store, rows in chosen.items():
        identifiers = _identifiers(store, rows)
        taken = set(identifiers)
        records[store], aliases[store] = [], {}
        for row, identifier in zip(rows, identifiers, strict=True):
            record = dict(row.record)
            for name in ("_id", "id", "row_id"):
                own = record.get(name)
                if isinstance(own, str) and own not in taken:
                    aliases[store].setdefault(own, identifier)
            field_name = ID_FIELDS.get(store.value)
            if field_name is not None and record.get(field_name) is not None:
                natural = str(record[field_name] or "")
                if natural and natural != identifier:
                    renamed.setdefault(store, {})[identifier] = natural
                # The format takes the record's id there, or null.
                record[field_name] = identifier if natural else None
            record["_id"] = record["id"] = identifier
            if store is MemoryType.SHARED_MEMORY and isinstance(record.get("content"), str):
                record["content"] = _unpacked(record["content"])
            records[store].append(record)
    if any(aliases.values()):
        resolve_in = {store: _resolver(store, aliases) for store in records}
        records = {
            store: [references.rewrite(record, resolve_in[store]) for record in found]
            for store, found in records.items()
        }
    return Selection(agent_ids, records, renamed)


def _identifiers(store: MemoryType, rows: list[Row]) -> list[str]:
    """The id in the archive of each row. Of several with one natural id, one has it and the others have their own.

    That is the one that is stored under it, or else the first.
    """
    wanted = [record_id(store, row.record) for row in rows]
    holders: dict[str, int] = {}
    for index, identifier in enumerate(wanted):
        if identifier not in holders or rows[index].record.get("_id") == identifier:
            holders[identifier] = index
    taken = set(holders)
    for index, row in enumerate(rows):
        if holders[wanted[index]] != index:
            own = _free(str(row.record.get("_id") or row.record.get("id") or ""), taken)
            taken.add(own)
            holders[own] = index
    return [identifier for identifier, _ in sorted(holders.items(), key=lambda item: item[1])]


def _free(own: str, taken: set[str]) -> str:
    wanted = own
    number = 2
    while not wanted or wanted in taken:
        wanted = f"{own}~{number}"
        number += 1
    return wanted


def _unpacked(content: str) -> Any:
    """The object or array that the text is the JSON of, if it can stand in an archive, else the text."""
    parsed = parse(content)
    try:
        check_json([[[[[parsed]]]]])
        # The escape of half a character is text; half a character is not.
        if "\\u" in content:
            canonical(parsed)
    except MemoryArchiveError:
        return content
    return content if parsed is None else parsed


def _resolver(store: MemoryType, aliases: Mapping[MemoryType, Mapping[str, str]]) -> references.Resolve:
    def resolve(kind: references.Kind, value: str, memory_type: str | None) -> str | None:
        if kind == references.OWN:
            return aliases[store].get(value)
        if kind == references.ANY:
            kind = memory_type or store.value
        return aliases.get(MemoryType(kind), {}).get(value) if kind in set(MemoryType) else None

    return resolve
