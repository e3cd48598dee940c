"""Where the memory graph is: flags win over the environment, that over the file of ``memorizz connect``.

The only file of this package that reads the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent_memory.config import Settings as TypedSettings
from agent_memory.files import make_private_directory, replacing
from memorizz import backends
from memorizz.backends import BACKENDS, Option
from memorizz.errors import ConfigurationError
from memorizz.taxonomy import MemoryType

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

EMBEDDING: Final = tuple(f"MEMORIZZ_DEFAULT_EMBEDDING_{name}" for name in ("PROVIDER", "MODEL", "URL", "API_KEY"))
"""The settings of the embedder that a restore asks."""

ENVIRONMENT: Final = (
    *("MEMORIZZ_BACKEND", "MEMORIZZ_HOME", "MEMORIZZ_ENV_FILE"),
    *(option.variable for backend in BACKENDS.values() for option in backend.options),
    *(PLUGIN_REMOTE_URL, PLUGIN_TOKEN_ENV, DEFAULT_TOKEN_ENV, *MCP_SERVER, *UI, *EMBEDDING),
)
DEFAULT_BACKEND: Final = "filesystem"


class Settings(NamedTuple):
    """Which provider to open: its kind and the fields of its configuration. ``origin`` says what decided.

    ``place`` is how people call where the data is; it shows no secret.
    """

    backend: str
    options: dict[str, Any]
    place: str
    origin: str

    @property
    def path(self) -> Path | None:
        """The folder or file of a backend that is kept in one."""
        first = BACKENDS[self.backend].options[0]
        return self.options[first.field] if first.flag == "path" else None

    @classmethod
    def resolve(
        cls,
        *,
        backend: str | None = None,
        path: str | None = None,
        flags: Mapping[str, str | None] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Settings:
        """The settings of this process; an argument that is given is a flag. An empty variable counts as unset.

        ``flags`` are those of backends on other machines, by their names without hyphens.

        Raises:
            ConfigurationError: The backend is none of those that this version knows, it lacks a setting or does not
                have one that was given, a path cannot be one, or the file of settings cannot be read.
        """
        environment = os.environ if environ is None else environ
        given = {"path": path, **(flags or {})}
        file = settings_file(environment)
        saved = _read(file)

        def setting(flag: str, value: str | None, name: str) -> tuple[str, str]:
            for found, origin in ((value, flag), (environment.get(name), name), (saved.get(name), str(file))):
                if found:
                    return found, origin
            return "", ""

        backend, chosen_by = setting("--backend", backend, "MEMORIZZ_BACKEND")
        backend = backend or DEFAULT_BACKEND
        if backend not in BACKENDS:
            raise ConfigurationError(
                f"the backend {backend!r} (from {chosen_by}) is not part of this version; "
                f"it must be one of {', '.join(BACKENDS)}"
            )
        options: dict[str, Any] = {}
        origins = [chosen_by]
        for option in BACKENDS[backend].options:
            name = given.get(option.name_flag or "") or option.variable
            value, origin = setting(f"--{option.flag}", given.get(option.flag or ""), name)
            if option.flag == "path":
                options[option.field] = _absolute(value, origin) if value else _default_path(backend, environment)
            elif value:
                options[option.field] = value
            elif option.required:
                raise ConfigurationError(f"the backend {backend} needs {_spelled(option, name)}")
            origins.append(origin)
        _refuse_foreign(backend, given)
        origin = " and ".join(dict.fromkeys(filter(None, origins))) or "default"
        return cls(backend, options, backends.place(backend, options), origin)

    @property
    def is_there(self) -> bool:
        """Whether there is such a memory. A folder that holds none of the stores is somebody's folder, but no memory.

        Of a database on another machine only opening it can tell.
        """
        path = self.path
        if path is None:
            return True
        if self.backend == "filesystem" and path.is_dir():
            return any((path / store.value).is_dir() for store in MemoryType)
        return path.exists()

    def check_storable(self) -> None:
        """Refuse settings that lines of the file of settings cannot hold.

        Raises:
            ConfigurationError: They are none that :meth:`save` could write.
        """
        self._lines()

    def save(self) -> Path:
        """Remember them, but for secrets, in the file of settings and return that file; its other lines stay.

        Raises:
            OSError: It cannot be written.
            ConfigurationError: It cannot be read, or cannot hold them.
        """
        return _remember(self._lines())

    def _lines(self) -> dict[str, str | None]:
        shown = {option.variable: option.field for option in BACKENDS[self.backend].options if not option.secret}
        kept = {name: _quoted(str(self.options[field])) for name, field in shown.items() if field in self.options}
        return {"MEMORIZZ_BACKEND": f'"{self.backend}"', **kept}


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


def notion_token(environ: Mapping[str, str] | None = None) -> str | None:
    """The token of an integration of Notion, read from the environment only, never from a file."""
    return (os.environ if environ is None else environ).get("NOTION_TOKEN") or None


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
    """Set these variables in the file of settings, or take out those that are ``None``; its other bytes stay."""
    file = settings_file()
    before = _bytes(file)
    ending = b"\r\n" if b"\r\n" in before else b"\n"
    # What had no line feed at its end has none afterwards, so that taking out what was set gives back the very file.
    is_open = bool(before) and not before.endswith(b"\n")
    lines = [line for line in _split(before, file) if _name(line.decode()) not in wanted]
    lines += [f"{name}={value}".encode() for name, value in wanted.items() if value is not None]
    after = ending.join(line.rstrip(b"\r") for line in lines) + (b"" if is_open or not lines else ending)
    # A link stays one: people keep their settings elsewhere.
    target = file.resolve()
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    make_private_directory(target.parent)
    with replacing(target, "connect") as written:
        written.write(after)
    if mode is not None:
        target.chmod(mode)
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


def _default_path(backend: str, environment: Mapping[str, str]) -> Path:
    if backend == "agent-memory":
        return TypedSettings.resolve(environ=environment).db
    return home_directory(environment) / ("memory" if backend == "filesystem" else "memory.sqlite3")


def _spelled(option: Option, name: str) -> str:
    other = f" (or another variable, which --{option.name_flag} names)" if option.name_flag else ""
    return f"--{option.flag} or {name}" if option.flag else f"the variable {name}{other}"


def _refuse_foreign(backend: str, given: Mapping[str, str | None]) -> None:
    known = {flag for option in BACKENDS[backend].options for flag in (option.flag, option.name_flag)}
    for flag, value in given.items():
        if value and flag not in known:
            raise ConfigurationError(f"the backend {backend} has no --{flag}")


def _quoted(text: str) -> str:
    quote = "'" if '"' in text else '"'
    if quote in text or "\n" in text or "\r" in text:
        raise ConfigurationError(
            f"what is to be remembered must not hold both kinds of quotes, nor line breaks (got {text!r})"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigurationError(f"what is to be remembered must be UTF-8 (got {text!r})") from None
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
    name, equals, _ = line.removeprefix("\ufeff").strip().removeprefix("export ").partition("=")
    return "" if name.startswith("#") or not equals else name.strip()


def _lines(file: Path) -> list[str]:
    return [line.decode() for line in _split(_bytes(file), file)]


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ConfigurationError(f"the settings in {file} cannot be read: {error}") from None


def _split(data: bytes, file: Path) -> list[bytes]:
    """The lines, valid as UTF-8. Not by splitlines: names of directories may hold what it takes for an end."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the settings in {file} cannot be read: {error}") from None
    return data.removesuffix(b"\n").split(b"\n") if data else []
