"""A memory with a clock of ours and a real embedder without a circuit breaker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import agent_memory
from agent_memory.embed.ollama import OllamaEmbedder
from agent_memory.service.memory import AgentMemory
from tests.support.clock import Clock
from tests.support.ollama import FakeOllama


@pytest.fixture
def clock() -> Clock:
    """The time of ``memory``."""
    return Clock()


@pytest.fixture
def memory(db: Path, clock: Clock, ollama: FakeOllama) -> Iterator[AgentMemory]:
    """A new memory whose embedder is ``ollama``."""
    with agent_memory.open(db, clock=clock, embedder=OllamaEmbedder(ollama.url)) as memory:
        yield memory
