"""The plugins as files: what the clients' published rules ask of them, and that they are ours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import memorizz
from agent_memory.config import ENVIRONMENT
from memorizz.cli.root import make_root
from memorizz.config import ENVIRONMENT as GRAPH_ENVIRONMENT
from tests.memorizz.plugins.conftest import contents

BUNDLES = Path(memorizz.__file__).parent / "plugins" / "bundles"
CLAUDE = {"memorizz": BUNDLES / "claude-code", "agent-memory": BUNDLES / "claude-code-agent-memory"}
CODEX = {"memorizz": BUNDLES / "codex", "agent-memory": BUNDLES / "codex-agent-memory"}
PLUGINS = [*CLAUDE.items(), *CODEX.items()]
MANIFESTS = sorted(BUNDLES.glob("*/.*-plugin/plugin.json"))
SKILLS = sorted(BUNDLES.glob("*/skills/*/SKILL.md"))
COMMANDS = sorted(BUNDLES.glob("*/commands/*.md"))
KEBAB = r"[a-z0-9]+(-[a-z0-9]+)*"


def shown(path: Path) -> str:
    return str(path.relative_to(BUNDLES))


def front_matter(file: Path) -> dict[str, str]:
    """The fields at the head of a file, which must mean the same to every reader of YAML."""
    found = re.match(r"---\n(.*?)\n---\n\n\S", file.read_text(encoding="utf-8"), re.DOTALL)
    assert found, "it begins with fields between lines of dashes"
    fields = {}
    for line in found[1].splitlines():
        name, _, value = line.partition(": ")
        if value.startswith('"'):
            value = json.loads(value)
        else:
            assert re.fullmatch(r"[A-Za-z0-9](?:(?!: | #|:$).)*", value), f"{name} needs quotes"
        fields[name] = value
    return fields


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=shown)
def test_a_plugin_has_a_name_a_version_and_a_description(manifest: Path) -> None:
    about = read(manifest)
    assert re.fullmatch(KEBAB, about["name"])
    assert about["version"] == memorizz.__version__
    assert 0 < len(about["description"]) <= 200
    assert about["author"]["name"]
    assert all(isinstance(word, str) for word in about["keywords"])


def test_each_client_has_both_plugins_under_the_same_names() -> None:
    assert [shown(file) for file in MANIFESTS] == [
        "claude-code/.claude-plugin/plugin.json",
        "claude-code-agent-memory/.claude-plugin/plugin.json",
        "codex/.codex-plugin/plugin.json",
        "codex-agent-memory/.codex-plugin/plugin.json",
    ]
    for name in CLAUDE:
        assert read(CLAUDE[name] / ".claude-plugin" / "plugin.json")["name"] == name
        assert read(CODEX[name] / ".codex-plugin" / "plugin.json")["name"] == name


@pytest.mark.parametrize("plugin", CODEX.values(), ids=shown)
def test_a_codex_plugin_names_its_parts_and_how_it_is_shown(plugin: Path) -> None:
    about = read(plugin / ".codex-plugin" / "plugin.json")
    for part in ("skills", "mcpServers"):
        assert about[part].startswith("./")
        assert (plugin / about[part]).exists()
    assert {"displayName", "shortDescription", "longDescription", "developerName", "category"} <= set(
        about["interface"]
    )
    assert len(about["interface"]["defaultPrompt"]) <= 3
    assert all(len(prompt) <= 128 for prompt in about["interface"]["defaultPrompt"])


@pytest.mark.parametrize("skill", SKILLS, ids=shown)
def test_a_skill_has_the_name_of_its_directory_and_says_when_it_is_used(skill: Path) -> None:
    fields = front_matter(skill)
    assert set(fields) == {"name", "description"}
    assert re.fullmatch(KEBAB, fields["name"])
    assert len(fields["name"]) <= 64
    assert fields["name"] == skill.parent.name
    assert len(fields["description"]) <= 1024
    assert "Use it " in fields["description"]
    assert not re.search(r"[<>]", fields["description"])


def test_both_clients_have_the_same_skills() -> None:
    assert {name: sorted(skill.name for skill in plugin.glob("skills/*")) for name, plugin in CLAUDE.items()} == {
        "memorizz": ["memorizz-memory", "memory-transfer"],
        "agent-memory": ["typed-memory"],
    }
    for name, plugin in CLAUDE.items():
        assert contents(plugin / "skills") == contents(CODEX[name] / "skills")


@pytest.mark.parametrize("command", COMMANDS, ids=shown)
def test_a_command_is_described_and_passes_on_what_was_asked(command: Path) -> None:
    fields = front_matter(command)
    assert {"description"} <= set(fields) <= {"description", "argument-hint"}
    assert len(fields["description"]) <= 100
    assert "$ARGUMENTS" in command.read_text(encoding="utf-8")


def test_claude_code_has_commands_to_export_and_to_import() -> None:
    assert [shown(command) for command in COMMANDS] == [
        "claude-code/commands/export-memory.md",
        "claude-code/commands/import-memory.md",
    ]


@pytest.mark.parametrize(("name", "plugin"), PLUGINS, ids=lambda value: "" if isinstance(value, str) else shown(value))
def test_a_plugin_starts_one_server_with_a_command_of_ours(name: str, plugin: Path) -> None:
    servers = read(plugin / ".mcp.json")
    assert set(servers) == {"mcpServers"}
    assert set(servers["mcpServers"]) == {name}
    server = servers["mcpServers"][name]
    assert set(server) <= {"command", "args", "env_vars"}
    assert [server["command"], *server["args"]] in (["memorizz", "mcp", "serve"], ["agent-memory", "serve"])
    assert server["command"] == name


def test_codex_passes_on_the_settings_that_the_servers_read() -> None:
    assert read(CODEX["agent-memory"] / ".mcp.json")["mcpServers"]["agent-memory"]["env_vars"] == [
        *ENVIRONMENT.values()
    ]
    passed = set(read(CODEX["memorizz"] / ".mcp.json")["mcpServers"]["memorizz"]["env_vars"])
    assert passed <= set(GRAPH_ENVIRONMENT)
    assert {"MEMORIZZ_HOME", "MEMORIZZ_BACKEND", "MEMORIZZ_MCP_SERVER_LOCAL_PRINCIPAL"} <= passed


@pytest.mark.parametrize("page", [*SKILLS, *COMMANDS], ids=shown)
def test_every_command_line_that_is_named_exists(page: Path) -> None:
    root = make_root()
    for group, name, rest in re.findall(r"\bmemorizz (memory|plugin|mcp) ([a-z-]+)([^`\n)]*)", page.read_text("utf-8")):
        commands = root.get_command(None, group)  # type: ignore[arg-type]
        command = commands.get_command(None, name)  # type: ignore[union-attr, arg-type]
        assert command is not None, f"memorizz {group} {name}"
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options, f"memorizz {group} {name} {rest}"


def test_a_bundle_holds_nothing_but_what_the_clients_read() -> None:
    known = r"\.(claude|codex)-plugin/plugin\.json|\.mcp\.json|skills/[^/]+/SKILL\.md|commands/[^/]+\.md"
    for _, plugin in PLUGINS:
        assert [name for name in contents(plugin) if not re.fullmatch(known, name)] == []
