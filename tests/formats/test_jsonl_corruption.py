"""Damaged files: each is refused, or read as what its bytes say to a second reader; never skipped, never misread."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.errors import FormatTooNew, InvalidFile
from agent_memory.formats import jsonl
from tests.support.portable import Refused, file, line, link, memory, records, strict_records

SMALL = file(
    memory(3, "We chose SQLite.", type="DECISION", tags=["db", "größe"], source="adr-1", expires_at=4_000_000_000),
    memory(5, 'a "quoted"\\ \n\x01 line 🎉', type="ERROR", scope="", access_count=7),
    memory(9, "x", tags=[""], created_at=-1),
    link(3, 5, "caused_by"),
    link(5, 9, "relates_to", 0),
)
LINES = SMALL.splitlines(keepends=True)
VALUES = b'\x00\t\n\r "\\/{}[],:.-+01289eEnut\x7f\x80\xbf\xc3\xed\xef\xff'
"""What every byte becomes in turn: what JSON, UTF-8 and the lines give a meaning to."""


def read(data: bytes) -> list[Any]:
    return [msgspec.to_builtins(record) for record in jsonl.read(io.BytesIO(data))]


def check(data: bytes) -> bool:
    """Whether the reader takes ``data``, which has to be what the second reader says too."""
    try:
        expected = strict_records(data)
    except Refused:
        expected = None
    if expected is None:
        check_refusal(data)
        return False
    found = read(data)
    assert found == expected, data
    assert len(found) == 1 + found[0]["exported_rows"] + found[0]["exported_links"]
    return True


def check_refusal(data: bytes) -> None:
    with pytest.raises((InvalidFile, FormatTooNew)) as refused:
        read(data)
    error = refused.value
    assert str(error).isprintable(), ascii(str(error))
    if isinstance(error, InvalidFile):
        assert 1 <= error.line <= data.count(b"\n") + 1, data
        assert str(error).startswith(f"invalid argument: line {error.line}: "), error
    else:
        assert error.found > 1


def test_the_undamaged_file_is_read_as_what_it_says() -> None:
    assert check(SMALL)
    assert read(SMALL) == records(SMALL)


def test_every_change_of_one_byte_is_refused_or_read_as_it_stands() -> None:
    taken = 0
    for place, byte in enumerate(SMALL):
        for value in {*VALUES, *(byte ^ 1 << bit for bit in range(8))} - {byte}:
            taken += check(SMALL[:place] + bytes([value]) + SMALL[place + 1 :])
    # A letter in a text, a digit of a time: the format has no checksum.
    assert taken > 1_000


DAMAGES: dict[str, Callable[[int], bytes]] = {
    "missing": lambda place: SMALL[:place] + SMALL[place + 1 :],
    "there twice": lambda place: SMALL[: place + 1] + SMALL[place:],
    "swapped with the next": lambda place: SMALL[:place] + SMALL[place : place + 2][::-1] + SMALL[place + 2 :],
    "behind a line feed": lambda place: SMALL[:place] + b"\n" + SMALL[place:],
    "behind a carriage return": lambda place: SMALL[:place] + b"\r" + SMALL[place:],
    "behind a blank": lambda place: SMALL[:place] + b" " + SMALL[place:],
    "behind a zero byte": lambda place: SMALL[:place] + b"\0" + SMALL[place:],
    "behind a digit": lambda place: SMALL[:place] + b"0" + SMALL[place:],
    "behind a quote": lambda place: SMALL[:place] + b'"' + SMALL[place:],
    "behind a backslash": lambda place: SMALL[:place] + b"\\" + SMALL[place:],
    "behind a comma": lambda place: SMALL[:place] + b"," + SMALL[place:],
    "behind a byte order mark": lambda place: SMALL[:place] + b"\xef\xbb\xbf" + SMALL[place:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_byte_at_any_place_may_be(damage: str) -> None:
    for place in range(len(SMALL)):
        check(DAMAGES[damage](place))


def test_no_part_of_a_file_is_taken_for_the_whole() -> None:
    for end in range(len(SMALL)):
        assert not check(SMALL[:end])
    for start in range(1, len(SMALL)):
        assert not check(SMALL[start:])


def test_a_line_that_is_missing_twice_or_empty_is_never_passed_over() -> None:
    for number in range(len(LINES)):
        before, after = LINES[:number], LINES[number + 1 :]
        assert not check(b"".join(before + after))
        assert not check(b"".join([*before, b"\n", *after]))
        # The same link again is two records of one relation, and the count is wrong.
        assert not check(b"".join([*before, LINES[number], LINES[number], *after]))
        assert not check(b"".join([*before, LINES[number], b"\n", *after]))
        for cut in range(1, len(LINES[number])):
            assert not check(b"".join([*before, LINES[number][:cut] + b"\n", *after])) or cut == len(LINES[number]) - 1


def test_lines_in_another_order_are_taken_when_memories_come_before_links() -> None:
    for first in range(len(LINES)):
        for second in range(first + 1, len(LINES)):
            swapped = list(LINES)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            between_equals = first > 0 and (second <= 3) == (first <= 3)
            assert check(b"".join(swapped)) is between_equals


@pytest.mark.parametrize("depth", [1, 2, 100, 400, 900, 950, 970, 980, 990, 1_000, 1_010, 3_000, 200_000])
@pytest.mark.parametrize("opened", [b"[", b'{"a":'], ids=["arrays", "objects"])
def test_deep_nesting_is_a_defect_wherever_it_stands(depth: int, opened: bytes) -> None:
    nested = opened * depth + b"1" + (b"]" if opened == b"[" else b"}") * depth
    for text in (
        nested,
        nested[:-1],
        opened * depth,
        b'{"a":%b,"record":"memory"}' % nested,
        b'{"record":"memory","a":%b}' % nested,
        b'{"record":%b}' % nested,
        b'{"record":"memory","key":%b}' % nested,
        line(memory())[:-1].replace(b"[]", b"[%b]" % nested),
    ):
        assert not check(b"".join(LINES[:4]) + text + b"\n")
        assert not check(text + b"\n" + b"".join(LINES[1:]))


lines = st.sampled_from(LINES)
pieces = lines | st.binary(max_size=20) | st.sampled_from([b"\n", b"{}\n", b"null\n", b"\xef\xbb\xbf", b"\r\n"])


@settings(max_examples=400)
@given(st.lists(pieces, max_size=10).map(b"".join))
def test_any_heap_of_lines_and_bytes_is_read_or_refused(data: bytes) -> None:
    check(data)
    check(LINES[0] + data)


scalars = (
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | st.text()
    | st.sampled_from(["memory", "header", "link", "TODO", "supersedes", "agent-memory-export"])
)  # fmt: skip
values = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=3), scalars, max_size=2)
places = st.integers(0, len(LINES) - 1)
names = st.sampled_from(sorted({name for record in records(SMALL) for name in record})) | st.text(max_size=4)


@settings(max_examples=600)
@given(place=places, name=names, value=values)
def test_any_value_in_any_member_is_read_or_refused(place: int, name: str, value: Any) -> None:
    damaged = records(SMALL)
    damaged[place] = {**damaged[place], name: value}
    check(b"".join(map(line, damaged)))


@settings(max_examples=300)
@given(data=st.data())
def test_a_file_of_any_valid_values_in_any_order_of_members_is_read_as_it_stands(data: st.DataObject) -> None:
    integers = st.integers(-(2**63), 2**63 - 1)
    texts = st.text()
    keys = data.draw(st.lists(integers, min_size=2, max_size=6, unique=True))
    found = [
        memory(
            key,
            "x" + data.draw(texts),
            tags=data.draw(st.lists(texts, max_size=3)),
            source=data.draw(st.none() | texts),
            scope=data.draw(st.none() | texts),
            created_at=data.draw(integers),
            access_count=data.draw(st.integers(0, 2**63 - 1)),
            expires_at=data.draw(st.none() | integers),
        )
        for key in keys
    ]
    found += [link(keys[0], keys[1], kind) for kind in data.draw(st.sets(st.sampled_from(jsonl.LinkKind)))]
    shuffled = [dict(data.draw(st.permutations(sorted(record.items())))) for record in found]
    assert check(file(*shuffled, exported_at=data.draw(integers)))
