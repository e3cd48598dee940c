"""Leaving out of a record what must not travel: credentials, vectors, the deployment's model.

The rules are in ``docs/memorizz.md``. Names decide, never values: ordinary text is not looked into, but JSON inside a
text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from memorizz.records import Record
from memorizz.taxonomy import MemoryType

_CREDENTIAL: Final = re.compile(
    r"(?:.*[_-])?(?:api[_-]?key|access[_-]?token|refresh[_-]?token|bearer[_-]?token|client[_-]?secret"
    r"|secret[_-]?access[_-]?key|private[_-]?key|code[_-]?verifier|credentials?|authorization|password|passwd|secret"
    r"|token|cookie)",
    re.IGNORECASE | re.DOTALL,
)
_VECTORS: Final = ("embedding", "vector")
_NAMES_OF_SCHEMAS: Final = ("properties", "$defs")
_PARAMETERS: Final = "parameters"
_SCHEMA_MEMBERS: Final = ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")
_DEEPEST_TEXT: Final = 8


class Redacted(NamedTuple):
    """A record without what must not travel, and the paths of what was left out; vectors are not among them."""

    record: Record
    omitted: frozenset[str]


def is_credential(name: str) -> bool:
    """Whether a member of that name holds a credential: the whole name, or its end after ``_`` or ``-``."""
    return _CREDENTIAL.fullmatch(name) is not None


def redact(store: MemoryType, record: Record, *, keep_vectors: bool = False) -> Redacted:
    """``record``, a JSON tree, without credentials and, unless they are wanted, vectors. The tree is not changed."""
    walk = _Walk(store.value, keep_vectors=keep_vectors)
    kept = {}
    for name, value in record.items():
        if name == "model" and store is MemoryType.MEMAGENT:
            # The object that a deployment runs the agent with; the configuration of a model is in llm_config.
            if value is not None:
                walk.omitted.add(f"{store}.model")
            continue
        if not walk.drops(name, value, store.value, exempt=False):
            kept[name] = walk.value(value, f"{store}.{name}")
    return Redacted(kept, frozenset(walk.omitted))


def with_credentials_of(existing: Mapping[str, Any], planned: Record) -> Record:
    """``planned`` with the credentials that ``existing`` has where ``planned`` has the object that holds them.

    Members of a list belong together when they have the same name.
    """
    merged = dict(planned)
    for name, value in existing.items():
        if is_credential(name) and name not in merged:
            merged[name] = value
        elif isinstance(value, dict) and isinstance(merged.get(name), dict):
            merged[name] = with_credentials_of(value, merged[name])
        elif isinstance(value, list) and isinstance(merged.get(name), list):
            named = {
                item["name"]: item for item in value if isinstance(item, dict) and isinstance(item.get("name"), str)
            }
            merged[name] = [
                with_credentials_of(named[item["name"]], item)
                if isinstance(item, dict) and item.get("name") in named
                else item
                for item in merged[name]
            ]
    return merged


class _Walk:
    def __init__(self, store: str, *, keep_vectors: bool) -> None:
        self.omitted: set[str] = set()
        self._store = store
        self._keep_vectors = keep_vectors

    def drops(self, name: str, value: Any, path: str, *, exempt: bool) -> bool:
        """Whether the member ``name`` of the object at ``path`` stays behind; a credential is noted."""
        if exempt:
            return False
        if name in _VECTORS and not self._keep_vectors and not isinstance(value, str):
            return True
        if not is_credential(name) or (path.endswith(f".{_PARAMETERS}") and _is_schema(value)):
            return False
        self.omitted.add(f"{path}.{name}")
        return True

    def value(self, value: Any, path: str, depth: int = 0) -> Any:
        if isinstance(value, dict):
            return self._object(value, path, depth)
        if isinstance(value, list):
            return [self.value(item, path, depth) for item in value]
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            return self._text(value, path, depth)
        return value

    def _object(self, value: Mapping[str, Any], path: str, depth: int) -> dict[str, Any]:
        # The members of a schema's properties are names of parameters, whatever they are called. At the top of a
        # record, `properties` is a field like any other.
        inside, _, last = path.rpartition(".")
        exempt = last in _NAMES_OF_SCHEMAS and inside != self._store
        return {
            name: self.value(item, f"{path}.{name}", depth)
            for name, item in value.items()
            if not self.drops(name, item, path, exempt=exempt)
        }

    def _text(self, text: str, path: str, depth: int) -> str:
        """A text that holds JSON, without the credentials in it; any other text as it is."""
        parsed = parse(text)
        if parsed is None or depth == _DEEPEST_TEXT:
            return text
        inner = _Walk(self._store, keep_vectors=True)
        kept = inner.value(parsed, path, depth + 1)
        if not inner.omitted:
            return text
        self.omitted |= inner.omitted
        return json.dumps(kept, ensure_ascii=False)


def parse(text: str) -> dict[str, Any] | list[Any] | None:
    """The object or array that a text is the JSON of, or ``None``."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        parsed = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict | list) else None


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict) and any(member in value for member in _SCHEMA_MEMBERS)
