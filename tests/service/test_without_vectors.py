"""A machine without sqlite-vec: keyword mode, on files that others use with vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

import agent_memory
from agent_memory import EmbeddingError
from agent_memory.embed.ollama import OllamaEmbedder
from tests.support import database
from tests.support.ollama import FakeOllama, packed


@pytest.fixture
def no_vec0(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No connection can load the extension, until undone."""
    monkeypatch.setattr("agent_memory.store.connection.vector_extension", lambda: None)
    return monkeypatch


def schema(db: Path) -> dict[str, str]:
    """Name and text of everything in the file, without white space and quotes."""
    return {
        name: "".join((sql or "").replace('"', "").split()).lower()
        for name, sql in database.rows(db, "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    }


def test_everything_works_by_keyword(no_vec0: pytest.MonkeyPatch, db: Path, ollama: FakeOllama) -> None:  # G11
    assert no_vec0
    with agent_memory.open(db, embedder=OllamaEmbedder(ollama.url)) as memory:
        a = memory.store("needle one", "TODO", ttl_secs=1_000)
        b = memory.store("needle two", "DECISION")
        assert memory.search("needle").search_mode == "keyword"
        assert len(memory.search("needle").results) == 2
        assert memory.update(a, content="thread").updated
        assert memory.link(a, b, "supersedes").linked
        database.expire(db, a)
        assert memory.sweep().expired == 1
        assert memory.forget(b).deleted
        with pytest.raises(EmbeddingError, match="sqlite-vec"):
            memory.embed_pending()
    assert ollama.requests == []
    database.check_integrity(db)


def test_a_file_made_without_the_extension_has_the_schema_of_one_made_with_it(
    no_vec0: pytest.MonkeyPatch, db: Path, tmp_path: Path
) -> None:
    agent_memory.open(db).close()
    no_vec0.undo()
    agent_memory.open(tmp_path / "with.db").close()
    assert schema(db) == schema(tmp_path / "with.db")
    assert database.rows(db, "SELECT * FROM meta") == database.rows(tmp_path / "with.db", "SELECT * FROM meta")
    assert dict(database.rows(db, "SELECT key, value FROM vec_memories_info")) == dict(
        database.rows(tmp_path / "with.db", "SELECT key, value FROM vec_memories_info")
    )


def test_a_file_made_without_the_extension_gets_its_vectors_where_it_is_installed(
    no_vec0: pytest.MonkeyPatch, db: Path, ollama: FakeOllama
) -> None:
    with agent_memory.open(db) as memory:
        ids = [memory.store(f"written without {number}", "TODO") for number in range(5)]
    no_vec0.undo()
    with agent_memory.open(db, embedder=OllamaEmbedder(ollama.url)) as memory:
        assert memory.sweep().backfilled == 5
        ollama.vectors["question"] = ollama.vector_of("written without 3")
        answer = memory.search("question")
        assert (answer.search_mode, answer.results[0].id) == ("hybrid", ids[3])
        memory.forget(ids[3])
        new = memory.store("written with", "TODO")
        assert database.vector_ids(db) == sorted([*ids[:3], ids[4], new])
    assert database.vector(db, ids[0]) == packed(ollama.vector_of("written without 0"))
    database.check_integrity(db)


def test_a_file_with_vectors_survives_a_visit_without_the_extension(
    no_vec0: pytest.MonkeyPatch, db: Path, ollama: FakeOllama
) -> None:
    no_vec0.undo()
    with agent_memory.open(db, embedder=OllamaEmbedder(ollama.url)) as memory:
        kept, edited, gone = (memory.store(f"old meaning {number}", "TODO") for number in range(3))
    no_vec0.setattr("agent_memory.store.connection.vector_extension", lambda: None)
    with agent_memory.open(db) as memory:
        assert memory.update(edited, content="edited").to_dict()["embedding_status"] == 0
        memory.forget(gone)
        reused = memory.store("another", "TODO")
        assert reused == gone
    no_vec0.undo()
    ollama.vectors["old one"] = ollama.vector_of("old meaning 1")
    ollama.vectors["old two"] = ollama.vector_of("old meaning 2")
    with agent_memory.open(db, embedder=OllamaEmbedder(ollama.url)) as memory:
        # Vectors of texts that are no more match nothing, even before the sweep.
        assert [found.id for found in memory.search("old one").results] == [kept]
        assert [found.id for found in memory.search("old two").results] == [kept]
        assert memory.sweep().backfilled == 2
    assert database.vector(db, edited) == packed(ollama.vector_of("edited"))
    assert database.vector(db, reused) == packed(ollama.vector_of("another"))
