"""A database that fails under a running program: a generic sentence for the client, the detail for the log."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import database
from tests.support.doors import Door, DoorError, McpDoor
from tests.support.polling import eventually

OPERATIONS: dict[str, Callable[[Door], Any]] = {
    "store": lambda door: door.store(content="x", type="TODO"),
    "search": lambda door: door.search(query="needle"),
    "list": lambda door: door.list(),
    "update": lambda door: door.update(id=1, content="y"),
    "link": lambda door: door.link(from_id=1, to_id=2, kind="supersedes"),
    "unlink": lambda door: door.unlink(from_id=1, to_id=2, kind="supersedes"),
    "forget": lambda door: door.forget(id=1),
}


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_storage_fault_is_reported_in_general_terms(door: Door, operation: str) -> None:
    for content in "ab":
        door.store(content=content, type="TODO")
    # A database that every program still opens.
    database.execute(
        door.path,
        """ALTER TABLE memories RENAME COLUMN last_accessed TO gone;
        ALTER TABLE memory_links RENAME COLUMN kind TO gone;
        CREATE TRIGGER broken BEFORE DELETE ON memories BEGIN INSERT INTO nowhere VALUES (1); END""",
    )
    with pytest.raises(DoorError) as caught:
        OPERATIONS[operation](door)
    assert (caught.value.kind, caught.value.message) == (
        "storage",
        f"{operation} failed due to a storage error (details are in the server log)",
    )
    eventually(lambda: re.search("no such column|no column named|no such table", door.log()))


def test_a_row_of_an_unknown_type_is_a_storage_fault_that_hides_no_other_row(door: Door) -> None:
    broken = door.store(content="needle", type="TODO")
    sound = door.store(content="thread", type="TODO")
    database.execute(door.path, "UPDATE memories SET mem_type = 'NOTE' WHERE id = ?", (broken,))
    with pytest.raises(DoorError) as caught:
        door.search(query="needle")
    assert caught.value.kind == "storage"
    assert [row["id"] for row in door.search(query="thread")["results"]] == [sound]
    assert door.forget(id=broken)["deleted"] is True
    assert len(door.list()) == 1


@pytest.mark.parametrize("damage", ["content = x'ff00'", "last_accessed = 'soon'", "scope = x'ff'"])
def test_a_row_whose_column_holds_another_kind_of_value_is_a_storage_fault(door: Door, damage: str) -> None:
    door.store(content="needle", type="TODO")
    database.execute(door.path, f"UPDATE memories SET {damage}")
    with pytest.raises(DoorError) as caught:
        door.list()
    assert (caught.value.kind, caught.value.message) == (
        "storage",
        "list failed due to a storage error (details are in the server log)",
    )


def test_a_link_of_an_unknown_kind_is_a_storage_fault_of_expansion_only(door: Door) -> None:
    one, other = (door.store(content=content, type="TODO") for content in ("needle", "thread"))
    door.link(from_id=one, to_id=other, kind="supersedes")
    database.execute(door.path, "UPDATE memory_links SET kind = 'blocks'")
    with pytest.raises(DoorError) as caught:
        door.list(limit=5, expand_links=True)
    assert caught.value.kind == "storage"
    assert len(door.list(limit=5)) == 2


def test_a_server_lives_on_after_storage_faults(mcp: McpDoor) -> None:
    mcp.store(content="x", type="TODO")
    database.execute(mcp.path, "ALTER TABLE memories RENAME TO elsewhere")
    with pytest.raises(DoorError):
        mcp.list()
    database.execute(mcp.path, "ALTER TABLE elsewhere RENAME TO memories")
    assert len(mcp.list()) == 1
