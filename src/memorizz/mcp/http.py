"""The server for many clients over Streamable HTTP, on the official SDK.

Imported only when it is served: the SDK is an extra of the distribution.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import anyio.to_thread
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent
from mcp.types import Tool as ListedTool
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route

from agent_memory._version import __version__
from agent_memory.errors import AgentMemoryError
from agent_memory.mcp.session import INVALID_PARAMS, Tool, ToolFailed
from agent_memory.web.address import Address
from agent_memory.web.server import bound, run
from memorizz.mcp.access import READ, WRITE, Principal
from memorizz.mcp.settings import ServerSettings
from memorizz.mcp.tools import INSTRUCTIONS, tools
from memorizz.providers.contract import Provider
from memorizz.serving import Tokens

log = logging.getLogger(__name__)

# The call around an archive of the largest size.
_WRAPPER_BYTES: Final = 65_536
_ANONYMOUS: Final = Principal(None, frozenset({READ, WRITE}))


def serve(provider: Provider, settings: ServerSettings) -> None:
    """Serve until a signal.

    Raises:
        OpenError: The address cannot be listened on.
    """
    with bound(settings.address, flag="--port") as (listener, real):
        if settings.policy.agents is not None and not settings.policy.agents:
            log.warning("records of agents are left out of every answer: name agents with --agent-id, or --all-agents")
        if settings.allow_anonymous:
            log.warning("callers without a key are served: they see and may change what belongs to no user")
        run(application(provider, settings, real), listener, f"MCP listening on http://{real}{settings.path}")
    provider.close()


def application(provider: Provider, settings: ServerSettings, address: Address) -> Starlette:
    """The ASGI application of a server that listens on ``address``."""
    manager = StreamableHTTPSessionManager(
        _server(provider, settings),
        json_response=True,
        stateless=settings.stateless,
        security_settings=_security(settings, address),
        # JSON may spell a character in six; the archive itself is measured in its canonical form.
        max_request_body_size=6 * settings.policy.max_bytes + _WRAPPER_BYTES,
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    inner = AuthContextMiddleware(_Endpoint(manager))
    endpoint = _RefuseUnknown(inner) if settings.allow_anonymous else RequireAuthMiddleware(inner, [READ])
    return Starlette(
        routes=[Route(settings.path, endpoint)],
        middleware=[Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(_Verifier(settings.keys)))],
        lifespan=lifespan,
    )


class _Endpoint:
    """The session manager as an ASGI application."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._manager.handle_request(scope, receive, send)


class _RefuseUnknown(RequireAuthMiddleware):
    """Lets callers without a token in; a token that is wrong is refused as elsewhere."""

    def __init__(self, app: Any) -> None:
        super().__init__(app, [])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if any(name == b"authorization" for name, _ in scope["headers"]):
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)


class _Verifier:
    """The API keys as the SDK asks for them."""

    def __init__(self, keys: Tokens[Principal]) -> None:
        self._keys = keys

    async def verify_token(self, token: str) -> AccessToken | None:
        """The access of the principal whose token this is."""
        found = self._keys.match(token)
        if found is None or found[1].name is None:
            return None
        principal = found[1]
        return AccessToken(token=token, client_id=found[1].name, scopes=sorted(principal.scopes))


def _caller() -> Principal:
    access = get_access_token()
    return _ANONYMOUS if access is None else Principal(access.client_id, frozenset(access.scopes))


def _server(provider: Provider, settings: ServerSettings) -> Server[Any]:
    table: Mapping[str, Tool] = {tool.name: tool for tool in tools(provider, settings.policy, _caller)}

    async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[ListedTool.model_validate(tool.listed()) for tool in table.values()])

    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        tool = table.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"tool not found: {params.name!r:.80} (expected one of {', '.join(table)})")
        texts, failed = await anyio.to_thread.run_sync(_outcome, tool, params.arguments)
        return CallToolResult(content=[TextContent(type="text", text=text) for text in texts], is_error=failed)

    return Server(
        "memorizz",
        version=__version__,
        title="Memory graph",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _outcome(tool: Tool, arguments: Any) -> tuple[list[str], bool]:
    try:
        return list(tool.call(arguments)), False
    except ToolFailed as error:
        return [str(error)], True
    except AgentMemoryError as error:
        raise MCPError(error.jsonrpc_code, str(error)) from None


def _security(settings: ServerSettings, address: Address) -> TransportSecuritySettings:
    names = ["localhost", "127.0.0.1", "[::1]", str(address).rpartition(":")[0]]
    hosts = [f"{name}:{address.port}" for name in names]
    origins = [f"http://{host}" for host in hosts]
    if settings.public_host is not None:
        hosts += [settings.public_host, f"{settings.public_host}:443"]
        origins.append(f"https://{settings.public_host}")
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
