"""Every defect of a portable file, with its line and what is said about it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from agent_memory.errors import FormatTooNew, InvalidFile
from agent_memory.formats import jsonl
from tests.support.portable import MEMBERS, file, header, line, link, memory, records, without

MEMORY_MEMBERS = "`key`, `type`, `content`, `tags`, `source`, `scope`, `created_at`, `last_accessed`, "
MEMORY_MEMBERS += "`access_count`, `expires_at`"
HEADER_MEMBERS = "`format`, `version`, `exported_at`, `embedding_model`, `embedding_dim`, `schema_version`, "
HEADER_MEMBERS += "`agent_memory_version`, `exported_rows`, `exported_links`"
LINK_MEMBERS = "`from`, `to`, `kind`, `created_at`"
TYPES = "DECISION, PATTERN, ERROR, TODO, ARCHITECTURE, CONSTRAINT"
KINDS = "relates_to, supersedes, caused_by"
PAIR = file(memory(1), memory(2), link(1, 2))


def refusal(data: bytes) -> str:
    with pytest.raises(InvalidFile) as refused:
        list(jsonl.read(io.BytesIO(data)))
    return str(refused.value).removeprefix("invalid argument: ")


def read(data: bytes) -> list[Any]:
    return list(jsonl.read(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "missing header: the file is empty"),
        (b"\n", "the line is blank"),
        (file(memory())[230:], "not valid JSON (Expecting value at character 1)"),
        (line(memory()), "missing header: the first record is a memory"),
        (line(link(1, 2)), "missing header: the first record is a link"),
        (b"[]\n", "expected an object, got []"),
        (b"\xef\xbb\xbf" + file(), "the line begins with a byte order mark"),
        (file().replace(b"\n", b"\r\n"), "the line ends with a carriage return: lines end with a line feed alone"),
        (file()[:-1], "the line has no line feed at its end: the file is cut short"),
        (b"\x1f\x8b\x08\x00" + bytes(100), "not valid UTF-8 (byte 2 is 0x8b)"),
        (b"SQLite format 3\x00" + bytes(100) + b"\n", "not valid JSON (Expecting value at character 1)"),
        ("é".join(map(chr, range(65, 90))).encode("latin-1") + b"\n", "not valid UTF-8 (byte 2 is 0xe9)"),
        (b"x" * 200_000, "missing header: the line is too long to be one"),
        (line(header(format="agent-memory")), "format must be 'agent-memory-export' (got \"agent-memory\")"),
        (line(header(format=None)), "format must be 'agent-memory-export' (got null)"),
        (line(without(header(), "format")), "missing field `format`"),
        (line(without(header(), "version")), "missing field `version`"),
        (line(header(version=0)), "version must be a positive integer (got 0)"),
        (line(header(version=-1)), "version must be a positive integer (got -1)"),
        (line(header(version=1.0)), "version must be a positive integer (got 1.0)"),
        (line(header(version=True)), "version must be a positive integer (got true)"),
        (line(header(version="1")), 'version must be a positive integer (got "1")'),
        (line(header(version=None)), "version must be a positive integer (got null)"),
        (line(header(exported_at="now")), 'exported_at: expected a 64-bit integer, got "now"'),
        (line(header(embedding_model=None)), "embedding_model: expected a string, got null"),
        (line(header(exported_rows=-1)), "exported_rows: expected an integer from 0 to 2^63 - 1, got -1"),
        (line(header(key=1)), f"unknown field `key`, expected one of {HEADER_MEMBERS}"),
        (line(header())[:-2] + b',"version":1}\n', "duplicate field `version`"),
        (line(header())[:-2] + b',"version":2}\n', "duplicate field `version`"),
        (line(header(exported_rows=1)), "exported_rows is 1 but the file holds 0 memory records"),
        (file(memory(), exported_rows=0), "exported_rows is 0 but the file holds 1 memory records"),
        (PAIR.replace(b'links":1', b'links":2'), "exported_links is 2 but the file holds 1 link records"),
        (PAIR.replace(b'links":1', b'links":0'), "exported_links is 0 but the file holds 1 link records"),
    ],
)  # fmt: skip
def test_a_file_with_a_wrong_first_line_or_count_is_refused_at_line_1(data: bytes, message: str) -> None:
    assert refusal(data) == f"line 1: {message}"


@pytest.mark.parametrize("name", MEMBERS["header"][1:])
def test_a_header_without_a_member_is_refused(name: str) -> None:
    assert refusal(line(without(header(), name))) == f"line 1: missing field `{name}`"


ONE = line(memory(7, "x"))


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (line(header()), "a second header"),
        (b"\n", "the line is blank"),
        (b" \t\n", "the line is blank"),
        (b"null\n", "expected an object, got null"),
        (b"[1, 2]\n", "expected an object, got [1, 2]"),
        (b'"memory"\n', 'expected an object, got "memory"'),
        (b"{}\n", "missing field `record`"),
        (b'{"record":"memory"\n', "not valid JSON (Expecting ',' delimiter at character 20)"),
        (ONE[:-1] + ONE, "not valid JSON (Extra data at character 163)"),
        (ONE[:50], "the line has no line feed at its end: the file is cut short"),
        (ONE[:-1], "the line has no line feed at its end: the file is cut short"),
        (ONE[:-1] + b"\r\n", "the line ends with a carriage return: lines end with a line feed alone"),
        (b"\xef\xbb\xbf" + ONE, "the line begins with a byte order mark"),
        (ONE.replace(b'"x"', b'"caf\xe9"'), "not valid UTF-8 (byte 56 is 0xe9)"),
        (ONE.replace(b'"x"', b'"\xed\xa0\xbd"'), "not valid UTF-8 (byte 53 is 0xed)"),
        (ONE.replace(b'"x"', b'"a\x00"'), "not valid JSON (Invalid control character at at character 54)"),
        (ONE.replace(b'"x"', b'"\\ud83d"'),
            "not valid JSON (JSON is malformed: unexpected end of escaped utf-16 surrogate pair (byte 58))"),
        (line(memory(record="memo")), "unknown variant `memo`, expected one of `header`, `memory`, `link`"),
        (line(memory(record="Memory")), "unknown variant `Memory`, expected one of `header`, `memory`, `link`"),
        (line(memory(record=None)), "unknown variant null, expected one of `header`, `memory`, `link`"),
        (line(memory(record="\x1b[2J\n\u202e")),
            "unknown variant `\\x1b[2J\\n\\u202e`, expected one of `header`, `memory`, `link`"),
        (line(memory(id=1)), f"unknown field `id`, expected one of {MEMORY_MEMBERS}"),
        (line(memory(Key=1)), f"unknown field `Key`, expected one of {MEMORY_MEMBERS}"),
        (line(memory(**{"\x1b[31m\n": 1})), f"unknown field `\\x1b[31m\\n`, expected one of {MEMORY_MEMBERS}"),
        (line(memory(decay_score=1.0)), f"unknown field `decay_score`, expected one of {MEMORY_MEMBERS}"),
        (ONE[:-2] + b',"key":7}\n', "duplicate field `key`"),
        (ONE[:-2] + b',"expires_at":null}\n', "duplicate field `expires_at`"),
        (ONE[:-2] + b',"record":"link"}\n', "duplicate field `record`"),
        (ONE[:-2] + b',"\\u006bey":8}\n', "duplicate field `key`"),
        (ONE.replace(b"7", b"NaN"), "not valid JSON (NaN is no JSON number)"),
        (ONE.replace(b"7", b"-Infinity"), "not valid JSON (-Infinity is no JSON number)"),
        (ONE.replace(b"7", b"07"), "not valid JSON (Expecting ',' delimiter at character 27)"),
        (ONE.replace(b"7", b"7.0"), "key: expected a 64-bit integer, got 7.0"),
        (ONE.replace(b"7", b"7e0"), "key: expected a 64-bit integer, got 7.0"),
        (ONE.replace(b"7", b"9" * 5_000), "a number has thousands of digits"),
        (line(memory(key=2**63)), "key: expected a 64-bit integer, got 9223372036854775808"),
        (line(memory(key=-(2**63) - 1)), "key: expected a 64-bit integer, got -9223372036854775809"),
        (line(memory(key=2**64)), "key: expected a 64-bit integer, got 18446744073709551616"),
        (line(memory(key="1")), 'key: expected a 64-bit integer, got "1"'),
        (line(memory(key=True)), "key: expected a 64-bit integer, got true"),
        (line(memory(key=None)), "key: expected a 64-bit integer, got null"),
        (line(memory(type="decision")),
            f"invalid memory type 'decision' (expected one of {TYPES})"),
        (line(memory(type="\x1b[0m")),
            f"invalid memory type '\\x1b[0m' (expected one of {TYPES})"),
        (line(memory(type=None)), "type: expected a string, got null"),
        (line(memory(content="")), "content must be a non-empty string (got '')"),
        (line(memory(content=" \n\u3000")), "content must be a non-empty string (got ' \\n\\u3000')"),
        (line(memory(content="\u200b\u2060\0")), "content must be a non-empty string (got '\\u200b\\u2060\\x00')"),
        (line(memory(content=5)), "content: expected a string, got 5"),
        (line(memory(tags=None)), "tags: expected an array of strings, got null"),
        (line(memory(tags="a")), 'tags: expected an array of strings, got "a"'),
        (line(memory(tags=["a", 1])), 'tags: expected an array of strings, got ["a", 1]'),
        (line(memory(tags={"a": 1})), 'tags: expected an array of strings, got {"a": 1}'),
        (line(memory(source=1)), "source: expected a string or null, got 1"),
        (line(memory(scope=[])), "scope: expected a string or null, got []"),
        (line(memory(created_at=1.5)), "created_at: expected a 64-bit integer, got 1.5"),
        (line(memory(last_accessed="\x7f")), 'last_accessed: expected a 64-bit integer, got "\\u007f"'),
        (line(memory(access_count=-1)), "access_count: expected an integer from 0 to 2^63 - 1, got -1"),
        (line(memory(access_count=False)), "access_count: expected an integer from 0 to 2^63 - 1, got false"),
        (line(memory(expires_at="never")), 'expires_at: expected a 64-bit integer or null, got "never"'),
        (line(memory(expires_at=2**63)), "expires_at: expected a 64-bit integer or null, got 9223372036854775808"),
        (line(link(1, 1)), "from and to must differ (got 1)"),
        (line(link(1, 4)), "to is 4, which is the key of no memory in the file"),
        (line(link(4, 1)), "from is 4, which is the key of no memory in the file"),
        (line(link(1, 2, "blocks")), f"kind must be one of {KINDS} (got 'blocks')"),
        (line(link(1, 2, "superseded_by")), f"kind must be one of {KINDS} (got 'superseded_by')"),
        (line(link(1, 2) | {"kind": 1}), "kind: expected a string, got 1"),
        (line(link(1, 2) | {"from": "1"}), 'from: expected a 64-bit integer, got "1"'),
        (line(link(1, 2) | {"key": 1}), f"unknown field `key`, expected one of {LINK_MEMBERS}"),
        (line(link(1, 2) | {"from_key": 1}), f"unknown field `from_key`, expected one of {LINK_MEMBERS}"),
        (line(memory(2, "again")), "duplicate key 2"),
    ],
)  # fmt: skip
def test_a_defect_is_reported_with_its_line(second: bytes, message: str) -> None:  # 15.3, F7
    before = line(header(exported_rows=4, exported_links=1)) + line(memory(1)) + line(memory(2))
    assert refusal(before + second) == f"line 4: {message}"
    # What stands behind the defect does not matter, and a file that is cut short ends there.
    if second.endswith(b"\n"):
        assert refusal(before + second + line(memory(8)) + b"garbage\n") == f"line 4: {message}"


@pytest.mark.parametrize("name", [name for name in MEMBERS["memory"] if name not in ("source", "scope", "expires_at")])
def test_a_memory_without_a_required_member_is_refused(name: str) -> None:
    assert refusal(file(memory(1)) + line(without(memory(2), name))) == f"line 3: missing field `{name}`"


@pytest.mark.parametrize("name", MEMBERS["link"])
def test_a_link_without_a_member_is_refused(name: str) -> None:
    data = file(memory(1), memory(2)) + line(without(link(1, 2), name))
    assert refusal(data) == f"line 4: missing field `{name}`"


def test_a_key_that_was_there_is_refused_in_whatever_order_keys_come() -> None:
    for keys in ([1, 2, 3, 1], [3, 2, 1, 2], [5, 1, 9, 1], [-(2**63), 2**63 - 1, 0, 0], [4, 2, 8, 4]):
        assert refusal(file(*(memory(key) for key in keys))) == f"line 5: duplicate key {keys[-1]}"


def test_a_memory_after_a_link_is_refused() -> None:
    data = file(memory(1), memory(2), link(1, 2), memory(3))
    assert refusal(data) == "line 5: a memory after a link: all memories come first"


def test_each_record_is_given_before_a_later_line_is_looked_at() -> None:
    found = jsonl.read(io.BytesIO(file(memory(1)) + b"garbage\n"))
    assert isinstance(next(found), jsonl.Header)
    assert isinstance(next(found), jsonl.MemoryRecord)
    with pytest.raises(InvalidFile, match="line 3"):
        next(found)


@pytest.mark.parametrize("version", [2, 3, 10**30])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"checksum": "abc"},
        {"exported_at": "tomorrow"},
        {"exported_rows": -1},
        {"exported_links": 99},
        {"record": "header"},
    ],
)
def test_a_newer_file_is_refused_as_such_whatever_else_it_says(version: int, changes: dict[str, Any]) -> None:
    for data in (line(header(version=version, **changes)), line(header(version=version, **changes)) + b"{"):
        with pytest.raises(FormatTooNew) as refused:
            read(data)
        assert str(refused.value) == (
            f"file is format version {version} but this binary reads up to version 1 — upgrade agent-memory"
        )


def test_a_newer_header_needs_none_of_the_members_of_this_version() -> None:
    with pytest.raises(FormatTooNew):
        read(b'{"version": 2, "format": "agent-memory-export", "record": "header"}')


def test_the_version_of_another_format_is_not_looked_at() -> None:
    assert "format must be" in refusal(line(header(format="other", version=2)))


def test_optional_members_may_be_left_out_and_read_as_null() -> None:
    (_, found) = read(file(without(memory(), "source", "scope", "expires_at")))
    assert (found.source, found.scope, found.expires_at) == (None, None, None)


def test_blanks_between_the_parts_of_a_line_are_no_defect() -> None:
    given = [header(exported_rows=1), memory(1)]
    data = b"".join(b" \t" + json.dumps(record, indent=1).replace("\n", "\r").encode() + b" \n" for record in given)
    assert read(data) == read(file(memory(1)))


def test_escapes_are_read_as_what_they_stand_for() -> None:
    given = memory(1, 'größe 🎉 \u2028 \x7f / \\ " \n\0', tags=["ä"], source="\U0010ffff")
    data = b"".join(json.dumps(record).encode() + b"\n" for record in (header(exported_rows=1), given))
    assert data.isascii()
    (_, found) = read(data.replace(b"/", b"\\/"))
    assert (found.content, found.tags, found.source) == (given["content"], given["tags"], given["source"])


def test_a_content_of_any_size_is_read() -> None:  # F7
    (_, found) = read(file(memory(1, "x" * 10_000_000)))
    assert len(found.content) == 10_000_000


def test_equal_links_and_expired_memories_are_no_defects() -> None:
    data = file(
        memory(1, expires_at=-1),
        memory(2),
        link(2, 1, "relates_to"),
        link(1, 2, "relates_to"),
        link(1, 2, "relates_to"),
    )
    assert len(read(data)) == 6
    assert len(records(data)) == 6


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537])
def test_a_header_is_at_most_64_kib_long(size: int) -> None:
    data = line(header(embedding_model="m" * (size - len(line(header(embedding_model=""))))))
    assert len(data) == size
    if size < 65_536:
        assert len(read(data)) == 1
    else:
        assert refusal(data) == "line 1: missing header: the line is too long to be one"
