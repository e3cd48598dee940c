"""The portable file, format version 1: JSON Lines of one header, then memories, then links.

The format is documented in ``docs/jsonl.md``. Reading is strict: a file with any defect is refused as a whole.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, Final, TypeAlias

import msgspec

from agent_memory.domain.bounds import is_visible
from agent_memory.domain.links import LinkKind
from agent_memory.domain.memory import MemoryType
from agent_memory.errors import FormatTooNew, InvalidFile, InvalidType, shorten

FORMAT: Final = "agent-memory-export"
VERSION: Final = 1
_LONGEST_HEADER: Final = 65_536

Integer: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Header(msgspec.Struct, tag_field="record", tag="header", forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The first line. ``exported_at`` is in unix seconds; the model and dimension are those pinned in the database."""

    format: str = FORMAT
    version: int = VERSION
    exported_at: Integer
    embedding_model: str
    embedding_dim: Integer
    schema_version: Integer
    agent_memory_version: str
    exported_rows: Count
    exported_links: Count


class MemoryRecord(
    msgspec.Struct, tag_field="record", tag="memory", forbid_unknown_fields=True, kw_only=True, frozen=True
):
    """One memory. ``key`` is known inside the file only; times are in unix seconds."""

    key: Integer
    type: MemoryType
    content: str
    tags: list[str]
    source: str | None = None
    scope: str | None = None
    created_at: Integer
    last_accessed: Integer
    access_count: Count
    expires_at: Integer | None = None


class LinkRecord(
    msgspec.Struct,
    tag_field="record",
    tag="link",
    forbid_unknown_fields=True,
    kw_only=True,
    frozen=True,
    rename={"from_key": "from", "to_key": "to"},
):
    """One relation between the memories of two keys. ``created_at`` is in unix seconds."""

    from_key: Integer
    to_key: Integer
    kind: LinkKind
    created_at: Integer


Record: TypeAlias = Header | MemoryRecord | LinkRecord

_RECORDS: Final[dict[str, type[Record]]] = {"header": Header, "memory": MemoryRecord, "link": LinkRecord}
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Record).decode


def line(record: Record) -> bytes:
    """``record`` as its line, members in documented order."""
    return _encode(record) + b"\n"


def defect_of(record: MemoryRecord) -> str | None:
    """Why no reader would take ``record``, or ``None``: databases hold memories that a file must not."""
    if not is_visible(record.content):
        return f"content must be a non-empty string (got {shorten(repr(record.content))})"
    return "access_count must not be negative" if record.access_count < 0 else None


def read(stream: BinaryIO) -> Iterator[Record]:
    """The records of a file, in order, each checked before it is yielded; the counts are checked at the end.

    Memory use grows by 8 bytes a memory.

    Raises:
        InvalidFile: The file has a defect.
        FormatTooNew: A newer version wrote it.
    """
    header = _read_header(stream.readline(_LONGEST_HEADER))
    yield header
    keys = _Keys()
    links = 0
    for number, text in enumerate(stream, 2):
        try:
            record = _parse(text)
            if isinstance(record, MemoryRecord):
                _check_memory(record, keys, links)
            elif isinstance(record, LinkRecord):
                _check_link(record, keys)
                links += 1
            else:
                raise _Defect("a second header")
        except _Defect as defect:
            raise InvalidFile(number, str(defect)) from None
        yield record
    for name, said, found, what in (
        ("exported_rows", header.exported_rows, len(keys), "memory"),
        ("exported_links", header.exported_links, links, "link"),
    ):
        if said != found:
            raise InvalidFile(1, f"{name} is {said} but the file holds {found} {what} records")


class _Defect(Exception):
    """What is wrong with one line."""


class _Keys:
    """The keys seen so far: in ascending order, as they are exported, 8 bytes each."""

    def __init__(self) -> None:
        self._ascending = array("q")
        self._others: set[int] = set()

    def __len__(self) -> int:
        return len(self._ascending) + len(self._others)

    def __contains__(self, key: int) -> bool:
        place = bisect_left(self._ascending, key)
        return (place < len(self._ascending) and self._ascending[place] == key) or key in self._others

    def add(self, key: int) -> None:
        if not self._ascending or key > self._ascending[-1]:
            self._ascending.append(key)
        elif key in self:
            raise _Defect(f"duplicate key {key}")
        else:
            self._others.add(key)


def _read_header(text: bytes) -> Header:
    try:
        if not text:
            raise _Defect("missing header: the file is empty")
        if len(text) == _LONGEST_HEADER:
            raise _Defect("missing header: the line is too long to be one")
        _check_version(_members(text))
        record = _parse(text)
        if isinstance(record, Header):
            return record
        raise _Defect(f"missing header: the first record is a {record.__struct_config__.tag}")
    except _Defect as defect:
        raise InvalidFile(1, str(defect)) from None


