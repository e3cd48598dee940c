"""``memorizz ui``: the portal."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import click

from agent_memory.logs import log_to_stderr
from memorizz import config
from memorizz.cli.root import given, network_options, place_options
from memorizz.config import Settings
from memorizz.errors import ConfigurationError
from memorizz.providers.registry import open_provider

if TYPE_CHECKING:
    from memorizz.portal.connection import Target
    from memorizz.providers.base import MemoryProvider


log = logging.getLogger(__name__)


@click.command(epilog="Examples: memorizz ui  ·  memorizz ui --path ~/agents.sqlite3 --backend sqlite --read-only")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="IP", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8765, show_default=True, help="Port; 0 is any.")
@click.option("--public-url", callback=given, metavar="URL", help="The address of a proxy in front.")
@click.option("--read-only", is_flag=True, help="Export and preview, but write nothing [env MEMORIZZ_UI_READ_ONLY].")
@click.option("--no-connect", is_flag=True, help="Start without a memory; one is chosen on the page Connection.")
@click.option("--memory-db", callback=given, metavar="FILE", help="Show the typed memory in this file too.")
@place_options
@network_options
def ui(
    backend: str | None,
    path: str | None,
    network: dict[str, str | None],
    no_connect: bool,
    memory_db: str | None,
    **chosen: Any,
) -> int:
    """Open the portal: look at memories, export and import them, in a browser on this machine."""
    # Templates and a web server are of use to no other command.
    from agent_memory import app
    from agent_memory.config import Settings as TypedSettings
    from memorizz.portal.connection import Connection, Target
    from memorizz.portal.server import serve
    from memorizz.portal.settings import PortalSettings

    settings = PortalSettings.resolve(config.variables(), **chosen)
    log_to_stderr("info", background=True, libraries=("memorizz", "agent_memory", "uvicorn"))
    connection = Connection(_opened)
    if not no_connect:
        memory_graph = Settings.resolve(backend=backend, path=path, flags=network)
        is_there = memory_graph.is_there
        if not is_there:
            log.info("there is no memory at %s yet%s", memory_graph.place, "" if settings.read_only else ": making one")
        if is_there or not settings.read_only:
            target = Target(memory_graph.backend, memory_graph.options, memory_graph.place, settings.read_only)
            connection.connect(target)
    memory = None
    if memory_db is not None:
        typed = TypedSettings.resolve(db=memory_db)
        if settings.read_only and not typed.db.exists():
            raise ConfigurationError(f"there is no typed memory at {typed.db}, and a read-only portal makes none")
        memory = app.open_memory(typed, counts_uses=not settings.read_only)
    serve(settings, connection, memory)
    return 0


COMMANDS = {"ui": ui}


def _opened(target: Target) -> MemoryProvider:
    return open_provider(target.backend, {**target.options, "read_only": target.read_only})
