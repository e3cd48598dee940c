"""``serve``, ``serve-rest``, ``config``, ``completion`` and ``demo``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from agent_memory.cli.clients import CLIENTS, Launch
from agent_memory.cli.root import root, settings, shared_options
from agent_memory.config import DEFAULT_SWEEP_SECS, ENVIRONMENT
from agent_memory.errors import OpenError
from agent_memory.logs import log_to_stderr

_DEFAULT_ADDRESS = "127.0.0.1:7437"
_sweep_secs = click.option(
    "--sweep-secs",
    type=float,
    metavar="SECONDS",
    help=f"Pause between sweeps [env {ENVIRONMENT['sweep_secs']}; default {DEFAULT_SWEEP_SECS:.0f}].",
)


@click.command(epilog="Example: agent-memory --db ~/notes/memory.db serve")
@_sweep_secs
@shared_options
def serve(sweep_secs: float | None) -> int:
    """Serve MCP over standard input and output. Agents start this themselves: see `config`."""
    # The server's session is of use to no other command.
    from agent_memory.mcp.server import serve as run

    resolved = settings(sweep_secs=sweep_secs)
    log_to_stderr(resolved.log_level, background=True)
    run(resolved)
    return 0


@click.command("serve-rest", epilog="Example: agent-memory serve-rest --addr 127.0.0.1:8080")
@click.option("--addr", default=_DEFAULT_ADDRESS, show_default=True, metavar="IP:PORT", help="Address to listen on.")
@click.option("--allow-remote", is_flag=True, help="Listen on an address that other machines can reach.")
@_sweep_secs
@shared_options
def serve_rest(addr: str, allow_remote: bool, sweep_secs: float | None) -> int:
    """Serve the REST API, until a signal ends it.

    There is no authentication: whoever can reach the address can read and delete every memory. /docs describes the
    routes.
    """
    # Starlette and uvicorn are of use to no other command.
    from agent_memory.rest.server import serve as run
    from agent_memory.web.address import Address

    address = Address.parse(addr)
    resolved = settings(sweep_secs=sweep_secs)
    log_to_stderr(resolved.log_level, background=True, libraries=("uvicorn",))
    run(resolved, address, allow_remote=allow_remote)
    return 0


@click.command(epilog="Example: agent-memory config cursor")
@click.argument("client", type=click.Choice(list(CLIENTS)), metavar="CLIENT")
@shared_options
def config(client: str) -> int:
    """Print the block for CLIENT's configuration.

    CLIENT is claude-code, claude-desktop, cursor, vscode, codex or gemini. Where the block belongs is said on
    standard error. All paths in it are absolute.
    """
    known = CLIENTS[client]
    click.echo(f"{known.title}: add this to {known.where}", err=True)
    click.echo(known.block(Launch.of(settings())))
    return 0


@click.command(epilog='Example: eval "$(agent-memory completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of SHELL.

    Evaluate it in the start-up file of bash, zsh or fish.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise OpenError(f"no completion is available for {shell}")
    click.echo(kind(root, {}, "agent-memory", "_AGENT_MEMORY_COMPLETE").source())
    return 0


@click.command(epilog="Example: agent-memory demo")
@click.option("--keep", metavar="PATH", help="Keep the demo's database as this new file.")
def demo(keep: str | None) -> int:
    """Play a short true story: two agents, one memory."""
    # Only the demo speaks as a client.
    from agent_memory.cli.story import play

    return play(keep)


COMMANDS = {"serve": serve, "serve-rest": serve_rest, "config": config, "completion": completion, "demo": demo}
