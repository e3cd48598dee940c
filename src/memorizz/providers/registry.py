"""Providers by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memorizz.errors import ConfigurationError

if TYPE_CHECKING:
    from memorizz.providers.base import MemoryProvider


class Kind(NamedTuple):
    """A kind of provider: the file of this package it is in, and what its classes are called there."""

    module: str
    config: str
    provider: str


PROVIDERS: Final = {
    "filesystem": Kind("filesystem", "FileSystemConfig", "FileSystemProvider"),
    "sqlite": Kind("sqlite", "SQLiteConfig", "SQLiteProvider"),
    "agent-memory": Kind("typed", "AgentMemoryConfig", "AgentMemoryProvider"),
    "oracle": Kind("oracle", "OracleConfig", "OracleProvider"),
    "postgres": Kind("postgres", "PostgresConfig", "PostgresProvider"),
    "mongodb": Kind("mongodb", "MongoDBConfig", "MongoDBProvider"),
    "notion": Kind("notion", "NotionConfig", "NotionProvider"),
}
"""The providers of this version. Each is imported when it is chosen, since it brings its own library."""

KINDS: Final = tuple(PROVIDERS)
"""Their names."""


def open_provider(kind: str, options: Mapping[str, Any]) -> MemoryProvider:
    """The provider of that kind, opened.

    ``options`` are the fields of its configuration, a named tuple; ``path`` says for every kind where the data is, in
    place of the first field.

    Raises:
        ConfigurationError: There is no such kind or option, or it cannot be opened so.
    """
    if kind not in PROVIDERS:
        raise ConfigurationError(f"there is no provider {kind!r}; it must be one of {', '.join(KINDS)}")
    names = PROVIDERS[kind]
    module = import_module(f"memorizz.providers.{names.module}")
    config = getattr(module, names.config)
    opened: MemoryProvider = getattr(module, names.provider)(config(**_fields(kind, config, options)))
    return opened


def _fields(kind: str, config: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as fields of a configuration whose first one says where the data is."""
    known: tuple[str, ...] = config._fields
    fields = dict(options)
    if "path" in fields:
        fields[known[0]] = fields.pop("path")
    unknown = sorted(fields.keys() - set(known))
    if unknown:
        raise ConfigurationError(f"the provider {kind!r} has no option {unknown[0]!r}; it has {', '.join(known)}")
    for name in known[: len(known) - len(config.__new__.__defaults__ or ())]:
        if name not in fields:
            raise ConfigurationError(f"the provider {kind!r} needs the option {name!r}")
    return fields
