"""The items of a GSD project's state arrive once, together, and are embedded where that works."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import agent_memory
from agent_memory.errors import InvalidArgument, StorageError
from agent_memory.service.memory import AgentMemory
from tests.support import database
from tests.support.clock import Clock
from tests.support.ollama import BROKEN, NOBODY, FakeOllama, Mode, hashed_vector, packed

FIXTURE = (Path(__file__).parent.parent / "formats" / "data" / "STATE.md").read_text(encoding="utf-8")


def decisions(count: int, word: str = "decision") -> str:
    return "### Decisions\n" + "".join(f"- {word} {number}\n" for number in range(count))


def test_the_fixture_arrives_once(memory: AgentMemory, db: Path) -> None:  # 15.1 #36, 12.3
    assert memory.import_gsd_state(FIXTURE, "fixture") == (9, 0, 1)
    assert [len(memory.list(type=type)) for type in ("DECISION", "CONSTRAINT", "TODO", "PATTERN")] == [4, 2, 3, 0]
    assert [len(memory.list(tag=tag)) for tag in ("gsd", "deferred")] == [9, 2]
    assert len(memory.list(scope="fixture")) == 9
    assert database.keyword_ids(db, "zigbuild") == [1]
    before = database.everything(db)
    assert memory.import_gsd_state(FIXTURE, "fixture") == (0, 9, 1)
    assert database.everything(db) == before


def test_an_item_is_a_fresh_memory_without_an_end(memory: AgentMemory, db: Path, clock: Clock) -> None:
    memory.import_gsd_state("## Deferred Items\n| h | h | h |\n| 1 | a | b |", "shop")
    assert database.row(db, 1) == {
        "id": 1,
        "mem_type": "TODO",
        "content": "a — b",
        "tags": '["gsd","deferred"]',
        "source": "gsd-state",
        "scope": "shop",
        "base_weight": 1.0,
        "decay_score": 1.0,
        "access_count": 0,
        "created_at": clock.now,
        "last_accessed": clock.now,
        "expires_at": None,
        "embedding_status": 1,
    }
    assert database.vector(db, 1) == packed(hashed_vector("a — b"))


def test_equal_items_of_a_file_become_one_and_text_decides(memory: AgentMemory, db: Path) -> None:
    text = "# Decisions\n- a\n- a\n- A\n# Pending Todos\n- a\n- a — b\n# Deferred Items\n|h|h|h|\n|1|a|b|\n"
    assert memory.import_gsd_state(text) == (4, 2, 0)
    # Neither the scope nor the tags make another memory of it; an edited text does.
    assert memory.import_gsd_state(text, "other") == (0, 6, 0)
    assert memory.import_gsd_state("# Decisions\n- a!\n- a\n") == (1, 1, 0)
    assert database.rows(db, "SELECT DISTINCT scope FROM memories") == [None]


def test_a_memory_of_another_source_is_another_memory(memory: AgentMemory) -> None:
    memory.store("a", "DECISION")
    memory.store("a", "DECISION", source="gsd-State")
    assert memory.import_gsd_state("# Decisions\n- a") == (1, 0, 0)
    memory.store("b", "DECISION", source="gsd-state", ttl_secs=5)
    assert memory.import_gsd_state("# Decisions\n- b") == (0, 1, 0)


def test_items_are_embedded_32_at_a_time_after_they_have_arrived(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    assert memory.import_gsd_state(decisions(70)) == (70, 0, 0)
    assert [len(texts) for texts in ollama.embedded] == [32, 32, 6]
    assert database.vector_ids(db) == list(range(1, 71))
    assert memory.count_pending() == 0
    # Only what is new is embedded.
    assert memory.import_gsd_state(decisions(71)) == (1, 70, 0)
    assert ollama.embedded[3:] == [["decision 70"]]
    assert memory.import_gsd_state(decisions(71)) == (0, 71, 0)
    assert len(ollama.embedded) == 4


@pytest.mark.parametrize("mode", [*BROKEN, "down"])
def test_items_that_cannot_be_embedded_wait_for_the_sweep(
    memory: AgentMemory, db: Path, ollama: FakeOllama, mode: Mode
) -> None:
    if mode == "down":
        ollama.down()
    ollama.mode = mode
    assert memory.import_gsd_state(decisions(40)) == (40, 0, 0)
    assert memory.count_pending() == 40
    assert database.vector_ids(db) == []
    assert database.keyword_ids(db, '"decision 39"') == [40]
    if mode == "down":
        ollama.up()
    ollama.mode = "ok"
    memory.sweep()
    assert database.vector_ids(db) == list(range(1, 41))


def test_the_batches_before_a_failing_one_keep_their_vectors(memory: AgentMemory, db: Path, ollama: FakeOllama) -> None:
    ollama.poison.add("decision 40")
    assert memory.import_gsd_state(decisions(100)) == (100, 0, 0)
    assert database.vector_ids(db) == list(range(1, 33))
    assert memory.count_pending() == 68


def test_an_item_that_is_edited_while_it_is_embedded_keeps_no_vector_of_its_old_text(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    with ollama.holding():
        importing = threading.Thread(target=lambda: memory.import_gsd_state(decisions(3)))
        importing.start()
        ollama.wait_for_embeds(1)
        # The items are there for everybody before the embedder has answered.
        assert database.count(db) == 3
        database.execute(db, "UPDATE memories SET content = 'edited' WHERE id = 2")
        database.execute(db, "DELETE FROM memories WHERE id = 3")
    importing.join(20)
    assert database.vector_ids(db) == [1]
    memory.sweep()
    assert database.vector(db, 2) == packed(hashed_vector("edited"))


def test_all_items_arrive_or_none(memory: AgentMemory, db: Path, ollama: FakeOllama) -> None:
    database.execute(
        db,
        "CREATE TRIGGER stop BEFORE INSERT ON memories WHEN new.content = 'decision 50' "
        "BEGIN SELECT raise(ABORT, 'a fault'); END",
    )
    with pytest.raises(StorageError, match="import failed due to a storage error"):
        memory.import_gsd_state(decisions(60))
    assert database.count(db) == 0
    assert ollama.requests == []
    database.execute(db, "DROP TRIGGER stop")
    assert memory.import_gsd_state(decisions(60)) == (60, 0, 0)


@pytest.mark.parametrize(("scope", "kept"), [(None, None), ("", None), (" ", " "), ("o'neil/日本", "o'neil/日本")])
def test_the_scope_is_the_one_that_is_given(memory: AgentMemory, db: Path, scope: str | None, kept: str | None) -> None:
    memory.import_gsd_state("# Decisions\n- a", scope)
    assert database.value(db, "scope", 1) == kept


def test_what_utf8_cannot_hold_is_refused_in_a_scope_and_counted_in_a_text(memory: AgentMemory, db: Path) -> None:
    with pytest.raises(InvalidArgument, match="scope must be valid Unicode"):
        memory.import_gsd_state("# Decisions\n- a", "\ud83d")
    assert memory.import_gsd_state("\udfff\n# Decisions\n- a\ud83d\n- b\n") == (1, 0, 1)


def test_a_text_without_items_is_no_failure(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        assert memory.import_gsd_state("") == (0, 0, 0)
        assert memory.import_gsd_state("garbage\n" * 10_000 + "```") == (0, 0, 0)
