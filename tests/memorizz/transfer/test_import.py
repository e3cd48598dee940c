"""Restoring: previews that are honest, conflicts, credentials, tenants, and failures that leave nothing behind."""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memorizz import (
    ArchiveConflict,
    FileSystemConfig,
    FileSystemProvider,
    MemoryArchive,
    MemoryArchiveError,
    MemoryHistory,
    MemoryProvider,
    MemoryType,
    ReadOnlyProvider,
    SQLiteConfig,
    SQLiteProvider,
)
from memorizz.memory_archive import seal_archive
from memorizz.taxonomy import TAXONOMY
from tests.memorizz.support import archive


def stored(provider: MemoryProvider) -> dict[str, list[dict[str, Any]]]:
    """Everything that a provider holds, by store and id."""
    return {store.value: sorted(provider.scan(store), key=lambda record: str(record["_id"])) for store in MemoryType}


def small(**stores: list[dict[str, Any]]) -> dict[str, Any]:
    """A sealed archive of the given records, each of which has an ``_id``."""
    made = archive("empty_store")
    for store, records in stores.items():
        made["stores"][store] = [{"id": record["_id"], "data": record} for record in records]
        made["manifest"]["counts"][store] = len(records)
    made["manifest"]["record_count"] = sum(made["manifest"]["counts"].values())
    return seal_archive(made)


def agent(id: str, **fields: Any) -> dict[str, Any]:
    return {"_id": id, "id": id, "agent_id": id, "name": id.title(), "memory_ids": [f"ns-{id}"], **fields}


def fact(id: str, **fields: Any) -> dict[str, Any]:
    return {"_id": id, "id": id, "content": f"fact {id}", "memory_id": "ns", **fields}


def test_a_preview_counts_and_writes_nothing(target: MemoryProvider) -> None:
    before = stored(target)
    report = MemoryArchive(target).import_archive(archive("agent_coordinator"))
    assert stored(target) == before
    assert report["counts"] == archive("agent_coordinator")["manifest"]["counts"]
    assert {name: report[name] for name in ("ok", "dry_run", "planned", "imported", "skipped", "errors")} == {
        "ok": True, "dry_run": True, "planned": 52, "imported": 0, "skipped": 0, "errors": [],
    }  # fmt: skip
    assert list(report) == [
        "ok", "dry_run", "format", "version", "planned", "imported", "skipped", "conflicts", "counts", "id_map",
        "warnings", "atomic", "errors",
    ]  # fmt: skip
    assert (report["format"], report["version"], report["id_map"]) == ("memorizz.memory", 1, {})
    assert report["atomic"] is target.capabilities.atomic


@pytest.mark.parametrize("name", ["agent_coordinator", "anonymous", "types_kb_conv", "project_ns_plover"])
def test_an_archive_of_the_reference_is_restored_record_by_record(target: MemoryProvider, name: str) -> None:
    made = archive(name)
    report = MemoryArchive(target).import_archive(made, dry_run=False)
    assert (report["ok"], report["imported"]) == (True, made["manifest"]["record_count"])
    for store in TAXONOMY:
        for row in made["stores"][store]:
            record = target.get(MemoryType(store), row["id"])
            assert record is not None
            expected = json.loads(json.dumps(row["data"]))
            if store == "agents":
                expected["automations_enabled"] = False
            if row["id"] == "tl-1":
                expected["arguments"] = '{"depth_m": 3}'
            assert record == expected


def test_records_that_are_there_stop_an_import_unless_told_otherwise(target: MemoryProvider) -> None:
    importing = MemoryArchive(target)
    made = small(knowledge_base=[fact("a"), fact("b")], agents=[agent("keel")])
    importing.import_archive(small(knowledge_base=[fact("a", content="mine", note="local")]), dry_run=False)
    before = stored(target)
    preview = importing.import_archive(made)
    assert preview["ok"] is False
    assert preview["conflicts"] == [{"memory_type": "knowledge_base", "id": "a"}]
    with pytest.raises(ArchiveConflict, match=r"1 records are there already, such as knowledge_base 'a'"):
        importing.import_archive(made, dry_run=False)
    assert stored(target) == before
    skipped = importing.import_archive(made, dry_run=False, conflict="skip")
    assert (skipped["ok"], skipped["imported"], skipped["skipped"]) == (True, 2, 1)
    assert target.get(MemoryType.KNOWLEDGE_BASE, "a") == before["knowledge_base"][0]
    replaced = importing.import_archive(made, dry_run=False, conflict="replace")
    assert (replaced["ok"], replaced["imported"], len(replaced["conflicts"])) == (True, 3, 3)
    assert target.get(MemoryType.KNOWLEDGE_BASE, "a") == fact("a")


