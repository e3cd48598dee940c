"""An MCP session: what a client may ask of any table of tools.

Speaks every released revision: 2024-11-05 to 2025-11-25 after an ``initialize`` handshake, and the stateless
2026-07-28, where each request carries its version (https://modelcontextprotocol.io/specification).
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from agent_memory.domain.bounds import replace_surrogates
from agent_memory.errors import AgentMemoryError, InvalidInput, MalformedParameters, shorten
from agent_memory.mcp.wire import NotJson, Wire
from agent_memory.mcp.workers import Workers

log = logging.getLogger(__name__)

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS: Final = ("2026-07-28",)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
UNSUPPORTED_VERSION: Final = -32022

Reply: TypeAlias = Callable[[object], None]
"""Sends one reply, or with ``None`` says that there is none."""

_META: Final = "io.modelcontextprotocol/"
_LIST_TTL_MS: Final = 3_600_000


class ToolFailed(Exception):
    """A call whose result is the message, with ``isError``."""


class Tool(NamedTuple):
    """One tool: how it is listed, and the function from its arguments to the texts of its result.

    ``call`` gets the arguments as the client sent them. It raises :class:`ToolFailed` or
    :class:`~agent_memory.errors.MalformedParameters` for a result with ``isError``; any other
    ``AgentMemoryError`` becomes a JSON-RPC error with that class's code.
    """

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool
    destructive: bool
    idempotent: bool
    call: Callable[[Any], Sequence[str]]

    def listed(self) -> dict[str, Any]:
        """The entry of ``tools/list``."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
                "openWorldHint": False,
            },
        }


class Identity(NamedTuple):
    """How a server introduces itself."""

    name: str
    title: str
    version: str
    instructions: str

    def server_info(self) -> dict[str, str]:
        """The ``serverInfo`` object."""
        return {"name": self.name, "title": self.title, "version": self.version}


