"""Opening, closing, threads and forks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agent_memory
from agent_memory import Closed
from agent_memory.service.memory import AgentMemory
from tests.support import database
from tests.support.ollama import NOBODY

OPERATIONS: dict[str, Callable[[AgentMemory], Any]] = {
    "store": lambda memory: memory.store("x", "TODO"),
    "search": lambda memory: memory.search("x"),
    "list": lambda memory: memory.list(),
    "get": lambda memory: memory.get(1),
    "update": lambda memory: memory.update(1, scope="s"),
    "link": lambda memory: memory.link(1, 2, "supersedes"),
    "unlink": lambda memory: memory.unlink(1, 2, "supersedes"),
    "forget": lambda memory: memory.forget(1),
    "sweep": lambda memory: memory.sweep(),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_closed_memory_says_that_it_is_closed(db: Path, operation: str) -> None:
    memory = agent_memory.open(db, ollama_url=NOBODY)
    memory.close()
    memory.close()
    with pytest.raises(Closed, match="is closed"):
        OPERATIONS[operation](memory)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_is_told_to_open_the_file_itself(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        memory.store("x", "TODO")
        child = os.fork()
        if child == 0:
            # Nothing of pytest may run in here.
            code = 9
            try:
                memory.list()
            except Closed as error:
                code = 0 if "forked" in str(error) else 8
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(memory.list()) == 1


def test_many_threads_store_search_and_update_one_memory(db: Path) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(10):
                memory_id = memory.store(f"thread{number} turn{turn}", "TODO")
                assert [found.id for found in memory.search(f"thread{number} AND turn{turn}").results] == [memory_id]
                assert memory.update(memory_id, tags=[str(number)]).updated
                memory.list(limit=5, expand_links=True)
                if turn:
                    memory.link(memory_id, memory_id - 1, "relates_to")
        except BaseException as error:  # noqa: BLE001 - the failure of a thread is that of the test
            failures.append(error)

    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failures == []
        assert len(memory.list()) == 120
    database.check_integrity(db)


def test_a_read_that_failed_does_not_freeze_the_past(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        for _ in range(2):
            memory.store("needle", "TODO")
        database.execute(db, "UPDATE memories SET mem_type = 'NOTE' WHERE id = 1")
        with pytest.raises(agent_memory.StorageError) as kept:
            memory.list()
        assert kept.value.__traceback__ is not None  # as long as somebody holds the error
        database.execute(db, "UPDATE memories SET mem_type = 'TODO' WHERE id = 1")
        assert len(memory.list()) == 2


def test_a_memory_is_read_by_id_with_its_links_and_hidden_fields(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        a = memory.store("a", "TODO", source="here", ttl_secs=50)
        b = memory.store("b", "TODO")
        memory.link(a, b, "caused_by")
        found = memory.get(a)
        assert found is not None
        assert (found.source, found.embedding_status, found.access_count) == ("here", 0, 0)
        assert found.expires_at == found.created_at + 50
        assert found.related is not None
        assert [(entry.id, entry.kind) for entry in found.related] == [(b, "caused_by")]
        assert memory.get(999) is None


def test_strict_queries_mean_exactly_what_the_contract_says(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY, strict_query=True) as memory:
        memory.store("we eat blue cheese", "TODO")
        memory.store("本系统的用户身份验证流程", "TODO")
        assert memory.search("blue absent").results == ()
        assert memory.search("用户").results == ()
        assert len(memory.search("blue, absent?").results) == 1
