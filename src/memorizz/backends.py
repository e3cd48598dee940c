"""The backends a memory graph can be kept in, and the settings that each of them has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple


class Option(NamedTuple):
    """One setting of a backend: the field of its provider's configuration, its flag and its variable.

    ``name_flag`` is the flag that names another variable for a secret, which is never given on a command line itself.
    """

    field: str
    variable: str
    flag: str | None = None
    name_flag: str | None = None
    required: bool = False

    @property
    def secret(self) -> bool:
        """Whether it must not be shown or remembered."""
        return self.flag is None


class Backend(NamedTuple):
    """One backend: what it is in a few words, and its settings, of which the first says where the data is."""

    about: str
    options: tuple[Option, ...]

    @property
    def in_files(self) -> bool:
        """Whether it is a folder or file of this machine."""
        return self.options[0].flag == "path"


BACKENDS: Final = {
    "filesystem": Backend("a folder", (Option("root_path", "MEMORIZZ_MEMORY_ROOT", "path"),)),
    "sqlite": Backend("one file, recommended", (Option("path", "MEMORIZZ_SQLITE_PATH", "path"),)),
    "postgres": Backend(
        "a schema of a PostgreSQL database",
        (
            Option("url", "MEMORIZZ_POSTGRES_URL", name_flag="uri-env", required=True),
            Option("schema", "MEMORIZZ_POSTGRES_SCHEMA", "schema"),
        ),
    ),
    "agent-memory": Backend("a typed memory", (Option("path", "MEMORIZZ_AGENT_MEMORY_DB", "path"),)),
    "notion": Backend(
        "a data source of Notion",
        (
            Option("data_source_id", "MEMORIZZ_NOTION_DATA_SOURCE_ID", "data-source-id", required=True),
            Option("token", "NOTION_TOKEN"),
            Option("state_path", "MEMORIZZ_NOTION_STATE_PATH"),
            Option("base_url", "MEMORIZZ_NOTION_BASE_URL"),
            Option("requests_per_second", "MEMORIZZ_NOTION_REQUESTS_PER_SECOND"),
        ),
    ),
}
"""The backends of this version."""


def place(backend: str, options: Mapping[str, Any]) -> str:
    """How people call the place of a memory: a path, or an address without user and password."""
    where = options[BACKENDS[backend].options[0].field]
    if isinstance(where, Path):
        return str(where)
    rest = [str(options[name]) for name in ("db_name", "schema") if options.get(name)]
    return "/".join([re.sub(r"//[^/]*@", "//", str(where)).partition("?")[0].rstrip("/"), *rest])
