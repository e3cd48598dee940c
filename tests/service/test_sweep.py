"""One sweep: expiry, decay, backfill, in that order."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import agent_memory
from agent_memory import StorageError
from agent_memory.embed.ollama import OllamaEmbedder
from agent_memory.service.lifecycle import Sweeper, SweepReport
from agent_memory.service.memory import AgentMemory
from tests.domain.test_decay import GOLDEN
from tests.support import database
from tests.support.clock import Clock
from tests.support.ollama import FakeOllama, packed
from tests.support.polling import eventually

DAY = 86_400


def pending(db: Path) -> list[int]:
    """The ids that wait for their vector."""
    return database.rows(db, "SELECT id FROM memories WHERE embedding_status = 0 ORDER BY id")


def test_a_memory_outlives_its_last_second_and_goes_with_the_next(memory: AgentMemory, clock: Clock) -> None:
    memory_id = memory.store("x", "TODO", ttl_secs=60)
    clock.advance(60)
    assert memory.sweep() == SweepReport(expired=0, rescored=1, backfilled=0)
    clock.advance(1)
    assert memory.sweep() == SweepReport(expired=1, rescored=0, backfilled=0)
    assert memory.get(memory_id) is None


def test_only_what_has_an_expiry_expires(memory: AgentMemory, clock: Clock) -> None:  # 15.1 #47 #50
    kept = [memory.store(f"needle {number}", "TODO") for number in range(3)]
    memory.store("needle gone", "TODO", ttl_secs=1)
    clock.advance(2)
    assert memory.sweep().expired == 1
    assert sorted(found.id for found in memory.list()) == kept
    assert {found.id for found in memory.search("needle").results} == set(kept)


def test_decay_never_deletes(memory: AgentMemory, clock: Clock) -> None:  # 15.1 #48
    memory_id = memory.store("needle", "TODO")
    clock.advance(600 * DAY)
    assert memory.sweep() == SweepReport(expired=0, rescored=1, backfilled=0)
    assert [found.id for found in memory.list()] == [memory_id]
    assert [found.id for found in memory.search("needle").results] == [memory_id]


@pytest.mark.parametrize("days", GOLDEN)
def test_the_materialized_score_is_that_of_the_pure_function(
    memory: AgentMemory, clock: Clock, db: Path, days: int
) -> None:  # 15.1 #49
    unpinned, pinned = memory.store("a", "ERROR"), memory.store("b", "ARCHITECTURE")
    clock.advance(days * DAY)
    memory.sweep()
    for memory_id, score in zip((unpinned, pinned), GOLDEN[days], strict=True):
        assert database.value(db, "decay_score", memory_id) == pytest.approx(score, abs=1e-9)
    assert {found.id: found.decay_score for found in memory.list()} == pytest.approx(
        {unpinned: GOLDEN[days][0], pinned: GOLDEN[days][1]}, abs=1e-9
    )


def test_a_use_in_the_future_scores_one(memory: AgentMemory, clock: Clock, db: Path) -> None:
    memory_id = memory.store("a", "ERROR")
    clock.advance(-500)
    memory.sweep()
    assert database.value(db, "decay_score", memory_id) == 1.0


def test_every_one_of_many_rows_is_rescored_and_the_text_index_stays_sound(
    memory: AgentMemory, clock: Clock, db: Path, ollama: FakeOllama
) -> None:
    ollama.mode = "error"
    database.fill(db, 4_500, content="row number {n}", at=1_000)
    clock.advance(30 * DAY)
    assert memory.sweep().rescored == 4_500
    assert database.rows(db, "SELECT DISTINCT round(decay_score, 9) FROM memories") == [0.5]
    database.check_integrity(db)


def test_orphan_vectors_are_removed(memory: AgentMemory, db: Path, ollama: FakeOllama) -> None:
    kept = memory.store("kept", "TODO")
    database.execute(
        db, "INSERT INTO vec_memories(memory_id, embedding) VALUES (777, ?)", (packed(ollama.vector_of("x")),),
        vectors=True,
    )  # fmt: skip
    memory.sweep()
    assert database.vector_ids(db) == [kept]


def test_pending_memories_are_embedded_128_at_a_time_in_one_request_lowest_ids_first(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    database.fill(db, 130, content="row {n}")
    assert memory.sweep().backfilled == 128
    assert ollama.embedded == [[f"row {number}" for number in range(128)]]
    assert pending(db) == [129, 130]
    assert memory.sweep().backfilled == 2
    assert ollama.embedded[1:] == [["row 128", "row 129"]]
    assert pending(db) == []
    assert memory.sweep().backfilled == 0
    assert len(ollama.embedded) == 2
    assert database.vector(db, 130) == packed(ollama.vector_of("row 129"))


def test_a_pending_memory_below_the_last_batch_comes_with_the_next(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    database.fill(db, 130, content="row {n}")
    memory.sweep()
    ollama.mode = "error"
    memory.update(5, content="changed in the dark")
    ollama.mode = "ok"
    assert [memory.sweep().backfilled for _ in range(2)] == [3, 0]
    assert pending(db) == []
    assert database.vector(db, 5) == packed(ollama.vector_of("changed in the dark"))


def test_one_text_that_the_embedder_refuses_does_not_hold_up_the_others(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    database.fill(db, 40, content="row {n}")
    ollama.poison = {"row 17", "row 18"}
    assert memory.sweep().backfilled == 38
    assert pending(db) == [18, 19]
    later = memory.store("stored later", "TODO")
    ollama.poison = set()
    for _ in range(2):
        memory.sweep()
    assert pending(db) == []
    assert later in database.vector_ids(db)


def test_one_text_that_the_embedder_hangs_on_does_not_hold_up_the_others(
    db: Path, ollama: FakeOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.embed.ollama.EXTRA_SECS_PER_TEXT", 0.01)
    with agent_memory.open(db, embedder=OllamaEmbedder(ollama.url, timeout=0.3)) as memory:
        database.fill(db, 8, content="row {n}")
        ollama.hanging = {"row 3"}
        assert memory.sweep().backfilled == 7
    assert pending(db) == [4]


def test_many_refused_texts_at_the_front_do_not_starve_those_behind(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    database.fill(db, 140, content="row {n}")
    ollama.poison = {f"row {number}" for number in range(128)}
    for _ in range(2):
        memory.sweep()
    assert pending(db) == list(range(1, 129))


def test_a_model_that_takes_no_text_at_all_is_not_asked_text_by_text(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    database.fill(db, 64, content="row {n}")
    ollama.mode = "not_found"
    assert memory.sweep() == SweepReport(expired=0, rescored=64, backfilled=0)
    assert len(ollama.embedded) <= 2
    assert len(pending(db)) == 64


def test_expiry_and_decay_go_on_while_the_embedder_is_down(
    memory: AgentMemory, clock: Clock, db: Path, ollama: FakeOllama
) -> None:
    ollama.down()
    memory.store("gone", "TODO", ttl_secs=1)
    kept = memory.store("kept", "TODO")
    clock.advance(30 * DAY)
    assert memory.sweep() == SweepReport(expired=1, rescored=1, backfilled=0)
    assert database.value(db, "decay_score", kept) == pytest.approx(0.5, abs=1e-9)
    assert pending(db) == [kept]


def test_what_is_edited_or_deleted_while_its_backfill_is_in_flight_is_not_overwritten(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    database.fill(db, 5, content="old {n}")
    reports: list[SweepReport] = []
    sweep = threading.Thread(target=lambda: reports.append(memory.sweep()))
    with ollama.holding():
        sweep.start()
        ollama.wait_for_embeds(1)
        # Another process edits, deletes, deletes and reuses an id.
        database.execute(db, "UPDATE memories SET content = 'edited' WHERE id = 2")
        database.execute(db, "DELETE FROM memories WHERE id = 3")
        database.execute(db, "DELETE FROM memories WHERE id = 5")
        database.execute(
            db,
            "INSERT INTO memories(id, mem_type, content, created_at, last_accessed) "
            "VALUES (5, 'TODO', 'another', 1, 1)",
        )
    sweep.join(20)
    assert reports[0].backfilled == 2
    assert database.vector_ids(db) == [1, 4]
    assert pending(db) == [2, 5]
    memory.sweep()
    memory.sweep()
    assert pending(db) == []
    assert database.vector(db, 2) == packed(ollama.vector_of("edited"))
    assert database.vector(db, 5) == packed(ollama.vector_of("another"))


def test_an_edit_that_embedded_itself_while_its_backfill_was_in_flight_keeps_its_vector(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    database.fill(db, 1, content="old")
    sweep = threading.Thread(target=memory.sweep)
    with ollama.holding():
        sweep.start()
        ollama.wait_for_embeds(1)
        ollama.mode = "ok"
        assert memory.update(1, content="new").to_dict()["embedding_status"] == 1
    sweep.join(20)
    assert database.vector(db, 1) == packed(ollama.vector_of("new"))


def test_a_sweep_of_a_broken_database_reports_a_storage_fault(memory: AgentMemory, db: Path) -> None:
    database.execute(db, "DROP TABLE memories")
    with pytest.raises(StorageError) as caught:
        memory.sweep()
    assert str(caught.value) == "sweep failed due to a storage error (details are in the server log)"


def test_the_sweeper_sweeps_at_once_and_again_also_after_a_failure() -> None:
    swept: list[int] = []

    def sweep() -> None:
        swept.append(1)
        if len(swept) == 1:
            raise StorageError("sweep")

    sweeper = Sweeper(sweep, interval=0.01)
    sweeper.start()
    eventually(lambda: len(swept) >= 3)
    sweeper.stop()


def test_a_stopped_sweeper_begins_no_further_sweep() -> None:
    begun, may_end = threading.Event(), threading.Event()
    swept: list[int] = []

    def sweep() -> None:
        swept.append(1)
        begun.set()
        may_end.wait(20)

    sweeper = Sweeper(sweep, interval=3_600)
    sweeper.start()
    assert begun.wait(20)
    sweeper.stop()
    may_end.set()
    eventually(lambda: not any(thread.name == "sweeper" for thread in threading.enumerate()))
    assert swept == [1]


def test_the_sweeper_goes_on_after_whatever_a_sweep_meets() -> None:
    turns: list[int] = []

    def sweep() -> None:
        turns.append(len(turns))
        if len(turns) == 1:
            raise StorageError("sweep")
        if len(turns) == 2:
            raise ZeroDivisionError

    sweeper = Sweeper(sweep, 0.001)
    sweeper.start()
    eventually(lambda: len(turns) >= 3)
    sweeper.stop()
