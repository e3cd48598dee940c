"""``memorizz mcp serve``: the memory graph for MCP clients."""

from __future__ import annotations

from typing import Any

import click

from agent_memory.logs import log_to_stderr
from memorizz import config
from memorizz.cli.root import Lazy, given, provider_options, served
from memorizz.errors import ConfigurationError


@click.command(
    epilog="Examples: memorizz mcp serve  ·  memorizz mcp serve --transport streamable-http --agent-id AGENT_ID"
)
@click.option("-t", "--transport", type=click.Choice(("stdio", "streamable-http")), help="How clients call. [stdio]")
@click.option("--host", callback=given, metavar="IP", help="Address to listen on. [127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), metavar="N", help="Port to listen on; 0 is any. [8766]")
@click.option("--http-path", callback=given, metavar="PATH", help="Path of the endpoint. [/mcp]")
@click.option("--public-url", callback=given, metavar="URL", help="The https address of the proxy in front.")
@click.option("--agent-id", "agents", multiple=True, metavar="ID", help="An agent whose records may be seen.")
@click.option("--all-agents", is_flag=True, help="Records of every agent may be seen; the default over stdio.")
@click.option("--allow-anonymous/--require-auth", default=None, help="Serve callers without a key, over HTTP.")
@click.option("--allow-writes/--read-only", default=None, help="Apply imports. [stdio yes, HTTP no]")
@click.option("--stateless-http/--stateful-http", "stateless", default=None, help="Keep no sessions between requests.")
@click.option("--max-request-bytes", type=click.IntRange(min=1), metavar="N", help="Largest archive. [4194304]")
@provider_options
def serve(http_path: str | None, **chosen: Any) -> int:
    """Serve two tools: export memories as an archive, and import one.

    Over stdio one client on this machine is served, as the user MEMORIZZ_MCP_SERVER_LOCAL_PRINCIPAL or as nobody.
    Over HTTP each caller is the user that its key stands for, and sees that user's records only.
    """
    # Neither is of use to another command, and the SDK of the second takes a second to load.
    from memorizz.mcp.settings import STDIO, ServerSettings

    settings = ServerSettings.resolve(config.variables(), path=http_path, **chosen)
    log_to_stderr("info", background=True, libraries=("memorizz", "agent_memory", "uvicorn", "mcp"))
    with served(make=settings.policy.allow_writes) as provider:
        if settings.transport == STDIO:
            from memorizz.mcp import stdio

            stdio.serve(provider, settings)
        try:
            from memorizz.mcp import http
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f"serving over HTTP needs {error.name}: pip install 'agent-memory[remote]'"
            ) from None
        http.serve(provider, settings)
    return 0


COMMANDS = {
    "mcp": Lazy({"serve": "mcp"}, name="mcp", help="The memory graph for MCP clients."),
    "serve": serve,
}
