"""Copies: every structured reference leads into the copy, and nothing else changes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from memorizz import FileSystemProvider, MemoryArchive, MemoryArchiveError, MemoryProvider, MemoryType
from memorizz.taxonomy import TAXONOMY
from tests.memorizz.transfer.test_import import agent, fact, small

ORIGINALS = [
    "agent-keel", "agent-plover", "ns-keel", "ns-plover", "thr-1", "thr-d", "run-1", "trace-1", "span-1",
    "persona-keel",
    "caaf4703-54ff-4a3c-8080-7df8266958c2", "skill-gale", "wf-gale", "ent-gauge", "ent-pier", "tool-ring-bell",
]  # fmt: skip


def copied(target: MemoryProvider, made: dict[str, Any], **options: Any) -> dict[str, str]:
    """The map of ids of a copy that was written."""
    report = MemoryArchive(target).import_archive(made, dry_run=False, id_strategy="new", **options)
    assert report["ok"], report["errors"]
    ids: dict[str, str] = report["id_map"]
    return ids


def text_of(provider: MemoryProvider) -> str:
    return json.dumps([list(provider.scan(store)) for store in MemoryType])


def test_a_copy_refers_to_nothing_of_its_original(reference: FileSystemProvider, target: MemoryProvider) -> None:
    made = MemoryArchive(reference).export(agent_id="agent-keel")
    ids = copied(target, made)
    text = text_of(target)
    assert [name for name in ORIGINALS if f'"{name}"' in text] == []
    for store in TAXONOMY:
        for row in made["stores"][store]:
            assert row["id"] in ids
            assert f'"{row["id"]}"' not in text
    assert len(set(ids.values())) == len(ids)
    assert "added" not in ids


def test_a_copy_is_the_original_under_its_map_of_ids(reference: FileSystemProvider, target: MemoryProvider) -> None:
    made = MemoryArchive(reference).export(agent_id="agent-keel")
    ids = copied(target, made)
    copy = MemoryArchive(target).export(agent_id=ids["agent-keel"])
    assert copy["manifest"]["counts"] == made["manifest"]["counts"]
    back = {new: old for old, new in ids.items()}
    pattern = re.compile("|".join(map(re.escape, sorted(back, key=len, reverse=True))))
    restored = json.loads(pattern.sub(lambda found: back[found[0]], json.dumps(copy["stores"])))
    for store in TAXONOMY:
        theirs = {row["id"]: row["data"] for row in restored[store]}
        for row in made["stores"][store]:
            data = dict(row["data"])
            if store == "agents":
                data["automations_enabled"] = False
            assert theirs[row["id"]] == data


def test_what_a_journal_says_of_fields_is_no_reference(reference: FileSystemProvider, target: MemoryProvider) -> None:
    copied(target, MemoryArchive(reference).export())
    changes = [
        record["content"] for record in target.scan(MemoryType.SHARED_MEMORY) if str(record["_id"]).startswith("mem-ch")
    ]
    assert changes
    for change in changes:
        assert set(change["field_changes"].values()) <= {"added", "removed", "modified", "[REDACTED]"}
        assert re.fullmatch(r"mem-change-[0-9a-f-]{36}", change["record_id"])


def test_tools_keep_the_form_of_their_ids(reference: FileSystemProvider, target: MemoryProvider) -> None:
    ids = copied(target, MemoryArchive(reference).export())
    assert ids["agent-keel:post_warning"] == f"{ids['agent-keel']}:post_warning"


def test_a_snapshot_is_called_after_its_span(reference: FileSystemProvider, target: MemoryProvider) -> None:
    ids = copied(target, MemoryArchive(reference).export())
    assert ids["ctx-span-1"] == f"ctx-{ids['span-1']}"


def test_prose_is_never_rewritten(target: MemoryProvider) -> None:
    text = "See fact a of agent keel in ns-keel."
    made = small(
        knowledge_base=[fact("a", content=text, memory_id="ns-keel", agent_id="keel", title="a", supersedes="a0")],
        agents=[agent("keel", instruction="Ask keel about a.")],
    )
    ids = copied(target, made)
    (record,) = target.scan(MemoryType.KNOWLEDGE_BASE)
    assert (record["content"], record["title"]) == (text, "a")
    assert (record["agent_id"], record["memory_id"]) == (ids["keel"], ids["ns-keel"])
    # A reference to what the archive does not hold stays what it was.
    assert record["supersedes"] == "a0"


def test_one_text_as_several_kinds_of_id_is_told_apart(target: MemoryProvider) -> None:
    made = small(
        knowledge_base=[fact("same", memory_id="same", thread_id="same", supersedes="same")],
        conversation_memory=[{"_id": "same", "id": "same", "content": "x", "memory_id": "ns", "thread_id": "same"}],
    )
    copied(target, made)
    (record,), (message,) = target.scan(MemoryType.KNOWLEDGE_BASE), target.scan(MemoryType.CONVERSATION_MEMORY)
    assert record["supersedes"] == record["_id"] != message["_id"]
    assert record["memory_id"] != record["_id"]
    assert record["thread_id"] == message["thread_id"]


def test_two_copies_share_nothing(reference: FileSystemProvider, target: MemoryProvider) -> None:
    made = MemoryArchive(reference).export(agent_id="agent-keel")
    first, second = copied(target, made), copied(target, made)
    assert first.keys() == second.keys()
    assert not set(first.values()) & set(second.values())
    assert target.count(MemoryType.MEMAGENT) == 4


def test_a_preview_of_a_copy_shows_ids_that_are_not_used(reference: FileSystemProvider, target: MemoryProvider) -> None:
    made = MemoryArchive(reference).export(agent_id="agent-plover")
    preview = MemoryArchive(target).import_archive(made, id_strategy="new")
    assert preview["ok"]
    assert preview["id_map"].keys() == copied(target, made).keys()


def test_a_namespace_takes_the_place_of_the_only_one(target: MemoryProvider) -> None:
    session = {"_id": "s-1", "id": "s-1", "memory_id": "s-1", "content": {"blackboard": [], "root_agent_id": "keel"}}
    made = small(
        knowledge_base=[fact("a", memory_id="old")],
        agents=[agent("keel", memory_ids=["old"], thread_titles={"old": "Title"})],
        shared_memory=[session],
    )
    report = MemoryArchive(target).import_archive(made, dry_run=False, target_memory_id="new-home")
    assert report["id_map"] == {"old": "new-home"}
    (record,), (keel,) = target.scan(MemoryType.KNOWLEDGE_BASE), target.scan(MemoryType.MEMAGENT)
    assert record["memory_id"] == "new-home"
    assert (keel["memory_ids"], keel["thread_titles"]) == (["new-home"], {"new-home": "Title"})
    (kept,) = target.scan(MemoryType.SHARED_MEMORY)
    assert kept["memory_id"] == "s-1"


def test_several_namespaces_do_not_become_one(target: MemoryProvider) -> None:
    made = small(knowledge_base=[fact("a", memory_id="one"), fact("b", memory_id="two")])
    with pytest.raises(MemoryArchiveError, match=r"2 namespaces \(one, two\), which cannot become the one"):
        MemoryArchive(target).import_archive(made, target_memory_id="three")


def test_a_copy_into_a_namespace_has_new_ids_and_that_namespace(target: MemoryProvider) -> None:
    ids = copied(target, small(knowledge_base=[fact("a", memory_id="old")]), target_memory_id="new-home")
    assert ids["old"] == "new-home"
    (record,) = target.scan(MemoryType.KNOWLEDGE_BASE)
    assert (record["memory_id"], record["_id"]) == ("new-home", ids["a"])
