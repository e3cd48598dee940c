"""Settings: a flag wins over an environment variable, which wins over the default.

The only file that reads the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from agent_memory.errors import InvalidSetting

DEFAULT_OLLAMA_URL: Final = "http://localhost:11434"
DEFAULT_SWEEP_SECS: Final = 3600.0
JOURNALS: Final = ("auto", "wal", "delete")
_ON: Final = ("1", "true", "yes", "on")
_OFF: Final = ("0", "false", "no", "off")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")

Journal = Literal["auto", "wal", "delete"]

ENVIRONMENT: Final = {
    "db": "AGENT_MEMORY_DB",
    "ollama_url": "AGENT_MEMORY_OLLAMA_URL",
    "sweep_secs": "AGENT_MEMORY_SWEEP_SECS",
    "strict_query": "AGENT_MEMORY_STRICT_QUERY",
    "journal": "AGENT_MEMORY_JOURNAL",
    "log_level": "AGENT_MEMORY_LOG",
}


def _as_flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class Settings(NamedTuple):
    """What a process works with. ``db`` is absolute; ``sweep_secs`` is in seconds."""

    db: Path
    ollama_url: str = DEFAULT_OLLAMA_URL
    sweep_secs: float = DEFAULT_SWEEP_SECS
    strict_query: bool = False
    journal: Journal = "auto"
    log_level: str = "info"

    @classmethod
    def resolve(
        cls,
        *,
        db: str | bytes | os.PathLike[str] | None = None,
        ollama_url: str | None = None,
        sweep_secs: str | float | None = None,
        strict_query: bool | None = None,
        journal: str | None = None,
        log_level: str | None = None,
        spelled: Callable[[str], str] = _as_flag,
        environ: Mapping[str, str] | None = None,
    ) -> Settings:
        """The settings of this process; an argument that is given is a flag. An empty variable counts as unset.

        ``spelled`` says how an error names an argument.

        Raises:
            InvalidSetting: A value breaks its rule; the message names where it came from.
        """
        environment = os.environ if environ is None else environ

        def setting(name: str, flag: object) -> tuple[str, str]:
            if flag is not None:
                option = spelled(name)
                if flag == "":
                    raise InvalidSetting(f"{option} must not be empty")
                return option, str(flag)
            return ENVIRONMENT[name], environment.get(ENVIRONMENT[name], "")

        return cls(
            db=_path(*setting("db", None if db is None else os.fsdecode(db))),
            ollama_url=_url(*setting("ollama_url", ollama_url)),
            sweep_secs=_seconds(*setting("sweep_secs", sweep_secs)),
            strict_query=_switch(*setting("strict_query", strict_query)),
            journal=cast(Journal, _choice(*setting("journal", journal), JOURNALS, "auto")),
            log_level=_choice(*setting("log_level", log_level), LOG_LEVELS, "info"),
        )


def default_db() -> Path:
    """``agent-memory/memory.db`` in the data directory of this user and platform.

    Raises:
        InvalidSetting: This user has none.
    """
    # Only this branch needs the package, and start-up time counts.
    import platformdirs

    try:
        directory = Path(platformdirs.user_data_dir("agent-memory", appauthor=False, roaming=False))
        if not directory.is_absolute():
            raise RuntimeError("this user has no home directory")
    except RuntimeError as error:
        raise InvalidSetting(
            "could not determine the OS data directory for the default database path "
            f"({error}); name a file with --db or {ENVIRONMENT['db']}"
        ) from None
    return directory / "memory.db"


def _path(name: str, value: str) -> Path:
    if not value:
        return default_db()
    if value == ":memory:":
        raise InvalidSetting(f"{name} must name a file, which all programs share (got {value!r})")
    try:
        path = Path(value).expanduser()
    except RuntimeError as error:
        raise InvalidSetting(f"{name}: {error} (got {value!r})") from None
    # The file itself: what stands beside it (log, backups) must not depend on the link it was reached by.
    try:
        path = Path(os.path.realpath(path))
    except ValueError as error:
        raise InvalidSetting(f"{name} must be a path ({error}, got {value!r})") from None
    if path.is_dir():
        raise InvalidSetting(f"{name} must name a file (got the directory {str(path)!r})")
    return path


def _url(name: str, value: str) -> str:
    if not value:
        return DEFAULT_OLLAMA_URL
    try:
        parts = urlsplit(value)
        labels = (parts.hostname or "").removesuffix(".").split(".")
        usable = parts.scheme in ("http", "https") and parts.port != 0 and all(0 < len(label) < 64 for label in labels)
    except ValueError:
        usable = False
    if not usable or not value.isascii() or any(character <= " " for character in value):
        raise InvalidSetting(f"{name} must be an http or https URL with a host, in printable ASCII (got {value!r})")
    return value


def _seconds(name: str, value: str) -> float:
    if not value:
        return DEFAULT_SWEEP_SECS
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 31_536_000:
        raise InvalidSetting(f"{name} must be between 1 and 31536000 seconds (got {value!r})")
    return seconds


def _switch(name: str, value: str) -> bool:
    return _choice(name, value, _ON + _OFF, "off") in _ON


def _choice(name: str, value: str, choices: tuple[str, ...], default: str) -> str:
    if not value:
        return default
    if value.lower() not in choices:
        raise InvalidSetting(f"{name} must be one of {', '.join(choices)} (got {value!r})")
    return value.lower()
