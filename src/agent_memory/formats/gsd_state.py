"""The state file of a GSD project: Markdown that people edit, read with tolerance.

Sections are found by their headings, whatever their level. The rules are documented in ``docs/gsd.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from agent_memory.domain.bounds import is_visible
from agent_memory.domain.memory import MemoryType

SOURCE: Final = "gsd-state"
TAG: Final = "gsd"
MAX_ITEM_BYTES: Final = 8192

# What Unicode calls white space; Python's own notion is a little wider.
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_BULLETS: Final = {
    "Decisions": MemoryType.DECISION,
    "Blockers/Concerns": MemoryType.CONSTRAINT,
    "Pending Todos": MemoryType.TODO,
}
_TABLE: Final = "Deferred Items"
_NOTHING: Final = "None yet."


class Item(NamedTuple):
    """One thing the file says, to be remembered."""

    type: MemoryType
    content: str
    tags: tuple[str, ...]


class GsdState(NamedTuple):
    """The items in document order, and how many list entries or table rows could not be read as one."""

    items: tuple[Item, ...]
    malformed: int


def read(text: str) -> GsdState:
    """What a state file says; any text is one, if need be without items."""
    items: list[Item] = []
    malformed = 0
    section = ""
    in_fence = before_table_header = False
    for raw in text.split("\n"):
        line = raw.strip(_SPACE)
        if line.startswith("```"):
            in_fence = not in_fence
        elif in_fence:
            continue
        elif line.startswith("#"):
            section = line.lstrip("#").strip(_SPACE)
            before_table_header = True
        elif section == _TABLE and before_table_header and _is_row(line):
            before_table_header = False
        else:
            try:
                items += _items(line, section)
            except _Malformed:
                malformed += 1
    return GsdState(tuple(items), malformed)


class _Malformed(Exception):
    """A list entry or table row that is none."""


def _items(line: str, section: str) -> Iterator[Item]:
    """The item on a line of ``section``, if there is one."""
    if section in _BULLETS and line == "-":
        raise _Malformed
    if section in _BULLETS and line.startswith("- "):
        content = line[2:].strip(_SPACE)
        if content != _NOTHING:
            yield _item(_BULLETS[section], content, TAG)
    elif section == _TABLE and _is_row(line):
        cells = [cell.strip(_SPACE) for cell in line.strip("|").split("|")]
        if len(cells) < 3:
            raise _Malformed
        yield _item(MemoryType.TODO, f"{cells[1]} — {cells[2]}", TAG, "deferred")


def _is_row(line: str) -> bool:
    """Whether a line is a table row, and not the rule between two."""
    return line.startswith("|") and line.strip("|-: ") != ""


def _item(type: MemoryType, content: str, *tags: str) -> Item:
    try:
        size = len(content.encode())
    except UnicodeEncodeError:
        # A lone surrogate, which no database can hold.
        raise _Malformed from None
    if size > MAX_ITEM_BYTES or not is_visible(content):
        raise _Malformed
    return Item(type, content, tags)
