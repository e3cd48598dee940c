"""Exporting a memory graph to an archive, and importing one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from agent_memory._version import __version__
from memorizz.archive.envelope import FORMAT, MAX_BYTES, MAX_RECORDS, VERSION, Archive, seal_checked, validate_archive
from memorizz.archive.files import archive_json, read_archive, write_text
from memorizz.archive.foreign import as_provider
from memorizz.archive.plan import Conflict, Options, Plan, Strategy, check_options, embedded_text, make_plan
from memorizz.archive.redaction import redact
from memorizz.archive.restore import apply
from memorizz.archive.selection import Request, Selection, external_references, select
from memorizz.archive.values import check_json
from memorizz.errors import ArchiveConflict, MemoryArchiveError, ReadOnlyProvider
from memorizz.providers.contract import Problem, Provider
from memorizz.providers.record_methods import UNSET, UserScope
from memorizz.taxonomy import TAXONOMY, MemoryType

_NAMED: Final = 5


class MemoryArchive:
    """Archives of what a provider holds. Each call stands for itself."""

    def __init__(self, provider: Any) -> None:
        """``provider`` fulfils ``memorizz.providers.contract.Provider``, or has the methods of the reference's."""
        self._provider = as_provider(provider)

    def export(
        self,
        *,
        agent_id: str | None = None,
        memory_id: str | None = None,
        memory_types: Iterable[MemoryType | str] | None = None,
        include_delegates: bool = True,
        include_history: bool = True,
        include_context: bool = True,
        include_embeddings: bool = False,
        user_id: UserScope = UNSET,
        application_id: str | None = None,
        visible_agents: Iterable[str] | None = None,
        max_records: int = MAX_RECORDS,
        max_bytes: int = MAX_BYTES,
    ) -> Archive:
        """A sealed archive of an agent, a namespace, a tenant or, without filters, everything.

        ``user_id`` is exact; ``None`` stands for the records of nobody, and without it everybody's are taken. With
        ``visible_agents`` records of other agents are left out, and the manifest counts them in ``left_out``.
        ``max_bytes`` bounds the canonical form.

        Raises:
            MemoryArchiveError: There is no such agent, or a limit is passed.
            ValueError: There is no memory type of that name.
            ProviderFault: The storage failed.
        """
        request = Request(
            agent_id=agent_id,
            memory_id=memory_id,
            types=_types(memory_types),
            include_delegates=include_delegates,
            include_history=include_history,
            include_context=include_context,
            include_embeddings=include_embeddings,
            user_id=user_id,
            application_id=application_id,
            visible_agents=None if visible_agents is None else frozenset(visible_agents),
        )
        with self._provider.snapshot():
            selection = select(self._provider, request)
            problems = self._provider.problems()
        return _assembled(self._provider, request, selection, problems, max_bytes, max_records)

    def export_file(self, path: str | Path, *, overwrite: bool = False, **options: Any) -> dict[str, Any]:
        """Write an archive to a private file and return its manifest; ``options`` are those of :meth:`export`.

        Raises:
            FileExistsError: ``path`` exists and is not to be overwritten.
            OSError: It cannot be written; it is as it was.
        """
        target = Path(path).expanduser()
        if target.exists() and not overwrite:
            raise FileExistsError(17, "the file exists", str(target))
        archive = self.export(**options)
        write_text(archive_json(archive, max_bytes=options.get("max_bytes", MAX_BYTES)), target, overwrite=overwrite)
        manifest: dict[str, Any] = archive["manifest"]
        return manifest

    def import_archive(
        self,
        archive: Mapping[str, Any],
        *,
        dry_run: bool = True,
        conflict: Conflict = "error",
        id_strategy: Strategy = "preserve",
        target_memory_id: str | None = None,
        user_id: UserScope = UNSET,
        application_id: str | None = None,
        allowed_types: Iterable[MemoryType | str] | None = None,
        reembed: bool = False,
        max_bytes: int = MAX_BYTES,
        max_records: int = MAX_RECORDS,
    ) -> dict[str, Any]:
        """Restore an archive, or with ``dry_run`` say what that would do, and return the report.

        Everything is checked before anything is written. What could not be completed is taken back.

        Raises:
            MemoryArchiveError: The archive is not valid, an option has none of its values, a record is outside of the
                scope, or the destination would not take it.
            ArchiveConflict: Not in a dry run: records are there already, and ``conflict`` is ``error``.
            ReadOnlyProvider: Not in a dry run: the destination was opened for reading only.
            ValueError: There is no memory type of that name.
            ProviderFault: The storage failed, and nothing is written. What fails on the way is in the report.
        """
        options = Options(
            conflict,
            id_strategy,
            target_memory_id,
            user_id,
            application_id,
            allowed_types=allowed_types,
            reembed=reembed,
        )
        valid = validate_archive(archive, max_bytes=max_bytes, max_records=max_records)
        return self._restore(valid, options, dry_run=dry_run)

    def import_file(self, path: str | Path, **options: Any) -> dict[str, Any]:
        """Restore the archive in a file, or preview that; ``options`` are those of :meth:`import_archive`.

        Raises:
            OSError: The file cannot be read.
        """
        limits = {name: options.pop(name) for name in ("max_bytes", "max_records") if name in options}
        dry_run = options.pop("dry_run", True)
        chosen = Options(**options)
        return self._restore(read_archive(path, **limits), chosen, dry_run=dry_run)

    def _restore(self, archive: Archive, options: Options, *, dry_run: bool) -> dict[str, Any]:
        """Import a valid archive."""
        check_options(options)
        read_only = self._provider.capabilities.read_only
        if read_only and not dry_run:
            raise ReadOnlyProvider("the destination was opened for reading only")
        if options.allowed_types is not None:
            options = options._replace(allowed_types=_types(options.allowed_types))
        with self._provider.snapshot():
            plan = make_plan(self._provider, archive, options, lambda: str(uuid4()))
        _refuse(plan)
        report = self._report(archive, plan, options, dry_run=dry_run)
        if dry_run:
            if read_only:
                report["ok"] = False
                report["warnings"].append("the destination was opened for reading only: nothing can be imported")
            return report
        if plan.conflicts and options.conflict == "error":
            first = plan.conflicts[0]
            raise ArchiveConflict(
                f"{len(plan.conflicts)} records are there already, such as {first['memory_type']} {first['id']!r:.80}; "
                "conflict skip keeps them, replace overwrites them, and new ids make a copy"
            )
        outcome = apply(self._provider, plan, reembed=options.reembed)
        report.update(ok=not outcome.errors, imported=outcome.imported, errors=outcome.errors)
        report["warnings"] += outcome.warnings
        return report

    def _report(self, archive: Archive, plan: Plan, options: Options, *, dry_run: bool) -> dict[str, Any]:
        atomic = self._provider.capabilities.atomic
        warnings = [*archive["manifest"]["warnings"], *plan.warnings]
        if not options.reembed:
            warnings.append("vectors are not restored: search by meaning finds the records after they are embedded")
        if not atomic:
            warnings.append(
                "the destination has no transactions: a failure is taken back record by record; after a power cut "
                "import again with conflict skip"
            )
        return {
            "ok": not plan.conflicts or options.conflict != "error",
            "dry_run": dry_run,
            "format": FORMAT,
            "version": VERSION,
            "planned": len(plan.steps),
            "imported": 0,
            "skipped": plan.skipped,
            "conflicts": plan.conflicts,
            "counts": plan.counts,
            "id_map": plan.id_map,
            "warnings": warnings,
            "atomic": atomic,
            "errors": [],
            **({"to_embed": _count_texts(plan)} if options.reembed else {}),
        }


