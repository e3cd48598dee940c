"""The block that each MCP client wants in its configuration."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_memory.config import ENVIRONMENT, Settings

SERVER_NAME = "agent-memory"


@dataclass(frozen=True, slots=True)
class Launch:
    """How a client starts the server: absolute command, arguments, environment."""

    command: str
    args: tuple[str, ...]
    env: dict[str, str]

    @classmethod
    def of(cls, settings: Settings) -> Launch:
        """The launch of this very installation on the file that ``settings`` name."""
        script = Path(sys.argv[0]).absolute()
        on_path = shutil.which(SERVER_NAME)
        # A client starts the server without the environment and flags of this command.
        env = {ENVIRONMENT["db"]: str(settings.db)}
        usual = Settings(settings.db)
        for name in ("ollama_url", "sweep_secs", "strict_query", "journal"):
            if getattr(settings, name) != getattr(usual, name):
                env[ENVIRONMENT[name]] = str(getattr(settings, name))
        if script.stem == SERVER_NAME and script.exists():
            return cls(str(script), ("serve",), env)
        if on_path is not None:
            return cls(str(Path(on_path).absolute()), ("serve",), env)
        return cls(sys.executable, ("-m", "agent_memory", "serve"), env)


def _json_block(key: str, **extra: Any) -> Callable[[Launch], str]:
    def block(launch: Launch) -> str:
        server = {**extra, "command": launch.command, "args": list(launch.args), "env": launch.env}
        return json.dumps({key: {SERVER_NAME: server}}, indent=2, ensure_ascii=False)

    return block


def _codex_block(launch: Launch) -> str:
    # A JSON string without escapes beyond the basic ones is a TOML basic string as well.
    text = json.dumps
    env = "\n".join(f"{name} = {text(value)}" for name, value in launch.env.items())
    args = ", ".join(text(argument) for argument in launch.args)
    return (
        f"[mcp_servers.{SERVER_NAME}]\ncommand = {text(launch.command)}\nargs = [{args}]\n\n"
        f"[mcp_servers.{SERVER_NAME}.env]\n{env}"
    )


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client: the name people know, where its configuration is, and its form."""

    title: str
    where: str
    block: Callable[[Launch], str]


CLIENTS = {
    "claude-code": Client(
        "Claude Code", ".mcp.json in the project (or the same keys in ~/.claude.json)", _json_block("mcpServers")
    ),
    "claude-desktop": Client(
        "Claude Desktop",
        "claude_desktop_config.json (Settings > Developer > Edit Config)",
        _json_block("mcpServers"),
    ),
    "cursor": Client("Cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in the project", _json_block("mcpServers")),
    "vscode": Client("VS Code", ".vscode/mcp.json in the workspace", _json_block("servers", type="stdio")),
    "codex": Client("Codex CLI", "~/.codex/config.toml", _codex_block),
    "gemini": Client("Gemini CLI", "~/.gemini/settings.json, or .gemini/settings.json", _json_block("mcpServers")),
}
