"""Which record is which: records that share an id, and ids that another record has."""

from __future__ import annotations

from typing import Any

import pytest

from memorizz import FileSystemProvider, MemoryArchive, MemoryArchiveError, MemoryProvider, MemoryType
from memorizz.memory_archive import seal_archive, validate_archive
from tests.memorizz.transfer.conftest import Open
from tests.memorizz.transfer.test_import import agent, fact, small, stored


def persona(id: str, natural: str | None, **fields: Any) -> dict[str, Any]:
    return {"_id": id, "id": id, "persona_id": natural, "name": natural or id, **fields}


def answers(provider: MemoryProvider) -> None:
    """One question that two users asked, under one key."""
    for user in ("ana", "ben"):
        row = {"_id": f"row-{user}", "cache_key": "ck", "query": "when?", "response": user, "user_id": user}
        provider.put(MemoryType.SEMANTIC_CACHE, [(row["_id"], row)])


def test_of_several_with_one_natural_id_the_one_stored_under_it_has_it(target: MemoryProvider) -> None:
    target.put(MemoryType.PERSONAS, [("file", persona("file", "keel", role="old"))])
    target.put(MemoryType.PERSONAS, [("keel", persona("keel", "keel", role="new"))])
    target.put(MemoryType.MEMAGENT, [("a", agent("a", persona={"persona_id": "keel", "storage_id": "file"}))])
    made = MemoryArchive(target).export()
    assert [(row["id"], row["data"]["role"]) for row in made["stores"]["personas"]] == [
        ("file", "old"),
        ("keel", "new"),
    ]
    assert made["stores"]["agents"][0]["data"]["persona"] == {"persona_id": "keel", "storage_id": "file"}
    assert made["manifest"]["natural_ids"] == {"personas": {"file": "keel"}}
    assert "such as 'file' (of 'keel')" in " ".join(made["manifest"]["warnings"])


def test_records_that_share_a_natural_id_have_it_again_after_a_restore(open_empty: Open) -> None:
    source, target = open_empty("source"), open_empty("target")
    answers(source)
    made = validate_archive(MemoryArchive(source).export())
    assert MemoryArchive(target).import_archive(made, dry_run=False)["ok"]
    keys = {record["response"]: record["cache_key"] for record in target.scan(MemoryType.SEMANTIC_CACHE)}
    assert keys == {"ana": "ck", "ben": "ck"}
    assert MemoryArchive(target).export()["manifest"]["natural_ids"] == made["manifest"]["natural_ids"]


def test_they_are_restored_over_themselves(target: MemoryProvider) -> None:
    answers(target)
    before = stored(target)
    report = MemoryArchive(target).import_archive(MemoryArchive(target).export(), dry_run=False, conflict="replace")
    assert (report["ok"], len(report["conflicts"])) == (True, 2)
    assert stored(target) == before


def test_copies_of_them_are_told_apart(target: MemoryProvider) -> None:
    answers(target)
    made = MemoryArchive(target).export()
    assert MemoryArchive(target).import_archive(made, dry_run=False, id_strategy="new")["ok"]
    keys = [record["cache_key"] for record in target.scan(MemoryType.SEMANTIC_CACHE)]
    assert len(keys) == 4
    assert keys.count("ck") == 2
    assert len(set(keys)) == 3


@pytest.mark.parametrize(
    "said", [5, {"personas": 5}, {"personas": {"a": 5}}, {"personas": {"a": ""}}, {"knowledge_base": {"a": "b"}}]
)
def test_natural_ids_that_the_manifest_cannot_mean_are_refused(target: MemoryProvider, said: object) -> None:
    made = small(personas=[persona("a", "a")])
    made["manifest"]["natural_ids"] = said
    with pytest.raises(MemoryArchiveError, match="natural_ids must map stores with a natural id to objects"):
        MemoryArchive(target).import_archive(seal_archive(made))


def test_a_manifest_cannot_give_a_user_the_natural_id_of_another_users_record(target: MemoryProvider) -> None:
    answers(target)
    row = {"_id": "mine", "id": "mine", "cache_key": "mine", "query": "when?", "response": "x", "user_id": "eve"}
    made = small(semantic_cache=[row])
    assert MemoryArchive(target).import_archive(made, user_id="eve")["ok"]
    made["manifest"]["natural_ids"] = {"semantic_cache": {"mine": "ck"}}
    with pytest.raises(MemoryArchiveError, match="semantic_cache 'ck': the destination has such a record outside"):
        MemoryArchive(target).import_archive(seal_archive(made), user_id="eve")


def test_a_natural_id_that_is_no_text_does_not_spoil_the_archive(target: MemoryProvider) -> None:
    for id, natural in (("a", ""), ("b", 7), ("c", 0)):
        target.put(MemoryType.TOOLBOX, [(id, {"_id": id, "tool_id": natural, "name": id})])
    made = validate_archive(MemoryArchive(target).export())
    assert [(row["id"], row["data"]["tool_id"]) for row in made["stores"]["toolbox"]] == [
        ("a", None), ("7", "7"), ("c", None),
    ]  # fmt: skip
    assert "natural_ids" not in made["manifest"]


