"""Random graphs: out, in and out again is the identity, on every provider."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorizz import FileSystemConfig, FileSystemProvider, MemoryArchive, MemoryProvider, SQLiteConfig, SQLiteProvider
from memorizz.taxonomy import ID_FIELDS, TAXONOMY, MemoryType
from tests.memorizz.archive.test_canonical import TREES

IDS = st.text("abcxyz019-_:@ é🎉", min_size=1, max_size=12).filter(lambda id: id.strip(" .") == id)
NAMES = st.sampled_from(["ns-1", "ns-2", "ns-3"])
NOTES = st.dictionaries(st.sampled_from(["note", "metadata", "title"]), TREES, max_size=2)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, dict[str, dict[str, Any]]]:
    """Records by store and id, which refer to each other."""
    agents = draw(st.lists(IDS, unique_by=str.casefold, max_size=3))
    graph: dict[str, dict[str, dict[str, Any]]] = {store: {} for store in TAXONOMY}
    for agent in agents:
        graph["agents"][agent] = {
            "agent_id": agent,
            "name": draw(st.text(max_size=5)),
            "memory_ids": draw(st.lists(NAMES, unique=True, max_size=2)),
            "delegates": draw(st.lists(st.sampled_from(agents), unique=True, max_size=2)),
        }
    owners = st.none() | st.sampled_from(agents) if agents else st.none()
    for store in sorted(TAXONOMY.keys() - {"agents"}):
        known: list[str] = []
        for id in draw(st.lists(IDS, unique_by=str.casefold, max_size=3)):
            record = {
                **draw(NOTES),
                "content": draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
                "memory_id": draw(NAMES),
                "agent_id": draw(owners),
                "thread_id": draw(st.sampled_from(["t-1", "t-2", None])),
            }
            if store in ID_FIELDS:
                record[ID_FIELDS[store]] = id
            if known:
                record["supersedes"] = draw(st.sampled_from(known))
            known.append(id)
            graph[store][id] = record
    return graph


def open_provider(kind: str, path: Path) -> MemoryProvider:
    if kind == "filesystem":
        return FileSystemProvider(FileSystemConfig(path))
    return SQLiteProvider(SQLiteConfig(path.with_suffix(".sqlite3")))


def filled(provider: MemoryProvider, graph: dict[str, dict[str, dict[str, Any]]]) -> None:
    for store, records in graph.items():
        rows = [(id, {**record, "_id": id, "id": id}) for id, record in records.items()]
        provider.put(MemoryType(store), rows)


def comparable(made: dict[str, Any]) -> dict[str, Any]:
    """An archive without what differs from one export to the next."""
    stores = json.loads(json.dumps(made["stores"]))
    for row in stores["agents"]:
        row["data"].pop("automations_enabled", None)
    return {store: sorted(rows, key=lambda row: str(row["id"])) for store, rows in stores.items()}


@pytest.mark.parametrize("kind", ["filesystem", "sqlite"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(graph=graphs())
def test_export_import_export_is_the_identity(kind: str, graph: dict[str, dict[str, dict[str, Any]]]) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        open_provider(kind, Path(directory) / "a") as source,
        open_provider(kind, Path(directory) / "b") as target,
    ):
        filled(source, graph)
        made = MemoryArchive(source).export()
        report = MemoryArchive(target).import_archive(made, dry_run=False)
        assert (report["ok"], report["imported"]) == (True, made["manifest"]["record_count"])
        assert comparable(MemoryArchive(target).export()) == comparable(made)


@pytest.mark.parametrize("kind", ["filesystem", "sqlite"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(graph=graphs())
def test_a_copy_is_isomorphic_and_disjoint(kind: str, graph: dict[str, dict[str, dict[str, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as directory, open_provider(kind, Path(directory) / "a") as provider:
        filled(provider, graph)
        archive = MemoryArchive(provider)
        made = archive.export()
        before = comparable(made)
        report = archive.import_archive(made, dry_run=False, id_strategy="new")
        assert (report["ok"], report["conflicts"]) == (True, [])
        both = comparable(archive.export())
        for store, rows in before.items():
            originals = {row["id"]: row["data"] for row in rows}
            copies = {row["id"]: row["data"] for row in both[store] if row["id"] not in originals}
            assert len(copies) == len(originals)
            for data in copies.values():
                # Whatever refers to a record of this store refers to a copy.
                if store not in ("agents", "shared_memory"):
                    assert data.get("supersedes") in {None, *copies}
                assert set(data.get("delegates") or ()) <= copies.keys()
        assert {row["id"] for row in both["agents"]} >= {row["id"] for row in before["agents"]}
