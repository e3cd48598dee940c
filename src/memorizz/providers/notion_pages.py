"""A record as a page of Notion and back: format ``memorizz.notion.v1``.

Content holds what people read of a record, Memorizz metadata the rest as JSON. Ids and scope stand in columns as well.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from agent_memory.errors import shorten
from memorizz.errors import InvalidRecord
from memorizz.providers import ids
from memorizz.providers.values import Unreadable, decode, encode
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

FORMAT: Final = "memorizz.notion.v1"
TITLE: Final = "Name"
ID: Final = "Memorizz ID"
TYPE: Final = "Memory type"
CONTENT: Final = "Content"
METADATA: Final = "Memorizz metadata"
TIME: Final = "Event time"

SCOPE: Final = {
    "Memory ID": "memory_id",
    "User ID": "user_id",
    "Thread ID": "thread_id",
    "Namespace": "namespace",
    "Agent ID": "agent_id",
    "Application ID": "application_id",
    "Trace memory ID": "trace_memory_id",
    "Session ID": "session_id",
}
"""Columns that say whose a record is, and the field each repeats. They are compared when a page is read."""

_SHOWN: Final = {"Record type": "record_type", "Status": "status", "Timestamp": "timestamp"}

PROPERTIES: Final = {
    TITLE: "title",
    TYPE: "select",
    TIME: "date",
    **dict.fromkeys((ID, CONTENT, METADATA, *SCOPE, *_SHOWN), "rich_text"),
}
"""The managed properties and their types."""

PIECE: Final = 2_000
"""The longest text of one piece of rich text, in UTF-16 units."""

_MAX_PIECES: Final = 90
_MAX_BYTES: Final = 440_000
_DISPLAYED: Final = (
    *("content", "text", "summary", "instruction", "instructions", "description"),
    *("query_text", "query", "attributes", "name"),
)
_VECTORS: Final = ("embedding",)
# Notion keeps no such characters, or not all of them.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
_ANY_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ufffe\uffff]")
_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


class Draft(NamedTuple):
    """A page to be written: its values by the names of the managed properties."""

    properties: dict[str, Any]
    text: str
    fingerprint: str


class Row(NamedTuple):
    """A page as it was read.

    ``store`` and ``id`` are those of its record; ``store`` is ``None`` for a page that says of none. ``text`` is the
    record as JSON, or ``None`` where ``problem`` says why there is none. A record that can be read may have a problem
    too.
    """

    page_id: str
    store: MemoryType | None
    id: str
    added: int
    text: str | None
    problem: str | None = None

    def record(self) -> Record:
        """A copy of the record; there must be one."""
        assert self.text is not None
        return decode(self.text)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the record, empty where there is none."""
        return "" if self.text is None else _fingerprint(self.record())


def broken_rule(id: str) -> str | None:
    """As :func:`memorizz.providers.ids.broken_rule`; Notion has no control characters either."""
    return ids.broken_rule(id) or ("must hold no control characters" if _ANY_CONTROL.search(id) else None)


def draft(store: MemoryType, id: str, record: Record, added: int) -> Draft:
    """The page of a record that was added at that moment, in microseconds since 1970. Vectors are left out.

    Raises:
        InvalidRecord: It is no record, or no page can hold it.
    """
    rule = broken_rule(id)
    if rule is not None:
        raise InvalidRecord(f"{store} {shorten(id)!r}: the id {rule}")
    text = encode(store, id, record)
    kept = {name: value for name, value in record.items() if name not in _VECTORS}
    if len(kept) < len(record):
        text = encode(store, id, kept)
    content, metadata = _split(store, id, {**kept, "_id": id, "id": id}, added)
    values: dict[str, Any] = {
        TITLE: _rich(_one_piece(_title(store, id, kept)), "title"),
        TYPE: {"select": {"name": store.value}},
        TIME: {"date": _date(kept.get("timestamp"))},
        ID: _rich(id),
        CONTENT: _rich(content),
        METADATA: _rich(metadata),
        **{column: _rich(_column(kept.get(name))) for column, name in {**SCOPE, **_SHOWN}.items()},
    }
    _check_size(store, id, values)
    return Draft(values, text, _fingerprint({**kept, "_id": id, "id": id}))


