"""The ways into one memory, all with the same calls: keyword arguments in, JSON values out, as the wire has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, Protocol

import agent_memory
from agent_memory.errors import InvalidInput, MalformedParameters, StorageError
from tests.support.ollama import NOBODY
from tests.support.stdio import StdioServer

Kind = Literal["invalid", "malformed", "storage"]


class DoorError(Exception):
    """The operation was refused. ``kind``: a value out of its rule, parameters of another shape, or the database."""

    def __init__(self, message: str, kind: Kind) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind


class Door(Protocol):
    """One way in. Arguments are those of the contract, ``type`` and ``ttl_secs`` and so on.

    One that is opened with ``sweeps`` can be told to :meth:`sweep`.
    """

    path: Path

    def store(self, **arguments: Any) -> int: ...
    def search(self, **arguments: Any) -> dict[str, Any]: ...
    def list(self, **arguments: Any) -> list[dict[str, Any]]: ...
    def update(self, **arguments: Any) -> dict[str, Any]: ...
    def link(self, **arguments: Any) -> dict[str, Any]: ...
    def unlink(self, **arguments: Any) -> dict[str, Any]: ...
    def forget(self, **arguments: Any) -> dict[str, Any]: ...
    def sweep(self) -> None: ...
    def close(self) -> None: ...


class SdkDoor:
    """The Python package in this process."""

    def __init__(self, path: Path, ollama_url: str = NOBODY, *, sweeps: bool = False) -> None:  # noqa: ARG002
        self.path = path
        self.memory = agent_memory.open(path, ollama_url=ollama_url)

    def store(self, **arguments: Any) -> int:
        memory_id: int = self._call(self.memory.store, _without_nulls(arguments))
        return memory_id

    def search(self, **arguments: Any) -> dict[str, Any]:
        return self._object(self._call(self.memory.search, _without_nulls(arguments)))

    def list(self, **arguments: Any) -> list[dict[str, Any]]:
        return [memory.to_dict() for memory in self._call(self.memory.list, _without_nulls(arguments))]

    def update(self, **arguments: Any) -> dict[str, Any]:
        return self._object(self._call(self.memory.update, arguments))

    def link(self, **arguments: Any) -> dict[str, Any]:
        return self._object(self._call(self.memory.link, arguments))

    def unlink(self, **arguments: Any) -> dict[str, Any]:
        return self._object(self._call(self.memory.unlink, arguments))

    def forget(self, **arguments: Any) -> dict[str, Any]:
        return self._object(self._call(self.memory.forget, arguments))

    def sweep(self) -> None:
        """Sweep once."""
        self.memory.sweep()

    def close(self) -> None:
        """Close the memory."""
        self.memory.close()

    @staticmethod
    def _object(result: Any) -> dict[str, Any]:
        value: dict[str, Any] = result.to_dict()
        return value

    @staticmethod
    def _call(operation: Any, arguments: dict[str, Any]) -> Any:
        try:
            return operation(**arguments)
        except InvalidInput as error:
            raise DoorError(str(error), "invalid") from error
        except (MalformedParameters, TypeError) as error:
            raise DoorError(str(error), "malformed") from error
        except StorageError as error:
            raise DoorError(str(error), "storage") from error


class McpDoor:
    """`agent-memory serve` in a subprocess. Its background sweep has run once before the first call."""

    SWEPT = "lifecycle sweep complete"

    def __init__(self, path: Path, ollama_url: str = NOBODY, *, sweeps: bool = False) -> None:
        self.path = path
        interval = {"AGENT_MEMORY_SWEEP_SECS": "1"} if sweeps else {}
        self.server = StdioServer.serve(path, AGENT_MEMORY_OLLAMA_URL=ollama_url, **interval)
        self.server.initialize()
        self.server.logged(self.SWEPT)

    def call(self, tool: str, arguments: Any = None) -> dict[str, Any]:
        """The result of a tool; a JSON-RPC error or an ``isError`` result is raised."""
        return self.result(self.begin(tool, arguments))

    def begin(self, tool: str, arguments: Any = None) -> int:
        """Send a call without waiting, for :meth:`result`."""
        params = {"name": tool} if arguments is None else {"name": tool, "arguments": arguments}
        return self.server.begin("tools/call", params)

    def result(self, request_id: int) -> dict[str, Any]:
        """The result of a begun call."""
        reply = self.server.reply(request_id)
        if "error" in reply:
            kind: Kind = {-32602: "invalid", -32603: "storage"}[reply["error"]["code"]]  # type: ignore[assignment]
            raise DoorError(reply["error"]["message"], kind)
        result: dict[str, Any] = reply["result"]
        if result.get("isError"):
            raise DoorError(result["content"][0]["text"], "malformed")
        return result

    def value(self, tool: str, arguments: Any) -> Any:
        """The JSON value that the text of a tool's result holds."""
        return json.loads(self.call(tool, arguments)["content"][0]["text"])

    def store(self, **arguments: Any) -> int:
        text = self.call("memory_store", arguments)["content"][0]["text"]
        assert text.isdecimal(), f"not a bare id: {text!r}"
        return int(text)

    def search(self, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.value("memory_search", arguments)
        return found

    def list(self, **arguments: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.value("memory_list", arguments)
        return found

    def update(self, **arguments: Any) -> dict[str, Any]:
        return self._object("memory_update", arguments)

    def link(self, **arguments: Any) -> dict[str, Any]:
        return self._object("memory_link", arguments)

    def unlink(self, **arguments: Any) -> dict[str, Any]:
        return self._object("memory_unlink", arguments)

    def forget(self, **arguments: Any) -> dict[str, Any]:
        return self._object("memory_forget", arguments)

    def sweep(self) -> None:
        """Wait until a sweep that began after this call is over; needs ``sweeps``."""
        # The next one to end may have begun before.
        self.server.logged(self.SWEPT, self.server.log_count(self.SWEPT) + 2)

    def close(self) -> None:
        """End the server, which has to end well."""
        assert self.server.close() == 0, self.server.stderr

    def _object(self, tool: str, arguments: Any) -> dict[str, Any]:
        value: dict[str, Any] = self.value(tool, arguments)
        return value


DOORS: dict[str, Any] = {"sdk": SdkDoor, "mcp": McpDoor}
"""Every door of the contract tests, by name. A new one joins here."""


def _without_nulls(arguments: dict[str, Any]) -> dict[str, Any]:
    """On store, search and list a null is an absent argument."""
    return {name: value for name, value in arguments.items() if value is not None}
