"""What an import would write: every check that applying makes, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from memorizz.agents import MemAgentModel
from memorizz.archive import references, remap
from memorizz.archive.envelope import Archive
from memorizz.archive.redaction import redact, with_credentials_of
from memorizz.archive.remap import IdMap, MakeId
from memorizz.errors import InvalidRecord, MemoryArchiveError, ProviderError
from memorizz.providers.contract import Provider
from memorizz.providers.record_methods import UNSET, UserScope
from memorizz.records import Record, natural_id, said
from memorizz.taxonomy import ID_FIELDS, MemoryType

Conflict: TypeAlias = Literal["error", "skip", "replace"]
Strategy: TypeAlias = Literal["preserve", "new"]

_TEXTS: Final = ("content", "description", "name")
_NOT_EMBEDDED: Final = (MemoryType.MEMAGENT, MemoryType.SHARED_MEMORY, MemoryType.TOOL_LOG)


class Options(NamedTuple):
    """How to import."""

    conflict: Conflict = "error"
    id_strategy: Strategy = "preserve"
    target_memory_id: str | None = None
    user_id: UserScope = UNSET
    application_id: str | None = None
    allowed_types: Iterable[MemoryType | str] | None = None
    reembed: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One record to write, under its physical id, in the place of ``existing`` where there is one."""

    store: MemoryType
    id: str
    record: Record
    existing: Record | None = None


