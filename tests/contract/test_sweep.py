"""The background sweep, as every door shows it."""

from __future__ import annotations

from typing import Any

from tests.support import database
from tests.support.ollama import FakeOllama


def test_a_sweep_deletes_the_expired_memory_and_nothing_else(open_door: Any) -> None:  # 15.1 #47 #50
    door = open_door(sweeps=True)
    expired = door.store(content="needle gone", type="TODO", ttl_secs=60)
    kept = [
        door.store(content="needle kept", type="TODO"),
        door.store(content="needle kept", type="DECISION"),
        door.store(content="needle kept", type="TODO", ttl_secs=3_600),
    ]
    database.age(door.path, kept[0], 40 * database.MONTH)
    database.expire(door.path, expired)
    door.sweep()
    assert {row["id"] for row in door.list()} == set(kept)
    assert {row["id"] for row in door.search(query="needle")["results"]} == set(kept)
    database.check_integrity(door.path)


def test_a_sweep_takes_the_vector_of_an_expired_memory_along(open_door: Any, ollama: FakeOllama) -> None:
    door = open_door(ollama.url, sweeps=True)
    expired = door.store(content="gone", type="TODO", ttl_secs=60)
    kept = door.store(content="kept", type="TODO")
    assert database.vector_ids(door.path) == [expired, kept]
    database.expire(door.path, expired)
    door.sweep()
    assert database.vector_ids(door.path) == [kept]


def test_a_sweep_writes_the_decay_of_every_memory(open_door: Any) -> None:  # 15.1 #48
    door = open_door(sweeps=True)
    old = door.store(content="old", type="TODO")
    new = door.store(content="new", type="TODO")
    database.age(door.path, old, 2 * database.MONTH)
    assert database.value(door.path, "decay_score", old) == 1.0
    door.sweep()
    assert abs(database.value(door.path, "decay_score", old) - 0.25) < 1e-4
    assert abs(database.value(door.path, "decay_score", new) - 1.0) < 1e-4
