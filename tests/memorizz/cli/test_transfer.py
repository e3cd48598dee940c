"""`memorizz memory export`, `import`, `inspect`, `verify` and `timeline`: flags, outputs and exit codes."""

from __future__ import annotations

import json
import os
import pty
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memorizz.memory_archive import read_archive, seal_archive
from tests.memorizz.cli.conftest import Run
from tests.memorizz.support import DATA, archive

KEEL = ("--agent-id", "agent-keel")


@pytest.fixture
def given(reference: Path) -> tuple[str, ...]:
    """The options that choose the reference folder."""
    return ("--backend", "filesystem", "--path", str(reference))


@pytest.fixture
def into(tmp_path: Path) -> tuple[str, ...]:
    """The options that choose a SQLite file that is not there yet."""
    return ("--backend", "sqlite", "--path", str(tmp_path / "target.sqlite3"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An archive of an agent and its delegate, made by the reference."""
    path = tmp_path / "given.memorizz.json"
    path.write_bytes((DATA / "agent_coordinator.memorizz.json").read_bytes())
    return path


def test_an_export_is_a_private_file_and_a_report(run: Run, given: tuple[str, ...], tmp_path: Path) -> None:
    done = run("memory", "export", "out.memorizz.json", *KEEL, *given)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    made = read_archive(tmp_path / "out.memorizz.json")
    assert report == {"path": "out.memorizz.json", "manifest": made["manifest"]}
    assert made["manifest"]["counts"] == archive("agent_coordinator")["manifest"]["counts"]
    assert stat.S_IMODE((tmp_path / "out.memorizz.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (KEEL, "agent_coordinator"),
        ((*KEEL, "--no-delegates"), "agent_no_delegates"),
        ((*KEEL, "--no-history"), "agent_no_history"),
        ((*KEEL, "--no-history", "--no-context"), "agent_plain"),
        (("--memory-id", "ns-keel"), "project_ns_keel"),
        (("--anonymous",), "anonymous"),
        (("--user-id", "ana"), "user_ana"),
        (("--types", "knowledge_base, conversation_memory,summaries"), "types_kb_conv"),
        (("--types", "LONG_TERM_MEMORY,conversation_memory,summaries"), "types_kb_conv"),
    ],
)
def test_each_option_selects_what_it_says(
    run: Run, given: tuple[str, ...], options: tuple[str, ...], name: str
) -> None:
    done = run("memory", "export", "-", *options, *given)
    assert done.returncode == 0
    made = json.loads(done.stdout)
    expected = archive(name)
    assert made["manifest"]["counts"] == expected["manifest"]["counts"]
    assert seal_archive(made) == made
    assert done.stderr == f"exported {expected['manifest']['record_count']:,} records\n"


def test_an_existing_file_is_replaced_only_with_the_flag(run: Run, given: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "out.memorizz.json"
    path.write_text("mine")
    refused = run("memory", "export", path, *given)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("Error: ")
    assert str(path) in refused.stderr
    assert path.read_text() == "mine"
    assert run("memory", "export", path, "--overwrite", *given).returncode == 0
    assert read_archive(path)["manifest"]["record_count"] == 58


def test_embeddings_travel_when_asked_for(run: Run, given: tuple[str, ...]) -> None:
    made = json.loads(run("memory", "export", "-", "--embeddings", *given).stdout)
    assert made["manifest"]["includes"]["embeddings"] is True
    assert any("embedding" in row["data"] for row in made["stores"]["personas"])


def test_a_preview_makes_no_destination(run: Run, file: Path, into: tuple[str, ...], tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    done = run("memory", "import", file, *into)
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["dry_run"], report["planned"]) == (0, True, True, 52)
    assert sorted(tmp_path.iterdir()) == before


def test_an_import_is_applied_and_a_conflict_has_one_exit_code(run: Run, file: Path, into: tuple[str, ...]) -> None:
    applied = json.loads(run("memory", "import", file, "--apply", *into).stdout)
    assert (applied["ok"], applied["imported"], applied["atomic"]) == (True, 52, True)
    preview = run("memory", "import", file, *into)
    assert preview.returncode == 1
    assert len(json.loads(preview.stdout)["conflicts"]) == 52
    refused = run("memory", "import", file, "--apply", *into)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "52 records are there already" in refused.stderr
    assert json.loads(run("memory", "import", file, "--apply", "--conflict", "skip", *into).stdout)["skipped"] == 52
    replaced = json.loads(run("memory", "import", file, "--apply", "--conflict", "replace", *into).stdout)
    assert (replaced["ok"], replaced["imported"]) == (True, 52)


def test_a_copy_writes_its_map_of_ids_privately(run: Run, file: Path, into: tuple[str, ...], tmp_path: Path) -> None:
    done = run("memory", "import", file, "--apply", "--new-ids", "--id-map", "ids.json", *into)
    assert done.returncode == 0
    ids = json.loads((tmp_path / "ids.json").read_text())
    assert ids == json.loads(done.stdout)["id_map"]
    assert "agent-keel" in ids
    assert stat.S_IMODE((tmp_path / "ids.json").stat().st_mode) == 0o600


def test_an_archive_flows_through_a_pipe(run: Run, given: tuple[str, ...], into: tuple[str, ...]) -> None:
    made = run("memory", "export", "-", "--memory-id", "ns-plover", "--no-history", *given).stdout
    done = run("memory", "import", "-", "--apply", "--target-memory-id", "elsewhere", *into, input=made)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id_map"] == {"ns-plover": "elsewhere"}


def test_an_archive_is_inspected_and_verified_without_any_memory(run: Run, file: Path, tmp_path: Path) -> None:
    shown = json.loads(run("memory", "inspect", file).stdout)
    assert [agent["id"] for agent in shown["agents"]] == ["agent-plover", "agent-keel"]
    assert shown["manifest"] == archive("agent_coordinator")["manifest"]
    sound = json.loads(run("memory", "verify", file).stdout)
    assert (sound["ok"], sound["records"]) == (True, 52)
    assert sound["digest"] == archive("agent_coordinator")["integrity"]["digest"]
    file.write_text(file.read_text().replace("barometer", "thermometer"))
    damaged = run("memory", "verify", file)
    assert (damaged.returncode, damaged.stdout) == (2, "")
    assert "the checksum does not fit" in damaged.stderr
    assert not (tmp_path / "home").exists()


def test_the_timeline_is_read_page_by_page(run: Run, given: tuple[str, ...]) -> None:
    whole = json.loads(run("memory", "timeline", *given).stdout)
    assert len(whole["changes"]) > 20
    first = json.loads(run("memory", "timeline", "--limit", "5", *given).stdout)
    second = json.loads(run("memory", "timeline", "--limit", "5", "--cursor", first["cursor"], *given).stdout)
    assert first["changes"] + second["changes"] == whole["changes"][:10]
    only = json.loads(run("memory", "timeline", "--action", "created", "--type", "personas", *given).stdout)
    assert {(change["action"], change["memory_type"]) for change in only["changes"]} == {("created", "personas")}
    assert run("memory", "timeline", "--limit", "0", *given).returncode == 2


# What is refused before or by the provider, with one sentence.
REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("memory", "export", "x.json", "--agent-id", "nobody"), "there is no agent 'nobody'"),
    (("memory", "export", "x.json", "--types", "knowledge_base,notes"), "unknown memory type 'notes'"),
    (("memory", "export", "x.json", "--user-id", "ana", "--anonymous"), "exclude each other"),
    (("memory", "export", "x.json", "--max-records", "3"), "at most 3 are allowed"),
    (("memory", "export", "x.json", "--max-bytes", "100"), "at most 100 are allowed"),
    (("memory", "import", "missing.json"), "missing.json"),
    (("memory", "import", "."), "directory"),
    (("memory", "import", "given.memorizz.json", "--conflict", "merge"), "'merge' is not one of"),
    (("memory", "import", "given.memorizz.json", "--user-id", "ben"), "outside of the scope 'ben'"),
    (("memory", "import", "given.memorizz.json", "--types", "agents"), "of a type that is not allowed"),
    (("memory", "import", "given.memorizz.json", "--reembed"), "embedding_provider"),
    (("memory", "import", "given.memorizz.json", "--target-memory-id", "one"), "namespaces"),
    (("memory", "import", "given.memorizz.json", "--max-bytes", "100"), "100"),
    (("memory", "verify", "broken.json"), "not valid JSON"),
    (("memory", "inspect", "missing.json"), "missing.json"),
    (("memory", "import", "given.memorizz.json", "--id-map", "-"), "--id-map needs a file"),
    (("memory", "import", "given.memorizz.json", "--id-map", "broken.json"), "is there already"),
    (("memory", "export", "x.json", "--agent-id", ""), "it must not be empty"),
    (("memory", "export", "x.json", "--types", " , "), "--types names no store"),
    (("memory", "export", ".", "--overwrite"), "it is no regular file"),
    (("memory", "nonsense"), "No such command"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_a_refusal_is_one_sentence_and_exit_code_2(
    run: Run, given: tuple[str, ...], file: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "broken.json").write_text("{")
    needs_provider = arguments[1] in ("export", "import")
    done = run(*arguments, *(given if needs_provider else ()))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (tmp_path / "x.json").exists()


def test_a_memory_that_is_not_there_is_not_made_by_reading_it(run: Run, tmp_path: Path) -> None:
    for command in (("export", "x.json"), ("timeline",)):
        done = run("memory", *command, "--backend", "sqlite", "--path", "nowhere.sqlite3")
        assert done.returncode == 2
        assert "there is no sqlite memory at" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_store_is_no_memory(run: Run, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    done = run("memory", "timeline", "--backend", "filesystem", "--path", "photos")
    assert (done.returncode, "there is no filesystem memory at" in done.stderr) == (2, True)


@pytest.mark.parametrize("arguments", [("--types", "agents"), ("--user-id", "ben"), ("--reembed",)])
def test_an_apply_that_is_refused_makes_no_destination(
    run: Run, file: Path, into: tuple[str, ...], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    before = sorted(tmp_path.iterdir())
    done = run("memory", "import", file, "--apply", "--id-map", "ids.json", *arguments, *into)
    assert (done.returncode, done.stdout) == (2, "")
    assert sorted(tmp_path.iterdir()) == before


def on_a_terminal(environment: dict[str, str], tmp_path: Path, *arguments: Any) -> tuple[int, str]:
    """Exit code and what a terminal shows."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "memorizz", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm", "COLUMNS": "100"},
        cwd=tmp_path,
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk
    except OSError:
        pass  # how a terminal says that nobody is there any more
    os.close(ours)
    return process.wait(60), shown.decode()


def test_a_person_gets_a_summary_without_the_map_of_ids(
    environment: dict[str, str], file: Path, into: tuple[str, ...], given: tuple[str, ...], tmp_path: Path
) -> None:
    code, shown = on_a_terminal(environment, tmp_path, "memory", "import", file, "--new-ids", *into)
    assert code == 0
    assert "preview: 52 records would be written, 0 skipped" in shown
    assert "nothing was written; add --apply to import" in shown
    assert "agent-keel" not in shown
    code, shown = on_a_terminal(environment, tmp_path, "memory", "import", file, "--apply", *into)
    assert "imported 52 of 52 records, skipped 0" in shown
    code, shown = on_a_terminal(environment, tmp_path, "memory", "import", file, *into)
    assert code == 1
    assert "52 records are there already:" in shown
    assert "and 42 more" in shown
    code, shown = on_a_terminal(environment, tmp_path, "memory", "export", "out.json", *given)
    assert (code, "exported 58 records to out.json" in shown) == (0, True)
    code, shown = on_a_terminal(environment, tmp_path, "memory", "verify", file)
    assert "sound: 52 records" in shown
    code, shown = on_a_terminal(environment, tmp_path, "memory", "timeline", "--limit", "2", *given)
    assert (code, shown.count("created") + shown.count("updated") + shown.count("deleted")) == (0, 2)
    code, shown = on_a_terminal(environment, tmp_path, "memory", "inspect", file)
    assert "agent agent-keel  Keel" in shown


def test_a_reader_that_has_seen_enough_and_an_interrupt_are_no_faults(
    environment: dict[str, str], given: tuple[str, ...], tmp_path: Path
) -> None:
    program = f"{sys.executable} -m memorizz"
    done = subprocess.run(
        ["sh", "-c", f"{program} memory export - {' '.join(given)} | head -c 10"],
        capture_output=True, env=environment, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert (len(done.stdout), b"Traceback" in done.stderr) == (10, False)
    waiting = subprocess.Popen(
        [sys.executable, "-m", "memorizz", "memory", "verify", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
    )  # fmt: skip
    assert waiting.stdin is not None
    waiting.stdin.write(b" " * 200_000)
    waiting.stdin.flush()
    waiting.send_signal(signal.SIGINT)
    _, errors = waiting.communicate(timeout=60)
    assert (waiting.returncode, b"Traceback" in errors) == (130, False)
