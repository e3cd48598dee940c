"""`import` and `export` as people run them: what goes to which stream, exit codes, and files that stay as they are."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import agent_memory
from tests.support import database
from tests.support.doors import McpDoor
from tests.support.ollama import NOBODY, FakeOllama
from tests.support.portable import file, header, line, link, memory, records, run, strict_records

DATA = file(memory(1, "We chose SQLite.", type="DECISION"), memory(2, "Two writers lost a row."), link(1, 2))
PENDING = " rows pending embedding — the sweep backfills them on the next serve/serve-rest start (128 per tick)\n"
VARIANTS = "expected one of `header`, `memory`, `link`"
CARRIAGE_RETURN = "the line ends with a carriage return: lines end with a line feed alone"
STATE = Path(__file__).parent.parent / "formats" / "data" / "STATE.md"


def snapshot(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(found): (found.read_bytes(), found.stat().st_mtime_ns) for found in directory.rglob("*") if found.is_file()
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file to import, in a directory of its own."""
    directory = tmp_path / "given"
    directory.mkdir()
    return directory / "memories.jsonl"


def test_the_report_of_an_import_is_two_lines_on_standard_output(db: Path, source: Path) -> None:
    given = [
        memory(1, "a"), memory(2, "a"), memory(3, "b", expires_at=5), memory(4, "c"),
        link(1, 4), link(2, 4), link(3, 4), link(1, 2),
    ]  # fmt: skip
    source.write_bytes(file(*given))
    done = run(db, "import", "--from", "jsonl", str(source))
    assert done.returncode == 0
    assert done.stdout.decode() == (
        "imported: 2, skipped duplicates: 1, skipped expired: 1, links imported: 1, links skipped duplicates: 1, "
        "links dropped: 2\n2" + PENDING
    )
    assert done.stderr.decode() == f"created {db}\n"
    again = run(db, "import", "--from", "jsonl", str(source))
    assert again.stdout.decode() == (
        "imported: 0, skipped duplicates: 3, skipped expired: 1, links imported: 0, links skipped duplicates: 2, "
        "links dropped: 2\n0" + PENDING
    )
    assert again.stderr == b""


def test_an_export_is_on_standard_output_and_its_report_on_standard_error(db: Path, tmp_path: Path) -> None:
    run(db, "import", "--from", "jsonl", "-", input=DATA)
    done = run(db, "export", PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, b"exported 2 memories and 1 links\n")
    assert len(strict_records(done.stdout)) == 4
    # On another machine it is the same memory.
    copied = run(tmp_path / "copy.db", "import", "--from", "jsonl", "-", input=done.stdout)
    assert copied.stdout.startswith(b"imported: 2, skipped duplicates: 0, skipped expired: 0, links imported: 1,")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "line 1: missing header: the file is empty"),
        (DATA + b"\n", "line 5: the line is blank"),
        (DATA[:-1], "line 4: the line has no line feed at its end: the file is cut short"),
        (DATA.replace(b"\n", b"\r\n"), f"line 1: {CARRIAGE_RETURN}"),
        (DATA.replace(b'"memory","key":2', b'"memo","key":2'), f"line 3: unknown variant `memo`, {VARIANTS}"),
        (DATA.replace(b'_rows":2', b'_rows":3'), "line 1: exported_rows is 3 but the file holds 2 memory records"),
        (DATA + line(link(2, 2)), "line 5: from and to must differ (got 2)"),
        (DATA.replace(b'"memory","key":2', b'"\\u001b[2J","key":2'), f"line 3: unknown variant `\\x1b[2J`, {VARIANTS}"),
        (DATA.replace(b"SQLite", b"\xff"), "line 2: not valid UTF-8 (byte 66 is 0xff)"),
    ],
)
@pytest.mark.parametrize("target", ["missing", "there"])
def test_a_defect_is_exit_code_1_and_the_database_is_not_even_opened(
    db: Path, source: Path, tmp_path: Path, data: bytes, message: str, target: str
) -> None:  # 15.3, F7
    source.write_bytes(data)
    if target == "there":
        with agent_memory.open(db, ollama_url=NOBODY) as am:
            am.store("kept", "TODO")
    before = snapshot(tmp_path)
    done = run(db, "import", "--from", "jsonl", str(source))
    assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", f"Error: invalid argument: {message}\n")
    assert snapshot(tmp_path) == before


