"""Rewrite the generated blocks of the documentation.

    .venv/bin/python docs/generate.py

A block stands between ``<!-- generated: NAME -->`` and ``<!-- end generated -->``. ``tests/test_docs.py`` fails
when a page differs from what this program would write.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, cast

import click
import msgspec
from click.testing import CliRunner

import memorizz as memorizz_package
from agent_memory.cli.root import root
from agent_memory.mcp.session import Tool
from agent_memory.mcp.tools import tools
from agent_memory.rest.routes import Operation, operations
from agent_memory.service.memory import AgentMemory
from memorizz.backends import BACKENDS
from memorizz.cli.root import make_root

DOCS: Final = Path(__file__).parent
memorizz: Final = make_root()
_BLOCK: Final = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end generated -->)", re.DOTALL)
_HELP_WIDTH: Final = 98
# Values that cannot say what they are.
_SAID: Final = {
    "UNSET": "The value of an argument that was not given, where `None` means something else.",
    "__version__": "The version of the distribution, as text.",
}
_TYPES: Final = {
    "Named": "text or object or null",
    "Json": "object",
    "None": "null",
    "str": "text",
    "int": "whole number",
    "bool": "true or false",
}


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


def provider_table() -> str:
    """Each backend with what it promises, and the settings that choose it."""
    rows = [
        f"| {_linked(name)} | {backend.about} | {backend.atomic} | {backend.snapshot} | "
        f"{', '.join(f'`{option.variable}`' for option in backend.options)} | "
        f"{f'`{backend.extra}`' if backend.extra else 'none'} |"
        for name, backend in BACKENDS.items()
    ]
    header = "| backend | keeps it in | a restore is all or nothing | an export is of one moment | settings | extra |"
    return "\n".join([header, "|---|---|---|---|---|---|", *rows])


def _linked(name: str) -> str:
    page = DOCS / "providers" / f"{name}.md"
    return f"[{name}](providers/{name}.md)" if page.exists() else name


def graph_names() -> str:
    """Each public name of ``memorizz``: what it is, how it is called, its members."""
    return "\n".join(_graph_name(name, getattr(memorizz_package, name)) for name in memorizz_package.__all__)


def _graph_name(name: str, thing: Any) -> str:
    parts = [f"### {name}", _SAID.get(name) or _first_sentence(thing)]
    if inspect.isfunction(thing) or (inspect.isclass(thing) and _is_made(thing)):
        parts.append(f"`{name}{_signature(thing)}`")
    if inspect.isclass(thing):
        parts += [table for table in (_members(thing), _methods(thing)) if table]
    return "\n\n".join(parts) + "\n"


def _is_made(kind: type) -> bool:
    """Whether people make objects of a class from arguments; those of an agent are in a table of their own."""
    if issubclass(kind, Exception | Enum | msgspec.Struct):
        return False
    return bool(inspect.signature(kind).parameters)


def _members(kind: type) -> str:
    """The members of an enumeration, or the fields of a structure."""
    if issubclass(kind, Enum):
        rows = [f"| `{name}` | `{member.value}` |" for name, member in kind.__members__.items()]
        return "\n".join(["| name | store |", "|---|---|", *rows])
    if issubclass(kind, msgspec.Struct):
        fields = [
            f"| `{field.name}` | {_annotation(kind.__annotations__[field.name])} | {_default(field)} |"
            for field in msgspec.structs.fields(kind)
        ]
        return "\n".join(["| field | type | if it is left out |", "|---|---|---|", *fields])
    return ""


def _methods(kind: type) -> str:
    """A class's methods of ours; what the base of the providers says of them is not said again."""
    base = memorizz_package.MemoryProvider
    told = vars(kind) if issubclass(kind, base) and kind is not base else dir(kind)
    rows = [
        f"| `{name}{_signature(member)}` | {_first_sentence(member)} |"
        for name, member in inspect.getmembers(kind, inspect.isroutine)
        if not name.startswith("_") and name in told and str(getattr(member, "__module__", "")).startswith("memorizz")
    ]
    return "\n".join(["| method | does |", "|---|---|", *rows]) if rows else ""


def _annotation(text: str) -> str:
    """A type as people say it."""
    for kind, words in _TYPES.items():
        text = re.sub(rf"\b{kind}\b", words, text)
    text = text.replace("dict[text, text]", "object")
    return re.sub(r"list\[([^]]*)\]", r"list of (\1)", text).replace(" | ", " or ")


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is not msgspec.NODEFAULT:
        return f"`{json.dumps(field.default)}`"
    return "it has to be given" if field.required else "empty"


def _first_sentence(thing: object) -> str:
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    plain = re.sub(r":(?:class|func|meth|data):`~?([^`]*)`", r"`\1`", text).replace("``", "`").replace("|", "\\|")
    assert plain, f"{thing!r} says nothing of itself"
    return plain


def _signature(called: Callable[..., Any]) -> str:
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(called).parameters.values()
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
        "providers": provider_table,
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
