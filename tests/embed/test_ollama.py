"""The Ollama client: one request, one whole answer or one clear error."""

from __future__ import annotations

import gc
import math
import socket
import threading
import time
from typing import Any

import pytest

from agent_memory import EmbedderUnreachable, EmbeddingError, EmbeddingRejected
from agent_memory.embed.ollama import OllamaEmbedder
from tests.support.ollama import NOBODY, FakeOllama, Mode, hashed_vector, packed
from tests.support.polling import eventually


def test_a_text_becomes_the_vector_that_the_server_gives_it(ollama: FakeOllama) -> None:  # 15.1 #13
    ollama.vectors["a"] = [0.5] * 768
    assert OllamaEmbedder(ollama.url).embed(["a", "b"]) == [packed([0.5] * 768), packed(hashed_vector("b"))]


def test_the_fake_gives_unknown_texts_their_own_unit_vectors() -> None:  # 15.1 #14 #15
    assert hashed_vector("x") == hashed_vector("x") != hashed_vector("y")
    assert math.hypot(*hashed_vector("x")) == pytest.approx(1.0, abs=1e-4)
    assert len(hashed_vector("x")) == 768


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("error", "embedding HTTP error: status 500: the model runner has unexpectedly stopped"),
        ("not_found", 'embedding HTTP error: status 404: model "nomic-embed-text" not found, try pulling it first'),
        ("wrong_count", "invalid embedding response: expected 1 embeddings, got 2"),
        ("empty", "invalid embedding response: expected 1 embeddings, got 0"),
        ("wrong_dimension", "embedding dimension mismatch: expected 768, got 384"),
        ("nan", "invalid embedding response: an embedding has no direction (zero, NaN or infinite)"),
        ("zero", "invalid embedding response: an embedding has no direction (zero, NaN or infinite)"),
        ("no_member", "invalid embedding response: no member 'embeddings'"),
    ],
)
def test_an_answer_that_is_no_embedding_is_rejected_with_its_reason(
    ollama: FakeOllama, mode: Mode, message: str
) -> None:  # G7
    ollama.mode = mode
    with pytest.raises(EmbeddingRejected) as caught:
        OllamaEmbedder(ollama.url).embed(["x"])
    assert str(caught.value) == message


def test_an_answer_that_is_no_json_is_rejected(ollama: FakeOllama) -> None:
    ollama.mode = "not_json"
    with pytest.raises(EmbeddingRejected, match="invalid embedding response: not JSON"):
        OllamaEmbedder(ollama.url).embed(["x"])


@pytest.mark.parametrize("vector", [["x"] * 768, [None] * 768, [[1.0]] * 768, [1e39] * 768])
def test_a_vector_of_anything_but_finite_numbers_is_rejected(ollama: FakeOllama, vector: list[float]) -> None:
    ollama.constant = vector
    with pytest.raises(EmbeddingRejected):
        OllamaEmbedder(ollama.url).embed(["x"])


def test_a_server_that_is_down_is_unreachable_and_named(ollama: FakeOllama) -> None:  # 15.1 #16
    ollama.down()
    embedder = OllamaEmbedder(ollama.url)
    with pytest.raises(EmbedderUnreachable, match=f"embedding HTTP error: POST {ollama.url}/api/embed: "):
        embedder.embed(["x"])
    assert embedder.health() == "unreachable"


@pytest.mark.parametrize("mode", ["hang", "drip", "hang_up"])
@pytest.mark.parametrize("http", ["HTTP/1.1", "HTTP/1.0"])
def test_a_server_that_never_ends_its_answer_is_unreachable_and_its_connection_is_closed(
    ollama: FakeOllama, mode: Mode, http: Any
) -> None:
    ollama.mode, ollama.http = mode, http
    with pytest.raises(EmbedderUnreachable):
        OllamaEmbedder(ollama.url, timeout=0.3).embed(["x"])
    gc.collect()  # a socket left open would be warned about here


@pytest.mark.parametrize("http", ["HTTP/1.1", "HTTP/1.0"])
def test_requests_leave_no_sockets_behind(ollama: FakeOllama, http: Any) -> None:
    ollama.http = http
    embedder = OllamaEmbedder(ollama.url)
    ours = {id(found) for found in gc.get_objects() if isinstance(found, socket.socket)}
    for number in range(5):
        embedder.embed([f"text {number}"])
    ollama.down()
    gc.collect()

    def left() -> list[socket.socket]:
        return [found for found in gc.get_objects() if isinstance(found, socket.socket) and id(found) not in ours]

    eventually(lambda: not left(), timeout=5)


def test_closing_ends_a_running_request(ollama: FakeOllama) -> None:
    embedder = OllamaEmbedder(ollama.url)
    errors: list[EmbeddingError] = []

    def embed() -> None:
        try:
            embedder.embed(["x"])
        except EmbeddingError as error:
            errors.append(error)

    thread = threading.Thread(target=embed)
    with ollama.holding():
        thread.start()
        ollama.wait_for_embeds(1)
        embedder.close()
        thread.join(9)
        assert not thread.is_alive()
    assert isinstance(errors[0], EmbedderUnreachable)
    with pytest.raises(EmbedderUnreachable):
        embedder.embed(["y"])
    assert len(ollama.embedded) == 1


@pytest.mark.parametrize("path", ["", "/", "/proxy/ollama", "/proxy/ollama/"])
def test_the_base_url_may_have_a_path(ollama: FakeOllama, path: str) -> None:
    OllamaEmbedder(ollama.url + path).embed(["x"])
    assert ollama.requests[-1].path == f"{path.rstrip('/')}/api/embed"


@pytest.mark.parametrize(
    ("models", "health"),
    [
        (["nomic-embed-text:latest"], "ready"),
        (["llama3", "nomic-embed-text"], "ready"),
        (["nomic-embed-text:v1.5"], "ready"),
        (["llama3"], "model_missing"),
        ([], "model_missing"),
    ],
)
def test_health_looks_for_the_model(ollama: FakeOllama, models: list[str], health: str) -> None:
    ollama.models = models
    assert OllamaEmbedder(ollama.url).health() == health


def test_an_address_where_nobody_listens_is_unreachable() -> None:
    assert OllamaEmbedder(NOBODY).health() == "unreachable"


def test_many_threads_embed_at_the_same_time(ollama: FakeOllama) -> None:
    embedder = OllamaEmbedder(ollama.url)
    vectors: dict[str, bytes] = {}
    threads = [
        threading.Thread(target=lambda text: vectors.update({text: embedder.embed([text])[0]}), args=(f"t{number}",))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 20
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert vectors == {f"t{number}": packed(hashed_vector(f"t{number}")) for number in range(8)}