@dataclass(slots=True)
class Plan:
    """What an import would do. ``refusals`` are what the destination would not take, as entries of the report."""

    steps: list[Step] = field(default_factory=list)
    skipped: int = 0
    conflicts: list[dict[str, str]] = field(default_factory=list)
    refusals: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    id_map: dict[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """How many records would be written, for each of the 13 stores."""
        counts = dict.fromkeys((store.value for store in MemoryType), 0)
        for step in self.steps:
            counts[step.store.value] += 1
        return counts

    def refuse(self, store: MemoryType, id: str, error: Exception) -> None:
        """Note that the destination would not take a record."""
        self.refusals.append(problem(store, id, error))


def problem(store: MemoryType, id: str, error: Exception) -> dict[str, str]:
    """An entry of the report's ``errors``."""
    return {"memory_type": store.value, "id": id, "error_type": type(error).__name__, "message": str(error)}


def check_options(options: Options) -> None:
    """Check what is not a matter of the archive.

    Raises:
        MemoryArchiveError: An option has none of its values.
    """
    for name, choices in (("conflict", get_args(Conflict)), ("id_strategy", get_args(Strategy))):
        value = getattr(options, name)
        if value not in choices:
            raise MemoryArchiveError(f"{name} must be one of {', '.join(choices)} (got {value!r:.80})")
    target = options.target_memory_id
    if target is not None and (not isinstance(target, str) or not target):
        raise MemoryArchiveError(f"target_memory_id must be a text that is not empty (got {target!r:.80})")


def make_plan(provider: Provider, archive: Archive, options: Options, make_id: MakeId) -> Plan:
    """The plan for a valid archive.

    Raises:
        MemoryArchiveError: The archive is not what the options allow, or touches what is outside of the scope.
        ProviderFault: The storage failed.
    """
    stores = {store: [_record(row) for row in archive["stores"][store.value]] for store in MemoryType}
    _check_allowed(stores, options)
    _check_scope(stores, archive["manifest"], options)
    plan = Plan()
    is_copy = options.id_strategy == "new"
    ids = remap.new_ids(stores, make_id) if is_copy else IdMap()
    if options.target_memory_id is not None:
        remap.into_namespace(ids, stores, options.target_memory_id)
    converted = _convert_ids(provider, stores, ids)
    plan.id_map = ids.flat()
    naturals = {} if is_copy else _natural_ids(archive["manifest"])
    for store, records in stores.items():
        if records:
            mine = converted[store] | naturals.get(store.value, {})
            planned = [_planned(store, record, ids, options, mine.get(record["_id"])) for record in records]
            _plan_store(provider, plan, store, planned, options, make_id)
    _check_agents(provider, plan, options)
    if options.reembed:
        _check_embedder(provider)
    if plan.steps and not provider.capabilities.read_only:
        _check_writable(provider)
    return plan


def embedded_text(store: MemoryType, record: Record) -> str | None:
    """The text that a record is found by, or ``None`` when it has none."""
    if store in _NOT_EMBEDDED:
        return None
    found = next((record[name] for name in _TEXTS if record.get(name)), None)
    return found if isinstance(found, str) else None


def _check_embedder(provider: Provider) -> None:
    embedder = getattr(provider, "embedding_provider", None)
    if not callable(getattr(embedder, "get_embedding", None)):
        raise MemoryArchiveError(
            "reembed needs a destination with an embedding_provider that has get_embedding(text); commands take it "
            "from MEMORIZZ_DEFAULT_EMBEDDING_PROVIDER and MEMORIZZ_DEFAULT_EMBEDDING_MODEL"
        )


def _check_writable(provider: Provider) -> None:
    """Take the place of a writer for a moment, where the provider has one."""
    exclusive = getattr(provider, "exclusive", None)
    if exclusive is None:
        return
    try:
        with exclusive(MemoryType.SHARED_MEMORY):
            pass
    except ProviderError as error:
        raise MemoryArchiveError(f"the destination cannot be written to: {error}") from error


def _natural_ids(manifest: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """For records that are in the archive under another id than their natural one: that natural id, by store and id."""
    found = manifest.get("natural_ids", {})
    for store, renamed in found.items() if isinstance(found, dict) else [("", None)]:
        if store not in ID_FIELDS or not isinstance(renamed, dict) or not all(map(_is_text, renamed.values())):
            raise MemoryArchiveError(
                "manifest.natural_ids must map stores with a natural id to objects of texts that are not empty "
                f"(got {found!r:.80})"
            )
    return found  # type: ignore[no-any-return]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _record(row: Mapping[str, Any]) -> Record:
    return {**row["data"], "_id": row["id"], "id": row["id"]}


def _check_allowed(stores: remap.Stores, options: Options) -> None:
    for store, records in stores.items():
        if records and options.allowed_types is not None and store not in options.allowed_types:
            raise MemoryArchiveError(f"{store}: the archive has {len(records)} records of a type that is not allowed")


def _check_scope(stores: remap.Stores, manifest: Mapping[str, Any], options: Options) -> None:
    """Refuse whatever is not exactly the tenant's.

    Agents belong to nobody in particular. Those of a named user come back as that user's only from an archive that was
    made for the same user.
    """
    made_for = manifest["scope"] if isinstance(manifest["scope"], dict) else {}
    users_own = made_for.get("user_scoped") is True and made_for.get("user_id") == options.user_id
    for store, records in stores.items():
        for record in records:
            wanted = {}
            if options.user_id is not UNSET:
                wanted["user_id"] = options.user_id
            if options.application_id is not None:
                wanted["application_id"] = options.application_id
            for name, value in wanted.items():
                values = said(record, name) or [None]
                found = next((other for other in values if other != value), value)
                ownerless_agent = store is MemoryType.MEMAGENT and name == "user_id" and found is None and users_own
                if found != value and not ownerless_agent:
                    raise MemoryArchiveError(
                        f"{store} {record['_id']!r:.80}: {name} is {found!r:.80}, outside of the scope {value!r:.80}"
                    )


def _convert_ids(provider: Provider, stores: remap.Stores, ids: IdMap) -> dict[MemoryType, dict[str, str]]:
    """Let a provider whose ids have a form of their own have them in that form.

    A natural id stays what it is: returned are those, by store and id in the archive, that are not the new id.
    """
    naturals: dict[MemoryType, dict[str, str]] = {store: {} for store in stores}
    convert = getattr(provider, "archive_target_id", None)
    if convert is None:
        return naturals
    for store, records in stores.items():
        for record in records:
            now = ids.get(store.value, record["_id"]) or record["_id"]
            converted = str(convert(store, now))
            if converted != now:
                ids.set(store.value, record["_id"], converted)
                if store.value in ID_FIELDS:
                    naturals[store][record["_id"]] = now
    return naturals


def _planned(store: MemoryType, record: Record, ids: IdMap, options: Options, natural: str | None) -> Record:
    """The record as it is to be written, its new id in it, and its natural id where that is another."""
    identifier = ids.get(store.value, record["_id"]) or record["_id"]
    planned = redact(store, ids.rewritten(store, record)).record
    planned["_id"] = planned["id"] = identifier
    name = ID_FIELDS.get(store.value, "_id")
    if planned.get(name) is not None:
        planned[name] = natural or identifier
    if store is MemoryType.MEMAGENT:
        planned["agent_id"] = identifier
        planned["automations_enabled"] = False
        if isinstance(options.user_id, str):
            planned["user_id"] = options.user_id
    return planned


def _plan_store(
    provider: Provider, plan: Plan, store: MemoryType, records: list[Record], options: Options, make_id: MakeId
) -> None:
    shared = {natural for record in records if (natural := natural_id(store, record)) not in (None, record["_id"])}
    for natural, physical in provider.find(store, filter(None, shared)).items():
        # Several may have it, but not of several tenants because an archive says so.
        holder = provider.get(store, physical)
        if holder is not None:
            _check_existing(store, natural, holder, options)
    matches, occupied = _present(provider, store, records)
    for record in records:
        identifier = record["_id"]
        existing = matches.get(identifier)
        if existing is not None:
            _check_existing(store, identifier, existing, options)
            plan.conflicts.append({"memory_type": store.value, "id": identifier})
            if options.conflict == "skip":
                plan.skipped += 1
                continue
            step = _replacement(plan, store, record, existing)
        elif identifier in occupied:
            fresh = make_id()
            step = Step(store, fresh, _under(store, fresh, record))
        else:
            step = Step(store, identifier, record)
        try:
            provider.check(store, step.id, step.record)
        except InvalidRecord as error:
            plan.refuse(store, identifier, error)
        plan.steps.append(step)


def _present(provider: Provider, store: MemoryType, records: list[Record]) -> tuple[dict[str, Record], set[str]]:
    """The records that are there already, by the ids of ours, and those ids of ours that are another record's."""
    # Where a provider has made ids of its own, what is there already is known by its natural id.
    convert = getattr(provider, "archive_target_id", None)
    keys = {record["_id"]: record["_id"] for record in records}
    if convert is not None:
        for record in records:
            natural = natural_id(store, record)
            if natural is not None and convert(store, natural) == record["_id"]:
                keys[record["_id"]] = natural
    there = provider.find(store, list(keys.values()))
    found = {id: there[key] for id, key in keys.items() if key in there}
    matches: dict[str, Record] = {}
    claimed: set[str] = set()
    # Whatever is stored under its own id comes before what only has the natural id.
    for record in sorted(records, key=lambda record: found.get(record["_id"]) != record["_id"]):
        physical = found.get(record["_id"])
        existing = None if physical is None or physical in claimed else provider.get(store, physical)
        if physical is not None and existing is not None and _is_same(store, record, existing):
            matches[record["_id"]] = existing
            claimed.add(physical)
    occupied = {id for id in found if id not in matches and (id in claimed or provider.get(store, id) is not None)}
    return matches, occupied


def _is_same(store: MemoryType, record: Record, existing: Record) -> bool:
    theirs = natural_id(store, existing)
    if theirs is None:
        return bool(existing["_id"] == record["_id"])
    return theirs == (natural_id(store, record) or record["_id"])


def _under(store: MemoryType, physical: str, record: Record) -> Record:
    """``record`` for another physical id than its own, which stays its natural one."""
    moved = {**record, "_id": physical, "id": physical}
    if natural_id(store, moved) is None:
        moved[ID_FIELDS[store.value]] = record["_id"]
    return moved


def _check_existing(store: MemoryType, id: str, existing: Record, options: Options) -> None:
    for name, value in (("user_id", options.user_id), ("application_id", options.application_id)):
        unset = UNSET if name == "user_id" else None
        values = said(existing, name) or [None]
        found = next((other for other in values if other != value), value)
        if value is unset or found == value:
            continue
        # An agent that belongs to nobody is everybody's to use, and nobody's to change.
        is_shared = store is MemoryType.MEMAGENT and name == "user_id" and found is None
        if is_shared and options.conflict != "replace":
            continue
        rest = "; conflict skip keeps it" if is_shared else ""
        raise MemoryArchiveError(f"{store} {id!r:.80}: the destination has such a record outside of the scope{rest}")


def _replacement(plan: Plan, store: MemoryType, record: Record, existing: Record) -> Step:
    """The record in the place of ``existing``: under its physical id, and with its credentials."""
    refused: list[str] = []
    merged = with_credentials_of(existing, record, store, refused)
    if store is MemoryType.MEMAGENT:
        if existing.get("model") is not None:
            merged["model"] = existing["model"]
        if existing.get("automations_enabled"):
            plan.warnings.append(
                f"the automations of agent {record['_id']!r} are switched off; it keeps its credentials"
            )
    for path in refused:
        plan.warnings.append(f"{store} {record['_id']!r}: {path} leads elsewhere now and does not keep its credentials")
    physical = existing["_id"]
    return Step(store, physical, merged if physical == record["_id"] else _under(store, physical, merged), existing)


def _check_agents(provider: Provider, plan: Plan, options: Options) -> None:
    """Agents must be such, and their delegates must be there afterwards."""
    agents = [step for step in plan.steps if step.store is MemoryType.MEMAGENT]
    planned = {step.record["agent_id"] for step in agents}
    wanted = {delegate for step in agents for delegate in references.texts(step.record.get("delegates"))} - planned
    present = provider.find(MemoryType.MEMAGENT, sorted(wanted)) if wanted else {}
    for step in agents:
        try:
            MemAgentModel.validate(step.record)
            for delegate in references.texts(step.record.get("delegates")):
                if delegate not in planned and not _is_there(provider, present.get(delegate), options):
                    raise InvalidRecord(
                        f"agents {step.id!r}: its delegate {delegate!r} is in neither archive nor destination"
                    )
        except InvalidRecord as error:
            plan.refuse(MemoryType.MEMAGENT, step.record["agent_id"], error)


def _is_there(provider: Provider, physical: str | None, options: Options) -> bool:
    record = None if physical is None else provider.get(MemoryType.MEMAGENT, physical)
    if record is None:
        return False
    # What belongs to nobody, everybody may delegate to.
    return options.user_id is UNSET or record.get("user_id") in (None, options.user_id)
