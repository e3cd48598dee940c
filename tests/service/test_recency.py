"""What counts as a use, and at which time."""

from __future__ import annotations

from pathlib import Path

from agent_memory.service.memory import AgentMemory
from tests.support import database
from tests.support.clock import Clock
from tests.support.ollama import FakeOllama, at_angle

DAY = 86_400


def test_a_search_bumps_what_it_returns_to_its_own_time(memory: AgentMemory, clock: Clock, db: Path) -> None:
    ids = [memory.store(f"needle {number}", "TODO") for number in range(4)]
    clock.advance(10 * DAY)
    (found,) = memory.search("needle", limit=1).results
    assert (found.last_accessed, found.access_count) == (1_000, 0)
    for memory_id in ids:
        raw = database.row(db, memory_id)
        expected = (clock.now, 1) if memory_id == found.id else (1_000, 0)
        assert (raw["last_accessed"], raw["access_count"]) == expected


def test_an_update_bumps_once_and_reading_by_id_or_listing_does_not(
    memory: AgentMemory, clock: Clock, db: Path
) -> None:  # 15.2 #12
    memory_id = memory.store("needle", "TODO")
    clock.advance(100)
    memory.get(memory_id)
    memory.list()
    assert database.value(db, "access_count", memory_id) == 0
    memory.update(memory_id, tags=["a"])
    raw = database.row(db, memory_id)
    assert (raw["last_accessed"], raw["access_count"], raw["created_at"]) == (1_100, 1, 1_000)


def test_a_search_that_cannot_count_its_use_answers_all_the_same(memory: AgentMemory, clock: Clock, db: Path) -> None:
    memory_id = memory.store("needle", "TODO")
    clock.advance(50)
    with database.connected(db) as other:
        other.execute("BEGIN IMMEDIATE")
        assert [found.id for found in memory.search("needle").results] == [memory_id]
        other.execute("ROLLBACK")
    assert database.value(db, "access_count", memory_id) == 0
    memory.search("needle")
    assert database.row(db, memory_id)["last_accessed"] == 1_050


def test_a_bump_rewrites_no_text_index_entry(memory: AgentMemory, db: Path) -> None:
    memory.store("needle", "TODO")
    before = database.rows(db, "SELECT id, block FROM memories_fts_data ORDER BY id")
    memory.search("needle")
    assert database.rows(db, "SELECT id, block FROM memories_fts_data ORDER BY id") == before


def test_candidates_that_are_not_returned_keep_fading(
    memory: AgentMemory, clock: Clock, db: Path, ollama: FakeOllama
) -> None:  # 15.2 #40
    ollama.vectors["needle"] = at_angle(0)
    for number in range(20):
        ollama.vectors[f"needle {number}"] = at_angle(number)
        memory.store(f"needle {number}", "TODO")
    clock.advance(100)
    answer = memory.search("needle", limit=5)
    assert answer.search_mode == "hybrid"
    bumped = database.rows(db, "SELECT id FROM memories WHERE last_accessed = 1100 AND access_count = 1 ORDER BY id")
    assert bumped == sorted(found.id for found in answer.results)
    assert database.rows(db, "SELECT count(*) FROM memories WHERE last_accessed = 1000 AND access_count = 0") == [15]
