"""Providers by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from memorizz.errors import ConfigurationError

if TYPE_CHECKING:
    from memorizz.providers.base import MemoryProvider

KINDS: Final = ("filesystem", "sqlite")
"""The providers of this version."""

_LATER: Final = ("mongodb", "oracle", "notion")


def open_provider(kind: str, options: Mapping[str, Any]) -> MemoryProvider:
    """The provider of that kind, opened.

    ``options`` are the fields of its configuration; ``path`` says for every kind where the data is.

    Raises:
        ConfigurationError: There is no such kind or option, or it cannot be opened so.
    """
    # Imported when chosen: each brings its own library.
    if kind == "filesystem":
        from memorizz.providers.filesystem import FileSystemConfig, FileSystemProvider

        return FileSystemProvider(FileSystemConfig(**_fields(kind, FileSystemConfig._fields, options)))
    if kind == "sqlite":
        from memorizz.providers.sqlite import SQLiteConfig, SQLiteProvider

        return SQLiteProvider(SQLiteConfig(**_fields(kind, SQLiteConfig._fields, options)))
    known = " or ".join(KINDS)
    if kind in _LATER:
        raise ConfigurationError(f"the provider {kind!r} is not part of this version; use {known}")
    raise ConfigurationError(f"there is no provider {kind!r}; it must be {known}")


def _fields(kind: str, known: tuple[str, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as fields of a configuration whose first one says where the data is."""
    fields = dict(options)
    if "path" in fields:
        fields[known[0]] = fields.pop("path")
    unknown = sorted(fields.keys() - set(known))
    if unknown:
        raise ConfigurationError(f"the provider {kind!r} has no option {unknown[0]!r}; it has {', '.join(known)}")
    if known[0] not in fields:
        raise ConfigurationError(f"the provider {kind!r} needs the option {known[0]!r}")
    return fields
