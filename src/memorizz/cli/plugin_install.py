"""``memorizz plugin install`` and ``uninstall``."""

from __future__ import annotations

from typing import Any

import click

from agent_memory.cli import render
from memorizz import config
from memorizz.cli import options
from memorizz.cli.root import given
from memorizz.config import PluginSettings
from memorizz.plugins.clients import CLIENTS
from memorizz.plugins.install import Outcome
from memorizz.plugins.install import install as install_plugins
from memorizz.plugins.install import uninstall as uninstall_plugins
from memorizz.plugins.remote import checked_name, checked_url

_client = click.argument("client", type=click.Choice(list(CLIENTS)))


@click.command(epilog="Examples: memorizz plugin install claude-code  ·  memorizz plugin install codex --typed")
@_client
@click.option("--typed", is_flag=True, help="Also install the plugin of the typed memory, agent-memory.")
@click.option("--remote", callback=given, metavar="URL", help="Use the hosted memory there, and remember it.")
@click.option("--token-env", callback=given, metavar="NAME", help="Variable that holds the token of --remote.")
@click.option("--local", is_flag=True, help="Use the memory of this machine, and forget a hosted one.")
@options.as_json
def install(client: str, typed: bool, remote: str | None, token_env: str | None, local: bool, as_json: bool) -> int:
    """Install the plugins for CLIENT, codex or claude-code.

    They are installed by the client's own program; where it is not found, the lines to run are shown. Installing again
    brings them up to date.
    """
    if local and (remote is not None or token_env is not None):
        raise click.UsageError("--local and --remote exclude each other")
    if token_env is not None and remote is None:
        raise click.UsageError("--token-env needs --remote")
    settings = PluginSettings.resolve()
    url, name = (None, settings.token_env) if local else (settings.remote_url, settings.token_env)
    if remote is not None:
        url, name = checked_url(remote, "--remote"), token_env or config.DEFAULT_TOKEN_ENV
    if url is not None:
        checked_url(url, config.PLUGIN_REMOTE_URL)
        checked_name(name, config.PLUGIN_TOKEN_ENV if token_env is None else "--token-env")
    remember = True if remote is not None else False if local else None
    with render.busy("installing"):
        outcome = install_plugins(client, typed=typed, remote_url=url, token_env=name, remember=remember)
    if options.wants_json(as_json):
        render.print_json({**_described(outcome), "remote": url})
        return 0
    _show(outcome, f"installed {' and '.join(outcome.plugins)} for {client}, from {outcome.marketplace}")
    return 0


@click.command(epilog="Example: memorizz plugin uninstall codex")
@_client
@options.as_json
def uninstall(client: str, as_json: bool) -> int:
    """Uninstall the plugins for CLIENT, codex or claude-code, and what was written to install them.

    Exit code 1 when the client's program refused something; the rest is done.
    """
    outcome = uninstall_plugins(client)
    if options.wants_json(as_json):
        render.print_json({**_described(outcome), "problems": outcome.problems})
    elif not outcome.plugins:
        click.echo(f"nothing is installed for {client}")
    else:
        _show(outcome, f"uninstalled {' and '.join(outcome.plugins)} for {client}")
    for problem in outcome.problems:
        click.echo(f"Error: {problem}", err=True)
    return 1 if outcome.problems else 0


COMMANDS = {"install": install, "uninstall": uninstall}


def _described(outcome: Outcome) -> dict[str, Any]:
    return {
        "client": outcome.client,
        "marketplace": str(outcome.marketplace),
        "plugins": outcome.plugins,
        "commands": outcome.commands,
        "done": outcome.done,
    }


def _show(outcome: Outcome, done: str) -> None:
    if outcome.done:
        click.echo(done)
        return
    click.echo(f"{outcome.commands[0][0]} is not on the path; to finish, run")
    for line in outcome.lines():
        click.echo(f"  {line}")
