"""`memorizz plugin install` and `uninstall`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.memorizz.cli.conftest import Run
from tests.memorizz.cli.test_transfer import on_a_terminal
from tests.memorizz.plugins.conftest import contents

PROGRAMS = {"claude-code": "claude", "codex": "codex"}
BOTH = pytest.mark.parametrize("client", PROGRAMS)


@pytest.fixture
def marketplace(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".memorizz" / "plugin-marketplace"


def calls(home: Path) -> list[str]:
    file = home / "calls.jsonl"
    return [" ".join(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def settings(home: Path, client: str) -> Any:
    return json.loads((home / f"{PROGRAMS[client]}.json").read_text())


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def server(marketplace: Path, client: str, plugin: str = "memorizz") -> Any:
    return read(marketplace / "plugins" / client / plugin / ".mcp.json")["mcpServers"][plugin]


def test_claude_code_is_told_where_the_marketplace_is_and_what_to_install(
    run: Run, clients: Path, marketplace: Path
) -> None:
    done = run("plugin", "install", "claude-code")
    assert (done.returncode, done.stderr) == (0, "")
    expected = [f"claude plugin marketplace add {marketplace}", "claude plugin install memorizz@memorizz"]
    assert calls(clients) == expected
    assert json.loads(done.stdout) == {
        "client": "claude-code",
        "marketplace": str(marketplace),
        "plugins": ["memorizz"],
        "commands": [command.split() for command in expected],
        "done": True,
        "remote": None,
    }
    assert list(settings(clients, "claude-code")["plugins"]) == ["theirs@theirs", "memorizz@memorizz"]


def test_codex_is_told_in_its_own_words_and_the_typed_memory_comes_when_it_is_asked_for(
    run: Run, clients: Path, marketplace: Path
) -> None:
    assert run("plugin", "install", "codex", "--typed").returncode == 0
    assert calls(clients) == [
        f"codex plugin marketplace add {marketplace}",
        "codex plugin add memorizz@memorizz",
        "codex plugin add agent-memory@memorizz",
    ]


def test_the_marketplace_is_one_that_both_clients_understand(run: Run, clients: Path, marketplace: Path) -> None:
    assert run("plugin", "install", "codex").returncode == 0
    claude = read(marketplace / ".claude-plugin" / "marketplace.json")
    assert (claude["name"], set(claude["owner"])) == ("memorizz", {"name"})
    codex = read(marketplace / ".agents" / "plugins" / "marketplace.json")
    assert codex["name"] == "memorizz"
    for client, manifest in (("claude", claude), ("codex", codex)):
        assert [plugin["name"] for plugin in manifest["plugins"]] == ["memorizz", "agent-memory"]
        for plugin in manifest["plugins"]:
            source = plugin["source"] if client == "claude" else plugin["source"]["path"]
            assert source.startswith("./")
            assert read(marketplace / source / f".{client}-plugin" / "plugin.json")["name"] == plugin["name"]


@BOTH
def test_the_servers_are_started_by_an_absolute_command_that_offers_its_tools(
    run: Run, no_clients: None, marketplace: Path, client: str, environment: dict[str, str]
) -> None:
    assert run("plugin", "install", client).returncode == 0
    assert offered(server(marketplace, client), environment) == ["memorizz_export_memories", "memorizz_import_memories"]
    assert "memory_search" in offered(server(marketplace, client, "agent-memory"), environment)


def offered(started: Any, environment: dict[str, str]) -> list[str]:
    """The names of the tools of a server that a client starts without a path."""
    assert Path(started["command"]).is_absolute()
    parameters = StdioServerParameters(
        command=started["command"], args=started["args"], env={**environment, "PATH": "/nowhere"}
    )

    async def listed() -> list[str]:
        async with Client(parameters) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    return anyio.run(listed)


def test_on_a_terminal_the_lines_to_run_can_be_copied(
    run: Run, no_clients: None, environment: dict[str, str], marketplace: Path, tmp_path: Path
) -> None:
    code, shown = on_a_terminal(environment, tmp_path, "plugin", "install", "codex")
    assert code == 0
    assert "codex is not on the path; to finish, run\r\n" in shown
    assert "\r\n  codex plugin add memorizz@memorizz\r\n" in shown
    code, shown = on_a_terminal(environment, tmp_path, "plugin", "uninstall", "claude-code")
    assert (code, "nothing is installed for claude-code" in shown) == (0, True)


@BOTH
def test_installing_again_changes_nothing(run: Run, clients: Path, marketplace: Path, client: str) -> None:
    assert run("plugin", "install", client, "--typed").returncode == 0
    tree, theirs = contents(marketplace), settings(clients, client)
    assert run("plugin", "install", client).returncode == 0
    assert contents(marketplace) == tree
    assert settings(clients, client) == theirs
    assert "agent-memory@memorizz" in theirs["plugins"]


def test_the_marketplace_is_private(run: Run, clients: Path, marketplace: Path) -> None:
    assert run("plugin", "install", "codex").returncode == 0
    assert {file.stat().st_mode & 0o077 for file in (marketplace, *marketplace.rglob("*"))} == {0}


@BOTH
def test_uninstalling_leaves_no_trace_and_what_is_others_byte_for_byte(
    run: Run, clients: Path, marketplace: Path, client: str
) -> None:
    (clients / "notes.md").write_bytes(b"mine\r\n")
    before = contents(clients)
    assert run("plugin", "install", client, "--typed").returncode == 0
    done = run("plugin", "uninstall", client)
    assert (done.returncode, done.stderr) == (0, "")
    after = contents(clients)
    after.pop("calls.jsonl")
    assert after == before
    assert not marketplace.exists()


def test_what_somebody_put_into_the_marketplace_stays(run: Run, clients: Path, marketplace: Path) -> None:
    assert run("plugin", "install", "codex").returncode == 0
    (marketplace / "plugins" / "codex" / "mine.txt").write_text("mine")
    assert run("plugin", "uninstall", "codex").returncode == 0
    assert contents(marketplace) == {"plugins/codex/mine.txt": b"mine"}


def test_a_marketplace_of_another_program_is_not_written_over(run: Run, clients: Path, marketplace: Path) -> None:
    manifest = marketplace / ".claude-plugin" / "marketplace.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("theirs")
    done = run("plugin", "install", "claude-code")
    assert (done.returncode, f"{manifest} is not from this command" in done.stderr) == (2, True)
    assert contents(marketplace) == {".claude-plugin/marketplace.json": b"theirs"}
    assert calls(clients) == []


def test_the_marketplace_stays_as_long_as_a_client_uses_it(run: Run, clients: Path, marketplace: Path) -> None:
    for client in PROGRAMS:
        assert run("plugin", "install", client).returncode == 0
    assert run("plugin", "uninstall", "codex").returncode == 0
    assert "memorizz@memorizz" in settings(clients, "claude-code")["plugins"]
    assert (marketplace / ".claude-plugin" / "marketplace.json").exists()
    assert run("plugin", "uninstall", "claude-code").returncode == 0
    assert not marketplace.exists()


def test_uninstalling_what_is_not_installed_does_nothing(run: Run, clients: Path) -> None:
    done = run("plugin", "uninstall", "codex")
    assert (done.returncode, json.loads(done.stdout)["plugins"], calls(clients)) == (0, [], [])


def test_files_that_a_version_no_longer_has_are_removed(run: Run, clients: Path, marketplace: Path) -> None:
    assert run("plugin", "install", "codex").returncode == 0
    tree = contents(marketplace)
    stale = marketplace / "plugins" / "codex" / "old" / "SKILL.md"
    stale.parent.mkdir()
    stale.write_text("old")
    record = read(marketplace / "installed.json")
    record["files"].append("plugins/codex/old/SKILL.md")
    (marketplace / "installed.json").write_text(json.dumps(record))
    assert run("plugin", "install", "codex").returncode == 0
    assert contents(marketplace) == tree
    assert not stale.parent.exists()


@BOTH
def test_without_the_clients_program_the_lines_to_run_are_shown(
    run: Run, no_clients: None, marketplace: Path, client: str
) -> None:
    done = run("plugin", "install", client)
    report = json.loads(done.stdout)
    assert (done.returncode, report["done"]) == (0, False)
    assert report["commands"][0] == [PROGRAMS[client], "plugin", "marketplace", "add", str(marketplace)]
    report = json.loads(run("plugin", "uninstall", client).stdout)
    assert (report["done"], report["commands"][-1][-2:]) == (False, ["remove", "memorizz"])
    assert not marketplace.exists()


def test_what_the_client_says_against_it_is_passed_on(run: Run, clients: Path, marketplace: Path) -> None:
    taken = {"marketplaces": {"memorizz": "/srv/theirs"}, "plugins": {}}
    (clients / "claude.json").write_text(json.dumps(taken))
    done = run("plugin", "install", "claude-code")
    assert (done.returncode, done.stdout) == (1, "")
    said = f"`claude plugin marketplace add {marketplace}` ended with 1: claude: already installed"
    assert done.stderr == f"Error: {said}\n"
    assert settings(clients, "claude-code") == taken


def test_what_was_removed_by_hand_keeps_nothing_else_from_being_removed(
    run: Run, clients: Path, marketplace: Path
) -> None:
    before = (clients / "codex.json").read_bytes()
    assert run("plugin", "install", "codex").returncode == 0
    (clients / "codex.json").write_bytes(before)
    done = run("plugin", "uninstall", "codex")
    assert (done.returncode, done.stderr.count("codex: not installed")) == (1, 1)
    assert not marketplace.exists()
    assert run("plugin", "uninstall", "codex").returncode == 0


REMOTE = ("--remote", "https://memory.example.com/mcp", "--token-env", "HARBOR_TOKEN")


def test_a_hosted_memory_is_asked_by_its_address_and_the_token_stays_in_its_variable(
    run: Run, clients: Path, marketplace: Path
) -> None:
    assert run("plugin", "install", "codex", *REMOTE, HARBOR_TOKEN="secret-token-0123456789").returncode == 0
    url = "https://memory.example.com/mcp"
    assert server(marketplace, "codex") == {"type": "http", "url": url, "bearer_token_env_var": "HARBOR_TOKEN"}
    authorization = {"Authorization": "Bearer ${HARBOR_TOKEN}"}
    assert server(marketplace, "claude-code") == {"type": "http", "url": url, "headers": authorization}
    assert server(marketplace, "codex", "agent-memory")["args"] == ["serve"]
    assert [name for name, content in contents(clients).items() if b"secret-token" in content] == []


def test_a_hosted_memory_is_remembered_until_a_local_one_is_asked_for(
    run: Run, clients: Path, marketplace: Path
) -> None:
    file = clients / ".memorizz" / ".env"
    file.parent.mkdir()
    file.write_text("# mine\nOTHER=1\n")
    assert run("plugin", "install", "codex", *REMOTE).returncode == 0
    hosted = contents(marketplace)
    assert "HARBOR_TOKEN, which is not set" in run("plugin", "export-memory", "x.json").stderr
    assert run("plugin", "install", "codex").returncode == 0
    assert contents(marketplace) == hosted
    assert run("plugin", "install", "codex", "--local").returncode == 0
    assert "command" in server(marketplace, "codex")
    assert file.read_text() == "# mine\nOTHER=1\n"


def test_uninstalling_forgets_the_hosted_memory(run: Run, clients: Path) -> None:
    assert run("plugin", "install", "codex", *REMOTE).returncode == 0
    assert run("plugin", "uninstall", "codex").returncode == 0
    assert "memory.example.com" not in run("plugin", "export-memory", "x.json").stderr


def test_a_hosted_memory_that_somebody_wrote_into_the_settings_stays_there(run: Run, clients: Path) -> None:
    file = clients / ".memorizz" / ".env"
    file.parent.mkdir()
    file.write_text("MEMORIZZ_PLUGIN_REMOTE_URL=https://memory.example.com/mcp\n")
    for command in ("install", "uninstall", "uninstall"):
        assert run("plugin", command, "codex").returncode == 0
    assert file.read_text() == "MEMORIZZ_PLUGIN_REMOTE_URL=https://memory.example.com/mcp\n"


def test_what_is_not_installed_is_not_remembered(run: Run, clients: Path, marketplace: Path) -> None:
    (clients / "codex.json").write_text(json.dumps({"marketplaces": {"memorizz": "/srv/theirs"}, "plugins": {}}))
    assert run("plugin", "install", "codex", *REMOTE).returncode == 1
    assert list(contents(clients / ".memorizz")) == [
        str(file.relative_to(marketplace.parent)) for file in marketplace.rglob("*") if file.is_file()
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--local", *REMOTE), "exclude each other"),
        (("--token-env", "HARBOR_TOKEN"), "--token-env needs --remote"),
        (("--remote", "http://memory.example.com/mcp"), "begins with https://"),
        (("--remote", "https://memory.example.com/mcp", "--token-env", "the-token"), "give the name of the variable"),
        (("--remote", ""), "must not be empty"),
    ],
)
def test_what_cannot_be_installed_is_refused_before_anything_is_written(
    run: Run, clients: Path, options: tuple[str, ...], said: str
) -> None:
    done = run("plugin", "install", "codex", *options)
    assert (done.returncode, said in done.stderr) == (2, True)
    assert not (clients / ".memorizz").exists()
    assert run("plugin", "install", "cursor").returncode == 2


def test_a_record_that_cannot_be_understood_is_named(run: Run, clients: Path, marketplace: Path) -> None:
    marketplace.mkdir(parents=True)
    for text in ("{", '{"files": ["../notes.md"], "clients": {}, "remembered": false}'):
        (marketplace / "installed.json").write_text(text)
        for command in ("install", "uninstall"):
            done = run("plugin", command, "codex")
            assert (done.returncode, f"move {marketplace} away" in done.stderr) == (2, True)
