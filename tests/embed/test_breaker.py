"""The circuit breaker, with a clock of ours in front of a real server."""

from __future__ import annotations

import logging
import threading

import pytest

from agent_memory import EmbedderUnreachable, EmbeddingRejected
from agent_memory.embed.breaker import CircuitBreaker
from agent_memory.embed.ollama import OllamaEmbedder
from tests.support.ollama import FakeOllama, hashed_vector, packed


class Monotonic:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def monotonic() -> Monotonic:
    """The time of ``breaker``."""
    return Monotonic()


@pytest.fixture
def breaker(ollama: FakeOllama, monotonic: Monotonic) -> CircuitBreaker:
    """A breaker before ``ollama``."""
    return CircuitBreaker(OllamaEmbedder(ollama.url), monotonic)


def fails(breaker: CircuitBreaker) -> None:
    """One failing call."""
    with pytest.raises(EmbedderUnreachable):
        breaker.embed(["x"])


def test_it_is_the_embedder_while_that_works(breaker: CircuitBreaker) -> None:
    assert breaker.embed(["x"]) == [packed(hashed_vector("x"))]
    assert (breaker.model, breaker.dim) == ("nomic-embed-text", 768)


def test_after_an_outage_it_does_not_ask_for_half_a_second(
    breaker: CircuitBreaker, monotonic: Monotonic, ollama: FakeOllama
) -> None:
    ollama.down()
    fails(breaker)
    ollama.up()
    monotonic.now += 0.49
    fails(breaker)
    assert ollama.embedded == []
    monotonic.now += 0.02
    assert breaker.embed(["x"]) == [packed(hashed_vector("x"))]
    assert breaker.embed(["y"]) == [packed(hashed_vector("y"))]


def test_the_pause_doubles_up_to_a_minute_while_the_outage_lasts(
    breaker: CircuitBreaker, monotonic: Monotonic, ollama: FakeOllama
) -> None:
    ollama.mode = "hang_up"
    for pause in (0.5, 1, 2, 4, 8, 16, 32, 60, 60):
        asked = len(ollama.embedded)
        fails(breaker)
        assert len(ollama.embedded) == asked + 1
        monotonic.now += pause - 0.01
        fails(breaker)
        assert len(ollama.embedded) == asked + 1, pause
        monotonic.now += 0.02


def test_an_answer_makes_the_next_outage_start_with_a_short_pause(
    breaker: CircuitBreaker, monotonic: Monotonic, ollama: FakeOllama
) -> None:
    ollama.mode = "hang_up"
    for _ in range(4):
        fails(breaker)
        monotonic.now += 100
    ollama.mode = "ok"
    breaker.embed(["x"])
    ollama.mode = "hang_up"
    fails(breaker)
    ollama.mode = "ok"
    monotonic.now += 0.51
    breaker.embed(["x"])


def test_an_embedder_that_answers_with_an_error_is_asked_again_at_once(
    breaker: CircuitBreaker, ollama: FakeOllama
) -> None:
    ollama.mode = "error"
    for _ in range(3):
        with pytest.raises(EmbeddingRejected):
            breaker.embed(["x"])
    assert len(ollama.embedded) == 3
    ollama.mode = "ok"
    breaker.embed(["x"])


def test_only_one_call_tries_again_the_others_fail_at_once(
    breaker: CircuitBreaker, monotonic: Monotonic, ollama: FakeOllama
) -> None:
    ollama.mode = "hang_up"
    fails(breaker)
    monotonic.now += 1
    ollama.mode = "ok"
    answers: list[list[bytes]] = []
    trial = threading.Thread(target=lambda: answers.append(breaker.embed(["x"])))
    with ollama.holding():
        trial.start()
        ollama.wait_for_embeds(2)
        fails(breaker)
        assert len(ollama.embedded) == 2
    trial.join(20)
    assert answers == [[packed(hashed_vector("x"))]]
    breaker.embed(["x"])


def test_an_outage_and_its_end_are_logged_once_each(
    breaker: CircuitBreaker, monotonic: Monotonic, ollama: FakeOllama, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ollama.mode = "hang_up"
    for _ in range(5):
        fails(breaker)
        monotonic.now += 200
    ollama.mode = "ok"
    for _ in range(3):
        breaker.embed(["x"])
    logged = [(record.levelname, "without embeddings" in record.message) for record in caplog.records]
    assert logged == [("WARNING", True), ("INFO", False)]
