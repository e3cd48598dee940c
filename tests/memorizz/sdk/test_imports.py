from __future__ import annotations

import subprocess
import sys

import pytest

import memorizz

HEAVY = ("apsw", "msgspec", "click", "rich", "uuid", "json", "asyncio", "agent_memory.service.memory")
DOCUMENTED = [
    "MemoryArchive",
    "MemoryArchiveError",
    "FileSystemConfig",
    "FileSystemProvider",
    "MemoryType",
    "MemAgentModel",
    "MemoryHistory",
    "memory_change_context",
    "enable_memory_history",
    "ContextSnapshots",
    "SharedMemory",
    "EntityMemory",
    "Persona",
    "KnowledgeBase",
    "Toolbox",
    "SQLiteConfig",
    "SQLiteProvider",
    "NotionConfig",
    "NotionProvider",
    "MongoDBConfig",
    "MongoDBProvider",
]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = run("import sys, memorizz; print(*sys.modules)").split()
    assert [name for name in loaded if name.startswith("memorizz")] == ["memorizz"]
    assert not set(HEAVY) & set(loaded)


def test_its_version_is_known_without_loading_more_than_that() -> None:
    loaded = run("import sys, memorizz; memorizz.__version__; print(*sys.modules)").split()
    assert not {"apsw", "msgspec", "memorizz.taxonomy"} & set(loaded)


@pytest.mark.parametrize("name", memorizz.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(memorizz, name) is not None
    assert name in dir(memorizz)


def test_every_documented_name_is_public_and_can_be_imported_first() -> None:
    assert set(DOCUMENTED) <= set(memorizz.__all__)
    lines = "\n".join(f"from memorizz import {name}" for name in DOCUMENTED)
    assert run(f"{lines}\nprint(MemoryArchive.__name__, issubclass(MemoryArchiveError, ValueError))") == (
        "MemoryArchive True\n"
    )


def test_an_unknown_name_is_missing_as_in_any_module() -> None:
    assert not hasattr(memorizz, "Nothing")
    with pytest.raises(ImportError, match="cannot import name"):
        exec("from memorizz import Nothing", {})