def _check_version(members: dict[str, Any]) -> None:
    """Whether the first line is the header of a version that can be read; a newer one may have any other member."""
    if members.get("record") != "header":
        return
    if "format" not in members:
        raise _Defect("missing field `format`")
    if members["format"] != FORMAT:
        raise _Defect(f"format must be {FORMAT!r} (got {_shown(members['format'])})")
    if "version" not in members:
        raise _Defect("missing field `version`")
    version = members["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _Defect(f"version must be a positive integer (got {_shown(version)})")
    if version > VERSION:
        raise FormatTooNew(version, VERSION)


def _parse(text: bytes) -> Record:
    if not text.endswith(b"\n"):
        raise _Defect("the line has no line feed at its end: the file is cut short")
    if text.endswith(b"\r\n"):
        raise _Defect("the line ends with a carriage return: lines end with a line feed alone")
    try:
        record = _decode(text)
    except msgspec.ValidationError as error:
        raise _Defect(_explain(error, text)) from None
    except msgspec.DecodeError as error:
        _members(text)
        raise _Defect(f"not valid JSON ({error})") from None
    except RecursionError:
        raise _Defect(_TOO_DEEP) from None
    if line(record) != text:
        # Only a line that was not written by a program can name a member twice.
        _members(text)
    return record


def _check_memory(record: MemoryRecord, keys: _Keys, links: int) -> None:
    if links:
        raise _Defect("a memory after a link: all memories come first")
    defect = defect_of(record)
    if defect is not None:
        raise _Defect(defect)
    keys.add(record.key)


def _check_link(record: LinkRecord, keys: _Keys) -> None:
    if record.from_key == record.to_key:
        raise _Defect(f"from and to must differ (got {record.from_key})")
    for name, key in (("from", record.from_key), ("to", record.to_key)):
        if key not in keys:
            raise _Defect(f"{name} is {key}, which is the key of no memory in the file")


def _members(text: bytes) -> dict[str, Any]:
    """The members of the object on a line, each of which is there once."""
    if not text.strip():
        raise _Defect("the line is blank")
    if text.startswith(b"\xef\xbb\xbf"):
        raise _Defect("the line begins with a byte order mark")
    try:
        found = json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _Defect(f"not valid UTF-8 (byte {error.start + 1} is 0x{text[error.start]:02x})") from None
    except json.JSONDecodeError as error:
        raise _Defect(f"not valid JSON ({error.msg} at character {error.pos + 1})") from None
    except ValueError:
        # Python's limit against numbers that take long to convert.
        raise _Defect("a number has thousands of digits") from None
    except RecursionError:
        raise _Defect(_TOO_DEEP) from None
    if not isinstance(found, dict):
        raise _Defect(f"expected an object, got {_shown(found)}")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Defect(f"duplicate field `{_printed(twice)}`")
    return members


def _no_constant(name: str) -> Any:
    raise _Defect(f"not valid JSON ({name} is no JSON number)")


def _explain(error: msgspec.ValidationError, text: bytes) -> str:
    """What keeps the line from being a record, in the words of the format."""
    members = _members(text)
    if "record" not in members:
        return "missing field `record`"
    tag = members["record"]
    if not isinstance(tag, str) or tag not in _RECORDS:
        shown = f"`{_printed(tag)}`" if isinstance(tag, str) else _shown(tag)
        return f"unknown variant {shown}, expected one of {_listed(_RECORDS)}"
    reason = str(error)
    known = [field.encode_name for field in msgspec.structs.fields(_RECORDS[tag])]
    unknown = [name for name in members if name != "record" and name not in known]
    if unknown:
        return f"unknown field `{_printed(unknown[0])}`, expected one of {_listed(known)}"
    if missing := re.search(r"missing required field `(\w+)`", reason):
        return f"missing field `{missing[1]}`"
    path = re.search(r"at `\$\.(\w+)", reason)
    name = path[1] if path else "record"
    value = members.get(name)
    if name == "type" and isinstance(value, str):
        return str(InvalidType(_printed(value), ", ".join(MemoryType)))
    if name == "kind" and isinstance(value, str):
        return f"kind must be one of {', '.join(LinkKind)} (got '{_printed(value)}')"
    return f"{name}: expected {_EXPECTED.get(name, 'a 64-bit integer')}, got {_shown(value)}"


_EXPECTED: Final = {
    **dict.fromkeys(("type", "kind", "content", "format", "embedding_model", "agent_memory_version"), "a string"),
    **dict.fromkeys(("source", "scope"), "a string or null"),
    **dict.fromkeys(("exported_rows", "exported_links", "access_count"), "an integer from 0 to 2^63 - 1"),
    "tags": "an array of strings",
    "expires_at": "a 64-bit integer or null",
}


_TOO_DEEP: Final = "not valid JSON (it is nested too deeply)"


def _shown(value: object) -> str:
    try:
        return shorten(json.dumps(value).replace("\x7f", "\\u007f"))
    except RecursionError:
        return "something that is nested too deeply"


def _printed(text: str) -> str:
    """``text`` from the file for a message, on one line and without what could steer a terminal."""
    return shorten(repr(text)[1:-1])


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)