@pytest.mark.parametrize("conflict", ["error", "skip", "replace"])
def test_a_record_of_another_identity_under_the_same_file_name_is_not_touched(
    target: MemoryProvider, conflict: Any
) -> None:
    innocent = persona("keel", "other", role="innocent")
    target.put(MemoryType.PERSONAS, [("keel", innocent)])
    made = small(personas=[persona("keel", "keel", role="restored")])
    report = MemoryArchive(target).import_archive(made, dry_run=False, conflict=conflict)
    assert (report["ok"], report["imported"], report["conflicts"]) == (True, 1, [])
    roles = {record["persona_id"]: record["role"] for record in target.scan(MemoryType.PERSONAS)}
    assert roles == {"other": "innocent", "keel": "restored"}
    assert target.get(MemoryType.PERSONAS, "keel") == innocent
    again = MemoryArchive(target).import_archive(made, dry_run=False, conflict="replace")
    assert again["conflicts"] == [{"memory_type": "personas", "id": "keel"}]
    assert target.count(MemoryType.PERSONAS) == 2


def test_two_records_are_never_written_over_each_other(target: MemoryProvider) -> None:
    target.put(MemoryType.PERSONAS, [("y", persona("y", "x", role="local"))])
    made = small(personas=[persona("x", "x", role="first"), persona("y", "y", role="second")])
    report = MemoryArchive(target).import_archive(made, dry_run=False, conflict="replace")
    assert (report["ok"], report["conflicts"]) == (True, [{"memory_type": "personas", "id": "x"}])
    roles = {record["persona_id"]: record["role"] for record in target.scan(MemoryType.PERSONAS)}
    assert roles == {"x": "first", "y": "second"}


def test_a_record_without_natural_id_is_known_by_its_own(target: MemoryProvider) -> None:
    target.put(MemoryType.SUMMARIES, [("s", {"_id": "s", "id": "s", "content": "local"})])
    made = small(summaries=[{"_id": "s", "id": "s", "content": "restored"}])
    assert MemoryArchive(target).import_archive(made)["conflicts"] == [{"memory_type": "summaries", "id": "s"}]
    assert MemoryArchive(target).import_archive(made, dry_run=False, conflict="replace")["ok"]
    assert [record["content"] for record in target.scan(MemoryType.SUMMARIES)] == ["restored"]


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_whatever_is_exported_can_be_read_again_however_deep_it_is_nested(target: MemoryProvider) -> None:
    target.put(MemoryType.KNOWLEDGE_BASE, [("k", fact("k", content=nested(59)))])
    made = validate_archive(MemoryArchive(target).export())
    assert made["stores"]["knowledge_base"][0]["data"]["content"] == nested(59)
    target.put(MemoryType.KNOWLEDGE_BASE, [("k", fact("k", content=nested(60)))], replace=True)
    with pytest.raises(MemoryArchiveError, match=r"stores.knowledge_base\[0\].data.content.*nested deeper than 64"):
        MemoryArchive(target).export()


@pytest.mark.parametrize("content", ["[" * 60 + "]" * 60, '{"limit": 1e999}', '{"torn": '])
def test_shared_content_that_no_archive_could_hold_as_an_object_stays_text(
    target: MemoryProvider, content: str
) -> None:
    target.put(MemoryType.SHARED_MEMORY, [("s", {"_id": "s", "memory_id": "s", "content": content})])
    made = validate_archive(MemoryArchive(target).export())
    assert made["stores"]["shared_memory"][0]["data"]["content"] == content


@pytest.mark.parametrize(("content", "unpacked"), [("{}", {}), ("[]", []), ('[{"a": 1.5}]', [{"a": 1.5}])])
def test_shared_content_is_an_object_in_the_archive(target: MemoryProvider, content: str, unpacked: object) -> None:
    target.put(MemoryType.SHARED_MEMORY, [("s", {"_id": "s", "memory_id": "s", "content": content})])
    assert MemoryArchive(target).export()["stores"]["shared_memory"][0]["data"]["content"] == unpacked


def test_fields_of_odd_types_do_not_stop_an_export(target: MemoryProvider) -> None:
    target.put(MemoryType.MEMAGENT, [("keel", agent("keel", knowledge_base_ids=["kb"]))])
    odd = {"agent_id": {"a": 1}, "memory_id": ["ns"], "knowledge_base_id": ["x"], "participants": 5}
    target.put(MemoryType.KNOWLEDGE_BASE, [("odd", {"_id": "odd", "content": "x", **odd}), ("own", fact("own"))])
    assert MemoryArchive(target).export(agent_id="keel")["manifest"]["record_count"] == 1


def test_a_duplicate_in_a_folder_of_the_reference_is_exported_with_a_warning(reference: FileSystemProvider) -> None:
    (record,) = reference.scan(MemoryType.PERSONAS)
    twin = {**record, "_id": record["persona_id"], "id": record["persona_id"]}
    reference.put(MemoryType.PERSONAS, [(twin["_id"], twin)])
    made = validate_archive(MemoryArchive(reference).export(agent_id="agent-keel"))
    assert [row["id"] for row in made["stores"]["personas"]] == [record["_id"], "persona-keel"]
    assert "personas: 1 records share their natural id" in " ".join(made["manifest"]["warnings"])
