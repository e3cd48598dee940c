"""The ways into one memory, all with the same calls: keyword arguments in, JSON values out, as the wire has them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import quote, urlencode

import agent_memory
from agent_memory.errors import InvalidInput, MalformedParameters, StorageError
from tests.support.cli import Cli, CommandFailed
from tests.support.ollama import NOBODY
from tests.support.rest import RestServer
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
    def log(self) -> str: ...
    def close(self) -> None: ...


class SdkDoor:
    """The Python package in this process."""

    def __init__(self, path: Path, ollama_url: str = NOBODY, *, sweeps: bool = False) -> None:  # noqa: ARG002
        self.path = path
        self.memory = agent_memory.open(path, ollama_url=ollama_url)
        self._log = _Kept()
        logging.getLogger("agent_memory").addHandler(self._log)

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

    def log(self) -> str:
        """What was logged so far."""
        return "\n".join(self._log.messages)

    def close(self) -> None:
        """Close the memory."""
        logging.getLogger("agent_memory").removeHandler(self._log)
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


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


class McpDoor:
    """`agent-memory serve` in a subprocess. Its background sweep has run once before the first call."""

    SWEPT = "lifecycle sweep complete"

    def __init__(self, path: Path, ollama_url: str = NOBODY, *, sweeps: bool = False) -> None:
        self.path = path
        interval = {"AGENT_MEMORY_SWEEP_SECS": "1"} if sweeps else {}
        self.server = StdioServer.fork(path, AGENT_MEMORY_OLLAMA_URL=ollama_url, **interval)
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

    def log(self) -> str:
        """What was logged so far."""
        return "\n".join(self.server.stderr)

    def close(self) -> None:
        """End the server, which has to end well."""
        assert self.server.close() == 0, self.server.stderr

    def _object(self, tool: str, arguments: Any) -> dict[str, Any]:
        value: dict[str, Any] = self.value(tool, arguments)
        return value


class RestDoor:
    """`agent-memory serve-rest` in a subprocess. Its background sweep has run once before the first call."""

    SWEPT = "lifecycle sweep complete"

    def __init__(self, path: Path, ollama_url: str = NOBODY, *, sweeps: bool = False) -> None:
        self.path = path
        interval = {"AGENT_MEMORY_SWEEP_SECS": "1"} if sweeps else {}
        self.server = RestServer(path, fork=True, AGENT_MEMORY_OLLAMA_URL=ollama_url, **interval)
        self.server.logged(self.SWEPT)

    def store(self, **arguments: Any) -> int:
        memory_id: int = self._call("POST", "/api/memories", arguments)["id"]
        return memory_id

    def search(self, **arguments: Any) -> dict[str, Any]:
        return self._object("POST", "/api/search", arguments)

    def list(self, **arguments: Any) -> list[dict[str, Any]]:
        given = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in arguments.items()
            if value is not None
        }
        found: list[dict[str, Any]] = self._call("GET", f"/api/memories?{urlencode(given)}")
        return found

    def update(self, *, id: int, **arguments: Any) -> dict[str, Any]:
        return self._object("PATCH", f"/api/memories/{id}", arguments)

    def link(self, **arguments: Any) -> dict[str, Any]:
        return self._object("POST", "/api/links", arguments)

    def unlink(self, *, from_id: int, to_id: int, kind: str) -> dict[str, Any]:
        return self._object("DELETE", f"/api/links/{from_id}/{to_id}/{quote(kind, safe='')}")

    def forget(self, *, id: int) -> dict[str, Any]:
        return self._object("DELETE", f"/api/memories/{id}")

    def sweep(self) -> None:
        """Wait until a sweep that began after this call is over; needs ``sweeps``."""
        self.server.logged(self.SWEPT, self.server.log_count(self.SWEPT) + 2)

    def log(self) -> str:
        """What was logged so far."""
        return "\n".join(self.server.stderr)

    def close(self) -> None:
        """End the daemon, which has to end well."""
        assert self.server.close() == 0, self.server.stderr

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.server.request(method, path, body)
        if answer.status == 422:
            raise DoorError(answer.text, "malformed")
        if answer.status in (400, 500):
            malformed = answer.error.startswith("failed to deserialize")
            refused: Kind = "malformed" if malformed else "invalid"
            raise DoorError(answer.error, "storage" if answer.status == 500 else refused)
        assert answer.status in (200, 201, 404), answer
        return answer.json

    def _object(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        value: dict[str, Any] = self._call(method, path, body)
        return value


class CliDoor:
    """`agent-memory` with ``--json``, a new process for each call."""

    def __init__(self, path: Path, ollama_url: str = NOBODY, *, sweeps: bool = False) -> None:  # noqa: ARG002
        self.path = path
        self._cli = Cli(path, ollama_url)
        self._call("stats")

    def store(self, *, content: str, type: str, **arguments: Any) -> int:
        memory_id: int = self._call("store", *_options(arguments), f"--type={type}", "-", stdin=content)["id"]
        return memory_id

    def search(self, *, query: str, **arguments: Any) -> dict[str, Any]:
        return self._object("search", *_options(arguments), "-", stdin=query)

    def list(self, **arguments: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._call("list", *_options(arguments))
        return found

    def update(self, *, id: int, **arguments: Any) -> dict[str, Any]:
        # The command line has no null: an empty text is the nearest to it.
        content = ["--content=-"] if "content" in arguments else []
        text = arguments.pop("content", None)
        for name in ("tags", "scope", "ttl_secs"):
            if name in arguments and arguments[name] in (None, []):
                del arguments[name]
                content.append(f"--clear-{name.removesuffix('_secs')}")
        return self._object("update", *_options(arguments), *content, "--", str(id), stdin=text or "")

    def link(self, *, from_id: int, to_id: int, kind: str) -> dict[str, Any]:
        return self._object("link", "--", str(from_id), str(to_id), kind)

    def unlink(self, *, from_id: int, to_id: int, kind: str) -> dict[str, Any]:
        return self._object("unlink", "--", str(from_id), str(to_id), kind)

    def forget(self, *, id: int) -> dict[str, Any]:
        return self._object("forget", "--", str(id))

    def sweep(self) -> None:
        """Sweep once."""
        self._call("sweep")

    def log(self) -> str:
        """What was logged so far."""
        return "\n".join(self._cli.stderr)

    def close(self) -> None:
        """Nothing is open between two calls."""

    def _call(self, name: str, *arguments: str, stdin: str = "") -> Any:
        try:
            # A line break ends the text of a person; one more keeps those that belong to it.
            return self._cli.value(name, *arguments, stdin=stdin + "\n")
        except CommandFailed as error:
            kind: Kind = "storage" if error.code == 1 else "invalid"
            raise DoorError(error.message, kind) from error

    def _object(self, name: str, *arguments: str, stdin: str = "") -> dict[str, Any]:
        value: dict[str, Any] = self._call(name, *arguments, stdin=stdin)
        return value


DOORS: dict[str, Any] = {"sdk": SdkDoor, "mcp": McpDoor, "rest": RestDoor, "cli": CliDoor}
"""Every door of the contract tests, by name. A new one joins here."""


def _without_nulls(arguments: dict[str, Any]) -> dict[str, Any]:
    """On store, search and list a null is an absent argument."""
    return {name: value for name, value in arguments.items() if value is not None}


def _options(arguments: dict[str, Any]) -> list[str]:
    """Each argument as the option of that name; a list as one option for each item."""
    options = []
    for name, value in arguments.items():
        option = f"--{name.replace('_', '-')}"
        if name == "tags":
            options += [f"--tag={tag}" for tag in value or ()]
        elif value is True:
            options.append(option)
        elif value is not None and value is not False:
            options.append(f"{option}={value}")
    return options
