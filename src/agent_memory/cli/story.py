"""The demo: two servers on one file, spoken to in real JSON-RPC."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click

import agent_memory
from agent_memory.app import system_clock
from agent_memory.errors import InvalidSetting

_DAY = 86_400


class Agent:
    """An MCP client with a server process of its own."""

    def __init__(self, name: str, db: Path) -> None:
        self._name = name
        self._number = 0
        self._server = subprocess.Popen(
            [sys.executable, "-m", "agent_memory", "--db", str(db), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        self._request("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    @property
    def process(self) -> int:
        """The server's process id."""
        return self._server.pid

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool, show the exchange, and return what its text holds."""
        click.secho(f"\n{self._name} > {tool} {json.dumps(arguments, ensure_ascii=False)}", bold=True)
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        text = result["content"][0]["text"]
        click.echo(f"{' ' * len(self._name)} < {text}")
        return json.loads(text)

    def _request(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._server.stdout is not None
        reply = json.loads(self._server.stdout.readline())
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message).encode() + b"\n")
        self._server.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.communicate()


def play(keep: str | None) -> int:
    """Tell the story on a database of its own; with ``keep``, a new file that stays."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="agent-memory-demo-") as directory:
            _story(Path(directory) / "memory.db")
        return 0
    path = Path(keep).expanduser().absolute()
    if path.exists():
        raise InvalidSetting(f"--keep must name a new file (got {str(path)!r}, which exists)")
    _story(path)
    click.echo(f"\nThe memory stays in {path}")
    return 0


def _story(db: Path) -> None:
    with Agent("planner", db) as planner, Agent("coder", db) as coder:
        click.echo(f"Two agents, each with a server of its own (processes {planner.process} and {coder.process}), ")
        click.echo(f"share one file: {db}")
        _say("The planner stores a decision and what it depends on.")
        decision = planner.call(
            "memory_store",
            content="We keep all state in SQLite, in WAL mode, because agents run side by side.",
            type="DECISION",
            tags=["storage"],
            scope="shop",
        )
        todo = planner.call("memory_store", content="Try the importer on a large file.", type="TODO", scope="shop")
        _say("The coder, another process, asks in its own words.")
        coder.call("memory_search", query="which database do we use?")
        _say("The coder learns more and changes the decision in place: its id stays.")
        coder.call(
            "memory_update",
            id=decision,
            content="We keep all state in SQLite 3.54, in WAL mode, because agents run side by side.",
        )
        _say("It stores an error it met and links it to the decision that caused it.")
        error = coder.call(
            "memory_store", content="Copying the database without its -wal file lost rows.", type="ERROR", scope="shop"
        )
        coder.call("memory_link", from_id=error, to_id=decision, kind="caused_by")
        _say("The planner sees the relation from its own side.")
        planner.call("memory_search", query="SQLite WAL", limit=1, expand_links=True)
        _say("What is wrong is forgotten, with its links; an unknown id is an answer, not an error.")
        planner.call("memory_forget", id=todo)
        planner.call("memory_forget", id=todo)
    _say("Decay ranks and never deletes. The same file, read now and at later dates:")
    _fading(db)
    click.echo("\nNow give it to your agent: agent-memory config claude-code")


def _fading(db: Path) -> None:
    now = system_clock()
    click.echo(f"{'':>10}  " + "  ".join(f"in {days:>3} days" for days in (0, 30, 180, 365)))
    scores: dict[str, list[float]] = {}
    for days in (0, 30, 180, 365):
        with agent_memory.open(db, clock=functools.partial(int, now + days * _DAY)) as memory:
            for found in memory.list():
                scores.setdefault(found.type.value, []).append(found.decay_score)
    for kind, values in scores.items():
        click.echo(f"{kind:>10}  " + "  ".join(f"{value:>11.4f}" for value in values))
    click.echo("A DECISION is pinned and fades six times slower than an ERROR; neither is ever removed by it.")


def _say(text: str) -> None:
    click.secho(f"\n# {text}", fg="cyan")
