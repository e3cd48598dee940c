"""What an import adds, and what it leaves alone."""

from __future__ import annotations

import io
import itertools
import threading
from pathlib import Path

import pytest

import agent_memory
from agent_memory.errors import FormatTooNew, InvalidFile
from agent_memory.service.memory import AgentMemory
from tests.support import database
from tests.support.clock import Clock
from tests.support.ollama import NOBODY, FakeOllama, hashed_vector, packed
from tests.support.portable import TYPES, exported, file, imported, line, link, memory, records

PINNED = {"DECISION", "ARCHITECTURE", "CONSTRAINT"}


@pytest.fixture(name="am")
def renamed(request: pytest.FixtureRequest) -> AgentMemory:
    """The fixture `memory`, whose name is that of a record here."""
    found: AgentMemory = request.getfixturevalue("memory")
    return found


def edges(db: Path) -> list[tuple[int, int, str, int]]:
    return database.rows(db, "SELECT from_id, to_id, kind, created_at FROM memory_links ORDER BY 1, 2, 3")


@pytest.mark.parametrize("type", TYPES)
def test_an_imported_row_holds_what_the_file_says_and_is_fresh(
    am: AgentMemory, db: Path, clock: Clock, ollama: FakeOllama, type: str
) -> None:  # 15.3
    clock.now = 5_000
    given = memory(
        40, "größe 🎉", type=type, tags=["b", "a", "a", ""], source="adr-1", scope="shop", created_at=100,
        last_accessed=200, access_count=7, expires_at=5_001,
    )  # fmt: skip
    report = imported(am, file(given, exported_at=5_000))
    assert report._asdict() == {
        "imported": 1, "skipped_duplicates": 0, "skipped_expired": 0,
        "links_imported": 0, "links_skipped_duplicates": 0, "links_dropped": 0,
    }  # fmt: skip
    assert database.row(db, 1) == {
        "id": 1,
        "mem_type": type,
        "content": "größe 🎉",
        "tags": '["b","a","a",""]',
        "source": "adr-1",
        "scope": "shop",
        "base_weight": 2.0 if type in PINNED else 1.0,
        "decay_score": 1.0,
        "access_count": 7,
        "created_at": 100,
        "last_accessed": 5_000,
        "expires_at": 5_001,
        "embedding_status": 0,
    }
    assert ollama.requests == []
    assert database.keyword_ids(db, "größe") == [1]
    database.check_integrity(db)


def test_an_imported_row_is_found_by_keyword_at_once_and_embedded_by_a_sweep(db: Path, ollama: FakeOllama) -> None:
    with agent_memory.open(db, ollama_url=ollama.url) as am:
        imported(am, file(memory(1, "zigbuild"), memory(2, "other")))
        assert am.count_pending() == 2
        assert ollama.requests == []
        assert database.vector_ids(db) == []
        ollama.mode = "error"
        assert [found.id for found in am.search("zigbuild").results] == [1]
        ollama.mode = "ok"
        assert am.sweep().backfilled == 2
    assert database.vector(db, 1) == packed(hashed_vector("zigbuild"))
    assert database.rows(db, "SELECT embedding_status FROM memories") == [1, 1]


def test_sweeps_embed_128_of_a_large_import_at_a_time(am: AgentMemory, ollama: FakeOllama) -> None:
    ollama.constant = hashed_vector("any")
    imported(am, file(*(memory(key, f"fact {key}") for key in range(1, 201))))
    assert [am.sweep().backfilled for _ in range(3)] == [128, 72, 0]


def test_a_vector_that_outlived_its_memory_is_not_adopted(am: AgentMemory, db: Path) -> None:
    am.store("old", "TODO")
    database.execute(db, "DELETE FROM memories WHERE id = 1")
    assert database.vector_ids(db) == [1]
    imported(am, file(memory(1, "new")))
    assert database.value(db, "content", 1) == "new"
    assert database.vector_ids(db) == []
    am.sweep()
    assert database.vector(db, 1) == packed(hashed_vector("new"))