def test_a_newer_file_is_refused_before_the_database_is_opened(db: Path) -> None:
    done = run(db, "import", "--from", "jsonl", "-", input=line(header(version=2, more=True)))
    assert (done.returncode, done.stdout, done.stderr.decode()) == (
        1,
        b"",
        "Error: file is format version 2 but this binary reads up to version 1 — upgrade agent-memory\n",
    )
    assert not db.exists()


def test_a_defect_is_told_even_where_no_database_can_be(tmp_path: Path, source: Path) -> None:
    source.write_bytes(DATA + b"x")
    done = run(tmp_path, "import", "--from", "jsonl", str(source))  # a directory
    assert b"line 5" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "jsonl", "--scope", "x", "nowhere"], "jsonl: every memory in the file carries its own scope"),
        (["--from", "jsonl", "--scope", "", "nowhere"], "--scope is not accepted with --from jsonl"),
        (["--from", "csv", "nowhere"], 'unsupported --from value "csv" (supported formats: gsd-state, jsonl)'),
        (["--from", "JSONL", "nowhere"], 'unsupported --from value "JSONL"'),
        (["--from", "", "nowhere"], 'unsupported --from value ""'),
        (["nowhere"], "Missing option '--from'"),
        (["--from", "jsonl"], "Missing argument 'PATH'"),
    ],
)  # fmt: skip
def test_wrong_usage_is_exit_code_2_and_opens_nothing(db: Path, arguments: list[str], message: str) -> None:
    done = run(db, "import", *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()
    assert not db.exists()


@pytest.mark.parametrize("format", ["jsonl", "gsd-state"])
def test_a_path_that_cannot_be_read_is_named(db: Path, tmp_path: Path, format: str) -> None:
    for path, reason in ((tmp_path / "missing", "No such file or directory"), (tmp_path, "Is a directory")):
        done = run(db, "import", "--from", format, str(path))
        assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", f"Error: reading {path}: {reason}\n")
    assert not db.exists()


def test_standard_input_is_read_for_a_dash_be_it_a_pipe_or_a_file(db: Path, source: Path) -> None:
    assert run(db, "import", "--from", "jsonl", "-", input=DATA).stdout.startswith(b"imported: 2,")
    source.write_bytes(DATA)
    with source.open("rb") as given:
        assert run(db, "import", "--from", "jsonl", "-", input=given).stdout.startswith(b"imported: 0, skipped dup")
    failed = run(db, "import", "--from", "jsonl", "-", input=b"x\n")
    assert failed.stderr == b"Error: invalid argument: line 1: not valid JSON (Expecting value at character 1)\n"


def test_what_another_program_has_read_of_standard_input_is_not_read_again(db: Path, source: Path) -> None:
    source.write_bytes(b"a line for somebody else\n" + DATA)
    with source.open("rb", buffering=0) as given:
        given.seek(25)
        done = run(db, "import", "--from", "jsonl", "-", input=given)
    assert done.stdout.startswith(b"imported: 2,"), done.stderr


@pytest.mark.parametrize("format", ["jsonl", "gsd-state"])
def test_a_pipe_with_a_name_can_be_imported(db: Path, tmp_path: Path, format: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = DATA if format == "jsonl" else b"# Decisions\n- a\n- b\n"
    writing = threading.Thread(target=pipe.write_bytes, args=(data,), daemon=True)
    writing.start()
    done = run(db, "import", "--from", format, str(pipe))
    writing.join(20)
    assert done.stdout.startswith(b"imported: 2,"), done.stderr


def test_a_content_of_ten_megabytes_goes_there_and_back(db: Path) -> None:  # F7
    data = file(memory(1, "größe " * 1_500_000))
    assert run(db, "import", "--from", "jsonl", "-", input=data).returncode == 0
    assert records(run(db, "export").stdout)[1]["content"] == "größe " * 1_500_000


def test_an_import_asks_no_embedder(db: Path, ollama: FakeOllama) -> None:  # 15.3
    assert run(db, "import", "--from", "jsonl", "-", input=DATA, AGENT_MEMORY_OLLAMA_URL=ollama.url).returncode == 0
    assert run(db, "export", AGENT_MEMORY_OLLAMA_URL=ollama.url).returncode == 0
    assert ollama.requests == []
    assert database.rows(db, "SELECT embedding_status FROM memories") == [0, 0]


def test_a_file_from_another_time_is_imported_with_a_warning_on_standard_error(db: Path) -> None:
    data = DATA.replace(b'"exported_at":1000', b'"exported_at":99999999999')
    done = run(db, "import", "--from", "jsonl", "-", input=data)
    assert (done.returncode, b"imported: 2," in done.stdout) == (0, True)
    assert b"WARNING" in done.stderr and b"clock skew" in done.stderr
    assert b"clock skew" not in done.stdout


def test_a_database_that_cannot_be_used_is_told_after_the_file_was_found_good(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    db.write_bytes(b"no database, but a letter to somebody" * 100)
    done = run(db, "import", "--from", "jsonl", "-", input=DATA)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Error: opening database at" in done.stderr
    assert db.read_bytes().startswith(b"no database")


def test_imported_memories_are_there_for_a_server_that_runs(mcp: McpDoor) -> None:
    own = mcp.store(content="stored before", type="TODO")
    assert run(mcp.path, "import", "--from", "jsonl", "-", input=DATA).returncode == 0
    found = mcp.search(query="which database? SQLite", expand_links=True)["results"]
    assert [(memory["id"], [near["id"] for near in memory["related"]]) for memory in found] == [(own + 1, [own + 2])]
    assert mcp.store(content="stored after", type="TODO") == own + 3
    assert len(records(run(mcp.path, "export").stdout)) == 1 + 4 + 1


@pytest.mark.parametrize("tool", ["memory_export", "memory_import"])
def test_no_tool_exports_or_imports(mcp: McpDoor, tool: str) -> None:
    listed = mcp.server.request("tools/list")["result"]["tools"]
    assert tool not in [each["name"] for each in listed]
    assert not [each["name"] for each in listed if "port" in each["name"]]


def test_the_fixture_of_a_project_is_imported_and_then_nothing(db: Path, tmp_path: Path) -> None:  # 12.3, 15.1 #36
    planning = tmp_path / "shop" / ".planning"
    planning.mkdir(parents=True)
    (planning / "STATE.md").write_bytes(STATE.read_bytes())
    for first, second in ((9, 0), (0, 9)):
        done = run(db, "import", "--from", "gsd-state", str(planning / "STATE.md"))
        assert (done.returncode, done.stdout.decode()) == (
            0,
            f"imported: {first}, skipped duplicates: {second}, malformed lines skipped: 1\n",
        )
    assert database.rows(db, "SELECT DISTINCT scope, source FROM memories") == [("shop", "gsd-state")]
    assert b"zigbuild" in run(db, "search", "zigbuild").stdout


@pytest.mark.parametrize(
    ("path", "cwd", "options", "scope"),
    [
        ("shop/.planning/STATE.md", ".", [], "shop"),
        ("shop/.planning/phases/1/STATE.md", ".", [], "shop"),
        ("shop/.planning/sub/.planning/STATE.md", ".", [], "sub"),
        ("STATE.md", "shop/.planning", [], "shop"),
        ("notes/STATE.md", "elsewhere", [], "elsewhere"),
        ("link.md", ".", [], "shop"),
        ("shop/.planning/STATE.md", ".", ["--scope", "mine"], "mine"),
        ("shop/.planning/STATE.md", ".", ["--scope", ""], None),
        ("o'neil ü/.planning/STATE.md", ".", [], "o'neil ü"),
    ],
)
def test_the_scope_is_the_directory_that_holds_the_nearest_planning(
    db: Path, tmp_path: Path, path: str, cwd: str, options: list[str], scope: str | None
) -> None:
    (tmp_path / cwd).mkdir(parents=True, exist_ok=True)
    state = tmp_path / cwd / path
    state.parent.mkdir(parents=True, exist_ok=True)
    if path == "link.md":
        target = tmp_path / "shop" / ".planning" / "STATE.md"
        target.parent.mkdir(parents=True)
        target.write_text("# Decisions\n- a\n")
        state.symlink_to(target)
    else:
        state.write_text("# Decisions\n- a\n")
    done = run(db, "import", "--from", "gsd-state", *options, path, cwd=tmp_path / cwd)
    assert done.returncode == 0, done.stderr
    assert database.rows(db, "SELECT scope FROM memories") == [scope]


def test_a_state_file_may_begin_with_a_mark_and_end_its_lines_as_windows_does(db: Path) -> None:
    data = b"\xef\xbb\xbf# Decisions\r\n- gr\xc3\xb6\xc3\x9fe\r\n"
    assert run(db, "import", "--from", "gsd-state", "-", input=data).stdout.startswith(b"imported: 1,")
    assert database.value(db, "content", 1) == "größe"


def test_a_state_file_that_is_not_utf8_is_refused(db: Path) -> None:
    done = run(db, "import", "--from", "gsd-state", "-", input=b"# Decisions\n- caf\xe9\n")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"Error: reading standard input: it must be UTF-8 text (byte 18 is 0xe9)\n"
    assert not db.exists()
