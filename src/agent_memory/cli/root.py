"""The command group and the options that every command shares."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from agent_memory import app
from agent_memory._version import __version__
from agent_memory.config import ENVIRONMENT, Settings
from agent_memory.logs import log_to_stderr
from agent_memory.service.memory import AgentMemory

Command = TypeVar("Command", bound=Callable[..., Any])

_SHARED = ("db", "ollama_url", "strict_query")


def shared_options(function: Command) -> Command:
    """Accept the shared options here; they count wherever they stand, the last one wins."""

    @functools.wraps(function)
    def command(*arguments: Any, **options: Any) -> Any:
        context = click.get_current_context()
        given = {name: options.pop(name) for name in _SHARED}
        context.find_root().ensure_object(dict).update({k: v for k, v in given.items() if v is not None})
        return function(*arguments, **options)

    decorated: Any = command
    for option in reversed(
        (
            click.option(
                "--db",
                type=click.Path(),
                metavar="PATH",
                help=f"Database file [env {ENVIRONMENT['db']}; default: in the user's data directory].",
            ),
            click.option(
                "--ollama-url",
                metavar="URL",
                help=f"Ollama to embed with [env {ENVIRONMENT['ollama_url']}; default http://localhost:11434].",
            ),
            click.option(
                "--strict-query/--no-strict-query",
                default=None,
                help=f"Retry only queries that FTS5 cannot parse [env {ENVIRONMENT['strict_query']}; default off].",
            ),
        )
    ):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


class Lazy(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of the help page."""
        return list(_COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that ``args`` name; the error for an unknown one names the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            # Only who mistypes needs it.
            import difflib

            near = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name."""
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        # Commands of one group share a file; a command that is not run is not worth its import.
        from importlib import import_module

        commands: dict[str, click.Command] = import_module(f"agent_memory.cli.{module}").COMMANDS
        return commands[cmd_name]


_COMMANDS = {
    "store": "memories",
    "search": "memories",
    "list": "memories",
    "show": "memories",
    "update": "memories",
    "forget": "memories",
    "link": "links",
    "unlink": "links",
    "export": "transfer",
    "import": "transfer",
    "stats": "upkeep",
    "sweep": "upkeep",
    "embed": "upkeep",
    "doctor": "upkeep",
    "serve": "setup",
    "serve-rest": "setup",
    "config": "setup",
    "completion": "setup",
    "demo": "setup",
}


@click.group(
    cls=Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 not found or failed, 2 wrong usage.",
)
@click.version_option(__version__, prog_name="agent-memory", message="%(prog)s %(version)s")
@shared_options
def root() -> None:
    """Typed memory for AI agents, in one local file shared by all of them.

    \b
    Give it to an agent:      agent-memory config claude-code
    Look into it yourself:    agent-memory search "which database did we choose?"
    See it work:              agent-memory demo
    """


def settings(*, warnings: bool = False, **more: Any) -> Settings:
    """The settings of the running command, with logging set up; ``warnings`` are shown where they matter."""
    given = click.get_current_context().find_root().ensure_object(dict)
    resolved = Settings.resolve(**given, **more)
    # What a server notes is no news to a person who asked for something else.
    quiet = "warning" if warnings else "error"
    log_to_stderr(quiet if resolved.log_level == "info" else resolved.log_level)
    return resolved


@contextmanager
def opened(*, warnings: bool = False) -> Iterator[AgentMemory]:
    """The memory that the running command works on."""
    resolved = settings(warnings=warnings)
    is_new = not resolved.db.exists()
    with app.open_memory(resolved) as memory:
        if is_new:
            # Whoever mistyped a path should see it.
            click.echo(f"created {resolved.db}", err=True)
        yield memory
