"""Leaving out of a record what must not travel: credentials, vectors, the deployment's model.

The rules are in ``docs/redaction.md``. Names decide, never values: ordinary text is not looked into, but JSON inside a
text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from memorizz.archive.values import check_json
from memorizz.errors import MemoryArchiveError
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

_CREDENTIAL: Final = re.compile(
    r"(?:.*[_-])?(?:api[_-]?key|access[_-]?token|refresh[_-]?token|bearer[_-]?token|client[_-]?secret"
    r"|secret[_-]?access[_-]?key|private[_-]?key|code[_-]?verifier|credentials?|authorization|password|passwd|secret"
    r"|token|cookie)",
    re.IGNORECASE | re.DOTALL,
)
# Names that hold credentials in settings and are ordinary words elsewhere.
_CREDENTIAL_SETTING: Final = re.compile(
    r"(?:.*[_-])?(?:auth|secret[_-]?key|passwords|cookies|connection[_-]?string)", re.IGNORECASE | re.DOTALL
)
_VECTORS: Final = ("embedding", "vector")
_NAMES_OF_SCHEMAS: Final = ("properties", "$defs")
_PARAMETERS: Final = "parameters"
_SCHEMA_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_SCHEMA_LISTS: Final = ("anyOf", "oneOf", "allOf", "enum")
# Where a credential is sent to. One that belongs to another address must not go there.
_ADDRESSES: Final = ("url", "uri", "base_url", "api_base", "endpoint", "host", "command", "args", "provider")
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
    walk = _Walk(store, keep_vectors=keep_vectors)
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


def with_credentials_of(
    existing: Mapping[str, Any],
    planned: Record,
    store: MemoryType | None = None,
    refused: list[str] | None = None,
    path: str = "",
) -> Record:
    """``planned`` with the credentials that ``existing`` has where ``planned`` has the object that holds them.

    Members of a list belong together when they have the same name. An object whose address, such as ``url``, is another
    in ``planned`` gets none, as it would send them there; its path is added to ``refused``.
    """
    if any(existing.get(name) != planned.get(name) for name in _ADDRESSES):
        if refused is not None and redact(store or MemoryType.MEMAGENT, {"": dict(existing)}).omitted:
            refused.append(path or "the record")
        return planned
    merged = dict(planned)
    for name, value in existing.items():
        inner = f"{path}.{name}" if path else name
        mine = merged.get(name)
        if name not in merged and _is_credential_in(store, name, value, nested=bool(path)):
            merged[name] = value
        elif isinstance(value, dict) and isinstance(mine, dict):
            merged[name] = with_credentials_of(value, mine, store, refused, inner)
        elif isinstance(value, list) and isinstance(mine, list):
            known = {found: item for item in value if (found := _name(item)) is not None}
            merged[name] = [
                with_credentials_of(known[found], item, store, refused, f"{inner}.{found}")
                if (found := _name(item)) in known
                else item
                for item in mine
            ]
    return merged


def _name(item: Any) -> str | None:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _is_credential_in(store: MemoryType | None, name: str, value: Any, *, nested: bool) -> bool:
    """Whether a member holds a credential, in the settings of an agent also by a name that is a word elsewhere."""
    if is_credential(name):
        return True
    is_setting = nested and store is MemoryType.MEMAGENT and isinstance(value, str | dict | list)
    return is_setting and _CREDENTIAL_SETTING.fullmatch(name) is not None


class _Walk:
    def __init__(self, store: MemoryType, *, keep_vectors: bool) -> None:
        self.omitted: set[str] = set()
        self._store = store
        self._keep_vectors = keep_vectors

    def drops(self, name: str, value: Any, path: str, *, exempt: bool) -> bool:
        """Whether the member ``name`` of the object at ``path`` stays behind; a credential is noted."""
        if exempt:
            return False
        if name in _VECTORS and not self._keep_vectors and not isinstance(value, str):
            return True
        if not _is_credential_in(self._store, name, value, nested=path != self._store.value):
            return False
        if _is_described(path, value):
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
        exempt = last in _NAMES_OF_SCHEMAS and inside != self._store.value
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
    """The object or array that a text is the JSON of, or ``None`` when it is none that an archive could hold."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        parsed = json.loads(text, parse_constant=_refuse)
        if isinstance(parsed, dict | list):
            check_json(parsed)
            return parsed
    except (ValueError, RecursionError, MemoryArchiveError):
        return None
    return None


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _is_described(path: str, value: Any) -> bool:
    """Whether a member of the object at ``path`` says something of what has its name, instead of being it."""
    holder = path.rpartition(".")[2]
    if holder == "field_changes":
        return value in ("added", "removed", "modified")
    return path == "agents.thread_titles" or (holder == _PARAMETERS and _is_schema(value))


def _is_schema(value: Any) -> bool:
    """Whether a value describes a parameter."""
    if not isinstance(value, dict):
        return False
    types = value.get("type")
    if isinstance(types, str | list):
        return bool(types) and _SCHEMA_TYPES.issuperset([types] if isinstance(types, str) else map(str, types))
    return isinstance(value.get("$ref"), str) or any(isinstance(value.get(name), list) for name in _SCHEMA_LISTS)
