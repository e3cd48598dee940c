"""Rewrite the generated blocks of the documentation.

    .venv/bin/python docs/generate.py

A block stands between ``<!-- generated: NAME -->`` and ``<!-- end generated -->``. ``tests/test_docs.py`` fails
when a page differs from what this program would write.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import click
from click.testing import CliRunner

from agent_memory.cli.root import root
from agent_memory.mcp.session import Tool
from agent_memory.mcp.tools import tools
from agent_memory.rest.routes import Operation, operations
from agent_memory.service.memory import AgentMemory

DOCS: Final = Path(__file__).parent
_BLOCK: Final = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end generated -->)", re.DOTALL)
_HELP_WIDTH: Final = 98


def command_names() -> list[str]:
    """The commands, in the order of the help page."""
    return root.list_commands(click.Context(root))


def listed_tools() -> list[Tool]:
    """The tools, in the order of ``tools/list``. They are described, not called, so they need no memory."""
    return tools(cast(AgentMemory, None))


def help_pages() -> str:
    """The output of ``--help`` for the program and each command."""
    pages = [("agent-memory", []), *((f"agent-memory {name}", [name]) for name in command_names())]
    return "\n".join(f"## {title}\n\n```text\n{_help(arguments)}```\n" for title, arguments in pages)


def tool_tables() -> str:
    """Each tool with its hints, its description and a table of its parameters."""
    return "\n".join(_tool(tool) for tool in listed_tools())


def route_table() -> str:
    """Each route with what it takes and answers."""
    rows = []
    for operation in listed_operations():
        schema = operation.body or operation.query or {"properties": {}, "required": []}
        names = [f"`{name}`" if name in schema["required"] else f"`{name}`?" for name in schema["properties"]]
        where = "body" if operation.body else "query"
        taken = f"{where}: {', '.join(names)}" if names else "-"
        statuses = ", ".join(str(status) for status in sorted(operation.answers))
        rows.append(f"| `{operation.method} {operation.path}` | {operation.summary} | {taken} | {statuses} |")
    return "\n".join(["| route | does | takes (? may be left out) | answers |", "|---|---|---|---|", *rows])


def listed_operations() -> list[Operation]:
    """The routes, in the order of the OpenAPI document. They are described, not called, so they need no memory."""
    return operations(cast(AgentMemory, None))


def pages() -> dict[Path, str]:
    """Each page that holds a generated block, with its text as it should be."""
    blocks: Mapping[str, Callable[[], str]] = {
        "commands": help_pages,
        "routes": route_table,
        "tools": tool_tables,
    }
    wanted = {}
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if _BLOCK.search(text):
            wanted[page] = _BLOCK.sub(lambda block: f"{block[1]}\n{blocks[block[2]]()}\n{block[3]}", text)
    return wanted


def main() -> int:
    """Write the pages that changed and name them."""
    for page, text in pages().items():
        if page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            sys.stdout.write(f"rewrote {page}\n")
    return 0


def _help(arguments: list[str]) -> str:
    result = CliRunner().invoke(
        root, [*arguments, "--help"], prog_name="agent-memory", terminal_width=_HELP_WIDTH, catch_exceptions=False
    )
    return "".join(f"{line.rstrip()}\n" for line in result.output.splitlines())


def _tool(tool: Tool) -> str:
    hints = [
        "reads only" if tool.read_only else "writes",
        *(["destructive"] if tool.destructive else []),
        *(["idempotent"] if tool.idempotent else []),
    ]
    schema = tool.input_schema
    rows = [
        f"| `{name}` | {_kind(rule)} | {'yes' if name in schema['required'] else 'no'} | {rule['description']} |"
        for name, rule in schema["properties"].items()
    ]
    table = "\n".join(["| parameter | type | required | description |", "|---|---|---|---|", *rows])
    return f"### {tool.name}\n\nHints: {', '.join(hints)}.\n\n> {tool.description}\n\n{table}\n"


def _kind(rule: Mapping[str, Any]) -> str:
    if rule["type"] == "array":
        return f"array of {rule['items']['type']}"
    if "enum" in rule:
        return f"{rule['type']}: " + ", ".join(f"`{value}`" for value in rule["enum"])
    if "minimum" in rule:
        return f"{rule['type']}, {rule['minimum']} to {rule['maximum']}"
    return str(rule["type"])


if __name__ == "__main__":
    sys.exit(main())
