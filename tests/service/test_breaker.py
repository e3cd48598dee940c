"""The circuit breaker, with a clock of ours in front of a real server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

import agent_memory
from agent_memory import EmbedderUnreachable, EmbeddingRejected
from agent_memory.domain.embedding import Health
from agent_memory.embed.ollama import OllamaEmbedder
from agent_memory.service.breaker import CircuitBreaker
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


class Costly(OllamaEmbedder):
    """An embedder for whose outages one waits ``cost`` seconds of a clock of ours."""

    def __init__(self, url: str, monotonic: Monotonic) -> None:
        super().__init__(url)
        self.monotonic = monotonic
        self.cost = 10.0

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        try:
            return super().embed(texts)
        except EmbedderUnreachable:
            self.monotonic.now += self.cost
            raise


@pytest.fixture
def embedder(ollama: FakeOllama, monotonic: Monotonic) -> Costly:
    """What ``breaker`` asks."""
    return Costly(ollama.url, monotonic)


@pytest.fixture
def breaker(embedder: Costly, monotonic: Monotonic) -> CircuitBreaker:
    """A breaker before ``ollama``."""
    return CircuitBreaker(embedder, monotonic)


def fails(breaker: CircuitBreaker) -> None:
    """One failing call."""
    with pytest.raises(EmbedderUnreachable):
        breaker.embed(["x"])


def test_it_is_the_embedder_while_that_works(breaker: CircuitBreaker) -> None:
    assert breaker.embed(["x"]) == [packed(hashed_vector("x"))]


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


def test_the_pause_is_at_most_twenty_times_what_the_outage_cost(
    breaker: CircuitBreaker, embedder: Costly, monotonic: Monotonic, ollama: FakeOllama
) -> None:
    embedder.cost = 0.001
    ollama.mode = "hang_up"
    for _ in range(10):
        asked = len(ollama.embedded)
        fails(breaker)
        monotonic.now += 0.019
        fails(breaker)
        assert len(ollama.embedded) == asked + 1
        monotonic.now += 0.002


def test_calls_that_began_before_the_outage_was_known_do_not_lengthen_the_pause(
    monotonic: Monotonic, ollama: FakeOllama
) -> None:
    breaker = CircuitBreaker(OllamaEmbedder(ollama.url, timeout=0.3), monotonic)
    waiting = [threading.Thread(target=fails, args=(breaker,)) for _ in range(16)]
    with ollama.holding():
        for thread in waiting:
            thread.start()
        ollama.wait_for_embeds(16)
        monotonic.now += 10
        for thread in waiting:
            thread.join(20)
    fails(breaker)
    monotonic.now += 0.51
    breaker.embed(["x"])


def test_who_insists_is_let_through_during_the_pause_and_ends_it_for_all(
    breaker: CircuitBreaker, ollama: FakeOllama
) -> None:
    ollama.mode = "hang_up"
    fails(breaker)
    ollama.mode = "ok"
    fails(breaker)
    breaker.embed(["x"], insist=True)
    breaker.embed(["y"])


class Careless:
    """An embedder of somebody's own, which keeps to no rule."""

    model, dim, url = "nomic-embed-text", 768, ""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def embed(self, texts: Sequence[str]) -> list[bytes]:  # noqa: ARG002
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]

    def health(self) -> Health:
        return "ready"

    def close(self) -> None:
        pass


@pytest.mark.parametrize("answer", [[], [b"short"], [b"x" * 3072] * 2, ConnectionError("gone"), ZeroDivisionError()])
def test_whatever_an_embedder_does_a_store_succeeds_and_a_search_falls_back(db: Path, answer: object) -> None:
    with agent_memory.open(db, embedder=Careless(answer)) as memory:
        assert memory.store("a fact", "TODO") == 1
        assert memory.search("fact").search_mode == "keyword"
        assert memory.sweep().backfilled == 0


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
