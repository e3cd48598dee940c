"""``memorizz connect``."""

from __future__ import annotations

import click

from memorizz.backends import BACKENDS
from memorizz.cli.root import network_options, path_option
from memorizz.config import Settings
from memorizz.providers.registry import open_provider


@click.command(epilog="Examples: memorizz connect sqlite --path ~/agents.sqlite3  ·  memorizz connect")
@click.argument("backend", type=click.Choice(list(BACKENDS)), required=False)
@path_option
@network_options
def connect(backend: str | None, path: str | None, network: dict[str, str | None]) -> int:
    """Remember which memory the commands work on.

    BACKEND is filesystem (a folder), sqlite (one file, recommended) or a database. Without it the present choice is
    shown. The memory is opened, and created if it is not there, before it is remembered. Addresses with passwords,
    passwords and tokens are read from the environment and never remembered.
    """
    if backend is None:
        if path is not None or any(network.values()):
            raise click.UsageError("--path and its like need a BACKEND")
        chosen = Settings.resolve()
        click.echo(f"{chosen.backend} at {chosen.place} (from {chosen.origin})")
        return 0
    chosen = Settings.resolve(backend=backend, path=path, flags=network)
    # Before a memory is made that would not be remembered.
    chosen.check_storable()
    open_provider(chosen.backend, chosen.options).close()
    file = chosen.save()
    click.echo(f"{chosen.backend} at {chosen.place}, remembered in {file}")
    return 0


COMMANDS = {"connect": connect}
