"""An embedder that is down, slow or broken: everything still works, by keyword."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support import database
from tests.support.doors import Door
from tests.support.ollama import BROKEN, FakeOllama, Mode, packed
from tests.support.polling import eventually


@pytest.mark.parametrize("mode", BROKEN)
def test_a_broken_embedder_costs_the_meaning_and_nothing_else(
    hybrid: Door, ollama: FakeOllama, mode: Mode
) -> None:  # 15.1 #31 #35, G1, G6, G7
    ollama.mode = mode
    memory_id = hybrid.store(content="needle in a haystack", type="TODO", tags=["a"])
    assert database.value(hybrid.path, "embedding_status", memory_id) == 0
    assert database.vector_ids(hybrid.path) == []
    answer = hybrid.search(query="needle")
    assert (answer["search_mode"], [row["id"] for row in answer["results"]]) == ("keyword", [memory_id])
    assert hybrid.update(id=memory_id, content="thread instead")["embedding_status"] == 0
    assert [row["content"] for row in hybrid.list()] == ["thread instead"]


def test_an_embedder_without_the_model_is_asked_each_time_and_used_once_it_is_pulled(
    hybrid: Door, ollama: FakeOllama
) -> None:
    ollama.mode = "not_found"
    assert hybrid.search(query="x")["search_mode"] == "keyword"
    ollama.mode = "ok"
    assert hybrid.search(query="x")["search_mode"] == "hybrid"


def test_results_are_those_of_the_keyword_mode_with_the_embedder_away(
    open_door: Any, ollama: FakeOllama
) -> None:  # 15.2 #38
    connected, without = open_door(ollama.url), open_door()
    ids = [connected.store(content=f"needle {'hay ' * number}", type="TODO") for number in range(6)]
    for place, memory_id in enumerate(ids):
        database.age(connected.path, memory_id, place * 86_400)
    ollama.mode = "error"
    broken = connected.search(query="needle", limit=4)
    database.execute(without.path, "UPDATE memories SET last_accessed = created_at")
    down = without.search(query="needle", limit=4)
    assert [row["id"] for row in broken["results"]] == [row["id"] for row in down["results"]]
    assert broken["search_mode"] == down["search_mode"] == "keyword"


def test_what_was_stored_during_an_outage_is_found_by_meaning_after_it(
    open_door: Any, ollama: FakeOllama
) -> None:  # G5
    ollama.down()
    door = open_door(ollama.url, sweeps=True)
    ids = [door.store(content=f"written in the dark {number}", type="TODO") for number in range(3)]
    assert door.search(query="elsewhere")["search_mode"] == "keyword"
    ollama.up()

    def all_embedded() -> bool:
        door.sweep()
        return database.vector_ids(door.path) == ids

    eventually(all_embedded)
    assert database.vector(door.path, ids[0]) == packed(ollama.vector_of("written in the dark 0"))
    assert database.rows(door.path, "SELECT DISTINCT embedding_status FROM memories") == [1]
    ollama.vectors["elsewhere"] = ollama.vector_of("written in the dark 1")
    answer = door.search(query="elsewhere")
    assert (answer["search_mode"], answer["results"][0]["id"]) == ("hybrid", ids[1])


def test_an_outage_that_ends_is_noticed_without_a_restart(hybrid: Door, ollama: FakeOllama) -> None:
    ollama.down()
    assert hybrid.search(query="x")["search_mode"] == "keyword"
    ollama.up()
    eventually(lambda: hybrid.search(query="x")["search_mode"] == "hybrid")


def test_reads_and_writes_go_on_while_an_embed_request_hangs(open_door: Any, ollama: FakeOllama) -> None:
    slow, quick = open_door(ollama.url), open_door()
    with ollama.holding():
        stored: list[int] = []
        thread = threading.Thread(target=lambda: stored.append(slow.store(content="held up", type="TODO")))
        thread.start()
        ollama.wait_for_embeds(1)
        other = quick.store(content="written meanwhile", type="TODO")
        assert [row["id"] for row in quick.search(query="meanwhile")["results"]] == [other]
    thread.join(20)
    assert database.value(slow.path, "embedding_status", stored[0]) == 1