def test_a_memory_is_a_duplicate_only_when_source_type_and_content_are_the_same_to_the_letter(
    am: AgentMemory, db: Path
) -> None:
    sources = [None, "", "s", "S", "s ", "null", "-", "0:"]
    contents = ["a", "A", "a ", "á", "a\u0301", "a\0", "a|b"]
    given = [
        memory(key, content, source=source, type=type)
        for key, (source, type, content) in enumerate(itertools.product(sources, ("TODO", "ERROR"), contents))
    ]
    assert imported(am, file(*given)).imported == len(given)
    other = [dict(record, tags=["t"], scope="other", created_at=1, access_count=9) for record in given]
    report = imported(am, file(*other))
    assert (report.imported, report.skipped_duplicates) == (0, len(given))
    assert database.rows(db, "SELECT DISTINCT tags, scope, access_count FROM memories") == [("[]", None, 0)]


def test_a_stored_memory_is_the_same_as_that_of_the_file(am: AgentMemory, db: Path) -> None:
    am.store("a", "TODO")
    am.store("a", "TODO", source="s")
    before = database.everything(db)
    report = imported(am, file(memory(5, "a"), memory(6, "a", source="s"), memory(7, "a", source="")))
    assert (report.imported, report.skipped_duplicates) == (1, 2)
    assert database.everything(db)[:2] == before


def test_of_equal_memories_that_are_there_the_first_takes_the_links(am: AgentMemory, db: Path) -> None:
    for content in ("b", "a", "a", "a"):
        am.store(content, "TODO")
    assert imported(am, file(memory(7, "a"), memory(8, "b"), link(7, 8))) == (0, 2, 0, 1, 0, 0)
    assert edges(db) == [(2, 1, "supersedes", 30)]


def test_two_equal_memories_of_a_file_become_the_first(am: AgentMemory, db: Path) -> None:
    data = file(
        memory(9, "a", tags=["first"]), memory(3, "a", tags=["second"]), memory(4, "b"),
        link(9, 3), link(9, 4), link(3, 4, created_at=99), link(4, 3, "relates_to", 40), link(4, 9, "relates_to", 41),
    )  # fmt: skip
    report = imported(am, data)
    assert report == (2, 1, 0, 2, 2, 1)
    assert database.value(db, "tags", 1) == '["first"]'
    assert edges(db) == [(1, 2, "relates_to", 40), (1, 2, "supersedes", 30)]


def test_a_memory_expires_at_the_second_it_says_and_takes_its_links_along(
    am: AgentMemory, db: Path, clock: Clock
) -> None:
    now = clock.now
    given = [memory(key, str(key), expires_at=at) for key, at in enumerate((-1, 0, now - 1, now, now + 1, None), 1)]
    report = imported(am, file(*given, link(4, 5), link(5, 4), link(5, 6)))
    assert report == (2, 0, 4, 1, 0, 2)
    assert database.rows(db, "SELECT content FROM memories") == ["5", "6"]
    assert edges(db) == [(1, 2, "supersedes", 30)]


def test_an_expired_memory_that_is_there_already_counts_as_expired(am: AgentMemory, db: Path, clock: Clock) -> None:
    am.store("a", "TODO", ttl_secs=1)
    am.store("b", "TODO")
    clock.advance(10)
    report = imported(am, file(memory(1, "a", expires_at=clock.now), memory(2, "b"), link(1, 2)))
    assert report == (0, 1, 1, 0, 0, 1)
    assert edges(db) == []


def test_an_expired_row_that_no_sweep_has_met_is_still_the_same_memory(am: AgentMemory, db: Path, clock: Clock) -> None:
    am.store("a", "TODO", ttl_secs=1)
    clock.advance(10)
    report = imported(am, file(memory(1, "a"), memory(2, "b"), link(1, 2)))
    assert report == (1, 1, 0, 1, 0, 0)
    assert database.value(db, "expires_at", 1) == 1_001
    assert edges(db) == [(1, 2, "supersedes", 30)]


