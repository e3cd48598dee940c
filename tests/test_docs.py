"""The documentation tells the truth: generated blocks, examples, links, and nothing left out.

How examples are written: ``console`` blocks are commands after ``$`` with their output, ``python`` blocks run, a
``text`` block right after one is what it prints, and ``text`` blocks that start with ``> memory_`` are exchanges
with the server. Blocks with another mark are not run.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import agent_memory
from agent_memory.config import ENVIRONMENT
from agent_memory.domain.decay import decay_score
from agent_memory.mcp.server import INSTRUCTIONS
from agent_memory.mcp.session import Identity, Session
from agent_memory.mcp.tools import tools
from agent_memory.mcp.wire import Wire
from agent_memory.service.memory import AgentMemory
from memorizz.config import ENVIRONMENT as GRAPH_ENVIRONMENT
from tests.support.ollama import NOBODY
from tests.test_architecture import ROOMS

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    if not any(part.startswith(".") for part in page.relative_to(ROOT).parts)
)
GENERATOR = runpy.run_path(str(ROOT / "docs" / "generate.py"))

# What examples show in place of what differs from run to run.
HOME = "/home/you"
OLLAMA = "http://localhost:11434"
NOON = 1_767_268_800
NOON_TEXT = "2026-01-01 12:00:00 UTC"


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page: its mark, its text, the line it starts at, and the block right after it."""

    mark: str
    text: str
    line: int
    next: Block | None = None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end_of_next, following = -1, None
    for match in reversed([*re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]):
        adjacent = following if following and not text[match.end() : end_of_next].strip() else None
        following = Block(match[1], match[2], text.count("\n", 0, match.start()) + 2, adjacent)
        end_of_next = match.start()
        found.append(following)
    return found[::-1]


def pages_with(mark: str) -> list[Any]:
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)))
        for page in PAGES
        if any(block.mark == mark for block in blocks(page))
    ]


