"""Every conflict policy, with every identity, on every provider: the preview is what applying does."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorizz import FileSystemProvider, MemoryArchive, MemoryProvider, MemoryType
from memorizz.memory_archive import validate_archive
from memorizz.taxonomy import ID_FIELDS
from tests.memorizz.support import VALID, archive
from tests.memorizz.transfer.conftest import Open
from tests.memorizz.transfer.test_import import agent, fact, small, stored
from tests.memorizz.transfer.test_property import comparable, filled, graphs, open_provider

COMPARED = ("planned", "skipped", "conflicts", "counts", "atomic")
NAMES = [path.name.removesuffix(".memorizz.json") for path in VALID]


def ids_of(provider: MemoryProvider) -> dict[str, list[tuple[Any, Any]]]:
    """The physical and the natural id of every record."""
    return {
        store: [(record["_id"], record.get(ID_FIELDS.get(store, "_id"))) for record in records]
        for store, records in stored(provider).items()
    }


@pytest.mark.parametrize("id_strategy", ["preserve", "new"])
@pytest.mark.parametrize("conflict", ["error", "skip", "replace"])
def test_a_preview_plans_what_applying_does(target: MemoryProvider, conflict: Any, id_strategy: Any) -> None:
    importing = MemoryArchive(target)
    importing.import_archive(archive("project_ns_plover"), dry_run=False)
    made = archive("agent_coordinator")
    refused = conflict == "error" and id_strategy == "preserve"
    if refused:
        target.delete(MemoryType.MEMAGENT, ["agent-plover"])
    options = {"conflict": conflict, "id_strategy": id_strategy}
    preview = importing.import_archive(made, **options)
    conflicting = archive("project_ns_plover")["manifest"]["record_count"] - refused
    assert len(preview["conflicts"]) == (conflicting if id_strategy == "preserve" else 0)
    assert preview["ok"] is not refused
    if not refused:
        report = importing.import_archive(made, dry_run=False, **options)
        assert report["ok"], report["errors"]
        assert {name: report[name] for name in COMPARED} == {name: preview[name] for name in COMPARED}
        assert report["imported"] == preview["planned"] == 52 - preview["skipped"]
        assert preview["skipped"] == (conflicting if conflict == "skip" and id_strategy == "preserve" else 0)


@pytest.mark.parametrize("name", NAMES)
def test_every_archive_of_the_reference_goes_through_a_file_and_comes_back(
    open_empty: Open, tmp_path: Path, name: str
) -> None:
    first, second = open_empty("first"), open_empty("second")
    for provider in (first, second):
        # Delegates that these archives refer to without holding them.
        for id in ("agent-plover", "agent-keel"):
            if not any(row["id"] == id for row in archive(name)["stores"]["agents"]):
                provider.put(MemoryType.MEMAGENT, [(id, agent(id, automations_enabled=False))])
    assert MemoryArchive(first).import_archive(archive(name), dry_run=False)["ok"]
    manifest = MemoryArchive(first).export_file(tmp_path / "out" / "a.memorizz.json")
    assert validate_archive(json.loads((tmp_path / "out" / "a.memorizz.json").read_text()))["manifest"] == manifest
    options = {"conflict": "replace", "max_bytes": 10_000_000, "max_records": manifest["record_count"]}
    report = MemoryArchive(second).import_file(tmp_path / "out" / "a.memorizz.json", dry_run=False, **options)
    assert (report["ok"], report["imported"]) == (True, manifest["record_count"])
    assert stored(second) == stored(first)


def test_limits_of_a_file_can_be_raised_and_lowered(target: MemoryProvider, tmp_path: Path) -> None:
    target.put(MemoryType.KNOWLEDGE_BASE, [(id, fact(id, content="x" * 1000)) for id in "abc"])
    path = tmp_path / "a.memorizz.json"
    manifest = MemoryArchive(target).export_file(path, max_records=3, max_bytes=100_000)
    assert manifest["record_count"] == 3
    for limits, message in (({"max_records": 2}, "at most 2"), ({"max_bytes": 3_000}, "more than 3000 bytes")):
        with pytest.raises(ValueError, match=message):
            MemoryArchive(target).import_file(path, **limits)
    with pytest.raises(TypeError, match="overwrite"):
        MemoryArchive(target).import_file(path, overwrite=True)


def test_options_are_refused_in_the_documented_order(target: MemoryProvider, tmp_path: Path) -> None:
    made = small(knowledge_base=[fact("a")])
    bad: dict[str, Any] = {"conflict": "merge", "allowed_types": ["nothing"]}
    with pytest.raises(ValueError, match="the checksum does not fit"):
        MemoryArchive(target).import_archive({**made, "manifest": {}}, **bad)
    with pytest.raises(ValueError, match="conflict must be one of"):
        MemoryArchive(target).import_archive(made, **bad)
    with pytest.raises(ValueError, match="unknown memory type 'nothing'"):
        MemoryArchive(target).import_archive(made, allowed_types=["nothing"])
    with pytest.raises(FileNotFoundError):
        MemoryArchive(target).import_file(tmp_path / "missing.json")


@pytest.mark.parametrize("kind", ["filesystem", "sqlite"])
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(graph=graphs(), moved=st.randoms(use_true_random=False))
def test_replacing_everything_by_itself_changes_nothing(kind: str, graph: Any, moved: Any) -> None:
    """Whatever the physical ids are."""
    for store, records in graph.items():
        if store in ID_FIELDS and store != "agents":
            ids = list(records)
            moved.shuffle(ids)
            graph[store] = dict(zip(ids, records.values(), strict=True))
    with tempfile.TemporaryDirectory() as directory, open_provider(kind, Path(directory) / "a") as provider:
        filled(provider, graph)
        before = ids_of(provider)
        made = MemoryArchive(provider).export()
        report = MemoryArchive(provider).import_archive(made, dry_run=False, conflict="replace")
        assert (report["ok"], len(report["conflicts"])) == (True, made["manifest"]["record_count"])
        assert ids_of(provider) == before
        assert comparable(MemoryArchive(provider).export()) == comparable(made)


def test_an_archive_says_whether_it_is_of_one_moment(target: MemoryProvider) -> None:
    target.put(MemoryType.KNOWLEDGE_BASE, [("a", fact("a"))])
    made = MemoryArchive(target).export()
    said = " ".join(made["manifest"]["warnings"])
    assert ("read while others could write" in said) is isinstance(target, FileSystemProvider)
    assert ("of one moment" in said) is target.capabilities.snapshot