def read_page(page: Mapping[str, Any], names: Mapping[str, str]) -> Row:
    """The page of an answer; ``names`` are the managed properties by their id."""
    values = {names[value["id"]]: value for value in page["properties"].values() if value["id"] in names}
    page_id = str(page["id"])
    column_store = _store((values.get(TYPE, {}).get("select") or {}).get("name"))
    column_id = plain(values.get(ID))
    created = _micros(page.get("created_time"))
    said = plain(values.get(METADATA))
    if not said:
        unlike = f"Notion page {page_id}: " + ("has no metadata" if column_id else "was not written by this program")
        return Row(page_id, column_store, column_id or page_id, created, None, unlike)
    try:
        metadata = _metadata(said)
    except Unreadable as error:
        return Row(page_id, column_store, column_id or page_id, created, None, f"Notion page {page_id}: {error}")
    id, store = metadata["id"], MemoryType(metadata["memory_type"])
    added = metadata.get("added")
    added = added if type(added) is int else created
    try:
        record = _joined(metadata, plain(values.get(CONTENT)))
        _compare_columns(store, id, record, values, strict="digest" in metadata)
        text = encode(store, id, record)
    except (Unreadable, InvalidRecord) as error:
        return Row(page_id, store, id, added, None, f"Notion page {page_id}: {error}")
    digest = metadata.get("digest")
    edited = digest is not None and digest != _digest(plain(values.get(CONTENT)))
    problem = f"Notion page {page_id}: Content was changed in Notion and is read as it stands there" if edited else None
    return Row(page_id, store, id, added, text, problem)


def plain(value: Mapping[str, Any] | None) -> str:
    """The text of a property of type rich text or title."""
    if value is None:
        return ""
    pieces = value.get("rich_text") or value.get("title") or []
    return "".join(piece.get("plain_text") or (piece.get("text") or {}).get("content") or "" for piece in pieces)


def pieces(text: str) -> list[str]:
    """A text in pieces that Notion takes, cut between characters."""
    if text.isascii() or max(text) < "\U00010000":
        return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    made, start, units = [], 0, 0
    for position, character in enumerate(text):
        size = 2 if character >= "\U00010000" else 1
        if units + size > PIECE:
            made.append(text[start:position])
            start, units = position, 0
        units += size
    return [*made, text[start:]]


def _split(store: MemoryType, id: str, record: Record, added: int) -> tuple[str, str]:
    data = {name: value for name, value in record.items() if name not in ("_id", "id")}
    field = next((name for name in _DISPLAYED if data.get(name) is not None), None)
    content, as_json, aliases = "", False, []
    if field is not None:
        value = data.pop(field)
        as_json = not isinstance(value, str) or _CONTROLS.search(value) is not None
        content = _CONTROLS.sub(_escaped, _COMPACT.encode(value)) if as_json else value
        aliases = sorted(name for name, other in data.items() if type(other) is str and other == value)
        for name in aliases:
            del data[name]
    metadata = {
        "format": FORMAT,
        "id": id,
        "memory_type": store.value,
        "data": data,
        "display_field": field,
        "display_json": as_json,
        "display_aliases": aliases,
        "added": added,
        "digest": _digest(content),
    }
    return content, _CONTROLS.sub(_escaped, _COMPACT.encode(metadata))


def _escaped(found: re.Match[str]) -> str:
    # In JSON only texts can hold them, so this is another spelling of the same.
    return f"\\u{ord(found[0]):04x}"


