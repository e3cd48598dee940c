"""What every provider does when several processes, or threads, are at the same records, and when one is killed."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from memorizz.providers.base import MemoryProvider
from memorizz.taxonomy import MemoryType
from tests.memorizz.providers.backends import Place

KB = MemoryType.KNOWLEDGE_BASE
SHARED = MemoryType.SHARED_MEMORY


def finish(processes: list[subprocess.Popen[str]]) -> list[str]:
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return outputs


def test_eight_processes_that_write_at_once_lose_nothing(place: Place) -> None:
    # None of them finds the store made: that is part of the race.
    outputs = finish([place.start("store", 40) for _ in range(8)])
    stored = [id for output in outputs for id in json.loads(output)]
    assert len(set(stored)) == 8 * 40
    with place.open() as provider:
        assert sorted(record["_id"] for record in provider.scan(KB)) == sorted(stored)
        assert provider.problems() == []


def test_an_open_provider_sees_what_another_process_has_written(place: Place) -> None:
    with place.open() as provider:
        provider.put(KB, [("mine", {})])
        assert provider.count(KB) == 1
        place.run("put", "theirs", "more")
        assert [record["_id"] for record in provider.scan(KB)] == ["mine", "theirs", "more"]
        assert provider.find(KB, ["theirs"]) == {"theirs": "theirs"}
        place.run("delete", "theirs", "mine")
        assert [record["_id"] for record in provider.scan(KB)] == ["more"]
        provider.put(KB, [("mine", {})])
        assert [record["_id"] for record in provider.scan(KB)] == ["more", "mine"]


def test_a_process_finds_what_it_wrote_while_others_write_open_and_close(place: Place) -> None:
    finish(
        [place.start("reopen", 150), *(place.start("check", name, 30) for name in "abc"), place.start("reopen", 150)]
    )
    with place.open() as provider:
        assert provider.count(MemoryType.PERSONAS) == 90


def test_updates_of_one_record_by_several_processes_are_all_kept(place: Place) -> None:
    with place.open() as provider:
        provider.put(KB, [("one", {})])
    finish([place.start("update", "one", name, 20) for name in "abcd"])
    with place.open() as provider:
        record = provider.get(KB, "one")
        assert record is not None
        assert {f"{name}-{n}" for name in "abcd" for n in range(20)} <= record.keys()


def test_a_revision_is_given_to_one_process_only(place: Place) -> None:
    with place.open() as provider:
        provider.put(SHARED, [("session", {"content": json.dumps({"revision": 0})})])
    finish([place.start("increment", "session", 20) for _ in range(4)])
    with place.open() as provider:
        record = provider.get(SHARED, "session")
        assert record is not None and json.loads(record["content"]) == {"revision": 80}


def test_threads_share_a_provider(provider: MemoryProvider) -> None:
    def work(name: int) -> None:
        for n in range(25):
            with provider.transaction():
                provider.put(KB, [(f"{name}-{n}", {"n": n})])
            with provider.snapshot():
                assert provider.get(KB, f"{name}-{n}") is not None
                assert all(record["_id"] for record in provider.scan(KB))
            if n % 5 == 0:
                provider.delete(KB, [f"{name}-{n}"])

    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(work, name) for name in range(6)]:
            done.result()
    assert provider.count(KB) == 6 * 20
    assert provider.problems() == []


@pytest.mark.parametrize(("size", "acknowledged"), [(1, 1), (1, 40), (1, 150), (50, 3), (400, 2)])
def test_a_process_killed_while_it_puts_loses_nothing_it_acknowledged(
    place: Place, size: int, acknowledged: int
) -> None:
    with place.open() as provider:
        provider.put(KB, [(f"old-{n}", {"content": "at first"}) for n in range(size)])
    with place.start("put-forever", size, "new") as process:
        assert process.stdout is not None
        promised = [id for _ in range(acknowledged) for id in json.loads(process.stdout.readline())]
        process.kill()
        promised += [id for line in process.stdout if line.endswith("\n") for id in json.loads(line)]
    with place.open() as provider:
        records = {record["_id"]: record["content"] for record in provider.scan(KB)}
        assert provider.problems() == []
        assert [id for id in promised if id not in records] == []
        assert all(content == "x" * 300 for id, content in records.items() if id.startswith("new"))
        last = int(promised[-1].split("-")[1])
        whole = {f"{batch}" * 300 for batch in (last, last + 1)}
        assert {records[f"old-{n}"] for n in range(size)} <= whole
        # The one batch that was under way is there as a whole or in part, and nothing beside it.
        assert len(records) <= len(promised) + 2 * size
        provider.put(KB, [("after", {})])
        assert provider.count(KB) == len(records) + 1


def test_a_process_killed_while_it_deletes_brings_back_nothing_it_acknowledged(place: Place) -> None:
    ids = [f"r{n}" for n in range(300)]
    with place.open() as provider:
        provider.put(KB, [(id, {}) for id in ids])
    with place.start("delete-forever", *ids) as process:
        assert process.stdout is not None
        gone = [process.stdout.readline().strip() for _ in range(30)]
        process.kill()
        gone += [line.strip() for line in process.stdout if line.endswith("\n")]
    with place.open() as provider:
        left = [record["_id"] for record in provider.scan(KB)]
        assert left in (ids[len(gone) :], ids[len(gone) + 1 :])
        assert provider.problems() == []
