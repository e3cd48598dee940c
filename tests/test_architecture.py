"""Who may import whom: the table of docs/internals.md, enforced."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Container, Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"

BASE = {"errors", "domain", "_version"}
ROOMS = {
    "_version": set(),
    "errors": set(),
    "domain": BASE,
    "config": BASE,
    "files": BASE,
    "logs": set(),
    "store": BASE | {"files"},
    "embed": BASE,
    "formats": BASE,
    "service": BASE | {"formats"},
    "app": BASE | {"config", "store", "embed", "service"},
    "doctor": BASE | {"config", "store", "embed", "service", "app"},
    "operations": BASE,
    "mcp": BASE | {"config", "logs", "service", "app", "operations"},
    "web": {"errors"},
    "rest": BASE | {"config", "logs", "service", "app", "operations", "web"},
    "cli": BASE | {"config", "files", "logs", "service", "app", "doctor", "package"},
    "package": BASE | {"config", "service", "app"},
    "__main__": {"errors", "config", "logs", "mcp", "cli"},
}
"""For each room of ``agent_memory`` the rooms it may import beside itself; ``package`` is ``agent_memory`` itself."""

# The command line starts the other doors.
ALLOWED_FILES = {("cli/setup.py", "mcp"), ("cli/setup.py", "rest"), ("cli/setup.py", "web")}

THIRD_PARTY = {
    "apsw": {"store", "doctor"},
    "click": {"cli"},
    "rich": {"cli"},
    "msgspec": {"formats", "rest"},
    "platformdirs": {"config"},
    "anyio": {"rest"},
    "httptools": {"web"},
    "starlette": {"rest", "web"},
    "uvicorn": {"web"},
}
"""Each library and the only rooms that may know it."""


GRAPH_ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "taxonomy": set(),
    "records": {"errors", "taxonomy"},
    "ports": set(),
    "checks": {"errors", "records", "taxonomy"},
    "backends": set(),
    "embedding": {"errors"},
    "config": {"backends", "errors", "taxonomy"},
    "agents": {"checks", "errors", "records", "taxonomy"},
    "providers": {"config", "errors", "records", "taxonomy"},
    "entries": {"providers", "records", "taxonomy"},
    "timeline": {"entries", "errors", "providers", "records", "taxonomy"},
    "history": {"entries", "errors", "ports", "providers", "records", "taxonomy", "timeline"},
    "context": {"checks", "entries", "errors", "ports", "providers", "records", "taxonomy"},
    "stores": {"checks", "entries", "errors", "history", "ports", "providers", "records", "taxonomy"},
    "archive": {"agents", "errors", "history", "providers", "records", "taxonomy"},
    "memory_archive": {"archive", "errors", "taxonomy"},
    "serving": {"errors"},
    "mcp": {"archive", "errors", "memory_archive", "providers", "serving", "taxonomy"},
    "plugins": {"config", "errors"},
    "portal": {
        *("archive", "backends", "config", "errors", "memory_archive", "providers", "records", "serving", "taxonomy"),
        "timeline",
    },
    "cli": {
        "archive",
        "backends",
        "embedding",
        "config",
        "errors",
        "mcp",
        "portal",
        "memory_archive",
        "plugins",
        "providers",
        "taxonomy",
        "timeline",
    },
    "package": set(),
    "__main__": {"cli"},
}
"""For each room of ``memorizz`` the rooms of it that it may import beside itself."""

GRAPH_FOUNDATION: dict[str, set[str]] = {
    "errors": {"errors"},
    "checks": {"errors"},
    "config": {"config", "files"},
    "providers": {"_version", "domain", "errors", "files", "store"},
    "timeline": {"errors"},
    "archive": {"_version", "domain", "files"},
    "serving": {"web"},
    "mcp": {"_version", "errors", "mcp", "operations", "web"},
    "plugins": {"files"},
    "portal": {"_version", "domain", "errors", "service", "web"},
    "cli": {"_version", "app", "cli", "config", "logs"},
    "__main__": {"cli", "logs"},
}
"""For each room of ``memorizz`` the rooms of ``agent_memory`` that it stands on."""

GRAPH_THIRD_PARTY = {
    "apsw": {"providers"},
    "bson": {"providers"},  # a part of pymongo
    "pymongo": {"providers"},
    "click": {"cli"},
    "anyio": {"mcp", "plugins"},
    "httpx2": {"plugins"},
    "mcp": {"mcp", "plugins"},
    "jinja2": {"portal"},
    "oracledb": {"providers"},
    "psycopg": {"providers"},
    "starlette": {"mcp", "portal"},
    "msgspec": {"agents", "archive", "checks", "providers", "stores"},
}


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            assert node.module is not None
            if node.module in ("agent_memory", "memorizz"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


def files(package: str = "agent_memory") -> list[Path]:
    return sorted((SOURCE / package).rglob("*.py"))


def room_of(file: Path) -> str:
    name = file.relative_to(SOURCE).parts[1].removesuffix(".py")
    return "package" if name == "__init__" else name


def room_imported(name: str, package: str = "agent_memory", rooms: Container[str] = ROOMS.keys()) -> str | None:
    parts = name.split(".")
    if parts[0] != package:
        return None
    known = len(parts) > 1 and parts[1] in rooms
    return parts[1] if known else "package"


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_file_imports_only_the_rooms_below_its_own(file: Path) -> None:
    room = room_of(file)
    relative = str(file.relative_to(SOURCE / "agent_memory"))
    for name in imports(file):
        assert not name.startswith("memorizz"), "agent_memory never imports memorizz"
        imported = room_imported(name)
        if imported is None or imported == room or (relative, imported) in ALLOWED_FILES:
            continue
        if name == "agent_memory.__version__":
            continue
        assert imported in ROOMS[room], f"{relative} imports {name}"


@pytest.mark.parametrize("file", files("memorizz"), ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_file_of_the_memory_graph_stays_in_its_room_too(file: Path) -> None:
    room = room_of(file)
    for name in imports(file):
        if room == "package":
            continue  # it names every room, for those who read types
        own = room_imported(name, "memorizz", GRAPH_ROOMS.keys())
        assert own in {None, room, *GRAPH_ROOMS[room]}, f"{file.name} imports {name}"
        below = room_imported(name)
        assert below in {None, *GRAPH_FOUNDATION.get(room, set())}, f"{file.name} imports {name}"
        library = name.split(".")[0]
        if library not in sys.stdlib_module_names and library not in ("agent_memory", "memorizz"):
            assert room in GRAPH_THIRD_PARTY[library], f"{file.name} imports {name}"


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_library_is_known_in_its_rooms_only(file: Path) -> None:
    standard = set(sys.stdlib_module_names)
    for name in imports(file):
        library = name.split(".")[0]
        if library in standard or library == "agent_memory":
            continue
        assert room_of(file) in THIRD_PARTY[library], f"{file} imports {library}"


def test_only_config_reads_the_environment() -> None:
    for package in ("agent_memory", "memorizz"):
        readers = [file for file in files(package) if "os.environ" in file.read_text() or "getenv" in file.read_text()]
        assert [file.name for file in readers] == ["config.py"]


def test_a_file_holds_one_noun_and_a_function_one_idea() -> None:
    for file in (*files(), *files("memorizz")):
        text = file.read_text(encoding="utf-8")
        assert text.count("\n") <= 400, file
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name != "tools":  # a table
                assert node.end_lineno is not None
                assert node.end_lineno - node.lineno < 60, f"{file}: {node.name}"


def test_every_public_name_has_a_docstring() -> None:
    for file in (*files(), *files("memorizz")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), file
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        methods = [node for found in classes for node in found.body if isinstance(node, ast.FunctionDef)]
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        for node in [*classes, *methods, *functions]:
            # A port's method is described by what fulfils it.
            stub = isinstance(node.body[-1], ast.Expr) and len(node.body) == 1
            if not node.name.startswith("_") and not stub:
                assert ast.get_docstring(node), f"{file}: {node.name}"


def test_starting_a_server_loads_nothing_it_does_not_use() -> None:
    unused = [
        "click", "rich", "http.client", "socket", "ssl", "asyncio", "dataclasses", "inspect", "difflib", "random",
        "numpy", "sqlite_vec", "sqlite3", "platformdirs", "mcp", "pydantic",
    ]  # fmt: skip
    program = (
        f"import sys, agent_memory.__main__, agent_memory.mcp.server; print([n for n in {unused} if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"