def read(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", GENERATOR["pages"](), ids=lambda page: page.name)
def test_generated_blocks_are_what_the_program_says(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == GENERATOR["pages"]()[page], "run `.venv/bin/python docs/generate.py`"


def test_the_pages_of_every_door_are_generated() -> None:
    assert [page.name for page in GENERATOR["pages"]()] == [
        "cli.md",
        "memorizz-cli.md",
        "memorizz-sdk.md",
        "providers.md",
        "rest.md",
        "tools.md",
    ]


@pytest.mark.parametrize("route", [f"{route.method} {route.path}" for route in GENERATOR["listed_operations"]()])
def test_every_route_is_documented(route: str) -> None:
    assert f"\n| `{route}` |" in read("docs", "rest.md")


@pytest.mark.parametrize("command", GENERATOR["command_names"]())
def test_every_command_is_documented(command: str) -> None:
    assert f"\n## agent-memory {command}\n" in read("docs", "cli.md")


@pytest.mark.parametrize("tool", [tool.name for tool in GENERATOR["listed_tools"]()])
def test_every_tool_is_documented(tool: str) -> None:
    page = read("docs", "tools.md")
    assert f"\n### {tool}\n" in page
    assert f"\n> {tool} " in page, "an exchange shows its result"
    assert f"| `{tool}` |" in read("README.md")


def test_every_setting_is_documented_and_no_other_variable_is() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (?:`(--[a-z-]+)[ `]|-)", read("docs", "settings.md"), re.MULTILINE)
    assert [name for name, _ in rows] == list(ENVIRONMENT.values())
    flags = {f"--{name.replace('_', '-')}" for name in ENVIRONMENT}
    help_text = read("docs", "cli.md")
    assert {flag for _, flag in rows if flag} == {flag for flag in flags if f"  {flag} " in help_text}
    mentioned = {name for page in PAGES for name in re.findall(r"\bAGENT_MEMORY_[A-Z_]+\b", page.read_text("utf-8"))}
    assert mentioned == set(ENVIRONMENT.values())


def test_every_setting_of_the_memory_graph_is_documented_and_no_other_variable_is() -> None:
    prefixes = "|".join(sorted({name.partition("_")[0] for name in GRAPH_ENVIRONMENT}))
    variable = rf"\b(?:{prefixes})_[A-Z_]+\b"
    mentioned = {name for page in PAGES for name in re.findall(variable, page.read_text("utf-8"))}
    # Those of the tests name servers for them to use.
    assert {name for name in mentioned if not name.startswith("MEMORIZZ_TEST_")} == set(GRAPH_ENVIRONMENT)


def test_every_public_name_is_documented() -> None:
    page = read("docs", "sdk.md")
    assert [name for name in agent_memory.__all__ if not re.search(rf"`(?:agent_memory\.)?{name}\b", page)] == []
    methods = {name: member for name, member in vars(AgentMemory).items() if not name.startswith("_")}
    shown = {f"{name}{_signature(member)}" for name, member in methods.items() if callable(member)}
    assert set(re.findall(r"^\| `(\w+\(.*?\))` \|", page, re.MULTILINE)) == shown
    assert [name for name in methods if f"`{name}" not in page] == []
    assert f"`agent_memory.open{_signature(agent_memory.open)}`" in page


def _signature(function: Callable[..., Any]) -> str:
    """The parameters with their defaults, without types."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    ]
    return str(inspect.Signature(parameters))


def test_the_table_of_rooms_is_the_one_that_is_enforced() -> None:
    page = read("docs", "internals.md")
    rows = re.findall(
        r"^\| `(\w+)` \| [^|]+ \|([^|]*)\|$", page.split("## Rooms")[1].split("## Tables")[0], re.MULTILINE
    )
    shown = {room: set(re.findall(r"`(\w+)`", allowed)) for room, allowed in rows}
    described = ROOMS.keys() - {"_version", "package", "__main__"}
    assert shown == {room: ROOMS[room] - {room, "_version"} for room in described}


def test_the_decay_table_holds_the_values_of_the_formula() -> None:
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", read("docs", "concepts.md"), re.MULTILINE)
    assert len(rows) >= 6
    for days, *shown in rows:
        scores = [decay_score(int(days) * 86_400, 0, pinned=pinned) for pinned in (False, True)]
        assert shown == [f"{score:.4f}" for score in scores]


def test_texts_match_as_the_search_page_says(db: Path) -> None:
    rows = re.findall(r"^\| (`.+) \| (yes|no)\b", read("docs", "search.md"), re.MULTILINE)
    pairs = [(pair, answer) for texts, answer in rows for pair in re.findall(r"`([^`]+)`, `([^`]+)`", texts)]
    assert len(pairs) >= 12
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        for (text, query), answer in pairs:
            stored = memory.store(f"before {text} after", "TODO")
            found = [result.id for result in memory.search(query).results]
            assert (stored in found) == (answer == "yes"), (text, query)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if ":" not in target]
    assert [target for target in targets if not _leads_somewhere(page, target)] == []


def _leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    if not file.exists() or not anchor:
        return file.exists()
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_listed() -> None:
    index = read("docs", "index.md")
    pages = [page.relative_to(ROOT / "docs") for page in PAGES if page.is_relative_to(ROOT / "docs")]
    assert [str(page) for page in pages if page.name != "index.md" and f"({page.as_posix()})" not in index] == []


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^(\w+):", read("Makefile"), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|^)make (\w+)", page.read_text("utf-8"), re.MULTILINE)}
    assert {"demo", "test", "check"} <= named <= targets


def test_the_readme_quotes_only_measured_ratios() -> None:
    quoted = re.findall(r"[\d.]+ x\b", read("README.md"))
    assert len(quoted) >= 6
    assert [ratio for ratio in quoted if f" {ratio} |" not in read("bench", "RESULTS.md")] == []


def test_agents_md_is_short_and_the_readme_is_not_long() -> None:
    assert read("AGENTS.md").count("\n") <= 60
    assert read("README.md").count("\n") <= 200


@pytest.mark.parametrize("page", pages_with("console"))
def test_shell_examples_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.mark == "console":
            for command, shown in _commands(block):
                code, output = _shell(command, tmp_path)
                where = f"{page.name}:{block.line}: $ {command}"
                if shown:
                    assert output == shown, where
                assert code == 0 or shown, f"{where}: exit code {code}: {output}"


def _commands(block: Block) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
        # What is typed after a shell's second prompt.
        while shown.startswith(">"):
            more, _, shown = shown.partition("\n")
            command += f"\n{more[1:].removeprefix(' ')}"
        yield command, shown


def _shell(command: str, home: Path) -> tuple[int, str]:
    """Run a command as somebody who lives in ``home`` and has agent-memory on the path."""
    programs = Path(sys.executable).parent
    database = home / ".local/share/agent-memory/memory.db"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AGENT_MEMORY_")},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "EXAMPLES": str(ROOT / "docs" / "examples"),
        "AGENT_MEMORY_DB": str(database),
        "AGENT_MEMORY_OLLAMA_URL": NOBODY,
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        command,
        shell=True,
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    # A reader's block has no such line: Ollama is where it is by default.
    output = re.sub(r',?\n *"?AGENT_MEMORY_OLLAMA_URL"?[:=] *"[^"]*"', "", done.stdout)
    output = re.sub(r'\nAGENT_MEMORY_OLLAMA_URL = "[^"]*"', "", output)
    # Which command of a page is the first to create the file says nothing about that command.
    output = re.sub(r"^created /.*\n", "", output, flags=re.MULTILINE)
    output = output.replace(NOBODY, OLLAMA)
    output = output.replace(str(programs), f"{HOME}/.agent-memory/bin").replace(str(home), HOME)
    output = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", NOON_TEXT, output)
    output = re.sub(r'("(?:created_at|last_accessed)": )\d{10}', rf"\g<1>{NOON}", output)
    output = re.sub(r'("(?:exported|created|last_accessed|expires)(?:_at)?":)\d{10}', rf"\g<1>{NOON}", output)
    output = re.sub(r'("decay_score": )0\.9999\d*', r"\g<1>1.0", output)  # a second may pass
    return done.returncode, re.sub(r"\(\d[\d,]* bytes", "(86,016 bytes", output)


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_examples_run_and_print_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT_MEMORY_DB", str(tmp_path / "default.db"))
    monkeypatch.setenv("AGENT_MEMORY_OLLAMA_URL", NOBODY)
    namespace: dict[str, Any] = {"__name__": "example"}
    for block in blocks(page):
        if block.mark == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)
            if block.next is not None and block.next.mark == "text":
                assert printed.getvalue() == block.next.text, f"{page.name}:{block.line}"


class Replay:
    """A server's session over ``memory``, one request at a time."""

    def __init__(self, memory: AgentMemory) -> None:
        self._tools = tools(memory)

    def call(self, name: str, arguments: str) -> tuple[str, list[str]]:
        """Whether a call was answered with a result, ``isError`` or an error code, and the texts."""
        line = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}'
        receiving, sending = os.pipe()
        with open(receiving, encoding="utf-8") as replies:
            wire = Wire(io.BytesIO(line.encode()), sending)
            session = Session(wire, Identity("test", "Test", "1", INSTRUCTIONS), self._tools)
            session.run()
            assert session.wait(10)
            assert wire.drain(10)
            os.close(sending)
            reply = json.loads(replies.read())
        if "error" in reply:
            return str(reply["error"]["code"]), [reply["error"]["message"]]
        result = reply["result"]
        return "isError" if result["isError"] else "result", [content["text"] for content in result["content"]]


def test_exchanges_with_the_server_go_as_shown(db: Path) -> None:
    page = ROOT / "docs" / "tools.md"
    with agent_memory.open(db, ollama_url=NOBODY, clock=lambda: 1_767_225_600) as memory:
        replay = Replay(memory)
        for block in blocks(page):
            if block.mark == "text" and block.text.startswith("> memory_"):
                for exchange in block.text.removeprefix("> ").split("\n> "):
                    call, *shown = exchange.strip().split("\n< ")
                    assert replay.call(*call.split(" ", 1)) == ("result", shown), f"{page.name}:{block.line}"
        refusals = re.findall(
            r"^\| `(\w+) (.+?)` \| (-\d+|isError) \| `` (.+) `` \|$", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert len(refusals) >= 15
        before = memory.list()
        for name, arguments, kind, message in refusals:
            assert replay.call(name, arguments) == (kind, [message])
        assert memory.list() == before
