"""Memories to look at: wild ones, full ones and ones with a history."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import agent_memory
from memorizz import (
    FileSystemConfig,
    FileSystemProvider,
    SQLiteConfig,
    SQLiteProvider,
    enable_memory_history,
    memory_change_context,
)
from memorizz.providers.base import MemoryProvider
from memorizz.taxonomy import HISTORY_CHANGE, ID_FIELDS, MemoryType
from tests.support.ollama import NOBODY

SECRET = "sk-do-not-show-me-0123456789"

WILD = {
    "markup": "<script>alert(1)</script><img src=x onerror=alert(1)></textarea></option><!--",
    "quotes": '"\' onmouseover="alert(1)" ` &quot; &amp;lt; &#60;',
    "template": "{{ 7 * 7 }}{% raw %}{# ${7*7} #}",
    "controls": "nul\0 bell\x07 escape\x1b delete\x7f next\x85 line\u2028 mark\ufeff",
    "directions": "\u202eشلوم\u2066 עולם",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈 e\u0301 𝒳",
    "addresses": "a/../b/%2F/%2e%2e?x=1&y=2#z \\ //evil.example javascript:alert(1)",
    "lines": "one\ntwo\tthree",
    "long": "word " * 1000,
}
"""Texts that break pages which are put together carelessly."""

CONTENTS: tuple[Any, ...] = (None, True, 5, 10**30, 1.5, "", " ", [], [None], [{}], {}, {"a": {"b": [1]}}, [0.5] * 20)
FIELDS = (
    *("name", "content", "title", "summary", "memory_id", "user_id", "role", "owner_agent_id", "instruction"),
    *("delegates", "created_at", "updated_at", "record_type", "participants", "memory_ids", "persona", "llm_config"),
    *("embedding", "tools", "thread_titles", "knowledge_base_ids", "timestamp", "run_id"),
)
JOURNAL: tuple[Mapping[str, Any], ...] = (
    *({}, {"record_id": 5, "timestamp": 5}, {"parents": [{}]}, {"parents": 5}, {"parents": ["x", None]}),
    *({"changed_fields": 5}, {"changed_fields": {"a": 1}}, {"changed_fields": [1, None]}, {"action": ["x"]}),
    *({"action": {"x": 1}}, {"label": {"x": 1}}, {"memory_type": ["x"], "target_record_id": {"x": 1}}),
    *({"actor": 5, "source": [1], "memory_id": {"a": 1}}, {"memory_type": "personas", "target_record_id": "\0"}),
    {"current": 5, "history_gap": "x"},
    *({"timestamp": value} for value in ("yesterday", "2024-13-45", "9999-12-31T23:59:59+00:00", "0001-01-01")),
)
"""Entries of the history as a restored archive may have them."""


def sqlite(path: Path) -> SQLiteProvider:
    """The memory in that file."""
    return SQLiteProvider(SQLiteConfig(path=path))


def folder(path: Path) -> FileSystemProvider:
    """The memory in that folder."""
    return FileSystemProvider(FileSystemConfig(root_path=path))


def wild_id(name: str) -> str:
    """The id of the records with that wild text."""
    return f"{name}: {WILD[name][:60]}"


def wild(path: Path) -> Path:
    """A file with every wild text in every field of every store, values of every kind, and a torn history."""
    with sqlite(path) as provider:
        for store in MemoryType:
            provider.put(store, [(wild_id(name), _wild_record(store, name, text)) for name, text in WILD.items()])
            provider.put(store, [_odd_record(store, number) for number in range(len(CONTENTS))])
        provider.put(MemoryType.SHARED_MEMORY, [entry(f"entry-{n}", made) for n, made in enumerate(JOURNAL)])
        provider.put(
            MemoryType.SHARED_MEMORY,
            [entry(f"wild-{name}", dict.fromkeys(_SHOWN, text)) for name, text in WILD.items()],
        )
    return path


_SHOWN = ("action", "memory_type", "target_record_id", "label", "timestamp", "actor", "source", "memory_id")


def entry(id: str, payload: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A row of the shared memory that holds an entry of the history."""
    return id, {
        "_id": id,
        "memory_id": id,
        "record_type": HISTORY_CHANGE,
        "content": json.dumps({"record_type": HISTORY_CHANGE, "record_id": id, **payload}),
    }