def test_a_record_under_another_file_name_is_replaced_in_place(target: MemoryProvider) -> None:
    persona = {"_id": "file-1", "id": "file-1", "persona_id": "keel", "name": "Keel", "role": "old"}
    target.put(MemoryType.PERSONAS, [("file-1", persona)])
    new = {"_id": "keel", "id": "keel", "persona_id": "keel", "name": "Keel", "role": "new"}
    report = MemoryArchive(target).import_archive(small(personas=[new]), dry_run=False, conflict="replace")
    assert (report["ok"], report["conflicts"]) == (True, [{"memory_type": "personas", "id": "keel"}])
    (record,) = target.scan(MemoryType.PERSONAS)
    assert (record["_id"], record["persona_id"], record["role"]) == ("file-1", "keel", "new")
    assert len(MemoryArchive(target).export()["stores"]["personas"]) == 1


def test_a_replaced_agent_keeps_its_credentials_and_its_automations_are_off(target: MemoryProvider) -> None:
    live = agent("keel", llm_config={"model": "m", "api_key": "live"}, automations_enabled=True, model={"x": 1})
    target.put(MemoryType.MEMAGENT, [("keel", live)])
    made = small(agents=[agent("keel", name="New", llm_config={"model": "n"}, automations_enabled=True)])
    report = MemoryArchive(target).import_archive(made, dry_run=False, conflict="replace")
    record = target.get(MemoryType.MEMAGENT, "keel")
    assert record is not None
    assert (record["name"], record["llm_config"]) == ("New", {"model": "n", "api_key": "live"})
    assert record["model"] == {"x": 1}
    assert record["automations_enabled"] is False
    assert any("automations of agent 'keel' are switched off" in warning for warning in report["warnings"])


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_applying_would_refuse_a_preview_refuses(target: MemoryProvider, dry_run: bool) -> None:
    before = stored(target)
    importing = MemoryArchive(target)
    refusals: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        (small(agents=[agent("keel", delegates=["gone"])]), {}, "delegate 'gone'"),
        (small(agents=[agent("keel", max_steps="many")]), {}, "max_steps"),
        (small(knowledge_base=[fact("a")]), {"reembed": True}, "embedding_provider"),
        (small(knowledge_base=[fact("a")]), {"conflict": "merge"}, "conflict must be one of error, skip, replace"),
        (small(knowledge_base=[fact("a")]), {"id_strategy": "fresh"}, "id_strategy must be one of preserve, new"),
        (small(knowledge_base=[fact("a")]), {"target_memory_id": ""}, "target_memory_id"),
        (small(knowledge_base=[fact("a")]), {"allowed_types": ["agents"]}, "knowledge_base: the archive has 1 records"),
        (small(knowledge_base=[fact("a")]), {"max_records": 0}, "at most 0 are allowed"),
        (small(knowledge_base=[fact("a")]), {"max_bytes": 100}, "at most 100 are allowed"),
        ({**small(), "version": 2}, {}, "version"),
    ]
    for made, options, message in refusals:
        with pytest.raises(MemoryArchiveError, match=message):
            importing.import_archive(made, dry_run=dry_run, **options)
    assert stored(target) == before


@pytest.mark.parametrize("id", ["a/b", "x" * 300, ".hidden"])
def test_an_id_that_the_folder_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path, id: str) -> None:
    with FileSystemProvider(FileSystemConfig(tmp_path / "folder")) as target:
        made = small(agents=[agent("keel")], knowledge_base=[fact(id)])
        for dry_run in (True, False):
            with pytest.raises(MemoryArchiveError, match="the destination cannot take the archive: knowledge_base"):
                MemoryArchive(target).import_archive(made, dry_run=dry_run)
        assert target.count(MemoryType.MEMAGENT) == 0


def test_a_delegate_that_is_at_the_destination_already_is_enough(target: MemoryProvider) -> None:
    importing = MemoryArchive(target)
    importing.import_archive(small(agents=[agent("plover")]), dry_run=False)
    assert importing.import_archive(small(agents=[agent("keel", delegates=["plover"])]), dry_run=False)["ok"]


def test_a_provider_for_reading_only_can_be_previewed_into_and_no_more(tmp_path: Path) -> None:
    SQLiteProvider(SQLiteConfig(tmp_path / "m.sqlite3")).close()
    with SQLiteProvider(SQLiteConfig(tmp_path / "m.sqlite3", read_only=True)) as target:
        preview = MemoryArchive(target).import_archive(small(knowledge_base=[fact("a")]))
        assert (preview["ok"], preview["planned"]) == (False, 1)
        assert any("reading only" in warning for warning in preview["warnings"])
        with pytest.raises(ReadOnlyProvider):
            MemoryArchive(target).import_archive(small(knowledge_base=[fact("a")]), dry_run=False)


