"""Vectors of one model only, filled in whenever the embedder works."""

from __future__ import annotations

from pathlib import Path

import pytest

import agent_memory
from agent_memory import EmbeddingError
from agent_memory.embed.ollama import OllamaEmbedder
from agent_memory.service.memory import AgentMemory
from tests.support import database
from tests.support.clock import Clock
from tests.support.ollama import FakeOllama, packed


class OtherModel(OllamaEmbedder):
    """The same dimension, another vector space."""

    model = "other-model"  # type: ignore[misc]


class OtherDimension(OllamaEmbedder):
    """The same name, another dimension."""

    dim = 384  # type: ignore[misc]


def test_all_pending_memories_can_be_embedded_at_once(memory: AgentMemory, db: Path, ollama: FakeOllama) -> None:
    database.fill(db, 300, content="row {n}")
    assert memory.count_pending() == 300
    steps: list[tuple[int, int]] = []
    assert memory.embed_pending(lambda done, total: steps.append((done, total))) == 300
    assert steps == [(min(done, 300), 300) for done in range(32, 332, 32)]
    assert memory.count_pending() == 0
    assert len(database.vector_ids(db)) == 300
    assert max(len(texts) for texts in ollama.embedded) <= 32
    assert memory.embed_pending() == 0


def test_an_interrupted_run_keeps_what_it_wrote_and_the_next_goes_on(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    database.fill(db, 100, content="row {n}")

    def interrupt(done: int, total: int) -> None:
        assert total == 100
        if done == 64:
            ollama.mode = "error"

    with pytest.raises(EmbeddingError):
        memory.embed_pending(interrupt)
    assert memory.count_pending() == 36
    ollama.mode = "ok"
    assert memory.embed_pending() == 36
    texts = [text for batch in ollama.embedded for text in batch if text != "memory"]
    assert sorted(set(texts)) == sorted(f"row {number}" for number in range(100))
    assert database.vector(db, 100) == packed(ollama.vector_of("row 99"))


def test_an_embedder_that_is_down_is_an_error_here_and_costs_nothing(
    memory: AgentMemory, db: Path, ollama: FakeOllama
) -> None:
    database.fill(db, 3)
    ollama.down()
    with pytest.raises(EmbeddingError):
        memory.embed_pending()
    assert memory.count_pending() == 3


@pytest.mark.parametrize("other", [OtherModel, OtherDimension])
def test_vectors_of_two_models_are_never_mixed(
    memory: AgentMemory, db: Path, clock: Clock, ollama: FakeOllama, other: type[OllamaEmbedder]
) -> None:  # G1, G3
    first = memory.store("needle of the first model", "TODO")
    before = database.vector(db, first)
    asked = len(ollama.embedded)
    with agent_memory.open(db, clock=clock, embedder=other(ollama.url)) as second:
        pending = second.store("needle of the second model", "TODO")
        answer = second.search("needle")
        assert answer.search_mode == "keyword"
        assert {found.id for found in answer.results} == {first, pending}
        assert second.sweep().backfilled == 0
        with pytest.raises(EmbeddingError, match="are of the model nomic-embed-text with 768 dimensions"):
            second.embed_pending()
        assert second.update(first, content="changed needle").to_dict()["embedding_status"] == 0
    assert len(ollama.embedded) == asked
    assert database.vector_ids(db) == []
    assert before is not None


@pytest.mark.parametrize(("key", "value"), [("embedding_model", "mxbai-embed-large"), ("embedding_dim", "1024")])
def test_a_file_pinned_to_another_model_is_used_by_keyword_only(
    memory: AgentMemory, db: Path, ollama: FakeOllama, key: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:  # G3
    memory_id = memory.store("needle", "TODO")
    vector = database.vector(db, memory_id)
    asked = len(ollama.embedded)
    database.execute(db, "UPDATE meta SET value = ? WHERE key = ?", (value, key))
    with agent_memory.open(db, embedder=OllamaEmbedder(ollama.url)) as second:
        assert second.search("needle").search_mode == "keyword"
        second.store("another", "TODO")
        second.sweep()
    assert len(ollama.embedded) == asked
    assert database.vector_ids(db) == [memory_id]
    assert database.vector(db, memory_id) == vector
    assert value in caplog.text


def test_a_stale_vector_of_a_pending_memory_is_not_matched(memory: AgentMemory, db: Path, ollama: FakeOllama) -> None:
    # Another program may leave the vector of an old text behind while it says that it is pending.
    stale = memory.store("old", "TODO")
    other = memory.store("other", "TODO")
    ollama.vectors["like the old"] = ollama.vector_of("old")
    database.execute(db, "UPDATE memories SET content = 'new', embedding_status = 0 WHERE id = ?", (stale,))
    assert [found.id for found in memory.search("like the old").results] == [other]


def test_a_vector_without_direction_does_not_come_first(memory: AgentMemory, db: Path) -> None:
    good = memory.store("good", "TODO")
    zero = memory.store("zero", "TODO")
    database.execute(db, "DELETE FROM vec_memories WHERE memory_id = ?", (zero,), vectors=True)
    database.execute(
        db, "INSERT INTO vec_memories(memory_id, embedding) VALUES (?, zeroblob(3072))", (zero,), vectors=True
    )
    assert [found.id for found in memory.search("whatever").results] == [good]


def test_a_model_named_with_a_tag_is_ready(ollama: FakeOllama) -> None:
    assert OllamaEmbedder(ollama.url).health() == "ready"
