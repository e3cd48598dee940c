"""What the documentation says of each backend is what its provider says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorizz.backends import BACKENDS as DECLARED
from memorizz.backends import place
from memorizz.providers.registry import KINDS, PROVIDERS
from tests.memorizz.providers.backends import BACKENDS, Backend


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.kind)
def test_a_backend_promises_what_its_provider_can_do(backend: Backend, tmp_path: Path) -> None:
    with backend.at(tmp_path).open() as provider:
        capabilities = provider.capabilities
    for declared, real in ((DECLARED[backend.kind].atomic, capabilities.atomic),
                           (DECLARED[backend.kind].snapshot, capabilities.snapshot)):  # fmt: skip
        assert declared.startswith(("yes", "on ") if real else ("no", "on "))


def test_every_provider_is_a_backend_and_is_tested() -> None:
    assert set(DECLARED) == set(KINDS) == set(PROVIDERS)
    assert {backend.kind for backend in BACKENDS} | {"agent-memory"} == set(KINDS)


@pytest.mark.parametrize(
    ("backend", "options", "shown"),
    [
        ("sqlite", {"path": Path("/a/b.sqlite3")}, "/a/b.sqlite3"),
        ("postgres", {"url": "postgresql://me:secret@host:5/d?x=1", "schema": "s"}, "postgresql://host:5/d/s"),
        ("notion", {"data_source_id": "abc", "token": "secret"}, "abc"),
    ],
)
def test_the_place_of_a_memory_shows_no_secret(backend: str, options: dict[str, object], shown: str) -> None:
    assert place(backend, options) == shown
