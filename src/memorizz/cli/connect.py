"""``memorizz connect``."""

from __future__ import annotations

import click

from memorizz import config
from memorizz.cli.root import BACKENDS, given
from memorizz.config import Settings
from memorizz.providers.registry import open_provider


@click.command(epilog="Examples: memorizz connect sqlite --path ~/agents.sqlite3  ·  memorizz connect")
@click.argument("backend", type=click.Choice(BACKENDS), required=False)
@click.option("--path", callback=given, metavar="PATH", help="Folder or file of the memory.")
def connect(backend: str | None, path: str | None) -> int:
    """Remember which memory the commands work on.

    BACKEND is filesystem (a folder) or sqlite (one file, recommended). Without it the present choice is shown. The
    memory is opened, and created if it is not there, before it is remembered.
    """
    if backend is None:
        if path is not None:
            raise click.UsageError("--path needs a BACKEND")
        chosen = Settings.resolve()
        click.echo(f"{chosen.backend} at {chosen.path} (from {chosen.origin})")
        return 0
    chosen = Settings.resolve(backend=backend, path=path)
    # Before a memory is made that would not be remembered.
    config.check_storable(chosen.path)
    open_provider(chosen.backend, {"path": chosen.path}).close()
    file = config.save(chosen.backend, chosen.path)
    click.echo(f"{chosen.backend} at {chosen.path}, remembered in {file}")
    return 0


COMMANDS = {"connect": connect}