def _wild_record(store: MemoryType, name: str, text: str) -> dict[str, Any]:
    record = {
        "name": text,
        "content": text,
        "instruction": text,
        "memory_id": text[:200],
        "user_id": text[:200],
        "role": text[:200],
        f"field {text[:200]}": [text, {text[:200]: text}],
        "created_at": f"2024-01-0{1 + len(text) % 9}T10:00:00+00:00{text[:200]}",
    }
    if store is MemoryType.MEMAGENT:
        return {**record, "agent_id": wild_id(name), "delegates": [text], "llm_config": {"api_key": SECRET}}
    natural = {ID_FIELDS[store.value]: wild_id(name)} if store.value in ID_FIELDS else {}
    return {**record, **natural, "agent_id": wild_id(name), "password": SECRET, "note": json.dumps({"token": SECRET})}


def _odd_record(store: MemoryType, number: int) -> tuple[str, dict[str, Any]]:
    record = dict.fromkeys(FIELDS, CONTENTS[number])
    if store is MemoryType.MEMAGENT and number % 2:
        record["agent_id"] = f"natural {number}"
    return f"odd {number}", record


def numbered(path: Path, count: int) -> Path:
    """A file with so many facts."""
    with sqlite(path) as provider:
        records = [
            (f"fact-{number:03}", {"content": f"Fact {number:03} of the harbor", "even": not number % 2})
            for number in range(count)
        ]
        provider.put(MemoryType.KNOWLEDGE_BASE, [(id, {**record, "parity": _parity(record)}) for id, record in records])
    return path


def _parity(record: Mapping[str, Any]) -> str:
    return "sternboard" if record["even"] else "larboard"


def changed(path: Path, changes: int) -> Path:
    """A file with a history: two agents of two users and applications changed facts."""
    with sqlite(path) as provider:
        enable_memory_history(provider)
        for agent in ("keel", "plover"):
            provider.store({"agent_id": agent, "name": f"Secret name of {agent}"}, MemoryType.MEMAGENT)
        for number in range(changes):
            agent, user, application = (("keel", "ana", "harbor"), ("plover", "ben", "reef"))[number % 2]
            with memory_change_context(actor=f"actor-{user}", source="tests", agent_id=agent, run_id=f"run-{number}"):
                _change(provider, number, {"agent_id": agent, "user_id": user, "application_id": application})
    return path


def _change(provider: MemoryProvider, number: int, owner: Mapping[str, str]) -> None:
    fact = {**owner, "memory_id": f"ns-{owner['agent_id']}", "title": f"Secret title {number}", "content": "Secret."}
    id = provider.store({"_id": f"fact-{number}", **fact}, MemoryType.KNOWLEDGE_BASE)
    if number % 5 == 0:
        provider.update_by_id(id, {"content": "Secret still."}, MemoryType.KNOWLEDGE_BASE)


def typed(path: Path) -> Path:
    """A file with four typed memories, the first linked to the second."""
    with agent_memory.open(path, ollama_url=NOBODY) as memory:
        first = memory.store("We keep the tide tables in SQLite.", "DECISION", tags=["storage", "tide"])
        second = memory.store("We kept the tide tables in CSV files.", "DECISION", scope="harbor")
        memory.store("Check the gauge\nafter each storm.", "TODO")
        memory.store(f"{WILD['markup']}{WILD['template']}", "ERROR", tags=[WILD["quotes"]], scope=WILD["markup"])
        memory.link(first, second, "supersedes")
    return path


def state(place: Path) -> str:
    """What the bytes of a memory are: of the file with those beside it, or of the whole folder."""
    files = sorted(file for file in place.rglob("*") if file.is_file()) if place.is_dir() else sorted(_beside(place))
    digest = hashlib.sha256()
    for file in files:
        digest.update(str(file.relative_to(place.parent)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _beside(file: Path) -> list[Path]:
    # Who reads makes an empty log beside the file, and its index, which is memory that processes share.
    found = [found for found in file.parent.glob(f"{file.name}*") if not found.name.endswith("-shm")]
    return [one for one in found if one.stat().st_size]
