"""Many processes on one file."""

from __future__ import annotations

from pathlib import Path

import pytest

import agent_memory
from tests.store.test_migration import backups
from tests.support import database, legacy
from tests.support.doors import McpDoor
from tests.support.ollama import NOBODY, FakeOllama
from tests.support.processes import run_together


@pytest.mark.parametrize("version", [0, 1, 2])
def test_processes_that_open_one_old_file_at_once_all_start(db: Path, version: int) -> None:
    if version:
        legacy.create(db, version)
    code = """
barrier()
with agent_memory.open(db, ollama_url="http://127.0.0.1:9") as memory:
    memory.store(f"from {number}", "TODO")
    print(len(memory.list()) > 0)
"""
    assert run_together(code, db, 6) == ["True\n"] * 6
    assert database.rows(db, "PRAGMA user_version") == [3]
    assert database.count(db) == 6 + (4 if version else 0)
    database.check_integrity(db)
    if version:
        (name,) = backups(db)
        copy = db.with_name(name)
        assert database.rows(copy, "PRAGMA user_version") == [version]
        assert database.rows(copy, "SELECT id FROM memories ORDER BY id") == [1, 2, 5, 9]
        assert database.rows(copy, "PRAGMA integrity_check") == ["ok"]
    else:
        assert backups(db) == []


@pytest.mark.parametrize("processes", [2, 4, 8])
def test_no_store_of_several_processes_is_lost(db: Path, processes: int, ollama: FakeOllama) -> None:  # E2, E7
    code = f"""
memory = agent_memory.open(db, ollama_url={ollama.url!r})
barrier()
ids = []
for turn in range(50):
    ids.append(memory.store(f"process{{number}} turn{{turn}}", "TODO", scope=str(number)))
    if turn % 10 == 9:
        memory.search(f"turn{{turn}}", limit=5)
        memory.update(ids[-1], tags=["updated"])
        memory.forget(memory.store("short-lived", "TODO"))
        memory.link(ids[-1], ids[-2], "supersedes")
print(*ids)
memory.close()
"""
    ollama.constant = [0.1] * 768
    outputs = run_together(code, db, processes)
    ids = [int(word) for output in outputs for word in output.split()]
    assert len(ids) == len(set(ids)) == processes * 50
    assert database.rows(db, "SELECT id FROM memories ORDER BY id") == sorted(ids)
    assert database.vector_ids(db) == sorted(ids)
    assert database.keyword_ids(db, "turn*") == sorted(ids)
    assert database.count(db, "memory_links") == processes * 5
    database.check_integrity(db)


def test_parallel_calls_on_one_session_all_survive(mcp: McpDoor) -> None:  # E1
    begun = [mcp.begin("memory_store", {"content": f"parallel {number}", "type": "TODO"}) for number in range(40)]
    ids = [int(mcp.result(request)["content"][0]["text"]) for request in begun]
    assert len(set(ids)) == 40
    assert database.rows(mcp.path, "SELECT id FROM memories ORDER BY id") == sorted(ids)
    assert {row["content"] for row in mcp.list()} == {f"parallel {number}" for number in range(40)}


def test_two_servers_and_a_program_share_one_file(db: Path, mcp: McpDoor) -> None:
    second = McpDoor(db)
    begun = [
        (door, door.begin("memory_store", {"content": f"shared {number}", "type": "TODO"}))
        for number in range(20)
        for door in (mcp, second)
    ]
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        ours = [memory.store(f"ours {number}", "TODO") for number in range(20)]
    ids = [int(door.result(request)["content"][0]["text"]) for door, request in begun]
    assert len({*ids, *ours}) == 60
    assert len(second.list()) == 60
    second.close()


def test_a_call_waits_while_another_program_writes_and_then_succeeds(mcp: McpDoor) -> None:  # E3
    mcp.store(content="before", type="TODO")
    with database.connected(mcp.path) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = mcp.begin("memory_store", {"content": "waited", "type": "TODO"})
        assert [row["content"] for row in mcp.list()] == ["before"]
        assert mcp.server.request("ping")["result"] == {}
        other.execute("UPDATE memories SET scope = 'theirs'")
        other.execute("COMMIT")
    assert int(mcp.result(waiting)["content"][0]["text"]) == 2
    assert {row["scope"] for row in mcp.list()} == {"theirs", None}
