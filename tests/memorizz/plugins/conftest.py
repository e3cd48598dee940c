"""A project, a memory of it, and clients that do what the real ones do as far as the plugins can see."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from memorizz.providers.registry import open_provider
from memorizz.taxonomy import MemoryType
from tests.memorizz.cli.conftest import environment as environment
from tests.memorizz.cli.conftest import run as run

Keep: TypeAlias = Callable[..., None]

CLIENT = """#!{python}
import json, os, pathlib, sys

home = pathlib.Path(os.environ["HOME"])
arguments = sys.argv[1:]
with open(home / "calls.jsonl", "a") as calls:
    calls.write(json.dumps([{name!r}, *arguments]) + "\\n")
settings = home / "{name}.json"
kept = json.loads(settings.read_text())
markets, enabled = kept["marketplaces"], kept["plugins"]

def refuse(why):
    sys.exit(f"{name}: {{why}}")

match arguments:
    case ["plugin", "marketplace", "add", directory]:
        manifest = json.loads((pathlib.Path(directory) / {manifest!r}).read_text())
        if manifest["name"] in markets:
            refuse("already installed")
        markets[manifest["name"]] = directory
    case ["plugin", "marketplace", "remove", name]:
        if markets.pop(name, None) is None:
            refuse("no such marketplace")
    case ["plugin", {add!r}, plugin]:
        name, _, market = plugin.partition("@")
        root = pathlib.Path(markets[market])
        listed = json.loads((root / {manifest!r}).read_text())["plugins"]
        source = next(each["source"] for each in listed if each["name"] == name)
        place = root / (source if isinstance(source, str) else source["path"])
        enabled[plugin] = json.loads((place / ".mcp.json").read_text())
    case ["plugin", {remove!r}, plugin]:
        if enabled.pop(plugin, None) is None:
            refuse("not installed")
    case _:
        refuse("unknown command")
settings.write_text(json.dumps(kept, indent=4))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git work tree."""
    folder = tmp_path / "Harbor Lights"
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


@pytest.fixture
def memory_id(project: Path) -> str:
    """The namespace of the project."""
    return f"project-harbor-lights-{hashlib.sha256(str(project).encode()).hexdigest()[:6]}"


@pytest.fixture
def keep(tmp_path: Path, environment: dict[str, str]) -> Keep:
    """Keeps a fact in the memory that the commands work on."""
    path = tmp_path / "memory.sqlite3"
    environment.update(MEMORIZZ_BACKEND="sqlite", MEMORIZZ_SQLITE_PATH=str(path))

    def kept(id: str, memory_id: str, user_id: str | None = None) -> None:
        with open_provider("sqlite", {"path": path}) as provider:
            fact = {"content": f"what {id} says", "memory_id": memory_id, "user_id": user_id}
            provider.put(MemoryType.KNOWLEDGE_BASE, [(id, fact)])

    return kept


@pytest.fixture
def clients(tmp_path: Path, environment: dict[str, str]) -> Path:
    """Both clients are on the path, with settings of their own; the home that they keep them in."""
    home, programs = tmp_path / "home", tmp_path / "programs"
    home.mkdir()
    programs.mkdir()
    for name, manifest, add, remove in (
        ("claude", ".claude-plugin/marketplace.json", "install", "uninstall"),
        ("codex", ".agents/plugins/marketplace.json", "add", "remove"),
    ):
        text = CLIENT.format(python=sys.executable, name=name, manifest=manifest, add=add, remove=remove)
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
        others = {"theme": "dark", "marketplaces": {"theirs": "/srv/theirs"}, "plugins": {"theirs@theirs": {}}}
        (home / f"{name}.json").write_text(json.dumps(others, indent=4))
    environment["PATH"] = str(programs)
    return home


@pytest.fixture
def no_clients(tmp_path: Path, environment: dict[str, str]) -> None:
    """No client is on the path."""
    environment["PATH"] = str(tmp_path / "nowhere")


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def facts(archive: Any) -> list[str]:
    """The ids of the facts in an archive."""
    return sorted(row["id"] for row in archive["stores"]["knowledge_base"])
