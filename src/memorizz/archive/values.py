"""Python values as JSON trees, within the limits that every archive keeps."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from datetime import date, datetime
from enum import Enum
from typing import Any, Final
from uuid import UUID

from memorizz.errors import MemoryArchiveError

MAX_DEPTH: Final = 64
"""How many objects and arrays may stand inside each other."""

_DROPPED: Final = object()


def to_json(value: Any) -> Any:
    """``value`` as a new tree of dict, list, str, int, float, bool and None.

    Dates become ISO text, enums their value, UUIDs text, tuples and arrays lists, objects with ``to_dict`` or
    ``model_dump`` objects. Callables are left out of the object or array that holds them.

    Raises:
        MemoryArchiveError: A value has no such form, a number is not finite, a key is no text, or the nesting is
            deeper than 64; the message says where.
    """
    try:
        tree = _converted(value, 0)
    except _Misfit as misfit:
        raise MemoryArchiveError(misfit.message()) from None
    return None if tree is _DROPPED else tree


def check_json(tree: Any) -> None:
    """Check a tree that a JSON parser made: its nesting, and that its numbers are finite.

    Raises:
        MemoryArchiveError: It breaks a limit; the message says where.
    """
    try:
        _check(tree, 0)
    except _Misfit as misfit:
        raise MemoryArchiveError(misfit.message()) from None


class _Misfit(Exception):
    """What is wrong, and the way to it, collected from the inside out."""

    def __init__(self, rule: str) -> None:
        self.rule = rule
        self.steps: list[str] = []

    def message(self) -> str:
        steps = self.steps[::-1]
        if len(steps) > 8:
            steps = [*steps[:8], "…"]
        return f"{''.join(steps).lstrip('.') or 'archive'}: {self.rule}"


def _check(value: Any, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise _too_deep()
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        kind = type(item)
        if kind is str or kind is int:
            continue
        try:
            if kind is dict or kind is list:
                _check(item, depth + 1)
            elif kind is float and not math.isfinite(item):
                raise _Misfit(f"{item} is no JSON number")
        except _Misfit as misfit:
            misfit.steps.append(_step(key))
            raise


def _converted(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise _Misfit(f"{value} is no JSON number")
        return value
    if kind is dict or isinstance(value, Mapping):
        return _object(value, depth)
    if isinstance(value, list | tuple | array):
        return _array(value, depth)
    return _plain(value, depth)


def _object(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    if depth >= MAX_DEPTH:
        raise _too_deep()
    made = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise _Misfit(f"the key {key!r} must be a string")
        try:
            converted = _converted(item, depth + 1)
        except _Misfit as misfit:
            misfit.steps.append(_step(key))
            raise
        if converted is not _DROPPED:
            made[str(key)] = converted
    return made


def _array(value: Any, depth: int) -> list[Any]:
    if depth >= MAX_DEPTH:
        raise _too_deep()
    made = []
    for index, item in enumerate(value):
        try:
            converted = _converted(item, depth + 1)
        except _Misfit as misfit:
            misfit.steps.append(_step(index))
            raise
        if converted is not _DROPPED:
            made.append(converted)
    return made


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, Enum):
        return _converted(value.value, depth)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    for base in (str, int, float):
        if isinstance(value, base):
            return _converted(base(value), depth)
    for name in ("to_dict", "model_dump"):
        method = getattr(value, name, None)
        if callable(method) and not isinstance(value, type):
            return _converted(method(), depth)
    if callable(value):
        return _DROPPED
    # Identifiers of databases (ObjectId, JsonId) are known by name: their libraries need not be installed.
    if type(value).__name__ in ("ObjectId", "JsonId"):
        return str(value)
    raise _Misfit(f"a value of type {type(value).__name__} has no JSON form")


def _too_deep() -> _Misfit:
    return _Misfit(f"nested deeper than {MAX_DEPTH} levels")


def _step(key: str | int) -> str:
    return f".{key}" if isinstance(key, str) else f"[{key}]"