def _count_texts(plan: Plan) -> int:
    return sum(bool(embedded_text(step.store, step.record)) for step in plan.steps)


def _types(names: Iterable[MemoryType | str] | None) -> frozenset[MemoryType]:
    if names is None:
        return frozenset(MemoryType)
    return frozenset(name if isinstance(name, MemoryType) else MemoryType.parse(name) for name in names)


def _refuse(plan: Plan) -> None:
    if plan.refusals:
        said = "; ".join(refusal["message"] for refusal in plan.refusals[:_NAMED])
        more = f"; and {len(plan.refusals) - _NAMED} more records" if len(plan.refusals) > _NAMED else ""
        raise MemoryArchiveError(f"the destination cannot take the archive: {said}{more}")


def _assembled(
    provider: Provider,
    request: Request,
    selection: Selection,
    problems: list[Problem],
    max_bytes: int,
    max_records: int,
) -> Archive:
    omitted: set[str] = set()
    stores: dict[str, list[dict[str, Any]]] = {store: [] for store in TAXONOMY}
    for store in MemoryType:
        for record in selection.records.get(store, []):
            redacted = redact(store, record, keep_vectors=request.include_embeddings)
            omitted |= redacted.omitted
            stores[store.value].append({"id": record["_id"], "data": redacted.record})
    external = external_references(selection.records)
    counts = {store: len(rows) for store, rows in stores.items()}
    manifest = {
        "created_at": datetime.now(UTC).isoformat(timespec="microseconds"),
        "memorizz_version": __version__,
        "source_provider": getattr(provider, "class_name", type(provider).__name__),
        "scope": {
            "agent_id": request.agent_id,
            "memory_id": request.memory_id,
            "agent_ids": selection.agent_ids,
            "user_id": None if request.user_id is UNSET else request.user_id,
            "user_scoped": request.user_id is not UNSET,
            "application_id": request.application_id,
        },
        "counts": counts,
        "record_count": sum(counts.values()),
        "includes": {
            "delegates": request.include_delegates,
            "history": request.include_history,
            "context": request.include_context,
            "embeddings": request.include_embeddings,
        },
        "omitted_fields": sorted(omitted),
        "external_references": external,
        "warnings": _warnings(provider, request, selection, problems, omitted, external),
    }
    if selection.renamed:
        manifest["natural_ids"] = {store.value: renamed for store, renamed in selection.renamed.items()}
    if selection.hidden:
        manifest["left_out"] = {store.value: count for store, count in selection.hidden.items()}
    archive = {
        "format": FORMAT,
        "version": VERSION,
        "taxonomy": dict(TAXONOMY),
        "manifest": manifest,
        "stores": stores,
    }
    check_json(archive)
    return seal_checked(archive, max_bytes=max_bytes, max_records=max_records)


