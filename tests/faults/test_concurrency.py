"""Many processes on one file: nothing is lost, nobody is told that the database is locked."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import agent_memory
from tests.support import database
from tests.support.clock import Clock
from tests.support.ollama import NOBODY, FakeOllama
from tests.support.polling import eventually
from tests.support.stdio import StdioServer


@pytest.mark.parametrize("processes", [2, 4, 8])
def test_every_process_keeps_every_store_beside_searches_updates_and_forgets(db: Path, processes: int) -> None:
    stores = 50
    servers = [StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY) for _ in range(processes)]
    try:
        for server in servers:
            server.initialize()
        requests = []
        for number in range(stores):
            for name, server in enumerate(servers):
                arguments = {"content": f"process {name} fact {number}", "type": "TODO"}
                requests.append((server, server.begin("tools/call", {"name": "memory_store", "arguments": arguments})))
                if number % 10 == 0:
                    server.begin("tools/call", {"name": "memory_search", "arguments": {"query": "fact"}})
                    server.begin("tools/call", {"name": "memory_update", "arguments": {"id": 1, "tags": [str(number)]}})
                    server.begin("tools/call", {"name": "memory_forget", "arguments": {"id": 999_999}})
        ids = [int(server.reply(request)["result"]["content"][0]["text"]) for server, request in requests]
        assert len(set(ids)) == processes * stores
        assert not any("database is locked" in line for server in servers for line in server.stderr)
    finally:
        for server in servers:
            server.close()
    assert database.count(db) == processes * stores
    database.check_integrity(db)


def test_vectors_and_full_text_agree_with_the_memories_after_many_writers(db: Path, ollama: FakeOllama) -> None:
    writing = """
import sys, agent_memory
with agent_memory.open(sys.argv[1], ollama_url=sys.argv[2]) as memory:
    ids = [memory.store(f"fact {n} of {sys.argv[3]}", "PATTERN") for n in range(30)]
    for id in ids[::3]:
        memory.update(id, content=f"changed {id}")
    for id in ids[1::3]:
        memory.forget(id)
"""
    running = [
        subprocess.Popen([sys.executable, "-c", writing, str(db), ollama.url, str(number)]) for number in range(4)
    ]
    assert [process.wait(60) for process in running] == [0] * 4
    assert database.count(db) == 80
    assert database.vector_ids(db) == sorted(database.rows(db, "SELECT id FROM memories"))
    database.check_integrity(db)


def test_a_store_waits_for_a_foreign_writer_and_then_succeeds(db: Path) -> None:
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY) as server:
        server.initialize()
        server.logged("lifecycle sweep complete")
        with database.connected(db) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            store = server.begin("tools/call", {"name": "memory_store", "arguments": {"content": "x", "type": "TODO"}})
            # Readers are not held up meanwhile, nor is a search, whose recency bump has to give way.
            assert server.request("tools/call", {"name": "memory_list"})["result"]["content"][0]["text"] == "[]"
            found = server.request("tools/call", {"name": "memory_search", "arguments": {"query": "x"}})
            assert json.loads(found["result"]["content"][0]["text"])["results"] == []
            foreign.execute("COMMIT")
        assert server.reply(store)["result"]["content"][0]["text"] == "1"


def test_a_search_is_answered_while_another_process_writes_and_its_bump_comes_later(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY, clock=lambda: 1000) as memory:
        memory.store("a fact", "TODO")
    with agent_memory.open(db, ollama_url=NOBODY, clock=lambda: 2000) as memory, database.connected(db) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        assert [found.id for found in memory.search("fact").results] == [1]
        foreign.execute("COMMIT")
        assert memory.list()[0].last_accessed == 1000
        memory.search("nothing like it")
        memory.sweep()
        assert memory.list()[0].last_accessed == 2000
        assert memory.list()[0].access_count == 1


def test_a_late_bump_does_not_undo_a_newer_use_nor_count_for_a_later_memory(db: Path) -> None:
    clock = Clock()
    with agent_memory.open(db, ollama_url=NOBODY, clock=clock) as memory:
        memory.store("first fact", "TODO")
        memory.store("second fact", "TODO")
        with database.connected(db) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            memory.search("fact")
            foreign.execute("COMMIT")
        clock.advance(4_000)
        memory.update(1, tags=["newer"])
        memory.forget(2)
        assert memory.store("reuses the id", "TODO") == 2
        newest = clock()
        clock.advance(1_000)
        memory.sweep()
        assert {(found.id, found.last_accessed) for found in memory.list()} == {(1, newest), (2, newest)}
        assert database.value(db, "access_count", 2) == 0


def test_a_call_that_waits_while_the_memory_is_closed_is_told_so(db: Path) -> None:
    memory = agent_memory.open(db, ollama_url=NOBODY)
    outcomes: list[str] = []

    def work() -> None:
        try:
            while True:
                memory.store("x", "TODO")
        except agent_memory.AgentMemoryError as error:
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: database.count(db) > 20)
    memory.close()
    for thread in threads:
        thread.join(20)
    assert outcomes == ["Closed"] * 8


def test_threads_of_one_process_share_an_open_memory(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        ids: list[int] = []

        def work(name: int) -> None:
            for number in range(25):
                ids.append(memory.store(f"thread {name} fact {number}", "TODO"))
                memory.search("fact", limit=3)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(set(ids)) == 300
        assert len(memory.list()) == 300


def test_a_forked_child_is_told_to_open_the_memory_again(db: Path) -> None:
    program = """
import os, sys, agent_memory
memory = agent_memory.open(sys.argv[1], ollama_url="http://127.0.0.1:9")
memory.store("before", "TODO")
child = os.fork()
if child == 0:
    try:
        memory.list()
    except agent_memory.Closed as error:
        print(error, flush=True)
    memory.close()
    os._exit(0)
os.waitpid(child, 0)
print(memory.store("after", "TODO"))
"""
    done = subprocess.run([sys.executable, "-c", program, str(db)], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        f"the memory at {db} was opened before this process was forked; open it again here",
        "2",
    ]
