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

PRINCIPAL: Final = "MEMORIZZ_MCP_SERVER_LOCAL_PRINCIPAL"
PLUGIN_REMOTE_URL: Final = "MEMORIZZ_PLUGIN_REMOTE_URL"
PLUGIN_TOKEN_ENV: Final = "MEMORIZZ_PLUGIN_REMOTE_TOKEN_ENV"
DEFAULT_TOKEN_ENV: Final = "MEMORIZZ_MCP_TOKEN"

MCP_SERVER: Final = tuple(
    f"MEMORIZZ_MCP_SERVER_{name}"
    for name in (
        *("TRANSPORT", "HOST", "PORT", "PATH", "PUBLIC_URL", "STATELESS_HTTP", "ALLOW_ANONYMOUS", "ALLOW_WRITES"),
        *("AGENT_IDS", "API_KEYS", "LOCAL_PRINCIPAL", "MAX_REQUEST_BYTES"),
    )
)
"""The settings of the MCP server."""

UI: Final = tuple(
    f"MEMORIZZ_UI_{name}"
    for name in ("AUTH_TOKEN", "AUTH_ACCOUNTS", "SESSION_SECRET", "SESSION_SECONDS", "COOKIE_SECURE", "READ_ONLY")
)
"""The settings of the portal."""

