"""Merge patches against a model: a dictionary that is patched as RFC 7396 says."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

import agent_memory
from tests.contract.bounds import PINNED, TYPES
from tests.support import database
from tests.support.clock import Clock
from tests.support.ollama import NOBODY

visible = st.text(min_size=1, max_size=20).map(lambda text: f"x{text}")
tags = st.lists(st.text(max_size=8), max_size=4)
scopes = st.text(min_size=1, max_size=8)
ttls = st.integers(1, 3_155_760_000)
patches = st.fixed_dictionaries(
    {},
    optional={
        "content": visible,
        "tags": st.none() | tags,
        "scope": st.none() | scopes,
        "ttl_secs": st.none() | ttls,
    },
)


class Patching(RuleBasedStateMachine):
    """Random stores, patches, forgets and sweeps, each done to the memory and to the model."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "memory.db"
        self.clock = Clock()
        self.memory = agent_memory.open(self.path, ollama_url=NOBODY, clock=self.clock)
        self.model: dict[int, dict[str, Any]] = {}

    def teardown(self) -> None:
        """Close and check the file."""
        self.memory.close()
        database.check_integrity(self.path)
        self.directory.cleanup()

    @rule(
        target=ids, content=visible, type=st.sampled_from(TYPES), tags=tags, scope=st.none() | scopes,
        ttl_secs=st.none() | ttls,
    )  # fmt: skip
    def store(self, content: str, type: str, tags: list[str], scope: str | None, ttl_secs: int | None) -> int:
        memory_id = self.memory.store(content, type, tags=tags, scope=scope, ttl_secs=ttl_secs)
        assert memory_id not in self.model
        self.model[memory_id] = {
            "content": content,
            "mem_type": type,
            "tags": tags,
            "scope": scope,
            "expires_at": None if ttl_secs is None else self.clock.now + ttl_secs,
            "created_at": self.clock.now,
            "last_accessed": self.clock.now,
            "access_count": 0,
            "base_weight": 2.0 if type in PINNED else 1.0,
        }
        return memory_id

    @rule(memory_id=ids, patch=patches)
    def update(self, memory_id: int, patch: dict[str, Any]) -> None:
        if not patch:
            return
        answer = self.memory.update(memory_id, **patch)
        assert answer.updated is (memory_id in self.model)
        if memory_id not in self.model:
            return
        row = self.model[memory_id]
        for name, value in patch.items():
            if name == "ttl_secs":
                row["expires_at"] = None if value is None else self.clock.now + value
            else:
                row[name] = [] if name == "tags" and value is None else value
        row["last_accessed"] = self.clock.now
        row["access_count"] += 1
        assert answer.memory is not None
        assert (answer.memory.content, list(answer.memory.tags), answer.memory.scope) == (
            row["content"],
            row["tags"],
            row["scope"],
        )

    @rule(memory_id=ids)
    def forget(self, memory_id: int) -> None:
        assert self.memory.forget(memory_id).deleted is (self.model.pop(memory_id, None) is not None)

    @rule(seconds=st.sampled_from([1, 3_600, 10_000_000_000]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def sweep(self) -> None:
        expired = [key for key, row in self.model.items() if row["expires_at"] and row["expires_at"] < self.clock.now]
        report = self.memory.sweep()
        assert report.expired == len(expired)
        for memory_id in expired:
            del self.model[memory_id]
        assert report.rescored == len(self.model)

    @invariant()
    def agrees(self) -> None:
        listed = {found.id: found for found in self.memory.list()}
        assert listed.keys() == self.model.keys()
        for memory_id, row in self.model.items():
            found = listed[memory_id]
            assert {
                "content": found.content,
                "mem_type": found.type.value,
                "tags": list(found.tags),
                "scope": found.scope,
                "expires_at": found.expires_at,
                "created_at": found.created_at,
                "last_accessed": found.last_accessed,
                "access_count": found.access_count,
                "base_weight": database.value(self.path, "base_weight", memory_id),
            } == row


TestPatching = Patching.TestCase
TestPatching.settings = settings(max_examples=25, stateful_step_count=20)