class _Refused(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Session:
    """Serves one client over one wire until the client closes it."""

    def __init__(self, wire: Wire, identity: Identity, tools: Sequence[Tool]) -> None:
        self._wire = wire
        self._identity = identity
        self._tools = {tool.name: tool for tool in tools}
        self._workers = Workers()
        self._lock = threading.Lock()
        self._cancelled: set[str] = set()
        self._running: set[str] = set()
        self.answered = threading.Event()
        """Set once the first reply is out."""

    def run(self) -> None:
        """Answer until the stream ends. Calls may still be running then."""
        for message in self._wire.messages():
            if isinstance(message, list) and message:
                _Batch(self, message).start()
            else:
                self._receive(message, self._reply)

    def wait(self, seconds: float) -> bool:
        """Wait for running calls to be answered; False when ``seconds`` passed before."""
        return self._workers.wait(seconds)

    def _reply(self, reply: object) -> None:
        if reply is None:
            return
        self._wire.send(reply)
        self.answered.set()

    def _receive(self, message: Any, reply: Reply) -> None:
        """Handle one message; ``reply`` is called exactly once, with ``None`` where nothing is to be sent."""
        if isinstance(message, NotJson):
            log.warning("a message could not be read: %s", message)
            reply(_failure(None, PARSE_ERROR, f"Parse error: {message}"))
        elif not isinstance(message, dict) or ("method" not in message and "id" not in message):
            reply(_failure(None, INVALID_REQUEST, "Invalid request: expected a JSON-RPC request object"))
        elif "id" not in message:
            self._notified(message)
            reply(None)
        elif "method" not in message:
            reply(None)  # an answer, but this server asks nothing
        elif not isinstance(message["method"], str) or not _usable_id(message["id"]):
            reply(
                _failure(None, INVALID_REQUEST, "Invalid request: id must be a string or an integer, method a string")
            )
        else:
            self._requested(message, reply)

    def _notified(self, message: dict[str, Any]) -> None:
        if message["method"] != "notifications/cancelled":
            return
        params = message.get("params")
        key = json.dumps(params.get("requestId") if isinstance(params, dict) else None)
        with self._lock:
            if key in self._running:
                self._cancelled.add(key)

    def _requested(self, message: dict[str, Any], reply: Reply) -> None:
        request_id, method = message["id"], message["method"]
        try:
            params = message.get("params", {})
            if params is None:
                params = {}
            if not isinstance(params, dict):
                raise _Refused(INVALID_PARAMS, "Invalid params: params must be an object")
            stateless = _stateless(params)
            if method == "tools/call":
                tool = self._tool(params)
                key = json.dumps(request_id)
                with self._lock:
                    self._running.add(key)
                self._workers.submit(lambda: self._call(tool, params, request_id, key, reply, stateless=stateless))
                return
            result = self._answer(method, params, stateless=stateless)
        except _Refused as refused:
            reply({"jsonrpc": "2.0", "id": request_id, "error": refused.error})
        else:
            reply({"jsonrpc": "2.0", "id": request_id, "result": result})

    def _answer(self, method: str, params: dict[str, Any], *, stateless: bool) -> dict[str, Any]:
        if method == "initialize":
            wanted = params.get("protocolVersion")
            return {
                "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
                "capabilities": {"tools": {}},
                "serverInfo": self._identity.server_info(),
                "instructions": self._identity.instructions,
            }
        if method == "ping":
            return self._completed({}, stateless=stateless)
        if method == "tools/list":
            listed = {"tools": [tool.listed() for tool in self._tools.values()]}
            return self._completed(listed, stateless=stateless, cacheable=True)
        if method == "server/discover":
            discovered = {
                "supportedVersions": list(STATELESS_VERSIONS),
                "capabilities": {"tools": {}},
                "instructions": self._identity.instructions,
            }
            return self._completed(discovered, stateless=True, cacheable=True)
        raise _Refused(METHOD_NOT_FOUND, f"Method not found: {method}")

    def _completed(self, result: dict[str, Any], *, stateless: bool, cacheable: bool = False) -> dict[str, Any]:
        """``result`` with the members that the stateless revision adds."""
        if not stateless:
            return result
        added: dict[str, Any] = {
            "resultType": "complete",
            "_meta": {f"{_META}serverInfo": self._identity.server_info()},
        }
        if cacheable:
            added |= {"ttlMs": _LIST_TTL_MS, "cacheScope": "public"}
        return {**result, **added}

    def _tool(self, params: dict[str, Any]) -> Tool:
        name = params.get("name")
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise _Refused(
                INVALID_PARAMS, f"tool not found: {shorten(repr(name))} (expected one of {', '.join(self._tools)})"
            )
        return tool

    def _call(
        self,
        tool: Tool,
        params: dict[str, Any],
        request_id: Any,
        key: str,
        reply: Reply,
        *,
        stateless: bool,
    ) -> None:
        answer = self._outcome(tool, params.get("arguments"), stateless=stateless)
        with self._lock:
            self._running.discard(key)
            cancelled = key in self._cancelled
            self._cancelled.discard(key)
        reply(None if cancelled else {"jsonrpc": "2.0", "id": request_id, **answer})

    def _outcome(self, tool: Tool, arguments: Any, *, stateless: bool) -> dict[str, Any]:
        try:
            texts, failed = tool.call(arguments), False
        except (MalformedParameters, ToolFailed) as error:
            texts, failed = [str(error)], True
        except AgentMemoryError as error:
            if not isinstance(error, InvalidInput):
                log.error("%s failed: %s", tool.name, error)
            return {"error": {"code": error.jsonrpc_code, "message": str(error)}}
        except Exception:  # whatever a tool does, the server answers and lives on
            log.exception("%s failed unexpectedly", tool.name)
            return {"error": {"code": INTERNAL_ERROR, "message": f"{tool.name} failed (details are in the server log)"}}
        content = [{"type": "text", "text": text} for text in texts]
        return {"result": self._completed({"content": content, "isError": failed}, stateless=stateless)}


class _Batch:
    """A JSON-RPC batch (revision 2025-03-26): one array of replies once all are there."""

    def __init__(self, session: Session, messages: Sequence[Any]) -> None:
        self._session = session
        self._messages = messages
        self._lock = threading.Lock()
        self._missing = len(messages)
        self._replies: list[object] = []

    def start(self) -> None:
        for message in self._messages:
            self._session._receive(message, self._collect)

    def _collect(self, reply: object) -> None:
        with self._lock:
            self._missing -= 1
            if reply is not None:
                self._replies.append(reply)
            complete = self._missing == 0
        if complete and self._replies:
            self._session._reply(self._replies)


def _stateless(params: dict[str, Any]) -> bool:
    """Whether the request names the stateless revision.

    Raises:
        _Refused: It names a revision that this server cannot serve per request.
    """
    meta = params.get("_meta")
    version = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
    if version is None or version in HANDSHAKE_VERSIONS:
        return False
    if version not in STATELESS_VERSIONS:
        supported = [*HANDSHAKE_VERSIONS, *STATELESS_VERSIONS]
        raise _Refused(
            UNSUPPORTED_VERSION,
            f"Unsupported protocol version: {version}",
            {"supported": supported, "requested": str(version)},
        )
    return True


def _usable_id(value: Any) -> bool:
    if isinstance(value, str):
        # An id that UTF-8 cannot hold could not be echoed.
        return value.isascii() or replace_surrogates(value) == value
    return isinstance(value, int) and not isinstance(value, bool)


def _failure(request_id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
