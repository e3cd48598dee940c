"""Reading the arguments of an operation by its schema, each refusal naming the field.

Language models write numbers and lists as text and spell ``null`` in many ways: leniently, what is unambiguous
is taken as meant. Strictly, a value has its documented JSON type or is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from agent_memory.errors import MalformedParameters, shorten

_NOTHING: Final = ("null", "undefined", "")
_ABSENT: Final = object()


class Arguments(NamedTuple):
    """The arguments that were really given, typed, and the names that the tool does not know."""

    values: dict[str, Any]
    unknown: tuple[str, ...]


def read(schema: Mapping[str, Any], raw: Any, *, patch: bool = False, strict: bool = False) -> Arguments:
    """The arguments ``raw`` as ``schema`` types them.

    In a ``patch`` an explicit ``null`` is kept as ``None`` and an unknown name is an error; elsewhere ``null``
    is as good as absent and unknown names are reported.

    Raises:
        MalformedParameters: A required argument is missing or one has the wrong type.
    """
    given = _object(raw, strict=strict)
    readers = _STRICT_READERS if strict else _READERS
    properties: Mapping[str, Any] = schema["properties"]
    required = schema.get("required", ())
    unknown = tuple(name for name in given if name not in properties)
    if unknown and patch:
        raise MalformedParameters(f"unknown field `{unknown[0]}`, expected one of {_listed(properties)}")
    values: dict[str, Any] = {}
    for name, rule in properties.items():
        value = given.get(name, _ABSENT)
        if strict:
            value = _ABSENT if value is None and not patch else value
        elif name not in required:
            value = _optional(value, rule["type"], patch=patch, free_text=name == "content")
        if value is _ABSENT or (value is None and name in required):
            if name in required:
                raise MalformedParameters(f"missing field `{name}`")
            continue
        values[name] = None if value is None else readers[rule["type"]](name, value)
    return Arguments(values, unknown)


def warning(schema: Mapping[str, Any], unknown: Iterable[str]) -> str:
    """One sentence about arguments that were ignored, with the nearest known name of each."""
    # Only a client that misspells needs it.
    import difflib

    notes = []
    for name in unknown:
        near = difflib.get_close_matches(name, schema["properties"], n=1, cutoff=0.5)
        notes.append(f"`{name}`" + (f" (did you mean `{near[0]}`?)" if near else ""))
    return f"warning: ignored unknown argument {', '.join(notes)}; known are {_listed(schema['properties'])}"


def _object(raw: Any, *, strict: bool) -> Mapping[str, Any]:
    if not strict:
        raw = _json(raw) if isinstance(raw, str) else raw
        raw = {} if raw is None else raw
    if not isinstance(raw, dict):
        raise MalformedParameters(f"arguments: expected an object, got {_shown(raw)}")
    return raw


def _optional(value: Any, kind: str, *, patch: bool, free_text: bool) -> Any:
    """``value``, or what stands for its absence: ``_ABSENT``, in a patch ``None`` for an explicit null."""
    if value is _ABSENT or free_text:
        return value
    if kind == "array" and isinstance(value, list) and len(value) == 1 and value[0] in (None, "null"):
        value = None
    if value is None or value == "null":
        return None if patch else _ABSENT
    if isinstance(value, str) and value in _NOTHING and not (patch and kind == "string" and value == ""):
        return _ABSENT
    return value


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise MalformedParameters(f"{name}: expected a string, got {_shown(value)}")


def _texts(name: str, value: Any) -> list[str]:
    if isinstance(value, str):
        parsed = _json(value)
        value = parsed if isinstance(parsed, list) else [part.strip() for part in value.split(",") if part.strip()]
    if _is_list_of_texts(value):
        return value  # type: ignore[no-any-return]
    raise MalformedParameters(f"{name}: expected an array of strings, got {_shown(value)}")


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _integer(name: str, value: Any) -> int:
    if isinstance(value, str):
        whole, _, fraction = value.strip().partition(".")
        digits = whole[1:] if whole[:1] in ("-", "+") else whole
        if digits.isdecimal() and len(whole) <= 30 and not fraction.strip("0"):
            return int(whole)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise MalformedParameters(f"{name}: expected an integer, got {_shown(value)}")


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, bool):
        return value
    raise MalformedParameters(f"{name}: expected true or false, got {_shown(value)}")


def _of_type(description: str, fits: Callable[[Any], bool]) -> Callable[[str, Any], Any]:
    def reader(name: str, value: Any) -> Any:
        if fits(value):
            return value
        raise MalformedParameters(f"{name}: expected {description}, got {_shown(value)}")

    return reader


def _mapping(name: str, value: Any) -> dict[str, Any]:
    parsed = _json(value) if isinstance(value, str) else value
    if isinstance(parsed, dict):
        return parsed
    raise MalformedParameters(f"{name}: expected an object, got {_shown(value)}")


_READERS: Final = {"string": _text, "array": _texts, "integer": _integer, "boolean": _flag, "object": _mapping}
_STRICT_READERS: Final = {
    "string": _text,
    "array": _of_type("an array of strings", _is_list_of_texts),
    "integer": _of_type("an integer", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "boolean": _of_type("true or false", lambda value: isinstance(value, bool)),
}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _shown(value: Any) -> str:
    return shorten(json.dumps(value))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
