"""The entries of an index: what is said of a record beside its file. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from memorizz.records import Record, natural_id
from memorizz.taxonomy import ID_FIELDS, MemoryType

INDEX_VERSION: Final = 1

Entry: TypeAlias = bytes | msgspec.Raw
"""The JSON text of an entry. It is kept as it was written, with whatever another program put in."""

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)


class IndexTooNew(Exception):
    """The index has a version that this program does not know."""


class _Index(msgspec.Struct):
    version: int
    items: dict[str, msgspec.Raw]


class _Natural(msgspec.Struct):
    natural_id: str | msgspec.UnsetType | None = msgspec.UNSET


_index_decoder: Final = msgspec.json.Decoder(_Index)
_natural_decoder: Final = msgspec.json.Decoder(_Natural)


def make_entry(store: MemoryType, id: str, record: Record) -> bytes:
    """The entry of a record; ``natural_id``, in stores that have one, is an addition of this program."""
    entry: dict[str, Any] = {
        "id": id,
        "name": record.get("name") or record.get("title"),
        "memory_id": record.get("memory_id"),
        "user_id": record.get("user_id"),
        "agent_id": record.get("agent_id"),
        "owner_agent_id": record.get("owner_agent_id"),
        "application_id": record.get("application_id"),
        "observation_scope_version": 1,
        "timestamp": record.get("timestamp") or record.get("created_at"),
        "has_embedding": bool(record.get("embedding")),
        "thread_id": record.get("thread_id") or record.get("conversation_id"),
    }
    if store.value in ID_FIELDS:
        entry["natural_id"] = natural_id(store, record)
    return _ENCODER.encode(entry).encode()


def natural_of(entry: Entry) -> str | msgspec.UnsetType | None:
    """The natural id an entry names, ``None`` where it says that there is none, ``UNSET`` where it says nothing."""
    try:
        return _natural_decoder.decode(entry).natural_id
    except msgspec.MsgspecError:
        return msgspec.UNSET


def index_text(entries: Mapping[str, Entry]) -> bytes:
    """The content of an index of these entries."""
    items = b", ".join(b"%b: %b" % (_ENCODER.encode(id).encode(), bytes(entry)) for id, entry in entries.items())
    return b'{"version": %d, "items": {%b}}' % (INDEX_VERSION, items)


def index_entries(content: bytes) -> dict[str, Entry] | None:
    """The entries of an index, or ``None`` when it is damaged.

    Raises:
        IndexTooNew: It has another version.
    """
    try:
        index = _index_decoder.decode(content)
    except msgspec.MsgspecError:
        return None
    if index.version != INDEX_VERSION:
        raise IndexTooNew(f"has version {index.version}, and this program knows version {INDEX_VERSION} only")
    return dict(index.items)


class Put(msgspec.Struct, tag_field="op", tag="put", omit_defaults=True):
    """A line of the journal: a file of this version was to be put in place.

    ``record`` is its content, and ``boot`` the run of the system it was written in, where the file itself is not known
    to be on disk.
    """

    id: str
    mtime_ns: int
    size: int
    entry: msgspec.Raw
    record: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    boot: str = ""


class Delete(msgspec.Struct, tag_field="op", tag="delete", omit_defaults=True):
    """A line of the journal: the file of this version was to be removed; ``boot`` as in :class:`Put`."""

    id: str
    mtime_ns: int = 0
    size: int = 0
    boot: str = ""


_line_decoder: Final = msgspec.json.Decoder(Put | Delete)
_line_encoder: Final = msgspec.json.Encoder()


def journal_text(lines: Iterable[Put | Delete]) -> bytes:
    """The lines, each with its line break."""
    return b"".join(_line_encoder.encode(line) + b"\n" for line in lines)


def journal_lines(content: bytes) -> list[Put | Delete]:
    """The lines of a journal. Those that a crash tore are left out: the record files say what is so."""
    lines = []
    for text in content.split(b"\n"):
        if text:
            try:
                lines.append(_line_decoder.decode(text))
            except msgspec.MsgspecError:
                continue
    return lines
