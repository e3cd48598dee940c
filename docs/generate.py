"""Rewrite the generated blocks of the documentation.

    .venv/bin/python docs/generate.py

A block stands between ``<!-- generated: NAME -->`` and ``<!-- end generated -->``. ``tests/test_docs.py`` fails
when a page differs from what this program would write.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import click
from click.testing import CliRunner

import memorizz as memorizz_package
from agent_memory.cli.root import root
from agent_memory.mcp.session import Tool
from agent_memory.mcp.tools import tools
from agent_memory.rest.routes import Operation, operations
from agent_memory.service.memory import AgentMemory
from memorizz.cli.root import make_root

DOCS: Final = Path(__file__).parent
memorizz: Final = make_root()
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


def graph_help_pages() -> str:
    """The output of ``--help`` for `memorizz` and each of its commands."""
    shown = [f"## memorizz\n\n```text\n{_help([], memorizz, 'memorizz')}```\n"]
    for arguments in graph_commands():
        page = _help(arguments, memorizz, "memorizz")
        shown.append(f"## memorizz {' '.join(arguments)}\n\n```text\n{page}```\n")
    return "\n".join(shown)


def graph_commands() -> list[list[str]]:
    """The commands of `memorizz`, each as its arguments."""
    found: list[list[str]] = []
    context = click.Context(memorizz)
    for name in memorizz.list_commands(context):
        command = memorizz.get_command(context, name)
        inner = command.list_commands(context) if isinstance(command, click.Group) else []
        found += [[name, each] for each in inner] or [[name]]
    return found


def graph_names() -> str:
    """Each public name of ``memorizz`` with what it is, and the methods of classes with their parameters."""
    shown = []
    for name in memorizz_package.__all__:
        thing = getattr(memorizz_package, name)
        shown.append(f"### {name}\n\n{_first_sentence(thing)}\n")
        if inspect.isfunction(thing):
            shown.append(f"`{name}{_signature(thing)}`\n")
        methods = [
            f"| `{method}{_signature(member)}` | {_first_sentence(member)} |"
            for method, member in inspect.getmembers(thing, inspect.isfunction)
            if inspect.isclass(thing) and not method.startswith("_") and member.__module__.startswith("memorizz")
        ]
        if methods:
            shown.append("\n".join(["| method | does |", "|---|---|", *methods]) + "\n")
    return "\n".join(shown)


def _first_sentence(thing: object) -> str:
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split()) if not isinstance(thing, str) else ""
    plain = re.sub(r":(?:class|func|meth|data):`~?([^`]*)`", r"`\1`", text).replace("``", "`").replace("|", "\\|")
    return plain if plain else "A value."


def _signature(function: Callable[..., Any]) -> str:
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    ]
    text = str(inspect.Signature(parameters))
    return re.sub(r"<Unset\.UNSET[^>]*>", "UNSET", re.sub(r"<function (\w+) at [^>]*>", r"\1", text))


def pages() -> dict[Path, str]:
    """Each page that holds a generated block, with its text as it should be."""
    blocks: Mapping[str, Callable[[], str]] = {
        "commands": help_pages,
        "memorizz": graph_help_pages,
        "names": graph_names,
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


def _help(arguments: list[str], command: click.Command = root, name: str = "agent-memory") -> str:
    result = CliRunner().invoke(
        command, [*arguments, "--help"], prog_name=name, terminal_width=_HELP_WIDTH, catch_exceptions=False
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
