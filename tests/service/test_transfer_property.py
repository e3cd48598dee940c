"""Random memories moved about, against a model in plain Python."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import agent_memory
from agent_memory.service.memory import AgentMemory
from tests.support import database
from tests.support.clock import Clock
from tests.support.ollama import NOBODY
from tests.support.portable import (
    KINDS,
    TYPES,
    Record,
    exported,
    file,
    imported,
    link,
    memory,
    records,
    strict_records,
)

NOW = 10_000

# A few of each, so that equal ones meet; and anything.
contents = st.sampled_from(["a", "b", "A", "a "]) | st.text(max_size=12).map(lambda text: f"x{text}")
optional = st.sampled_from([None, None, "", "s", "null", " "]) | st.text(max_size=4)
times = st.integers(0, 2 * NOW) | st.integers(-(2**63), 2**63 - 1)
expiries = st.none() | st.sampled_from([NOW - 1, NOW, NOW + 1, -1, 2**63 - 1])
memories = st.builds(
    memory,
    content=contents,
    type=st.sampled_from(TYPES[:2]) | st.sampled_from(TYPES),
    tags=st.lists(st.text(max_size=4), max_size=3),
    source=optional,
    scope=optional,
    created_at=times,
    last_accessed=times,
    access_count=st.integers(0, 2**63 - 1),
    expires_at=expiries,
)


@st.composite
def stores(draw: st.DrawFn, keys: st.SearchStrategy[int]) -> list[Record]:
    """Memories and links as a file may hold them, in any order."""
    rows = [
        dict(draw(memories), key=key) for key in draw(st.lists(keys, max_size=8, unique=True))
    ]  # fmt: skip
    ends = [row["key"] for row in rows]
    if len(ends) < 2:
        return rows
    pairs = st.lists(st.sampled_from(ends), min_size=2, max_size=2, unique=True)
    links = [
        link(*draw(pairs), draw(st.sampled_from(KINDS)), draw(st.integers(0, 99)))
        for _ in range(draw(st.integers(0, 8)))
    ]
    return rows + links


small = st.integers(1, 12)
anywhere = small | st.integers(-(2**63), 2**63 - 1)


class Model:
    """What a database holds: memories by id, and the creation time of each link."""

    def __init__(self, present: Sequence[Record] = ()) -> None:
        self.rows = {row["key"]: row for row in present if row["record"] == "memory"}
        self.links = {
            (row["from"], row["to"], row["kind"]): row["created_at"] for row in present if row["record"] == "link"
        }

    def arrive(self, given: Sequence[Record]) -> tuple[int, ...]:
        """Import the records of a file; the report."""
        counts = dict.fromkeys(("new", "same", "expired", "linked", "there", "dropped"), 0)
        ids: dict[int, int] = {}
        for row in given:
            if row["record"] == "link":
                counts[self._link(ids.get(row["from"]), ids.get(row["to"]), row)] += 1
            elif row["expires_at"] is not None and row["expires_at"] <= NOW:
                counts["expired"] += 1
            else:
                same = [key for key in sorted(self.rows) if _identity(self.rows[key]) == _identity(row)]
                ids[row["key"]] = same[0] if same else max([0, *self.rows]) + 1
                counts["same" if same else "new"] += 1
                if not same:
                    self.rows[ids[row["key"]]] = dict(row, key=ids[row["key"]], last_accessed=NOW)
        return tuple(counts.values())

    def _link(self, from_id: int | None, to_id: int | None, row: Record) -> str:
        if from_id is None or to_id is None or from_id == to_id:
            return "dropped"
        ends = sorted((from_id, to_id)) if row["kind"] == "relates_to" else (from_id, to_id)
        edge = (ends[0], ends[1], row["kind"])
        if edge in self.links:
            return "there"
        self.links[edge] = row["created_at"]
        return "linked"

    def records(self) -> list[Record]:
        """The memories and links of an export."""
        return [self.rows[key] for key in sorted(self.rows)] + [
            link(*edge, self.links[edge]) for edge in sorted(self.links)
        ]


def _identity(row: Record) -> tuple[Any, ...]:
    return row["source"], row["type"], row["content"]


@contextmanager
def opened(directory: str, name: str) -> Iterator[AgentMemory]:
    with agent_memory.open(Path(directory) / name, ollama_url=NOBODY, clock=Clock(NOW)) as am:
        yield am


def fill(db: Path, present: Sequence[Record]) -> None:
    """Put memories and links where no import has been: equal and expired ones too."""
    with database.connected(db) as connection, connection:
        for row in present:
            if row["record"] == "memory":
                columns = dict(row, tags=json.dumps(row["tags"]))
                connection.execute(
                    "INSERT INTO memories(id, mem_type, content, tags, source, scope, access_count, created_at, "
                    "last_accessed, expires_at) VALUES (:key, :type, :content, :tags, :source, :scope, :access_count, "
                    ":created_at, :last_accessed, :expires_at)",
                    columns,
                )
            else:
                connection.execute("INSERT OR IGNORE INTO memory_links VALUES (:from, :to, :kind, :created_at)", row)


def canonical(present: list[Record]) -> list[Record]:
    """``present`` as a database keeps it: each link once, the symmetric ones with the smaller id first."""
    found = []
    for row in present:
        if row.get("kind") == "relates_to" and row["from"] > row["to"]:
            row = dict(row, **{"from": row["to"], "to": row["from"]})
        same = [other for other in found if {**other, "created_at": 0} == {**row, "created_at": 0}]
        found += [row] if not same else []
    return found


@settings(max_examples=120)
@given(present=stores(small).map(canonical), arriving=stores(anywhere))
def test_an_import_does_to_a_file_what_it_does_to_the_model(
    present: list[Record], arriving: list[Record]
) -> None:  # 15.3
    with tempfile.TemporaryDirectory() as directory, opened(directory, "a.db") as am:
        fill(am.path, present)
        model = Model(present)
        assert strict_records(exported(am))[1:] == model.records()
        assert imported(am, file(*arriving)) == model.arrive(arriving)
        assert records(exported(am))[1:] == model.records()
        assert imported(am, file(*arriving)) == model.arrive(arriving)
        assert records(exported(am))[1:] == model.records()
        database.check_integrity(am.path)


def distinct(present: list[Record]) -> list[Record]:
    """``present`` without memories that equal an earlier one, and without their links."""
    first = {_identity(row): row["key"] for row in reversed(present) if row["record"] == "memory"}
    kept = set(first.values())
    return [row for row in present if row.get("key") in kept or {row.get("from"), row.get("to")} <= kept]


@settings(max_examples=60)
@given(present=stores(small).map(canonical))
def test_a_round_trip_loses_what_it_says_and_nothing_else(present: list[Record]) -> None:  # F2, F4, F6
    with (
        tempfile.TemporaryDirectory() as directory,
        opened(directory, "a.db") as origin,
        opened(directory, "b.db") as copy,
    ):
        fill(origin.path, present)
        data = exported(origin)
        model = Model()
        assert imported(copy, data) == model.arrive(strict_records(data)[1:])
        once = exported(copy)
        assert records(once)[1:] == model.records()
        # Twice is once, and what the copy exports adds nothing to it.
        assert imported(copy, data)[0] == imported(copy, once)[0] == 0
        assert exported(copy) == once
        # The origin gains no memory from its own export.
        rows = database.rows(origin.path, "SELECT * FROM memories")
        assert imported(origin, data)[0] == 0
        assert database.rows(origin.path, "SELECT * FROM memories") == rows


@settings(max_examples=60)
@given(present=stores(small).map(canonical).map(distinct))
def test_importing_its_own_export_changes_nothing(present: list[Record]) -> None:  # F1
    with tempfile.TemporaryDirectory() as directory, opened(directory, "a.db") as am:
        fill(am.path, present)
        before = database.everything(am.path)
        report = imported(am, exported(am))
        assert (report.imported, report.links_imported) == (0, 0)
        assert sum(report) == len(present)
        assert database.everything(am.path) == before
