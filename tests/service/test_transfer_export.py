"""What an export writes, byte by byte, and what becomes of rows that no version of the program writes."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

import agent_memory
from agent_memory.errors import StorageError
from agent_memory.service.memory import AgentMemory
from tests.support import database, legacy
from tests.support.clock import Clock
from tests.support.ollama import NOBODY, FakeOllama
from tests.support.portable import MEMBERS, exported, imported, records, strict_records

VERSION = agent_memory.__version__.encode()


def test_an_export_is_these_bytes(memory: AgentMemory, db: Path, clock: Clock) -> None:  # 15.3
    assert memory.store("We chose SQLite.", "DECISION", tags=["db", "größe"], source="adr-1") == 1
    clock.advance(5)
    assert memory.store("gone", "TODO") == 2
    assert memory.store('Ü🎉\u2028\x7f "q" \\ / \t\n\r\x00\x1b', "ERROR", scope="shop", ttl_secs=60) == 3
    memory.forget(2)
    assert memory.store("x", "PATTERN") == 4
    memory.update(1, tags=["db"])
    for from_id, to_id, kind in ((4, 1, "relates_to"), (4, 1, "supersedes"), (3, 1, "caused_by"), (1, 3, "relates_to")):
        clock.advance(1)
        memory.link(from_id, to_id, kind)
    clock.advance(100)
    target = io.BytesIO()
    report = memory.export_jsonl(target)
    assert (report.memories, report.links) == (3, 4)
    assert target.getvalue() == (
        b'{"record":"header","format":"agent-memory-export","version":1,"exported_at":1109,'
        b'"embedding_model":"nomic-embed-text","embedding_dim":768,"schema_version":3,'
        b'"agent_memory_version":"' + VERSION + b'","exported_rows":3,"exported_links":4}\n'
        b'{"record":"memory","key":1,"type":"DECISION","content":"We chose SQLite.","tags":["db"],"source":"adr-1",'
        b'"scope":null,"created_at":1000,"last_accessed":1005,"access_count":1,"expires_at":null}\n'
        b'{"record":"memory","key":3,"type":"ERROR","content":"'
        + "Ü🎉\u2028\x7f".encode()
        + rb' \"q\" \\ / \t\n\r\u0000\u001b","tags":[],"source":null,'
        b'"scope":"shop","created_at":1005,"last_accessed":1005,"access_count":0,"expires_at":1065}\n'
        b'{"record":"memory","key":4,"type":"PATTERN","content":"x","tags":[],"source":null,'
        b'"scope":null,"created_at":1005,"last_accessed":1005,"access_count":0,"expires_at":null}\n'
        b'{"record":"link","from":1,"to":3,"kind":"relates_to","created_at":1009}\n'
        b'{"record":"link","from":1,"to":4,"kind":"relates_to","created_at":1006}\n'
        b'{"record":"link","from":3,"to":1,"kind":"caused_by","created_at":1008}\n'
        b'{"record":"link","from":4,"to":1,"kind":"supersedes","created_at":1007}\n'
    )
    assert exported(memory) == target.getvalue()
    clock.advance(1)
    assert exported(memory) == target.getvalue().replace(b'"exported_at":1109', b'"exported_at":1110')


def test_an_export_changes_nothing_and_asks_no_embedder(memory: AgentMemory, db: Path, ollama: FakeOllama) -> None:
    memory.store("a", "TODO")
    before, asked = database.everything(db), len(ollama.requests)
    exported(memory)
    assert database.everything(db) == before
    assert len(ollama.requests) == asked


def test_an_empty_memory_is_a_file_of_a_header_that_can_be_imported(memory: AgentMemory) -> None:
    (header,) = records(exported(memory))
    assert tuple(header) == MEMBERS["header"]
    assert (header["exported_rows"], header["exported_links"]) == (0, 0)
    assert not any(imported(memory, exported(memory)))


def test_links_between_the_same_two_are_in_the_order_of_their_kinds(memory: AgentMemory) -> None:
    for number in range(3):
        memory.store(str(number), "TODO")
    for from_id, to_id in ((3, 1), (1, 3), (2, 3)):
        for kind in ("supersedes", "relates_to", "caused_by"):
            memory.link(from_id, to_id, kind)
    links = [(link["from"], link["to"], link["kind"]) for link in records(exported(memory))[4:]]
    assert links == sorted(links)
    assert len(links) == 8


def test_the_progress_of_an_export_and_an_import_ends_at_all_of_it(memory: AgentMemory, db: Path) -> None:
    database.fill(db, 2_500, content="{n}")
    memory.link(1, 2, "supersedes")
    steps: list[tuple[int, int]] = []
    target = io.BytesIO()
    memory.export_jsonl(target, lambda done, total: steps.append((done, total)))
    assert steps == [(1_000, 2_501), (2_000, 2_501), (2_501, 2_501)]
    target.seek(0)
    memory.import_jsonl(target, lambda done, total: steps.append((done, total)))
    assert steps[3:] == steps[:3]


def test_a_file_of_an_older_program_is_exported_whole(db: Path) -> None:  # F2
    legacy.create(db, 2)
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        found = strict_records(exported(memory))
    for row, record in zip(legacy.ROWS, found[1:], strict=True):
        number, type, content, tags, source, scope, _, _, uses, created, used, expires = row
        assert list(record.values()) == [
            "memory", number, type, content, json.loads(tags), source, scope, created, used, uses, expires,
        ]  # fmt: skip


EXPORTED: dict[tuple[str, str], tuple[str, Any, Any]] = {
    ("memories", "id"): ("key", 77, 77),
    ("memories", "mem_type"): ("type", "ERROR", "ERROR"),
    ("memories", "content"): ("content", "changed", "changed"),
    ("memories", "tags"): ("tags", '["z","ä"]', ["z", "ä"]),
    ("memories", "source"): ("source", "other", "other"),
    ("memories", "scope"): ("scope", "", ""),
    ("memories", "access_count"): ("access_count", 77, 77),
    ("memories", "created_at"): ("created_at", -77, -77),
    ("memories", "last_accessed"): ("last_accessed", 77, 77),
    ("memories", "expires_at"): ("expires_at", 77, 77),
    ("memory_links", "from_id"): ("from", 3, 3),
    ("memory_links", "to_id"): ("to", 3, 3),
    ("memory_links", "kind"): ("kind", "caused_by", "caused_by"),
    ("memory_links", "created_at"): ("created_at", 77, 77),
}
"""Each column that travels: its member, another value, and that value in the file."""
DERIVED = {
    ("memories", "base_weight"): 7.0,  # of the type
    ("memories", "decay_score"): 0.25,  # of the last use
    ("memories", "embedding_status"): 0,  # of the vector
}
PINS = {"embedding_model", "embedding_dim"}  # in the header


def test_every_column_of_the_file_is_exported_or_known_to_be_derived(memory: AgentMemory, db: Path) -> None:  # F3
    tables = database.rows(
        db,
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
        "AND name NOT GLOB 'memories_fts*' AND name NOT GLOB 'vec_memories*'",  # derived from memories
    )
    columns = {
        (table, column)
        for table in tables
        for column in database.rows(db, f"SELECT name FROM pragma_table_info('{table}')")
    }
    assert columns - {("meta", "key"), ("meta", "value")} == EXPORTED.keys() | DERIVED.keys()
    assert set(database.rows(db, "SELECT key FROM meta")) == PINS
    members = {member for name, record in MEMBERS.items() if name != "header" for member in record} - {"record"}
    assert {member for member, _, _ in EXPORTED.values()} == members


@pytest.mark.parametrize("column", EXPORTED, ids=".".join)
def test_a_column_that_travels_is_the_member_of_that_name(
    memory: AgentMemory, db: Path, column: tuple[str, str]
) -> None:  # F2, F3
    for number in range(3):
        memory.store(str(number), "TODO", source="s")
    memory.link(1, 2, "supersedes")
    before = records(exported(memory))
    table, name = column
    member, stored, written = EXPORTED[column]
    place = {"memories": 3, "memory_links": 4}[table]
    assert before[place][member] != written
    where = "id = 3" if table == "memories" else "true"
    database.execute(db, f"UPDATE {table} SET {name} = ? WHERE {where}", (stored,))
    before[place][member] = written
    assert records(exported(memory)) == before


@pytest.mark.parametrize("column", DERIVED, ids=".".join)
def test_a_derived_column_does_not_travel(memory: AgentMemory, db: Path, column: tuple[str, str]) -> None:
    memory.store("a", "TODO")
    before = exported(memory)
    table, name = column
    assert database.execute(db, f"UPDATE {table} SET {name} = ?", (DERIVED[column],)) == 1
    database.execute(db, "DELETE FROM vec_memories", vectors=True)
    assert exported(memory) == before


def test_the_pins_of_the_header_are_those_of_the_file(memory: AgentMemory, db: Path) -> None:
    database.execute(db, "UPDATE meta SET value = 'mxbai-embed-large' WHERE key = 'embedding_model'")
    database.execute(db, "UPDATE meta SET value = '1024' WHERE key = 'embedding_dim'")
    (header,) = records(exported(memory))
    assert (header["embedding_model"], header["embedding_dim"]) == ("mxbai-embed-large", 1024)


@pytest.mark.parametrize("change", ["DELETE FROM meta", "UPDATE meta SET value = 'many' WHERE key = 'embedding_dim'"])
def test_a_file_that_has_lost_its_pin_is_not_exported(
    memory: AgentMemory, db: Path, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute(db, change)
    with pytest.raises(StorageError, match="export failed due to a storage error"):
        exported(memory)
    assert "does not say which model its vectors are of" in caplog.text


@pytest.mark.parametrize(
    ("change", "defect"),
    [
        ("content = ''", "content must be a non-empty string (got '')"),
        ("content = char(8203)", "content must be a non-empty string (got '\\u200b')"),
        ("access_count = -1", "access_count must not be negative"),
    ],
)
def test_a_row_that_no_import_accepts_is_exported_with_a_warning(
    memory: AgentMemory, db: Path, change: str, defect: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory.store("a", "TODO")
    memory.store("b", "TODO")
    database.execute(db, f"UPDATE memories SET {change} WHERE id = 2")
    data = exported(memory)
    assert len(records(data)) == 3
    assert f"memory 2 is exported, but no import will accept the file: {defect}" in caplog.text
    with pytest.raises(agent_memory.InvalidFile, match="line 3: "):
        imported(memory, data)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE memories SET mem_type = 'NOTE'",
        "UPDATE memories SET mem_type = x'41'",
        "UPDATE memories SET content = CAST(x'ff' AS TEXT)",
        "UPDATE memories SET created_at = 'yesterday'",
        "UPDATE memory_links SET kind = 'blocks'",
        "UPDATE memory_links SET kind = x'00'",
    ],
)
def test_a_row_that_is_none_ends_the_export_with_the_generic_sentence(
    memory: AgentMemory, db: Path, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory.store("a", "TODO")
    memory.store("b", "TODO")
    memory.link(1, 2, "supersedes")
    assert database.execute(db, change)
    with pytest.raises(StorageError) as refused:
        exported(memory)
    assert str(refused.value) == "export failed due to a storage error (details are in the server log)"
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    # The reader that failed is gone, and the next one works.
    database.execute(db, "DELETE FROM memory_links; DELETE FROM memories")
    assert len(records(exported(memory))) == 1


@pytest.mark.parametrize(
    ("stored", "written"),
    [("no json", []), ("{}", []), ("[1]", []), ('["\\ud83d","a"]', ["\ufffd", "a"]), ('["\\ud83d\\ude00"]', ["😀"])],
)
def test_tags_that_are_none_are_exported_as_every_door_shows_them(
    memory: AgentMemory, db: Path, stored: str, written: list[str]
) -> None:
    memory.store("a", "TODO", tags=["x"])
    database.execute(db, "UPDATE memories SET tags = ?", (stored,))
    assert records(exported(memory))[1]["tags"] == written


def test_a_file_that_cannot_be_written_is_an_os_error_and_the_memory_goes_on(memory: AgentMemory) -> None:
    memory.store("a" * 100_000, "TODO")
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space left"):
        memory.export_jsonl(full)
    assert len(records(exported(memory))) == 2
    assert memory.store("b", "TODO") == 2


def test_links_that_lead_to_no_memory_are_left_out_with_a_warning(
    memory: AgentMemory, db: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for content in "ab":
        memory.store(content, "TODO")
    memory.link(1, 2, "supersedes")
    # As a program leaves them that deletes without looking at foreign keys.
    database.execute(db, "PRAGMA foreign_keys = OFF; INSERT INTO memory_links VALUES (1, 99, 'caused_by', 5)")
    found = records(exported(memory))
    assert [record["exported_links"] for record in found if record["record"] == "header"] == [1]
    assert [(record["from"], record["to"]) for record in found if record["record"] == "link"] == [(1, 2)]
    assert "1 links lead to no memory and are left out" in caplog.text
    strict_records(exported(memory))


def test_a_link_whose_time_is_none_is_a_storage_fault(memory: AgentMemory, db: Path) -> None:
    for content in "ab":
        memory.store(content, "TODO")
    memory.link(1, 2, "supersedes")
    database.execute(db, "UPDATE memory_links SET created_at = 'yesterday'")
    with pytest.raises(StorageError, match="export failed"):
        exported(memory)
