"""Opening a provider of a test, in this process or another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorizz.providers.base import MemoryProvider
from memorizz.providers.registry import open_provider


def opened(kind: str, options: Mapping[str, Any]) -> MemoryProvider:
    """The provider of that kind; that of a database nobody has here, on a stand-in for the database."""
    if kind == "oracle":
        from tests.support.oracle_backend import open_lenient

        return open_lenient(**options)
    return open_provider(kind, options)