def _metadata(said: str) -> dict[str, Any]:
    try:
        found = decode(said)
    except Unreadable as error:
        raise Unreadable(f"its metadata {error}") from None
    if found.get("format") != FORMAT:
        raise Unreadable(f"its metadata is in the format {found.get('format')!r:.80}, not {FORMAT!r}")
    id = found.get("id")
    if not isinstance(id, str) or broken_rule(id) or _store(found.get("memory_type")) is None:
        raise Unreadable("its metadata names no record")
    if not isinstance(found.get("data"), dict) or not isinstance(found.get("display_aliases", []), list):
        raise Unreadable("its metadata holds no record")
    return found


def _joined(metadata: Mapping[str, Any], content: str) -> Record:
    record: Record = dict(metadata["data"])
    field = metadata.get("display_field")
    if field is not None:
        value: Any = content
        if metadata.get("display_json"):
            try:
                value = decode('{"value":' + content + "}")["value"]
            except (Unreadable, KeyError):
                raise Unreadable("its Content was changed in Notion and is not the JSON that it was") from None
        for name in (field, *metadata.get("display_aliases", [])):
            if not isinstance(name, str):
                raise Unreadable("its metadata names a field that is no text")
            record[name] = value
    return record


def _compare_columns(
    store: MemoryType, id: str, record: Record, values: Mapping[str, Mapping[str, Any]], *, strict: bool
) -> None:
    """Refuse a page of which a column says something else than its record. What others wrote may leave columns out."""
    said = (values.get(TYPE, {}).get("select") or {}).get("name")
    compared = {ID: (plain(values.get(ID)), id), TYPE: (said or "", store.value)}
    for column, name in SCOPE.items():
        expected, found = _column(record.get(name)), plain(values.get(column))
        if strict or (expected and found):
            compared[column] = (found, expected)
    for column, (found, expected) in compared.items():
        if found != expected:
            raise Unreadable(
                f"its column {column} was changed in Notion: it says {shorten(found)!r}, its record "
                f"{shorten(expected)!r}"
            )


def _check_size(store: MemoryType, id: str, values: Mapping[str, Any]) -> None:
    for column in (CONTENT, METADATA):
        if len(values[column]["rich_text"]) > _MAX_PIECES:
            raise InvalidRecord(
                f"{store} {shorten(id)!r}: {column} would have more than {_MAX_PIECES * PIECE} characters, which no "
                "Notion page can hold"
            )
    size = len(_COMPACT.encode(values).encode())
    if size > _MAX_BYTES:
        raise InvalidRecord(f"{store} {shorten(id)!r}: the Notion page would have more than {_MAX_BYTES} bytes")


def _rich(text: str, kind: str = "rich_text") -> dict[str, Any]:
    return {kind: [{"type": "text", "text": {"content": piece}} for piece in pieces(text)] if text else []}


def _title(store: MemoryType, id: str, record: Record) -> str:
    name = record.get("name")
    return name if isinstance(name, str) and name.strip() else f"{store}: {id}"


def _column(value: Any) -> str:
    if value is None:
        return ""
    return _one_piece(value if isinstance(value, str) else _COMPACT.encode(value))


def _one_piece(text: str) -> str:
    cleaned = _ANY_CONTROL.sub(" ", text[: PIECE + 1])
    return pieces(cleaned)[0] if cleaned else ""


def _date(stamp: Any) -> dict[str, str] | None:
    try:
        moment = datetime.fromisoformat(stamp)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return {"start": moment.strftime("%Y-%m-%dT%H:%M:00.000Z")} if moment.year >= 1000 else None


def _micros(stamp: Any) -> int:
    try:
        return int(datetime.fromisoformat(stamp).timestamp() * 1_000_000)
    except (TypeError, ValueError, OverflowError):
        return 0


def _store(name: Any) -> MemoryType | None:
    return MemoryType(name) if isinstance(name, str) and name in list(MemoryType) else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _fingerprint(record: Record) -> str:
    return hashlib.sha256(_COMPACT.encode(record).encode()).hexdigest()