def test_links_go_by_the_keys_of_the_file_and_no_other_row_gains_one(am: AgentMemory, db: Path) -> None:
    for content in ("one", "two", "three"):
        am.store(content, "TODO")
    am.link(1, 2, "caused_by")
    before = edges(db)
    data = file(memory(1, "x"), memory(2, "three"), memory(3, "y"), link(1, 2), link(2, 3), link(1, 3, "relates_to"))
    report = imported(am, data)
    assert report == (2, 1, 0, 3, 0, 0)
    # x, three and y are 4, 3 and 5 here.
    assert edges(db) == [*before, (3, 5, "supersedes", 30), (4, 3, "supersedes", 30), (4, 5, "relates_to", 30)]


def test_a_link_between_two_that_were_there_is_added_and_one_that_was_there_kept(am: AgentMemory, db: Path) -> None:
    am.store("a", "TODO")
    am.store("b", "TODO")
    am.link(2, 1, "relates_to")
    data = file(
        memory(8, "b"), memory(9, "a"), link(8, 9, "relates_to", 5), link(9, 8, "relates_to", 6),
        link(8, 9, "supersedes", 7), link(9, 8, "supersedes", 8),
    )  # fmt: skip
    assert imported(am, data) == (0, 2, 0, 2, 2, 0)
    assert edges(db) == [(1, 2, "relates_to", 1_000), (1, 2, "supersedes", 8), (2, 1, "supersedes", 7)]
    assert imported(am, data) == (0, 2, 0, 0, 4, 0)
    # Either end of a symmetric link can take it away.
    assert am.unlink(2, 1, "relates_to").unlinked


def test_the_smallest_and_largest_integers_come_back_as_they_were(am: AgentMemory, clock: Clock) -> None:
    low, high = -(2**63), 2**63 - 1
    given = [
        memory(low, "a", created_at=low, last_accessed=low, access_count=high, expires_at=high),
        memory(high, "b", created_at=high, last_accessed=high, expires_at=high),
        link(high, low, "relates_to", low),
        link(low, high, "caused_by", high),
    ]
    assert imported(am, file(*given, exported_at=low)) == (2, 0, 0, 2, 0, 0)
    (_, *found) = records(exported(am))
    for record in found[:2]:
        assert record["last_accessed"] == clock.now
    expected = [dict(record, last_accessed=clock.now) for record in given[:2]]
    assert [dict(record, key=0) for record in found[:2]] == [dict(record, key=0) for record in expected]
    assert found[2:] == [link(1, 2, "caused_by", high), link(1, 2, "relates_to", low)]


def test_texts_arrive_verbatim(am: AgentMemory, db: Path) -> None:
    given = [
        memory(1, " \n padded \0 \u2028 \u202e\U0010ffff\r\n"),
        memory(2, "x" * 3_000_000, tags=["", " ", "a,b", '"', "\0"], source="", scope=""),
        memory(3, "y", source="null", scope=" "),
    ]
    imported(am, file(*given))
    assert [dict(record, last_accessed=20) for record in records(exported(am))[1:]] == given
    assert database.rows(db, "SELECT source, scope FROM memories") == [(None, None), ("", ""), ("null", " ")]


@pytest.mark.parametrize(
    "last",
    [
        b"", b"garbage\n", b"\n", line(memory(1, "again")), line(memory(9, "")), line(link(1, 1)), line(link(1, 7_000)),
        line(memory(9, type="NOTE")), line(memory(9))[:-1],
    ],
)  # fmt: skip
def test_a_defect_at_the_very_end_takes_everything_back(am: AgentMemory, db: Path, last: bytes) -> None:
    am.store("a", "TODO")
    am.store("orphan", "TODO")
    database.execute(db, "DELETE FROM memories WHERE id = 2")
    before, vectors = database.everything(db), database.vector_ids(db)
    many = [memory(key, f"fact {key}") for key in range(1, 3_001)]
    data = file(*many, *(link(key, key + 1) for key in range(1, 3_000)), exported_links=0 if not last else 2_999) + last
    with pytest.raises(InvalidFile) as refused:
        imported(am, data)
    assert refused.value.line == (6_001 if last else 1)
    assert database.everything(db) == before
    assert database.vector_ids(db) == vectors
    database.check_integrity(db)
    # The next import on the same connection finds nothing of it.
    assert imported(am, file(*many)).imported == 3_000


def test_a_newer_file_is_not_imported(am: AgentMemory, db: Path) -> None:
    with pytest.raises(FormatTooNew):
        imported(am, file(memory(1), version=2))
    assert database.count(db) == 0


