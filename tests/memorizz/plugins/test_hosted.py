"""A project's memory on a hosted server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memorizz.memory_archive import read_archive
from memorizz.providers.registry import open_provider
from memorizz.taxonomy import MemoryType
from tests.memorizz.cli.conftest import Run
from tests.memorizz.plugins.conftest import facts
from tests.memorizz.served import GraphServer

TOKEN = "the-token-of-ana-0123456789"
READER = "the-token-of-bo-0123456789"


@pytest.fixture
def server(tmp_path: Path, memory_id: str) -> Iterator[GraphServer]:
    """A memory where ana and bo have a fact each in the project, served to both; bo only reads."""
    path = tmp_path / "server" / "hosted.sqlite3"
    path.parent.mkdir()
    with open_provider("sqlite", {"path": path}) as provider:
        rows = [
            (id, {"content": f"what {id} says", "memory_id": memory_id, "user_id": user})
            for id, user in (("hers", "ana"), ("his", "bo"))
        ]
        provider.put(MemoryType.KNOWLEDGE_BASE, rows)
    keys = json.dumps({"ana": TOKEN, "bo": {"token": READER, "scopes": ["memorizz:read"]}})
    options = ("--backend", "sqlite", "--path", str(path), "--allow-writes")
    with GraphServer(
        "mcp", "serve", "--transport", "streamable-http", *options, MEMORIZZ_MCP_SERVER_API_KEYS=keys
    ) as started:
        yield started


@pytest.fixture
def hosted(server: GraphServer) -> dict[str, str]:
    """The variables of somebody whose memory is there, and whose own store would fail if it were opened."""
    return {
        "MEMORIZZ_PLUGIN_REMOTE_URL": f"http://127.0.0.1:{server.port}/mcp",
        "MEMORIZZ_MCP_TOKEN": TOKEN,
        "MEMORIZZ_BACKEND": "nonsense",
    }


def test_an_export_comes_from_the_server_and_holds_what_is_the_callers(
    run: Run, hosted: dict[str, str], project: Path, tmp_path: Path
) -> None:
    done = run("plugin", "export-memory", "out.json", "--workspace", project, **hosted)
    assert (done.returncode, done.stderr) == (0, "")
    archive = read_archive(tmp_path / "out.json")
    assert facts(archive) == ["hers"]
    assert json.loads(done.stdout) == {"path": "out.json", "manifest": archive["manifest"]}
    assert not (tmp_path / "home").exists()


def test_an_import_is_previewed_and_applied_on_the_server(
    run: Run, hosted: dict[str, str], project: Path, tmp_path: Path
) -> None:
    assert run("plugin", "export-memory", "out.json", "--workspace", project, **hosted).returncode == 0

    def imported(*options: str) -> tuple[int, Any]:
        done = run("plugin", "import-memory", "out.json", *options, **hosted)
        return done.returncode, json.loads(done.stdout)

    code, report = imported("--workspace", str(project), "--apply")
    assert (code, report["ok"], report["dry_run"], len(report["conflicts"])) == (1, False, True, 1)
    code, report = imported("--new-ids")
    assert (code, report["dry_run"], report["planned"]) == (0, True, 1)
    code, report = imported("--new-ids", "--apply")
    assert (code, report["dry_run"], report["imported"]) == (0, False, 1)
    assert run("plugin", "export-memory", "here.json", **hosted).returncode == 0
    (copied,) = read_archive(tmp_path / "here.json")["stores"]["knowledge_base"]
    assert copied["id"] != "hers"
    assert copied["data"]["memory_id"] == run("plugin", "memory-id").stdout.strip()
    assert not (tmp_path / "home").exists()


def test_what_the_server_refuses_is_one_sentence(
    run: Run, hosted: dict[str, str], project: Path, tmp_path: Path
) -> None:
    wrong = run("plugin", "export-memory", "x.json", **hosted | {"MEMORIZZ_MCP_TOKEN": "nobodys-token-0123456789"})
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.endswith("the token is not one of its own (HTTP 401)\n")
    reader = hosted | {"MEMORIZZ_MCP_TOKEN": READER}
    assert run("plugin", "export-memory", "his.json", "--workspace", project, **reader).returncode == 0
    refused = run("plugin", "import-memory", "his.json", "--apply", "--conflict", "skip", **reader)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "insufficient_scope" in refused.stderr
    nowhere = hosted["MEMORIZZ_PLUGIN_REMOTE_URL"].replace("/mcp", "/other")
    lost = run("plugin", "export-memory", "x.json", **hosted | {"MEMORIZZ_PLUGIN_REMOTE_URL": nowhere})
    assert (lost.returncode, "there is no memory server at this path (HTTP 404)" in lost.stderr) == (2, True)
    assert all(done.stderr.count("\n") == 1 for done in (wrong, refused, lost))
    assert not (tmp_path / "x.json").exists()


def test_a_server_that_is_not_there_is_one_sentence(run: Run) -> None:
    done = run(
        "plugin",
        "export-memory",
        "x.json",
        MEMORIZZ_PLUGIN_REMOTE_URL="http://127.0.0.1:9/mcp",
        MEMORIZZ_MCP_TOKEN=TOKEN,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: http://127.0.0.1:9/mcp cannot be asked: ")


@pytest.mark.parametrize(
    "more", [{}, {"MEMORIZZ_PLUGIN_REMOTE_TOKEN_ENV": "HARBOR_TOKEN", "MEMORIZZ_MCP_TOKEN": TOKEN}]
)
def test_a_token_that_is_missing_is_asked_for_by_its_name(run: Run, more: dict[str, str], tmp_path: Path) -> None:
    name = more.get("MEMORIZZ_PLUGIN_REMOTE_TOKEN_ENV", "MEMORIZZ_MCP_TOKEN")
    url = "https://memory.example.com/mcp"
    for command in (("export-memory", "x.json"), ("import-memory", "x.json")):
        done = run("plugin", *command, MEMORIZZ_PLUGIN_REMOTE_URL=url, **more)
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            done.stderr == f"Error: the hosted memory at {url} needs a token in the variable {name}, which is not set\n"
        )
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://memory.example.com/mcp", "begins with https://"),
        ("http://127.0.0.1.example.com/mcp", "begins with https://"),
        ("ftp://localhost/mcp", "begins with https://"),
        ("https://ana:secret@memory.example.com/mcp", "without a name"),
        ("https:///mcp", "is like https://"),
        ("https://[::1/mcp", "is no address"),
        ("https://memory.example.com:port/mcp", "is no address"),
        ("https://memory.example.com/${HOME}", "is like https://"),
    ],
)
def test_a_token_is_sent_over_https_or_to_this_machine_only(run: Run, url: str, said: str) -> None:
    for command in (("export-memory", "x.json"), ("install", "codex")):
        done = run("plugin", *command, MEMORIZZ_PLUGIN_REMOTE_URL=url, MEMORIZZ_MCP_TOKEN=TOKEN)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "MEMORIZZ_PLUGIN_REMOTE_URL" in done.stderr
        assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("variables", "secret"),
    [({"MEMORIZZ_MCP_TOKEN": "two words"}, "two words"), ({"MEMORIZZ_PLUGIN_REMOTE_TOKEN_ENV": "a-token"}, "a-token")],
)
def test_what_cannot_be_a_token_is_refused_without_showing_it(run: Run, variables: dict[str, str], secret: str) -> None:
    done = run("plugin", "export-memory", "x.json", MEMORIZZ_PLUGIN_REMOTE_URL="https://localhost/mcp", **variables)
    assert (done.returncode, done.stdout, secret in done.stderr) == (2, "", False)
    assert "TOKEN" in done.stderr


def test_without_its_package_a_hosted_memory_says_how_to_get_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError('No module named mcp')")
    done = run(
        "plugin", "export-memory", "x.json", PYTHONPATH=str(tmp_path),
        MEMORIZZ_PLUGIN_REMOTE_URL="https://localhost/mcp", MEMORIZZ_MCP_TOKEN=TOKEN,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install 'agent-memory[remote]'" in done.stderr
