"""A tenant's archive comes back as that tenant's, and as nobody else's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memorizz import FileSystemProvider, MemoryArchive, MemoryArchiveError, MemoryProvider, MemoryType
from tests.memorizz.transfer.test_import import agent, fact, small, stored


def test_a_users_archive_comes_back_under_the_same_user_with_its_agents(
    reference: FileSystemProvider, target: MemoryProvider
) -> None:
    made = MemoryArchive(reference).export(user_id="ana")
    assert made["stores"]["agents"]
    importing = MemoryArchive(target)
    assert importing.import_archive(made, user_id="ana")["ok"]
    report = importing.import_archive(made, dry_run=False, user_id="ana")
    assert (report["ok"], report["imported"]) == (True, made["manifest"]["record_count"])
    again = importing.export(user_id="ana")
    assert again["manifest"]["counts"] == made["manifest"]["counts"]
    assert importing.import_archive(made, dry_run=False, user_id="ana", conflict="replace")["ok"]


@pytest.mark.parametrize("user_id", ["ben", None, ""])
def test_it_comes_back_as_nobody_elses(
    reference: FileSystemProvider, target: MemoryProvider, user_id: str | None
) -> None:
    before = stored(target)
    for made in (
        MemoryArchive(reference).export(user_id="ana"),
        MemoryArchive(reference).export(user_id="ana", memory_types=["agents", "knowledge_base"]),
    ):
        with pytest.raises(MemoryArchiveError, match="outside of the scope"):
            MemoryArchive(target).import_archive(made, user_id=user_id)
    assert stored(target) == before


def test_agents_alone_are_nobodys_unless_the_archive_was_made_for_the_user(target: MemoryProvider) -> None:
    made = small(agents=[agent("keel")])
    with pytest.raises(MemoryArchiveError, match="agents 'keel': user_id is None, outside of the scope 'ana'"):
        MemoryArchive(target).import_archive(made, user_id="ana")
    assert MemoryArchive(target).import_archive(made, user_id=None)["ok"]


def test_the_anonymous_scope_is_exact(reference: FileSystemProvider, target: MemoryProvider) -> None:
    made = MemoryArchive(reference).export(user_id=None)
    assert MemoryArchive(target).import_archive(made, dry_run=False, user_id=None)["ok"]
    for store in MemoryType:
        assert all(record.get("user_id") is None for record in target.scan(store))


@pytest.mark.parametrize("conflict", ["error", "skip", "replace"])
def test_a_record_of_somebody_else_at_the_destination_is_never_touched(target: MemoryProvider, conflict: Any) -> None:
    target.put(MemoryType.KNOWLEDGE_BASE, [("a", fact("a", user_id="ben"))])
    before = stored(target)
    made = small(knowledge_base=[fact("a", user_id="ana")])
    for dry_run in (True, False):
        with pytest.raises(MemoryArchiveError, match="the destination has such a record outside of the scope"):
            MemoryArchive(target).import_archive(made, user_id="ana", conflict=conflict, dry_run=dry_run)
    assert stored(target) == before


def test_an_agent_of_everybody_is_not_replaced_by_one_user(target: MemoryProvider) -> None:
    target.put(MemoryType.MEMAGENT, [("keel", agent("keel"))])
    made = small(agents=[agent("keel", user_id="ana")])
    with pytest.raises(MemoryArchiveError, match="outside of the scope"):
        MemoryArchive(target).import_archive(made, user_id="ana", conflict="replace")


def test_an_application_is_a_scope_as_well(target: MemoryProvider) -> None:
    importing = MemoryArchive(target)
    made = small(knowledge_base=[fact("a", application_id="shop"), fact("b", application_id="shop")])
    with pytest.raises(MemoryArchiveError, match="application_id is 'shop', outside of the scope 'bank'"):
        importing.import_archive(made, application_id="bank")
    assert importing.import_archive(made, dry_run=False, application_id="shop")["ok"]
    target.put(MemoryType.KNOWLEDGE_BASE, [("c", fact("c", application_id="bank"))])
    exported = importing.export(application_id="bank")
    assert [row["id"] for row in exported["stores"]["knowledge_base"]] == ["c"]


ENTRY = {"record_type": "memory_history_x", "user_id": "ana", "agent_id": "pub", "owner_agent_id": "pub"}


@pytest.mark.parametrize("content", [ENTRY, json.dumps(ENTRY)])
@pytest.mark.parametrize("store", ["conversation_memory", "knowledge_base", "shared_memory"])
def test_what_a_record_says_inside_does_not_make_it_another_users(
    target: MemoryProvider, store: str, content: Any
) -> None:
    row = {"_id": "r", "id": "r", "user_id": "ben", "role": "system", "memory_id": "ns", "content": content}
    made = small(**{store: [row]})
    with pytest.raises(MemoryArchiveError, match="user_id is 'ben', outside of the scope 'ana'"):
        MemoryArchive(target).import_archive(made, user_id="ana")
    target.put(MemoryType(store), [("r", row)])
    assert MemoryArchive(target).export(user_id="ana")["manifest"]["record_count"] == 0
    mine = small(**{store: [{**row, "user_id": "ana"}]})
    with pytest.raises(MemoryArchiveError, match="outside of the scope"):
        MemoryArchive(target).import_archive(mine, user_id="ana", conflict="replace")


def test_a_record_belongs_to_the_agents_that_it_names_inside_and_outside(target: MemoryProvider) -> None:
    rows = {
        "outer": {"agent_id": "hidden", "content": ENTRY},
        "inner": {"agent_id": "pub", "content": {**ENTRY, "agent_id": "hidden"}},
        "took part": {"participants": {"a": "hidden"}, "content": "x"},
        "seen": {"agent_id": "pub", "content": "x"},
        "private": {"memory_id": "of-hidden", "content": "x"},
        "public": {"memory_id": "of-both", "content": "x"},
    }
    target.put(MemoryType.KNOWLEDGE_BASE, list(rows.items()))
    for id, names in (("hidden", ["of-hidden", "of-both"]), ("pub", ["of-both"])):
        target.store_memagent({"agent_id": id, "memory_ids": names})
    made = MemoryArchive(target).export(visible_agents=["pub"], memory_types=["knowledge_base"])
    assert {row["id"] for row in made["stores"]["knowledge_base"]} == {"seen", "public"}
    assert made["manifest"]["left_out"] == {"knowledge_base": 4}
