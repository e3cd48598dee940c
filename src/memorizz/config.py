"""Where the memory graph is: flags win over the environment, that over the file of ``memorizz connect``.

The only file of this package that reads the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from agent_memory.files import make_private_directory, replacing
from memorizz.errors import ConfigurationError

PATH_VARIABLES: Final = {"filesystem": "MEMORIZZ_MEMORY_ROOT", "sqlite": "MEMORIZZ_SQLITE_PATH"}
"""For each backend the variable that says where its data is."""

ENVIRONMENT: Final = ("MEMORIZZ_BACKEND", *PATH_VARIABLES.values(), "MEMORIZZ_HOME", "MEMORIZZ_ENV_FILE")
DEFAULT_BACKEND: Final = "filesystem"


class Settings(NamedTuple):
    """Which provider to open, and where its data is. ``origin`` says what decided."""

    backend: str
    path: Path
    origin: str

    @classmethod
    def resolve(
        cls, *, backend: str | None = None, path: str | None = None, environ: Mapping[str, str] | None = None
    ) -> Settings:
        """The settings of this process; an argument that is given is a flag. An empty variable counts as unset.

        Raises:
            ConfigurationError: The backend is none of those that this version knows, or the file of settings cannot
                be read.
        """
        environment = os.environ if environ is None else environ
        home = home_directory(environment)
        file = settings_file(environment)
        saved = _read(file)

        def setting(name: str) -> tuple[str, str]:
            if environment.get(name):
                return environment[name], name
            return saved.get(name, ""), str(file)

        if backend:
            origin = "--backend"
        else:
            backend, origin = setting("MEMORIZZ_BACKEND")
        if not backend:
            backend, origin = DEFAULT_BACKEND, "default"
        if backend not in PATH_VARIABLES:
            raise ConfigurationError(
                f"the backend {backend!r} (from {origin}) is not part of this version; "
                f"it must be one of {', '.join(PATH_VARIABLES)}"
            )
        where = path or setting(PATH_VARIABLES[backend])[0]
        default = home / ("memory" if backend == "filesystem" else "memory.sqlite3")
        return cls(backend, Path(where).expanduser().absolute() if where else default, origin)


def home_directory(environ: Mapping[str, str] | None = None) -> Path:
    """``$MEMORIZZ_HOME``, or ``.memorizz`` in the user's home.

    Raises:
        ConfigurationError: This user has no home.
    """
    environment = os.environ if environ is None else environ
    try:
        return Path(environment.get("MEMORIZZ_HOME") or "~/.memorizz").expanduser().absolute()
    except RuntimeError as error:
        raise ConfigurationError(f"{error}: set MEMORIZZ_HOME") from None


def settings_file(environ: Mapping[str, str] | None = None) -> Path:
    """``$MEMORIZZ_ENV_FILE``, or ``.env`` in the home directory of the memory graph."""
    environment = os.environ if environ is None else environ
    given = environment.get("MEMORIZZ_ENV_FILE")
    return Path(given).expanduser().absolute() if given else home_directory(environment) / ".env"


def save(backend: str, path: Path) -> Path:
    """Remember a provider in the file of settings and return that file; its other lines stay.

    Raises:
        OSError: It cannot be written.
        ConfigurationError: It cannot be read.
    """
    file = settings_file()
    wanted = {"MEMORIZZ_BACKEND": backend, PATH_VARIABLES[backend]: str(path)}
    if any(character in str(path) for character in "\n\r\"'"):
        raise ConfigurationError(f"the path must not hold quotes or line breaks (got {str(path)!r})")
    lines = [line for line in _lines(file) if _name(line) not in wanted]
    lines += [f'{name}="{value}"' for name, value in wanted.items()]
    make_private_directory(file.parent)
    with replacing(file, "connect") as written:
        written.write(("\n".join(lines) + "\n").encode())
    return file


def _read(file: Path) -> dict[str, str]:
    found = {}
    for line in _lines(file):
        name = _name(line)
        if name:
            found[name] = line.partition("=")[2].strip().strip("\"'")
    return found


def _name(line: str) -> str:
    name, equals, _ = line.strip().removeprefix("export ").partition("=")
    return "" if name.startswith("#") or not equals else name.strip()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the settings in {file} cannot be read: {error}") from None