def _warnings(
    provider: Provider,
    request: Request,
    selection: Selection,
    problems: list[Problem],
    omitted: set[str],
    external: list[str],
) -> list[str]:
    warnings = []
    if external:
        warnings.append(f"{len(external)} references lead to records that this archive does not hold")
    if omitted:
        warnings.append("credentials were left out: connect providers and tools anew where the archive is restored")
    for store, renamed in selection.renamed.items():
        named = ", ".join(f"{id!r:.80} (of {natural!r:.80})" for id, natural in list(renamed.items())[:_NAMED])
        warnings.append(
            f"{store}: {len(renamed)} records share their natural id with another and are here under an id of their "
            f"own, such as {named}; a restore gives them the natural id again, a copy does not"
        )
    if selection.hidden:
        counted = ", ".join(f"{count} of {store}" for store, count in selection.hidden.items())
        warnings.append(f"records of agents that may not be seen here were left out: {counted}")
    read = [problem for problem in problems if problem.store in request.types]
    if read:
        named = "; ".join(f"{problem.store} {problem.id}: {problem.message}" for problem in read[:_NAMED])
        warnings.append(f"{len(read)} things in the source need a look: {named}")
    warnings.append("history holds names and hashes of changes, no old values; restored records may have other hashes")
    moment = "of one moment" if provider.capabilities.snapshot else "read while others could write"
    warnings.append(f"an archive is no copy of the database: it holds records only, {moment}")
    return warnings
