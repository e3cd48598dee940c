"""`memorizz plugin export-memory` and `import-memory`: a project's memory out and in again."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from memorizz.memory_archive import read_archive
from tests.memorizz.cli.conftest import Run
from tests.memorizz.cli.test_transfer import on_a_terminal
from tests.memorizz.plugins.conftest import Keep, facts
from tests.memorizz.support import DATA

OTHER = {"MEMORIZZ_SQLITE_PATH": "other.sqlite3"}


@pytest.fixture
def exported(run: Run, keep: Keep, project: Path, memory_id: str, tmp_path: Path) -> Path:
    """An archive of a project with two facts of nobody."""
    keep("one", memory_id)
    keep("two", memory_id)
    keep("elsewhere", "another-project")
    done = run("plugin", "export-memory", "out.memorizz.json", "--workspace", project)
    assert (done.returncode, done.stderr) == (0, "")
    return tmp_path / "out.memorizz.json"


def test_an_export_is_a_private_archive_of_the_project_only(exported: Path, memory_id: str) -> None:
    archive = read_archive(exported)
    assert facts(archive) == ["one", "two"]
    assert archive["manifest"]["scope"]["memory_id"] == memory_id
    assert archive["manifest"]["scope"]["user_scoped"] is True
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600


def test_an_export_reports_the_path_and_the_manifest(run: Run, exported: Path, project: Path) -> None:
    done = run("plugin", "export-memory", "again.json", "--workspace", project)
    report = json.loads(done.stdout)
    assert set(report) == {"path", "manifest"}
    assert report["path"] == "again.json"
    assert report["manifest"] == read_archive(exported.with_name("again.json"))["manifest"]


def test_a_file_is_replaced_only_with_the_flag(run: Run, exported: Path, project: Path) -> None:
    exported.write_text("mine")
    refused = run("plugin", "export-memory", exported, "--workspace", project)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--overwrite replaces it" in refused.stderr
    assert exported.read_text() == "mine"
    assert run("plugin", "export-memory", exported, "--workspace", project, "--overwrite").returncode == 0
    assert facts(read_archive(exported)) == ["one", "two"]
    assert run("plugin", "export-memory", "-", "--workspace", project).returncode == 2


@pytest.mark.parametrize(
    ("principal", "found", "missing", "said"), [("ana", ["hers"], 3, "'ana'"), (None, ["nobodys"], 3, "nobody")]
)
def test_what_other_users_have_in_the_project_is_left_out_and_counted(
    run: Run, keep: Keep, project: Path, memory_id: str, tmp_path: Path,
    principal: str | None, found: list[str], missing: int, said: str,
) -> None:  # fmt: skip
    keep("hers", memory_id, "ana")
    keep("his", memory_id, "bo")
    keep("his-too", memory_id, "bo")
    keep("nobodys", memory_id)
    user = {} if principal is None else {"MEMORIZZ_MCP_SERVER_LOCAL_PRINCIPAL": principal}
    done = run("plugin", "export-memory", "out.json", "--workspace", project, **user)
    assert done.returncode == 0
    archive = read_archive(tmp_path / "out.json")
    assert facts(archive) == found
    warnings = [warning for warning in archive["manifest"]["warnings"] if "other users" in warning]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{missing} records of this project are not here, because they belong to other users")
    assert said in warnings[0]
    assert json.loads(done.stdout)["manifest"]["warnings"] == archive["manifest"]["warnings"]
    assert "bo" not in warnings[0].split()


def test_nothing_is_said_when_nothing_is_left_out(exported: Path) -> None:
    assert "other users" not in exported.read_text()


def test_a_user_that_cannot_be_one_is_refused(run: Run, exported: Path, project: Path) -> None:
    done = run(
        "plugin", "export-memory", "x.json", "--workspace", project, MEMORIZZ_MCP_SERVER_LOCAL_PRINCIPAL="two words"
    )
    assert (done.returncode, "MEMORIZZ_MCP_SERVER_LOCAL_PRINCIPAL" in done.stderr) == (2, True)


def test_an_import_is_only_previewed_unless_it_is_applied(run: Run, exported: Path, project: Path) -> None:
    done = run("plugin", "import-memory", exported, "--workspace", project, **OTHER)
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["dry_run"], report["planned"]) == (0, True, True, 2)
    assert not (exported.parent / "other.sqlite3").exists()


def test_an_archive_goes_into_the_project_that_it_is_imported_in(run: Run, exported: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "init", "--quiet", str(clone)], check=True)
    done = run("plugin", "import-memory", exported, "--workspace", clone, "--apply", **OTHER)
    assert (done.returncode, json.loads(done.stdout)["imported"]) == (0, 2)
    back = run("plugin", "export-memory", "back.json", "--workspace", clone, **OTHER)
    assert back.returncode == 0
    archive = read_archive(tmp_path / "back.json")
    assert facts(archive) == ["one", "two"]
    memory_id = run("plugin", "memory-id", clone).stdout.strip()
    assert {row["data"]["memory_id"] for row in archive["stores"]["knowledge_base"]} == {memory_id}


def test_the_namespace_of_the_archive_can_be_kept(run: Run, exported: Path, memory_id: str, tmp_path: Path) -> None:
    elsewhere = ("--workspace", str(tmp_path), "--preserve-namespace", "--apply")
    assert run("plugin", "import-memory", exported, *elsewhere, **OTHER).returncode == 0
    made = run("memory", "export", "-", "--memory-id", memory_id, **OTHER)
    assert facts(json.loads(made.stdout)) == ["one", "two"]


def test_records_that_are_there_already_stop_an_import_until_a_policy_is_chosen(
    run: Run, exported: Path, project: Path
) -> None:
    here = ("plugin", "import-memory", str(exported), "--workspace", str(project))
    preview = run(*here)
    assert (preview.returncode, len(json.loads(preview.stdout)["conflicts"])) == (1, 2)
    assert run(*here, "--apply").returncode == 1
    assert json.loads(run(*here, "--apply", "--conflict", "skip").stdout)["skipped"] == 2
    assert json.loads(run(*here, "--apply", "--conflict", "replace").stdout)["imported"] == 2
    copied = json.loads(run(*here, "--apply", "--new-ids").stdout)
    assert (copied["ok"], copied["imported"]) == (True, 2)
    assert len(facts(json.loads(run("memory", "export", "-").stdout))) == 5


def test_an_archive_with_several_namespaces_is_for_the_general_command(run: Run, project: Path, tmp_path: Path) -> None:
    file = tmp_path / "agents.memorizz.json"
    shutil.copy(DATA / "agent_coordinator.memorizz.json", file)
    before = sorted(tmp_path.iterdir())
    done = run("plugin", "import-memory", file, "--workspace", project, "--apply")
    assert (done.returncode, done.stdout) == (2, "")
    assert "ns-keel, ns-plover" in done.stderr
    assert "`memorizz memory import`" in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_an_archive_of_somebody_else_is_refused_and_makes_no_memory(
    run: Run, keep: Keep, project: Path, memory_id: str, tmp_path: Path
) -> None:
    keep("hers", memory_id, "ana")
    assert run("memory", "export", "hers.json", "--user-id", "ana").returncode == 0
    done = run("plugin", "import-memory", "hers.json", "--workspace", project, "--apply", **OTHER)
    assert (done.returncode, "outside of the scope" in done.stderr) == (2, True)
    assert not (tmp_path / "other.sqlite3").exists()


def test_a_damaged_archive_and_a_missing_memory_are_named(run: Run, exported: Path, project: Path) -> None:
    missing = run("plugin", "export-memory", "x.json", "--workspace", project, **OTHER)
    assert (missing.returncode, "there is no sqlite memory at" in missing.stderr) == (2, True)
    exported.write_text(exported.read_text().replace("what one says", "what two says"))
    damaged = run("plugin", "import-memory", exported, "--workspace", project)
    assert (damaged.returncode, "the checksum does not fit" in damaged.stderr) == (2, True)


def test_a_person_gets_a_summary(
    environment: dict[str, str], exported: Path, project: Path, memory_id: str, tmp_path: Path
) -> None:
    here = ("--workspace", str(project))
    code, shown = on_a_terminal(environment, tmp_path, "plugin", "export-memory", "o.json", *here)
    assert (code, f"exported 2 records of {memory_id} to o.json" in shown) == (0, True)
    assert "note: history holds names" in " ".join(shown.split())
    code, shown = on_a_terminal(environment, tmp_path, "plugin", "import-memory", "o.json", *here)
    assert (code, "2 records are there already:" in shown) == (1, True)
    code, shown = on_a_terminal(
        environment, tmp_path, "plugin", "import-memory", "o.json", *here, "--new-ids", "--apply"
    )
    assert (code, "imported 2 of 2 records, skipped 0" in shown) == (0, True)
