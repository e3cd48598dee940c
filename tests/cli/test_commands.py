"""The command line as people and scripts use it: real processes, exit codes, JSON and tables."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.support import database
from tests.support.ollama import NOBODY, FakeOllama

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(db: Path) -> Run:
    """Runs `agent-memory` on ``db``."""

    def command(*arguments: str, input: str | bytes = "", **environment: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "AGENT_MEMORY_DB": str(db), "AGENT_MEMORY_OLLAMA_URL": NOBODY, **environment}
        data = input if isinstance(input, bytes) else input.encode()
        done = subprocess.run(
            [sys.executable, "-m", "agent_memory", *arguments], input=data, capture_output=True, env=env, timeout=60
        )
        text = subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in text.stderr, text.stderr
        return text

    return command


def value(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_a_memory_goes_through_its_whole_life_in_json(run: Run) -> None:
    assert value(run("store", "We chose SQLite.", "--type", "DECISION", "--tag", "a", "--tag", "b", "--json")) == {
        "id": 1
    }
    run("store", "Locks were lost.", "--type", "ERROR", "--source", "ci", "--scope", "shop", "--ttl-secs", "60")
    assert value(run("link", "2", "1", "caused_by", "--json"))["linked"] is True
    found = value(run("search", "what did we choose?", "--expand-links", "--json"))
    assert found["search_mode"] == "keyword"
    assert [(memory["id"], memory["related"][0]["kind"]) for memory in found["results"]] == [(1, "caused")]
    listed = value(run("list", "--scope", "shop", "--json"))
    assert [memory["id"] for memory in listed] == [2]
    shown = value(run("show", "2", "--json"))
    assert shown["source"] == "ci"
    assert shown["expires_at"] == shown["created_at"] + 60
    assert shown["access_count"] == 0
    updated = value(run("update", "2", "--content", "Locks are kept.", "--clear-ttl", "--clear-scope", "--json"))
    assert (updated["content"], updated["scope"], updated["embedding_status"]) == ("Locks are kept.", None, 0)
    assert value(run("unlink", "2", "1", "caused_by", "--json"))["unlinked"] is True
    assert value(run("forget", "1", "--json")) == {"id": 1, "deleted": True}
    assert [memory["id"] for memory in value(run("list", "--json"))] == [2]


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["show", "9"], {"id": 9, "found": False, "reason": "not_found"}),
        (["update", "9", "--tag", "x"], {"id": 9, "updated": False, "reason": "not_found"}),
        (["forget", "9"], {"id": 9, "deleted": False, "reason": "not_found"}),
        (
            ["link", "1", "9", "supersedes"],
            {"from_id": 1, "to_id": 9, "kind": "supersedes", "linked": False, "reason": "not_found", "missing_id": 9},
        ),
        (
            ["unlink", "1", "9", "supersedes"],
            {"from_id": 1, "to_id": 9, "kind": "supersedes", "unlinked": False, "reason": "not_found"},
        ),
    ],
)
def test_what_is_not_found_is_exit_code_1_and_said(run: Run, arguments: list[str], answer: dict[str, Any]) -> None:
    run("store", "x", "--type", "TODO")
    plain = run(*arguments)
    assert (plain.returncode, plain.stdout) == (1, "")
    assert "no memory has the id 9" in plain.stderr or "there is no relation 1 supersedes 9" in plain.stderr
    as_json = run(*arguments, "--json")
    assert (as_json.returncode, value(as_json)) == (1, answer)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["store", "x", "--type", "decision"], "invalid memory type 'decision' (expected one of DECISION, "),
        (["store", "  ", "--type", "TODO"], "invalid argument: content must be a non-empty string (got '  ')"),
        (["store", "x"], "Missing option '--type'. Choose from DECISION, PATTERN"),
        (["store", "x", "--type", "TODO", "--ttl-secs", "0"], "ttl_secs must be between 1 and 3155760000 (got 0)"),
        (["search", "x", "--limit", "0"], "invalid argument: limit must be between 1 and 200 (got 0)"),
        (["list", "--limit", "x"], "'x' is not a valid integer"),
        (["list", "--expand-links"], "invalid argument: limit is required when expand_links is true"),
        (["update", "1"], "invalid argument: at least one of content, tags, scope, ttl_secs must be provided"),
        (["update", "1", "--tag", "a", "--clear-tags"], "--tag and --clear-tags exclude each other"),
        (["link", "1", "1", "supersedes"], "invalid argument: from_id and to_id must differ (got 1)"),
        (["link", "1", "2", "blocks"], "kind must be one of relates_to, supersedes, caused_by (got 'blocks')"),
        (["forget", str(2**70)], "invalid argument: id must be a 64-bit integer"),
        (["recall"], "No such command 'recall'"),
        (["serach", "x"], "Did you mean 'search'?"),
        (["list", "--db", ":memory:"], "--db must name a file"),
        (["config", "notepad"], "'notepad' is not one of"),
        (["doctor", "--stress", "5"], "--stress must be PxN"),
        (["--ollama-url", "ftp://x", "list"], "--ollama-url must be an http or https URL"),
    ],
)  # fmt: skip
def test_wrong_usage_is_exit_code_2_and_names_the_rule(run: Run, db: Path, arguments: list[str], message: str) -> None:
    done = run(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert not db.exists() or database.count(db) == 0


def test_content_and_query_are_read_from_standard_input_for_a_dash(run: Run) -> None:
    run("store", "-", "--type", "TODO", input="two\nlines ★\n", PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
    run("update", "1", "--content", "-", input="two\nother lines ★\n")

    assert value(run("search", "-", "--json", input="other lines?"))["results"][0]["content"] == "two\nother lines ★"


def test_standard_input_that_is_not_utf8_is_refused(run: Run) -> None:
    done = run("store", "-", "--type", "TODO", input=b"caf\xe9")

    assert done.returncode == 2
    assert "standard input must be UTF-8 text (got byte 0xe9 at 3)" in done.stderr


def test_shared_options_count_before_and_after_the_command(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "sub" / "other.db"
    run("--db", str(other), "store", "before", "--type", "TODO")
    run("store", "after", "--type", "TODO", "--db", str(other))

    assert [memory["content"] for memory in value(run("list", "--json", "--db", str(other)))] == ["after", "before"]


def test_a_new_file_is_announced_once(run: Run, db: Path) -> None:
    assert run("list").stderr == f"created {db}\n"
    assert run("list").stderr == ""


def test_a_relative_or_home_path_is_resolved(run: Run, tmp_path: Path) -> None:
    run("--db", "~/notes/m.db", "store", "x", "--type", "TODO", HOME=str(tmp_path))
    assert (tmp_path / "notes" / "m.db").exists()
    printed = run("config", "cursor", "--db", "~/notes/../m.db", HOME=str(tmp_path)).stdout
    assert json.loads(printed)["mcpServers"]["agent-memory"]["env"]["AGENT_MEMORY_DB"] == str(tmp_path / "m.db")


@pytest.mark.parametrize("command", [["list"], ["search", "ship"], ["show", "1"], ["stats"], ["doctor"], ["--help"]])
def test_a_narrow_terminal_encoding_is_no_reason_to_fail(run: Run, command: list[str]) -> None:
    run("store", "We ship ★🎉 用户", "--type", "TODO", "--tag", "✓")

    assert run(*command, PYTHONIOENCODING="cp1252", PYTHONUTF8="0").returncode == 0


def test_json_is_lossless_in_a_narrow_encoding(run: Run) -> None:
    run("store", "We ship ★🎉", "--type", "TODO")

    assert value(run("list", "--json", PYTHONIOENCODING="ascii"))[0]["content"] == "We ship ★🎉"


def test_a_reader_that_stops_reading_ends_the_output_quietly(db: Path, run: Run) -> None:
    run("store", "x", "--type", "TODO")
    database.fill(db, 20_000, content="a long line of filler number {n} " * 5)
    done = subprocess.run(
        f"{sys.executable} -m agent_memory list | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "AGENT_MEMORY_DB": str(db)},
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_client_block_carries_the_settings_that_a_client_would_not_know(run: Run, db: Path) -> None:
    options = ("--ollama-url", "http://gpu:1", "--strict-query")
    block = json.loads(run("config", "cursor", *options, AGENT_MEMORY_JOURNAL="delete").stdout)

    assert block["mcpServers"]["agent-memory"]["env"] == {
        "AGENT_MEMORY_DB": str(db),
        "AGENT_MEMORY_OLLAMA_URL": "http://gpu:1",
        "AGENT_MEMORY_STRICT_QUERY": "True",
        "AGENT_MEMORY_JOURNAL": "delete",
    }


def test_linked_memories_are_shown_on_a_terminal_too(db: Path, run: Run) -> None:
    run("store", "We chose SQLite.", "--type", "DECISION")
    run("store", "Locks were lost.", "--type", "ERROR")
    run("link", "2", "1", "caused_by")

    assert "caused_by 1: We chose SQLite." in on_terminal("list", "--limit", "5", "--expand-links", db=db)


def on_terminal(*arguments: str, db: Path, columns: int = 100) -> str:
    """What the command shows on a terminal of that width."""
    read, write = pty.openpty()
    env = {
        **os.environ,
        "AGENT_MEMORY_DB": str(db),
        "AGENT_MEMORY_OLLAMA_URL": NOBODY,
        "COLUMNS": str(columns),
        "TERM": "dumb",
    }
    with subprocess.Popen([sys.executable, "-m", "agent_memory", *arguments], stdout=write, stderr=write, env=env):
        os.close(write)
        shown = b""
        try:
            while part := os.read(read, 4096):
                shown += part
        except OSError:
            pass  # how Linux says that the other end is closed
    os.close(read)
    return shown.decode()


def test_a_terminal_sees_a_table_that_fits(db: Path, run: Run) -> None:
    run("store", "We chose SQLite. " * 20, "--type", "DECISION", "--scope", "shop", "--tag", "storage")

    shown = on_terminal("list", db=db)

    header, *_ = (line for line in shown.splitlines() if "content" in line)
    assert header.split() == ["id", "type", "decay", "created", "scope", "tags", "content"]
    assert "DECISION" in shown
    assert max(len(line) for line in shown.splitlines()) <= 100


@pytest.mark.parametrize("columns", [50, 80, 120])
def test_the_id_and_some_of_the_text_are_shown_however_narrow_the_terminal(db: Path, run: Run, columns: int) -> None:
    tags = ("--tag", "performance", "--tag", "accessibility", "--tag", "2026-q1")
    run("store", "Measure first.", "--type", "ARCHITECTURE", "--scope", "/home/you/projects/customer/frontend", *tags)

    (row,) = (line for line in on_terminal("list", db=db, columns=columns).splitlines() if "ARCHITECTURE" in line)

    assert row.split()[:3] == ["1", "ARCHITECTURE", "1.00"]
    assert "Measure" in row
    assert len(row) <= columns


def test_control_characters_of_a_memory_do_not_reach_a_terminal_but_do_reach_a_pipe(db: Path, run: Run) -> None:
    hostile = "x\x1b]0;title\x07\x1b[31mred\ry\x9b"
    run("store", "-", "--type", "TODO", "--tag", "\x1b[1m", input=hostile)

    for command in (["list"], ["show", "1"], ["search", "red"]):
        shown = on_terminal(*command, db=db).replace("\r\n", "\n")
        assert not {"\x1b", "\x07", "\r", "\x9b"} & set(shown)
    assert "x\\x1b]0;title\\x07\\x1b[31mred\\x0dy\\x9b" in on_terminal("show", "1", db=db)
    assert run("show", "1").stdout.endswith(hostile + "\n")


def test_markup_in_a_memory_is_shown_as_it_is(db: Path, run: Run) -> None:
    run("store", "[bold]not markup[/bold] [red]", "--type", "TODO")

    assert "[bold]not markup[/bold] [red]" in on_terminal("list", db=db)


def test_a_pipe_gets_one_line_a_memory(run: Run) -> None:
    run("store", "two\nlines\tand a tab", "--type", "TODO", "--tag", "a", "--tag", "b")

    assert run("list").stdout == "1\tTODO\t1.00\t-\ta,b\ttwo lines and a tab\n"


def test_show_prints_everything_and_the_whole_text(run: Run) -> None:
    run("store", "line one\nline two", "--type", "DECISION")
    run("store", "newer", "--type", "DECISION")
    run("link", "2", "1", "supersedes")

    shown = run("show", "1").stdout

    assert "superseded_by 2  newer" in shown
    assert shown.endswith("\n\nline one\nline two\n")
    assert ["uses", "0"] in [line.split() for line in shown.splitlines()]


def test_stats_count_types_scopes_links_and_embeddings(run: Run, ollama: FakeOllama) -> None:
    run("store", "a", "--type", "DECISION", "--scope", "shop")
    run("store", "b", "--type", "TODO", AGENT_MEMORY_OLLAMA_URL=ollama.url)
    run("link", "1", "2", "relates_to")

    counted = value(run("stats", "--json"))

    assert counted["memories"] == 2
    assert counted["by_type"] == {"DECISION": 1, "TODO": 1}
    assert {(scope["scope"], scope["memories"]) for scope in counted["by_scope"]} == {("shop", 1), (None, 1)}
    assert (counted["links"], counted["embedded"], counted["pending"], counted["schema_version"]) == (1, 1, 1, 3)
    assert (counted["embedding_model"], counted["embedding_dim"]) == ("nomic-embed-text", 768)


def test_embed_embeds_everything_pending_in_batches(run: Run, db: Path, ollama: FakeOllama) -> None:
    run("store", "x", "--type", "TODO")
    database.fill(db, 299, content="fact {n}")

    done = run("embed", AGENT_MEMORY_OLLAMA_URL=ollama.url)

    assert (done.returncode, done.stdout) == (0, "embedded: 300, still pending: 0\n")
    assert len(database.vector_ids(db)) == 300
    assert max(len(texts) for texts in ollama.embedded) == 32
    assert run("embed", AGENT_MEMORY_OLLAMA_URL=ollama.url).stdout == "nothing is pending\n"


def test_embed_without_an_embedder_fails_and_says_why(run: Run) -> None:
    run("store", "x", "--type", "TODO")

    done = run("embed")

    assert done.returncode == 1
    assert "Connection refused" in done.stderr


@pytest.mark.parametrize("client", ["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"])
def test_the_block_of_each_client_starts_a_server_that_answers(run: Run, db: Path, client: str) -> None:
    import tomllib

    done = run("config", client)
    assert done.returncode == 0
    assert "add this to" in done.stderr
    if client == "codex":
        block = tomllib.loads(done.stdout)["mcp_servers"]["agent-memory"]
    else:
        key = "servers" if client == "vscode" else "mcpServers"
        block = json.loads(done.stdout)[key]["agent-memory"]
    assert Path(block["command"]).is_absolute()
    assert block["env"]["AGENT_MEMORY_DB"] == str(db)
    line = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    served = subprocess.run(
        [block["command"], *block["args"]],
        input=line,
        capture_output=True,
        env={**os.environ, **block["env"]},
        timeout=30,
    )
    assert json.loads(served.stdout)["result"] == {}


def test_the_demo_tells_the_true_story(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "demo.db"

    done = run("demo", "--keep", str(kept))

    assert done.returncode == 0, done.stderr
    assert "memory_search" in done.stdout
    assert "superseded" not in done.stderr
    assert "0.8909" in done.stdout  # a pinned memory after 30 days
    assert "0.5000" in done.stdout
    assert database.count(kept) == 2
    assert database.count(kept, "memory_links") == 1
    assert run("demo", "--keep", str(kept)).returncode == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(run: Run, shell: str) -> None:
    assert "_AGENT_MEMORY_COMPLETE" in run("completion", shell).stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("agent-memory sto", "store"),
        ("agent-memory store x --type DE", "DECISION"),
        ("agent-memory link 1 2 sup", "supersedes"),
    ],
)
def test_completion_knows_commands_types_and_kinds(run: Run, words: str, offered: str) -> None:
    done = run(_AGENT_MEMORY_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1))
    assert f"plain,{offered}" in done.stdout.splitlines()


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").stdout == "agent-memory 0.1.0\n"


@pytest.mark.parametrize(
    "command",
    ["store", "search", "list", "show", "update", "forget", "link", "unlink", "stats", "embed", "doctor", "serve",
     "config", "completion", "demo"],
)  # fmt: skip
def test_the_help_of_every_command_has_an_example(run: Run, command: str) -> None:
    done = run(command, "--help")

    assert done.returncode == 0
    assert "Example" in done.stdout
    assert f"agent-memory {command}" in done.stdout or command == "serve"


def test_serve_with_every_kind_of_option_serves(run: Run, db: Path) -> None:
    line = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    for arguments in (["serve"], ["--strict-query", "serve"], ["serve", f"--db={db}"], ["serve", "--sweep-secs", "60"]):
        assert value(run(*arguments, input=line))["result"] == {}


def test_memorizz_says_what_it_has() -> None:
    def memorizz(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "memorizz", *arguments], capture_output=True, text=True)

    assert memorizz("--version").stdout == "memorizz 0.1.0\n"
    assert memorizz("--help").returncode == 0
    assert memorizz("memory", "export").returncode == 2
