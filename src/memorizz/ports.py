"""What the memory graph takes from outside, so that tests own it: the time and new ids."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]
"""Tells the time, with a zone."""

NewId: TypeAlias = Callable[[], str]
"""Makes an id that nothing has yet."""


def system_clock() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


def random_id() -> str:
    """A random UUID."""
    return str(uuid.uuid4())


def stamp(moment: datetime) -> str:
    """A moment as records hold it: ISO 8601 in UTC with microseconds and ``+00:00``."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
