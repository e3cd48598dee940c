"""Records as JSON: Python values on the way in, text on the way out and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, time
from enum import Enum
from typing import Any, Final, NoReturn
from uuid import UUID

from agent_memory.errors import shorten
from memorizz.errors import InvalidRecord
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

MAX_DEPTH: Final = 64
"""How many objects and arrays of a record may stand inside each other. An archive takes fewer."""

_MISSING: Final = object()
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


class Unreadable(ValueError):
    """What is stored is no JSON object; the text says why."""


class _Misfit(Exception):
    """A broken rule and the way to the value, collected from the inside out."""

    def __init__(self, rule: str) -> None:
        self.rule = rule
        self.steps: list[str] = []

    def at(self, step: str | int) -> _Misfit:
        self.steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
        return self

    def invalid(self, store: MemoryType, id: str) -> InvalidRecord:
        where = "".join(reversed(self.steps)).lstrip(".")
        return InvalidRecord(f"{store} {shorten(id)!r}: {shorten(where) or 'the record'} {self.rule}")


def normalise(store: MemoryType, data: Any) -> Record:
    """``data`` as a JSON object of its own: a mapping, or an object with ``to_dict`` or ``model_dump``.

    Dates become ISO text, enums their value, UUIDs text, tuples and sets arrays; callables are left out.

    Raises:
        InvalidRecord: Some value has no such form; the message says where it is and what it is.
    """
    data = said_by(data)
    if not isinstance(data, Mapping):
        raise InvalidRecord(f"{store}: a record must be a mapping (got {type(data).__name__})")
    try:
        made = _plain(data, 0)
    except _Misfit as misfit:
        raise misfit.invalid(store, str(data.get("_id") or data.get("id") or "")) from None
    assert isinstance(made, dict)
    return made


def said_by(data: Any) -> Any:
    """What an object says of itself by ``to_dict`` or ``model_dump``; anything else as it is."""
    for name in ("to_dict", "model_dump"):
        method = getattr(data, name, None)
        if callable(method) and not isinstance(data, Mapping | type):
            return method()
    return data


def encode(store: MemoryType, id: str, record: Record) -> str:
    """The text of a record under its physical id: one line, literal Unicode.

    Raises:
        InvalidRecord: It is no JSON object that could be read back as it is.
    """
    try:
        if type(record) is not dict:
            raise _Misfit(f"must be a JSON object (got {type(record).__name__})")
        _check(record, 0)
        return _ENCODER.encode({**record, "_id": id, "id": id})
    except _Misfit as misfit:
        raise misfit.invalid(store, id) from None
    except ValueError:
        # The one thing the check leaves: digits beyond what Python converts.
        raise InvalidRecord(f"{store} {shorten(id)!r}: holds an integer of too many digits") from None


def decode(data: bytes | str) -> Record:
    """The JSON object that was stored.

    Raises:
        Unreadable: There is none.
    """
    try:
        record = _DECODER.decode(data if isinstance(data, str) else data.decode())
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not UTF-8 text (byte {error.start})") from None
    except RecursionError:
        raise Unreadable("is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise Unreadable("is empty" if not data else f"is not JSON ({error})") from None
    except Unreadable:
        raise
    except ValueError:
        raise Unreadable("holds an integer of too many digits") from None
    if type(record) is not dict:
        raise Unreadable("is not a JSON object")
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise Unreadable(f"holds {name}, which is no JSON number")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def _check(value: dict[str, Any] | list[Any], depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise _Misfit(f"is nested deeper than {MAX_DEPTH} levels")
    for key, item in value.items() if type(value) is dict else enumerate(value):
        kind = type(item)
        try:
            if kind is str:
                if not item.isascii():
                    _check_text(item)
            elif kind is dict or kind is list:
                _check(item, depth + 1)
            elif kind is float:
                if not math.isfinite(item):
                    raise _Misfit(f"must be a finite number (got {item})")
            elif not (item is None or kind is int or kind is bool):
                raise _Misfit(f"must be a JSON value (got {kind.__name__})")
        except _Misfit as misfit:
            raise misfit.at(key) from None
        if type(key) is str:
            if not key.isascii():
                _check_text(key)
        elif type(value) is dict:
            raise _Misfit(f"has a key that is no string (got {shorten(repr(key))})")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _Misfit(f"holds half of a surrogate pair at character {error.start}") from None


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if value is None or kind in (str, int, bool, float):
        return value
    if isinstance(value, Mapping):
        return _plain_object(value, depth)
    if isinstance(value, list | tuple | set | frozenset):
        return _plain_array(value, depth)
    if isinstance(value, Enum):
        return _plain(value.value, depth)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    for base in (str, int, float):
        if isinstance(value, base):
            return base(value)
    if callable(value):
        return _MISSING
    raise _Misfit(f"has no JSON form (got {kind.__name__})")


def _plain_object(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    if depth >= MAX_DEPTH:
        raise _Misfit(f"is nested deeper than {MAX_DEPTH} levels")
    made = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise _Misfit(f"has a key that is no string (got {shorten(repr(key))})")
        try:
            plain = _plain(item, depth + 1)
        except _Misfit as misfit:
            raise misfit.at(key) from None
        if plain is not _MISSING:
            made[str(key)] = plain
    return made


def _plain_array(value: list[Any] | tuple[Any, ...] | set[Any] | frozenset[Any], depth: int) -> list[Any]:
    if depth >= MAX_DEPTH:
        raise _Misfit(f"is nested deeper than {MAX_DEPTH} levels")
    # The order of a set differs from run to run.
    items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
    made = []
    for index, item in enumerate(items):
        try:
            plain = _plain(item, depth + 1)
        except _Misfit as misfit:
            raise misfit.at(index) from None
        if plain is not _MISSING:
            made.append(plain)
    return made
