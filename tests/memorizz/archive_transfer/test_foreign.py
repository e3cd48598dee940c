"""Providers of other makers, which have the methods of the reference instead of ours."""

from __future__ import annotations

from typing import Any

import pytest

from memorizz import InvalidRecord, MemoryArchive, MemoryArchiveError, MemoryType, ProviderFault, ReadOnlyProvider
from memorizz.taxonomy import TAXONOMY
from tests.memorizz.support import archive
from tests.memorizz.transfer.test_import import agent, fact, small

Rows = dict[str, dict[str, Any]]


class Other:
    """Keeps records as an archive provider of another maker does, and counts how often it lists them."""

    def __init__(self, **said: Any) -> None:
        self.rows: dict[str, Rows] = {store: {} for store in TAXONOMY}
        self.listings = 0
        self.read_only = said.get("read_only", False)
        self.full_at = said.get("full_at")
        self.calls: list[tuple[str, bool, bool]] = []

    def list_archive_records(self, kind: MemoryType) -> list[dict[str, Any]]:
        self.listings += 1
        return [dict(row) for row in self.rows[kind].values()]

    def validate_archive_record(self, kind: MemoryType, id: str, data: dict[str, Any]) -> None:
        if data.get("content") == "refused":
            raise ValueError(f"no {kind} {id} here")
        if data.get("content") == "odd":
            raise RuntimeError("out of order")

    def store_archive_record(
        self, kind: MemoryType, id: str, data: dict[str, Any], *, replace: bool, reembed: bool
    ) -> str:
        self.calls.append((id, replace, reembed))
        self.rows[kind][id] = {**data, "kept_at": len(self.calls)}
        if len(self.calls) == self.full_at:
            raise OSError("the service went away")
        return id

    def delete_by_id(self, id: str, kind: MemoryType) -> bool:
        return self.rows[kind].pop(id, None) is not None


def test_the_methods_for_archives_are_preferred() -> None:
    other = Other()
    assert MemoryArchive(other).import_archive(small(knowledge_base=[fact("a")]), dry_run=False)["ok"]
    report = MemoryArchive(other).import_archive(small(knowledge_base=[fact("a")]), dry_run=False, conflict="replace")
    assert (report["ok"], report["atomic"], len(report["conflicts"])) == (True, False, 1)
    assert other.calls == [("a", False, False), ("a", True, False)]
    assert MemoryArchive(other).export()["manifest"]["source_provider"] == "Other"


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_its_own_check_refuses_is_refused_before_anything_is_written(dry_run: bool) -> None:
    other = Other()
    with pytest.raises(MemoryArchiveError, match="knowledge_base 'b': no knowledge_base b here"):
        MemoryArchive(other).import_archive(
            small(knowledge_base=[fact("a"), fact("b", content="refused")]), dry_run=dry_run
        )
    with pytest.raises(ProviderFault, match="Other: RuntimeError: out of order"):
        MemoryArchive(other).import_archive(small(knowledge_base=[fact("b", content="odd")]), dry_run=dry_run)
    assert other.calls == []


def test_one_for_reading_only_is_exported_and_not_written() -> None:
    other = Other(read_only=True)
    other.rows["knowledge_base"]["a"] = fact("a")
    assert MemoryArchive(other).export()["manifest"]["record_count"] == 1
    assert MemoryArchive(other).import_archive(small())["ok"] is False
    with pytest.raises(ReadOnlyProvider):
        MemoryArchive(other).import_archive(small(), dry_run=False)


@pytest.mark.parametrize("full_at", [1, 3, 5])
def test_a_failure_half_way_is_taken_back_although_it_keeps_records_in_a_form_of_its_own(full_at: int) -> None:
    other = Other(full_at=full_at)
    other.rows["knowledge_base"]["a"] = fact("a", content="local")
    made = small(knowledge_base=[fact(id) for id in "abcd"], agents=[agent("keel")])
    report = MemoryArchive(other).import_archive(made, dry_run=False, conflict="replace")
    assert (report["ok"], report["imported"]) == (False, 0)
    assert report["errors"][0]["message"] == "Other: OSError: the service went away"
    assert list(other.rows["knowledge_base"]) == ["a"]
    assert other.rows["knowledge_base"]["a"]["content"] == "local"
    assert not other.rows["agents"]


def test_one_that_cannot_delete_names_what_is_left() -> None:
    other = Other(full_at=3)
    other.delete_by_id = None  # type: ignore[assignment, method-assign]
    report = MemoryArchive(other).import_archive(small(knowledge_base=[fact(id) for id in "abcd"]), dry_run=False)
    assert (report["ok"], report["imported"]) == (False, 3)
    assert [error["id"] for error in report["errors"]] == ["c", "c", "b", "a"]


def test_each_store_is_listed_a_fixed_number_of_times() -> None:
    other = Other()
    made = small(knowledge_base=[fact(f"f-{number}") for number in range(300)])
    for conflict in ("error", "skip", "replace"):
        other.listings = 0
        assert MemoryArchive(other).import_archive(made, dry_run=False, conflict=conflict)["ok"]
        assert other.listings <= 3


class Renaming(Other):
    """Has ids of a form of its own."""

    def archive_target_id(self, kind: MemoryType, id: str) -> str:
        return id if kind is MemoryType.MEMAGENT else f"{kind}/{id}"


def test_ids_of_a_form_of_its_own_are_in_the_map_and_followed_by_references() -> None:
    renaming = Renaming()
    report = MemoryArchive(renaming).import_archive(archive("types_kb_conv"), dry_run=False)
    assert report["ok"], report["errors"]
    rows = renaming.rows["knowledge_base"]
    assert all(id.startswith("knowledge_base/") for id in rows)
    assert set(report["id_map"].values()) == {id for kept in renaming.rows.values() for id in kept}
    superseding = [row for row in rows.values() if row.get("supersedes")]
    assert superseding
    assert all(row["supersedes"] in rows for row in superseding)


def test_records_without_an_id_or_of_no_json_form_are_named() -> None:
    other = Other()
    other.rows["knowledge_base"]["x"] = {"content": "nameless"}
    with pytest.raises(InvalidRecord, match="knowledge_base: a record has no id"):
        MemoryArchive(other).export()
    other.rows["knowledge_base"]["x"] = {"_id": "x", "content": b"bytes"}
    with pytest.raises(MemoryArchiveError, match="knowledge_base: a record of the provider cannot be read: content"):
        MemoryArchive(other).export()


def test_a_record_that_has_only_a_natural_id_is_exported_under_it() -> None:
    other = Other()
    other.rows["agents"]["keel"] = {"agent_id": "keel", "name": "Keel", "tools": [{"name": "ring", "call": len}]}
    made = MemoryArchive(other).export(agent_id="keel")
    assert made["stores"]["agents"][0]["data"] == {
        "agent_id": "keel", "name": "Keel", "tools": [{"name": "ring"}], "_id": "keel", "id": "keel",
    }  # fmt: skip
