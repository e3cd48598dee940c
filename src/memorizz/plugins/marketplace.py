"""The marketplace on this disk that clients install the plugins from."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from agent_memory.files import make_private_directory, replacing
from memorizz.errors import ConfigurationError
from memorizz.plugins.clients import CLIENTS, MARKETPLACE

GRAPH: Final = "memorizz"
"""The plugin of the memory graph."""
TYPED: Final = "agent-memory"
"""The plugin of the typed memory."""

_RECORD: Final = "installed.json"
_SERVERS: Final = ".mcp.json"


class Record(NamedTuple):
    """What was installed: the files of the marketplace, and the plugins of each client.

    ``remembered`` says that installing wrote a hosted memory into the file of settings.
    """

    files: list[str]
    clients: dict[str, list[str]]
    remembered: bool = False

    @classmethod
    def read(cls, directory: Path) -> Record:
        """The record of a marketplace; an empty one where there is none.

        Raises:
            ConfigurationError: It cannot be understood.
        """
        file = directory / _RECORD
        try:
            found = json.loads(file.read_bytes())
            clients = {str(name): list(map(str, plugins)) for name, plugins in found["clients"].items()}
            record = cls(list(map(str, found["files"])), clients, found["remembered"] is True)
        except FileNotFoundError:
            return cls([], {})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ConfigurationError(f"{file} does not say what is installed; move {directory} away") from None
        if any(PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts for name in record.files):
            raise ConfigurationError(f"{file} names files elsewhere; move {directory} away")
        return record

    def erase(self, directory: Path) -> None:
        """Delete the marketplace: what the record names, and the record.

        Raises:
            OSError: A file cannot be deleted.
        """
        if self.files:
            delete(directory, [*self.files, _RECORD])

    def write(self, directory: Path) -> None:
        """Keep the record.

        Raises:
            OSError: It cannot be written.
        """
        ordered = self._replace(files=sorted(self.files), clients=dict(sorted(self.clients.items())))
        _write(directory / _RECORD, _json(ordered._asdict()))


def contents(remote_url: str | None, token_env: str) -> dict[str, bytes]:
    """The files of the marketplace by their path in it: both plugins for each client."""
    made: dict[str, bytes] = {}
    bundles = files("memorizz") / "plugins" / "bundles"
    for client, known in CLIENTS.items():
        listed = []
        for plugin, bundle in ((GRAPH, client), (TYPED, f"{client}-{TYPED}")):
            place = f"plugins/{client}/{plugin}"
            for name, content in _walk(bundles / bundle):
                made[f"{place}/{name}"] = content
            servers = json.loads(made[f"{place}/{_SERVERS}"])["mcpServers"]
            server = servers[plugin]
            if plugin == GRAPH and remote_url is not None:
                server = _remote_server(client, remote_url, token_env)
            else:
                server = _started_here(server, plugin)
            made[f"{place}/{_SERVERS}"] = _json({"mcpServers": {plugin: server}})
            listed.append(_listed(client, made, place))
        made[known.manifest] = _json(_manifest(client, listed))
    return made


def _walk(directory: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.read_bytes()


def _manifest(client: str, listed: list[dict[str, Any]]) -> dict[str, Any]:
    if client == "codex":
        return {"name": MARKETPLACE, "interface": {"displayName": "Agent memory"}, "plugins": listed}
    return {
        "name": MARKETPLACE,
        "owner": {"name": "The agent-memory maintainers"},
        "metadata": {"description": "Memory for coding agents, from this machine."},
        "plugins": listed,
    }


def _listed(client: str, made: Mapping[str, bytes], place: str) -> dict[str, Any]:
    if client == "codex":
        about = json.loads(made[f"{place}/.codex-plugin/plugin.json"])
        return {
            "name": about["name"],
            "source": {"source": "local", "path": f"./{place}"},
            "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
            "category": about["interface"]["category"],
        }
    about = json.loads(made[f"{place}/.claude-plugin/plugin.json"])
    return {"name": about["name"], "source": f"./{place}", "description": about["description"]}


def _started_here(server: Mapping[str, Any], program: str) -> dict[str, Any]:
    """The entry of a server that the client starts, by the absolute command of this installation."""
    script = Path(sys.argv[0]).absolute()
    if script.stem != program or not script.is_file():
        script = Path(sys.executable).with_name(program)
    if script.is_file():
        return {**server, "command": str(script)}
    module = ["-m", program.replace("-", "_")]
    return {**server, "command": sys.executable, "args": [*module, *server["args"]]}


def _remote_server(client: str, url: str, token_env: str) -> dict[str, Any]:
    if client == "codex":
        return {"type": "http", "url": url, "bearer_token_env_var": token_env}
    return {"type": "http", "url": url, "headers": {"Authorization": f"Bearer ${{{token_env}}}"}}


def build(directory: Path, wanted: Mapping[str, bytes], record: Record) -> None:
    """Let the marketplace consist of the files that are wanted; what is as wanted already is not touched.

    Raises:
        ConfigurationError: Something that is not from here is in the place of a file.
        OSError: It cannot be written.
    """
    foreign = [name for name in wanted if name not in record.files and os.path.lexists(directory / name)]
    if foreign:
        raise ConfigurationError(f"{directory / foreign[0]} is not from this command; move {directory} away")
    make_private_directory(directory)
    # Before the files: what is written before a crash must be known as ours afterwards.
    record._replace(files=[*{*record.files, *wanted}]).write(directory)
    for name, content in wanted.items():
        _write(directory / name, content)
    delete(directory, [name for name in record.files if name not in wanted])


def _write(file: Path, content: bytes) -> None:
    try:
        if file.read_bytes() == content:
            return
    except OSError:
        pass  # it is not there, or is to be replaced
    make_private_directory(file.parent)
    with replacing(file, "plugin") as written:
        written.write(content)


def delete(directory: Path, names: Iterable[str]) -> None:
    """Delete files of the marketplace, and the directories that are empty without them.

    Raises:
        OSError: One cannot be deleted.
    """
    names = list(names)
    for name in names:
        (directory / name).unlink(missing_ok=True)
    for folder in sorted({parent for name in names for parent in (directory / name).parents}, reverse=True):
        if folder.is_relative_to(directory) and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
