"""Portable files: built by hand, and read by a second reader that shares no code with the program's."""

from __future__ import annotations

import io
import json
import subprocess
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from agent_memory.domain.transfer import ImportReport
from agent_memory.service.memory import AgentMemory
from tests.support.stdio import TIMEOUT, command, environment

Record: TypeAlias = dict[str, Any]

TYPES: Final = ("DECISION", "PATTERN", "ERROR", "TODO", "ARCHITECTURE", "CONSTRAINT")
KINDS: Final = ("relates_to", "supersedes", "caused_by")
MEMBERS: Final = {
    "header": (
        "record", "format", "version", "exported_at", "embedding_model", "embedding_dim", "schema_version",
        "agent_memory_version", "exported_rows", "exported_links",
    ),
    "memory": (
        "record", "key", "type", "content", "tags", "source", "scope", "created_at", "last_accessed", "access_count",
        "expires_at",
    ),
    "link": ("record", "from", "to", "kind", "created_at"),
}  # fmt: skip
"""The members of each record in documented order."""
OPTIONAL: Final = ("source", "scope", "expires_at")


def header(**changes: Any) -> Record:
    """A valid header of an empty file, but for ``changes``."""
    return {
        "record": "header",
        "format": "agent-memory-export",
        "version": 1,
        "exported_at": 1_000,
        "embedding_model": "nomic-embed-text",
        "embedding_dim": 768,
        "schema_version": 3,
        "agent_memory_version": "0.1.0",
        "exported_rows": 0,
        "exported_links": 0,
        **changes,
    }


def memory(key: int = 1, content: str = "a fact", **changes: Any) -> Record:
    """A valid memory, but for ``changes``."""
    return {
        "record": "memory",
        "key": key,
        "type": "TODO",
        "content": content,
        "tags": [],
        "source": None,
        "scope": None,
        "created_at": 10,
        "last_accessed": 20,
        "access_count": 0,
        "expires_at": None,
        **changes,
    }


def link(from_key: int, to_key: int, kind: str = "supersedes", created_at: int = 30) -> Record:
    """A link."""
    return {"record": "link", "from": from_key, "to": to_key, "kind": kind, "created_at": created_at}


def without(record: Record, *names: str) -> Record:
    """``record`` without some members."""
    return {name: value for name, value in record.items() if name not in names}


def line(record: Any) -> bytes:
    """One record as its line, as the program writes it."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def file(*records: Record, **header_changes: Any) -> bytes:
    """A file of ``records`` behind a header that counts them."""
    counts = {
        "exported_rows": sum(record["record"] == "memory" for record in records),
        "exported_links": sum(record["record"] == "link" for record in records),
    }
    return b"".join(map(line, (header(**{**counts, **header_changes}), *records)))


def records(data: bytes) -> list[Record]:
    """What the lines of a file say."""
    return [json.loads(text) for text in data.split(b"\n")[:-1]]


def exported(memory: AgentMemory) -> bytes:
    """The bytes of an export."""
    target = io.BytesIO()
    memory.export_jsonl(target)
    return target.getvalue()


def imported(memory: AgentMemory, data: bytes) -> ImportReport:
    """The report of an import."""
    return memory.import_jsonl(io.BytesIO(data))


def run(
    db: Path, *arguments: str, input: bytes | IO[bytes] = b"", cwd: Path | None = None, umask: int = -1, **env: str
) -> subprocess.CompletedProcess[bytes]:
    """`agent-memory` on ``db``; it must not end with a traceback. ``input`` is what it reads, or the file it does."""
    given: dict[str, Any] = {"input": input} if isinstance(input, bytes) else {"stdin": input}
    done = subprocess.run(
        command(*arguments),
        env=environment(AGENT_MEMORY_DB=str(db), **env),
        cwd=cwd,
        umask=umask,
        capture_output=True,
        timeout=TIMEOUT,
        **given,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


class Refused(Exception):
    """The second reader does not take a file."""


def strict_records(data: bytes) -> list[Record]:
    """The records of a file that has no defect, missing members filled in.

    Raises:
        Refused: It has one.
    """
    lines = data.split(b"\n")
    _require(lines.pop() == b"" and lines)
    found = [_object(text) for text in lines]
    keys: set[int] = set()
    counts = {"memory": 0, "link": 0}
    for place, record in enumerate(found):
        _check_shape(record)
        _require((record["record"] == "header") == (place == 0))
        if record["record"] == "memory":
            _require(not counts["link"] and record["key"] not in keys)
            keys.add(record["key"])
        elif record["record"] == "link":
            _require(record["from"] != record["to"] and {record["from"], record["to"]} <= keys)
        if place:
            counts[record["record"]] += 1
    _require(counts == {"memory": found[0]["exported_rows"], "link": found[0]["exported_links"]})
    return found


def _object(text: bytes) -> Record:
    _require(not text.endswith(b"\r"))
    try:
        value = json.loads(text.decode(), object_pairs_hook=_members, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused from error
    _require(isinstance(value, dict))
    record: Record = value
    return record


def _members(pairs: Iterable[tuple[str, Any]]) -> Record:
    pairs = list(pairs)
    _require(len(dict(pairs)) == len(pairs))
    return dict(pairs)


def _no_constant(_: str) -> Any:
    raise Refused


def _check_shape(record: Record) -> None:
    tag = record.get("record")
    _require(isinstance(tag, str) and tag in MEMBERS)
    for name in OPTIONAL if tag == "memory" else ():
        record.setdefault(name, None)
    _require(set(record) == set(MEMBERS[tag]))
    for name, value in record.items():
        if name in ("source", "scope"):
            _require(value is None or _is_text(value))
        elif name == "expires_at":
            _require(value is None or _is_integer(value))
        elif name == "tags":
            _require(isinstance(value, list) and all(map(_is_text, value)))
        elif name in ("record", "format", "embedding_model", "agent_memory_version", "type", "content", "kind"):
            _require(_is_text(value))
        else:
            _require(_is_integer(value))
            _require(value >= 0 or name not in ("access_count", "exported_rows", "exported_links"))
    _require(record.get("format", "agent-memory-export") == "agent-memory-export" and record.get("version", 1) == 1)
    _require(record.get("type", "TODO") in TYPES and record.get("kind", "supersedes") in KINDS)
    _require(any(unicodedata.category(character)[0] not in "CZ" for character in record.get("content", "x")))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _require(condition: object) -> None:
    if not condition:
        raise Refused