class FailingDisk(io.RawIOBase):
    """Gives its bytes and then an error."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray) -> int:  # type: ignore[override]
        data = self._data.read(len(target))
        if not data:
            raise OSError(5, "Input/output error")
        target[: len(data)] = data
        return len(data)


def test_a_file_that_cannot_be_read_to_its_end_is_not_imported(am: AgentMemory, db: Path) -> None:
    data = file(*(memory(key, f"fact {key}") for key in range(2_000)))
    with pytest.raises(OSError, match="Input/output error"):
        am.import_jsonl(io.BufferedReader(FailingDisk(data)))
    assert database.count(db) == 0
    assert imported(am, data).imported == 2_000


@pytest.mark.parametrize("ahead", [-(10**9), 0, 3_600, 3_601])
def test_a_file_from_more_than_an_hour_ahead_is_imported_with_a_warning(
    am: AgentMemory, clock: Clock, ahead: int, caplog: pytest.LogCaptureFixture
) -> None:  # 15.3
    assert imported(am, file(memory(1), exported_at=clock.now + ahead)).imported == 1
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == (1 if ahead > 3_600 else 0)
    assert all("clock skew" in warning and "3601 seconds" in warning for warning in warnings)


@pytest.mark.parametrize(
    "change",
    [
        "content = CAST(x'ff' AS TEXT)", "content = x'ff'", "source = CAST(x'ff' AS TEXT)", "source = 5",
        "mem_type = x'41'", "mem_type = CAST(x'ff' AS TEXT)", "mem_type = 'NOTE'", "tags = 'no json'",
        "created_at = 'yesterday'",
    ],
)  # fmt: skip
def test_a_foreign_row_that_is_none_does_not_keep_an_import_out(am: AgentMemory, db: Path, change: str) -> None:
    am.store("a", "TODO", source="s")
    am.store("b", "TODO")
    database.execute(db, f"UPDATE memories SET {change} WHERE id = 1")
    assert imported(am, file(memory(1, "c"), memory(2, "b"))) == (1, 1, 0, 0, 0, 0)
    assert am.import_gsd_state("# Decisions\n- d").imported == 1


def test_imports_at_the_same_time_add_each_memory_once(db: Path) -> None:
    data = file(*(memory(key, f"fact {key}") for key in range(1, 301)), *(link(key, key + 1) for key in range(1, 300)))
    with agent_memory.open(db, ollama_url=NOBODY) as one, agent_memory.open(db, ollama_url=NOBODY) as other:
        reports = []
        threads = [
            threading.Thread(target=lambda am=am: reports.append(imported(am, data))) for am in (one, other, one, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(reports) == [(0, 300, 0, 0, 299, 0)] * 3 + [(300, 0, 0, 299, 0, 0)]
    assert (database.count(db), database.count(db, "memory_links")) == (300, 299)


def test_imported_memories_are_forgotten_with_their_links_as_any_other(am: AgentMemory, db: Path) -> None:
    imported(am, file(memory(1, "a"), memory(2, "b"), link(1, 2)))
    assert am.forget(1).deleted
    assert edges(db) == []
    assert am.store("c", "TODO") == 3
    database.check_integrity(db)


def test_its_own_export_adds_no_link_to_a_twin(am: AgentMemory, db: Path) -> None:  # F1
    first, second, other = (am.store(content, "TODO") for content in ("twin", "twin", "other"))
    am.link(second, other, "supersedes")
    before = database.everything(db)
    report = imported(am, exported(am))
    assert (report.imported, report.links_imported, report.links_skipped_duplicates) == (0, 0, 1)
    assert database.everything(db) == before
    assert first != second


def test_the_largest_count_of_uses_stays_an_integer(am: AgentMemory, db: Path) -> None:
    largest = 2**63 - 1
    imported(am, file(memory(1, "needle", access_count=largest)))
    am.search("needle")
    am.update(1, scope="s")
    assert database.rows(db, "SELECT access_count, typeof(access_count) FROM memories") == [(largest, "integer")]
    assert [found.content for found in am.list()] == ["needle"]