ENVIRONMENT: Final = (
    *("MEMORIZZ_BACKEND", *PATH_VARIABLES.values(), "MEMORIZZ_HOME", "MEMORIZZ_ENV_FILE"),
    *(PLUGIN_REMOTE_URL, PLUGIN_TOKEN_ENV, DEFAULT_TOKEN_ENV, *MCP_SERVER, *UI),
)
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
            ConfigurationError: The backend is none of those that this version knows, a path cannot be one, or the
                file of settings cannot be read.
        """
        environment = os.environ if environ is None else environ
        home = home_directory(environment)
        file = settings_file(environment)
        saved = _read(file)

        def setting(flag: str, given: str | None, name: str) -> tuple[str, str]:
            for value, origin in ((given, flag), (environment.get(name), name), (saved.get(name), str(file))):
                if value:
                    return value, origin
            return "", ""

        backend, chosen_by = setting("--backend", backend, "MEMORIZZ_BACKEND")
        backend = backend or DEFAULT_BACKEND
        if backend not in PATH_VARIABLES:
            raise ConfigurationError(
                f"the backend {backend!r} (from {chosen_by}) is not part of this version; "
                f"it must be one of {', '.join(PATH_VARIABLES)}"
            )
        where, placed_by = setting("--path", path, PATH_VARIABLES[backend])
        default = home / ("memory" if backend == "filesystem" else "memory.sqlite3")
        origin = " and ".join(dict.fromkeys(filter(None, (chosen_by, placed_by)))) or "default"
        return cls(backend, _absolute(where, placed_by) if where else default, origin)


class PluginSettings(NamedTuple):
    """Whose memory the plugins of coding agents work on, and the server that has it when it is a hosted one."""

    principal: str | None
    remote_url: str | None
    token_env: str
    token: str | None

    @classmethod
    def resolve(cls, *, environ: Mapping[str, str] | None = None) -> PluginSettings:
        """The settings of this process. The token itself is read from the environment only, never from a file.

        Raises:
            ConfigurationError: The file of settings cannot be read.
        """
        environment = os.environ if environ is None else environ
        found = variables(environment)
        token_env = found.get(PLUGIN_TOKEN_ENV, DEFAULT_TOKEN_ENV)
        return cls(found.get(PRINCIPAL), found.get(PLUGIN_REMOTE_URL), token_env, environment.get(token_env) or None)


def variables(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Every setting that has a value: the environment's, or else that of the file of settings.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    environment = os.environ if environ is None else environ
    saved = _read(settings_file(environment))
    found = {name: environment.get(name) or saved.get(name, "") for name in ENVIRONMENT}
    return {name: value for name, value in found.items() if value}


def home_directory(environ: Mapping[str, str] | None = None) -> Path:
    """``$MEMORIZZ_HOME``, or ``.memorizz`` in the user's home.

    Raises:
        ConfigurationError: There is no such home.
    """
    environment = os.environ if environ is None else environ
    return _absolute(environment.get("MEMORIZZ_HOME") or "~/.memorizz", "MEMORIZZ_HOME")


def settings_file(environ: Mapping[str, str] | None = None) -> Path:
    """``$MEMORIZZ_ENV_FILE``, or ``.env`` in the home directory of the memory graph.

    Raises:
        ConfigurationError: There is no such home.
    """
    environment = os.environ if environ is None else environ
    given = environment.get("MEMORIZZ_ENV_FILE")
    return _absolute(given, "MEMORIZZ_ENV_FILE") if given else home_directory(environment) / ".env"


def check_storable(path: Path) -> None:
    """Refuse a path that a line of the file of settings cannot hold.

    Raises:
        ConfigurationError: It is none that :func:`save` could write.
    """
    _quoted(path)


def save(backend: str, path: Path) -> Path:
    """Remember a provider in the file of settings and return that file; its other lines stay.

    Raises:
        OSError: It cannot be written.
        ConfigurationError: It cannot be read, or cannot hold ``path``.
    """
    return _remember({"MEMORIZZ_BACKEND": f'"{backend}"', PATH_VARIABLES[backend]: _quoted(path)})


def save_remote(url: str | None, token_env: str) -> None:
    """Remember the hosted server of the plugins in the file of settings, or with ``None`` forget it.

    Raises:
        OSError: It cannot be written.
        ConfigurationError: It cannot be read.
    """
    names = (PLUGIN_REMOTE_URL, PLUGIN_TOKEN_ENV)
    if url is None and not any(_name(line) in names for line in _lines(settings_file())):
        return
    _remember(dict(zip(names, (None, None) if url is None else (f'"{url}"', f'"{token_env}"'), strict=True)))


def _remember(wanted: Mapping[str, str | None]) -> Path:
    """Set these variables in the file of settings, or take out those that are ``None``; its other lines stay."""
    file = settings_file()
    lines = [line for line in _lines(file) if _name(line) not in wanted]
    lines += [f"{name}={value}" for name, value in wanted.items() if value is not None]
    # A link stays one: people keep their settings elsewhere.
    target = file.resolve()
    make_private_directory(target.parent)
    with replacing(target, "connect") as written:
        written.write("".join(f"{line}\n" for line in lines).encode())
    return file


def _absolute(text: str, origin: str) -> Path:
    if "\0" in text:
        raise ConfigurationError(f"the path {text!r} (from {origin}) holds the character U+0000")
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise ConfigurationError(
            f"the path {text!r} is in the home of a user who has none; set {origin} to another one"
        ) from None


def _quoted(path: Path) -> str:
    text = str(path)
    quote = "'" if '"' in text else '"'
    if quote in text or "\n" in text or "\r" in text:
        raise ConfigurationError(
            f"a path that is to be remembered must not hold both kinds of quotes, nor line breaks (got {text!r})"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigurationError(f"a path that is to be remembered must be UTF-8 (got {text!r})") from None
    return f"{quote}{text}{quote}"


def _read(file: Path) -> dict[str, str]:
    found = {}
    for line in _lines(file):
        name = _name(line)
        if name:
            found[name] = _unquoted(line.partition("=")[2].strip())
    return found


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _name(line: str) -> str:
    name, equals, _ = line.strip().removeprefix("export ").partition("=")
    return "" if name.startswith("#") or not equals else name.strip()


def _lines(file: Path) -> list[str]:
    try:
        # Not splitlines: names of directories may hold what it takes for the end of a line.
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the settings in {file} cannot be read: {error}") from None
    return lines if lines[-1] else lines[:-1]
