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
    """One backend: what it is in a few words, and its settings, of which the first says where the data is.

    ``atomic`` says whether a restore happens as a whole, ``snapshot`` whether an export is of one moment: ``yes``,
    ``no``, or when. ``extra`` is what is installed for it.
    """

    about: str
    options: tuple[Option, ...]
    atomic: str = "yes"
    snapshot: str = "yes"
    extra: str | None = None

    @property
    def in_files(self) -> bool:
        """Whether it is a folder or file of this machine."""
        return self.options[0].flag == "path"


BACKENDS: Final = {
    "filesystem": Backend(
        "a folder", (Option("root_path", "MEMORIZZ_MEMORY_ROOT", "path"),), atomic="no", snapshot="no"
    ),
    "sqlite": Backend("one file, recommended", (Option("path", "MEMORIZZ_SQLITE_PATH", "path"),)),
    "postgres": Backend(
        "a schema of a PostgreSQL database",
        (
            Option("url", "MEMORIZZ_POSTGRES_URL", name_flag="uri-env", required=True),
            Option("schema", "MEMORIZZ_POSTGRES_SCHEMA", "schema"),
        ),
        extra="postgres",
    ),
    "mongodb": Backend(
        "a MongoDB database",
        (
            Option("uri", "MONGODB_URI", name_flag="uri-env", required=True),
            Option("db_name", "MONGODB_DB_NAME", "db"),
        ),
        atomic="on a replica set or behind mongos",
        snapshot="on a replica set or behind mongos",
        extra="mongodb",
    ),
    "oracle": Backend(
        "a schema of an Oracle database",
        (
            Option("dsn", "ORACLE_DSN", "dsn", required=True),
            Option("user", "ORACLE_USER", "user", required=True),
            Option("password", "ORACLE_PASSWORD", name_flag="password-env", required=True),
            Option("schema", "ORACLE_SCHEMA", "schema"),
            Option("index_policy", "MEMORIZZ_ORACLE_INDEX_POLICY"),
        ),
        atomic="yes, but for columns that are added",
        extra="oracle",
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
        atomic="no",
        snapshot="no",
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
