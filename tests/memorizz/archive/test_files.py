"""Archives as files, and Python values as archives."""

from __future__ import annotations

import json
from array import array
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from uuid import UUID

import pytest

from memorizz.archive.canonical import canonical
from memorizz.archive.values import to_json
from memorizz.memory_archive import MemoryArchiveError, archive_json, read_archive, seal_archive, write_archive
from tests.memorizz.support import archive


def test_a_written_archive_is_private_and_reads_back_the_same(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.memorizz.json"
    assert write_archive(archive(), path) == str(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert read_archive(path) == archive()
    assert [file.name for file in path.parent.iterdir()] == ["a.memorizz.json"]
    text = path.read_text(encoding="utf-8")
    assert text == json.dumps(archive(), ensure_ascii=False, indent=2)


def test_an_existing_file_is_replaced_only_when_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.memorizz.json"
    path.write_text("mine")
    with pytest.raises(FileExistsError) as caught:
        write_archive(archive(), path)
    assert caught.value.filename == str(path)
    assert path.read_text() == "mine"
    write_archive(archive(), path, overwrite=True)
    assert read_archive(path) == archive()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["a.memorizz.json"]


def test_an_archive_that_is_not_valid_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(MemoryArchiveError):
        write_archive({**archive(), "version": 2}, tmp_path / "a.memorizz.json")
    assert [file.name for file in tmp_path.iterdir()] == []


def test_an_archive_that_would_be_too_long_with_its_indentation_is_written_compact() -> None:
    text = archive_json(archive(), max_bytes=len(canonical(archive())))
    assert text == canonical(archive()).decode()


def test_sealing_makes_a_copy_and_replaces_what_was_there() -> None:
    tree = archive()
    tree["stores"]["knowledge_base"][0]["data"]["content"] = "edited on purpose"
    before = json.dumps(tree)
    sealed = seal_archive(tree)
    assert json.dumps(tree) == before
    assert sealed["integrity"] != tree["integrity"]
    assert seal_archive({key: tree[key] for key in tree if key != "integrity"}) == sealed


class Colour(Enum):
    RED = "red"


class Agent:
    def to_dict(self) -> dict[str, object]:
        return {"name": "Keel", "call": print}


def test_python_values_become_json_values() -> None:
    assert to_json(
        {
            "when": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
            "day": date(2026, 1, 2),
            "colour": Colour.RED,
            "id": UUID(int=1),
            "pair": (1, 2.5),
            "vector": array("d", [0.5]),
            "agent": Agent(),
            "function": len,
            "list": [print, 1],
        }
    ) == {
        "when": "2026-01-02T03:04:05.000006+00:00",
        "day": "2026-01-02",
        "colour": "red",
        "id": "00000000-0000-0000-0000-000000000001",
        "pair": [1, 2.5],
        "vector": [0.5],
        "agent": {"name": "Keel"},
        "list": [1],
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [{"b": {1, 2}}]}, r"a\[0\]\.b: a value of type set has no JSON form"),
        ({"a": b"x"}, "a: a value of type bytes has no JSON form"),
        ({"a": {5: 1}}, "a: the key 5 must be a string"),
        ({"a": [float("nan")]}, r"a\[0\]: nan is no JSON number"),
    ],
)
def test_a_value_without_json_form_is_refused_saying_where(value: object, message: str) -> None:
    with pytest.raises(MemoryArchiveError, match=message):
        to_json(value)