class Embedder:
    def get_embedding(self, text: str) -> list[float]:
        if "impossible" in text:
            raise RuntimeError("no vector for that")
        return [float(len(text)), 0.5]


def test_vectors_are_made_anew_by_the_destinations_own_embedder(target: MemoryProvider) -> None:
    target.embedding_provider = Embedder()  # type: ignore[attr-defined]
    made = small(knowledge_base=[fact("a")], agents=[agent("keel")])
    assert MemoryArchive(target).import_archive(made, dry_run=False, reembed=True)["ok"]
    (record,) = target.scan(MemoryType.KNOWLEDGE_BASE)
    assert record["embedding"] == [6.0, 0.5]


def test_an_embedder_that_fails_leaves_nothing_written_and_is_named(target: MemoryProvider) -> None:
    target.embedding_provider = Embedder()  # type: ignore[attr-defined]
    before = stored(target)
    made = small(knowledge_base=[fact("a"), fact("b", content="impossible")])
    report = MemoryArchive(target).import_archive(made, dry_run=False, reembed=True)
    assert (report["ok"], report["imported"]) == (False, 0)
    assert report["errors"] == [
        {"memory_type": "knowledge_base", "id": "b", "error_type": "RuntimeError", "message": "no vector for that"}
    ]
    assert stored(target) == before


def test_changes_are_recorded_with_their_source_when_history_is_on(target: MemoryProvider) -> None:
    history = MemoryHistory(target, record_changes=True)
    MemoryArchive(target).import_archive(small(knowledge_base=[fact("a")], agents=[agent("keel")]), dry_run=False)
    changes = history.timeline().changes
    assert {(c["operation"], c["source"], c["action"], c["target_record_id"]) for c in changes} == {
        ("archive_import", "archive_import", "created", "a"),
        ("archive_import", "archive_import", "created", "keel"),
    }


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """A block in which the system refuses to write a longer file."""
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_failure_leaves_everything_as_it_was_and_a_repeat_completes(target: MemoryProvider) -> None:
    target.put(MemoryType.MEMAGENT, [("keel", agent("keel", instruction="live", delegates=[]))])
    target.put(MemoryType.KNOWLEDGE_BASE, [("a", fact("a", note="local"))])
    before = stored(target)
    large = {"_id": "t", "id": "t", "tool_log_id": "t", "tool_name": "x", "result": "x" * 3_000_000}
    made = small(
        agents=[agent("keel", instruction="archived")], knowledge_base=[fact("a"), fact("b")], tool_log=[large]
    )
    with no_file_beyond(1_000_000):
        report = MemoryArchive(target).import_archive(made, dry_run=False, conflict="replace")
    assert (report["ok"], report["imported"]) == (False, 0)
    (error,) = report["errors"]
    assert (error["memory_type"], error["id"], error["error_type"]) == ("tool_log", "t", "ProviderFault")
    assert error["message"]
    assert stored(target) == before
    again = MemoryArchive(target).import_archive(made, dry_run=False, conflict="replace")
    assert (again["ok"], again["imported"]) == (True, 4)
    record = target.get(MemoryType.MEMAGENT, "keel")
    assert record is not None
    assert record["instruction"] == "archived"


class Third:
    """A provider with nothing but the methods of the reference."""

    def __init__(self, *, renames: bool = False) -> None:
        self.rows: dict[str, dict[str, dict[str, Any]]] = {store: {} for store in TAXONOMY}
        self._renames = renames

    def list_all(self, kind: MemoryType) -> list[dict[str, Any]]:
        return list(self.rows[kind].values())

    def store(self, data: dict[str, Any], *, memory_store_type: MemoryType) -> str:
        id = f"new-{data['_id']}" if self._renames else data["_id"]
        self.rows[memory_store_type][id] = {**data, "_id": id}
        return str(id)

    def delete_by_id(self, id: str, kind: MemoryType) -> bool:
        return self.rows[kind].pop(id, None) is not None


def test_a_provider_of_another_maker_is_exported_and_restored() -> None:
    first, second = Third(), Third()
    assert MemoryArchive(first).import_archive(archive("agent_coordinator"), dry_run=False)["ok"]
    made = MemoryArchive(first).export()
    assert made["manifest"]["source_provider"] == "Third"
    assert MemoryArchive(second).import_archive(made, dry_run=False)["imported"] == 52
    assert second.rows == first.rows
    assert not MemoryArchive(second).import_archive(made)["ok"]


def test_a_provider_that_changes_an_id_is_reported() -> None:
    report = MemoryArchive(Third(renames=True)).import_archive(small(knowledge_base=[fact("a")]), dry_run=False)
    assert report["ok"] is False
    assert "gave the record another id, 'new-a'" in report["errors"][0]["message"]
