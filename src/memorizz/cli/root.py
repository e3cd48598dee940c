"""The command group, and the options that choose the provider."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_memory._version import __version__
from memorizz import config
from memorizz.backends import BACKENDS
from memorizz.config import Settings
from memorizz.errors import ConfigurationError

if TYPE_CHECKING:
    from memorizz.providers.base import MemoryProvider

Command = TypeVar("Command", bound=Callable[..., Any])

_NETWORK_OPTIONS = {
    "data-source-id": ("ID", "Data source, for notion."),
    "password-env": ("NAME", "Variable that holds the password, for oracle. [ORACLE_PASSWORD]"),
    "uri-env": ("NAME", "Variable that holds the address, for mongodb and postgres."),
    "schema": ("NAME", "Schema, for postgres and oracle."),
    "dsn": ("DSN", "Address of the database, for oracle."),
    "user": ("NAME", "User of the database, for oracle."),
    "db": ("NAME", "Database, for mongodb."),
}


def given(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse an option with an empty value: mostly a variable that a script forgot to set."""
    if value == "":
        raise click.BadParameter("it must not be empty", ctx, param)
    return value


path_option = click.option("--path", callback=given, metavar="PATH", help="Folder or file of the memory.")


def provider_options(function: Command) -> Command:
    """Accept ``--backend`` and ``--path`` here, for :func:`opened`."""

    @functools.wraps(function)
    def command(*arguments: Any, backend: str | None, path: str | None, **options: Any) -> Any:
        click.get_current_context().obj = Settings.resolve(backend=backend, path=path)
        return function(*arguments, **options)

    return place_options(command)  # type: ignore[return-value]


def place_options(function: Command) -> Command:
    """Accept ``--backend`` and ``--path``, as arguments."""
    backend = click.option("--backend", type=click.Choice(list(BACKENDS)), help="Provider [env MEMORIZZ_BACKEND].")
    return backend(path_option(function))


def network_options(function: Command) -> Command:
    """Accept the flags of backends on other machines, as one argument ``network``."""

    @functools.wraps(function)
    def command(*arguments: Any, **options: Any) -> Any:
        network = {flag: options.pop(flag.replace("-", "_")) for flag in _NETWORK_OPTIONS}
        return function(*arguments, network=network, **options)

    decorated: Any = command
    for flag, (metavar, help) in _NETWORK_OPTIONS.items():
        decorated = click.option(f"--{flag}", callback=given, metavar=metavar, help=help)(decorated)
    return decorated  # type: ignore[no-any-return]


@contextmanager
def opened() -> Iterator[MemoryProvider]:
    """The provider that the running command works on, which is there already.

    Raises:
        ConfigurationError: It is not.
    """
    settings: Settings = click.get_current_context().obj
    if not settings.is_there:
        raise ConfigurationError(
            f"there is no {settings.backend} memory at {settings.place} (from {settings.origin}); "
            "name one with --backend and --path, or run `memorizz connect`"
        )
    with _provider(settings.backend, settings.options) as provider:
        yield provider


@contextmanager
def served(*, make: bool) -> Iterator[MemoryProvider]:
    """The provider that a server works on; one that may write makes what is not there yet.

    Raises:
        ConfigurationError: It is not there, or cannot be opened.
    """
    with destination(make=True) if make else opened() as provider:
        yield provider


def has_destination() -> bool:
    """Whether the memory that the running command restores into is there already."""
    settings: Settings = click.get_current_context().obj
    return settings.is_there


@contextmanager
def destination(*, make: bool) -> Iterator[MemoryProvider]:
    """The provider to restore into; unless it is to be made, an empty one stands for one that is not there yet.

    Raises:
        ConfigurationError: It cannot be opened, or could not be made.
    """
    settings: Settings = click.get_current_context().obj
    if make or settings.is_there:
        with _provider(settings.backend, settings.options) as provider:
            yield provider
        return
    assert settings.path is not None, "only files can be missing"
    _refuse_unmakeable(settings.backend, settings.path)
    with (
        TemporaryDirectory(prefix="memorizz-preview-") as directory,
        _provider(settings.backend, {"path": Path(directory) / "empty"}) as provider,
    ):
        yield provider


def _refuse_unmakeable(backend: str, path: Path) -> None:
    nearest = path.resolve()
    while not os.path.lexists(nearest):
        nearest = nearest.parent
    if not nearest.is_dir():
        raise ConfigurationError(f"no {backend} memory can be made at {path}: {nearest} is no directory")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigurationError(f"no {backend} memory can be made at {path}: {nearest} cannot be written to")


@contextmanager
def _provider(backend: str, options: Mapping[str, Any]) -> Iterator[MemoryProvider]:
    # A command that needs no provider should not pay for one.
    from memorizz import embedding
    from memorizz.providers.registry import open_provider

    with open_provider(backend, options) as provider:
        # None stays what the configuration of the provider says.
        provider.embedding_provider = embedding.configured(config.variables())
        yield provider


class Lazy(click.Group):
    """A group whose commands are imported when they are needed."""

    def __init__(self, modules: dict[str, str], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of the help page."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name."""
        if cmd_name not in self._modules:
            return None
        # A command that is not run is not worth its import.
        from importlib import import_module

        commands: dict[str, click.Command] = import_module(f"memorizz.cli.{self._modules[cmd_name]}").COMMANDS
        return commands[cmd_name]


def make_root() -> click.Group:
    """The whole command line."""
    root = Lazy(
        {"memory": "memory", "connect": "connect", "ui": "ui", "mcp": "mcp", "plugin": "plugin", "notion": "notion"},
        name="memorizz",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help="An agent's whole memory graph, and its portable archives.",
        epilog="Exit codes: 0 done, 1 conflicts or a partial restore, 2 refused.",
    )
    return click.version_option(__version__, prog_name="memorizz", message="%(prog)s %(version)s")(root)
