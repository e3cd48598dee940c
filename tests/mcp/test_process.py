"""The server as a process: what it writes where, how it starts, and when it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import agent_memory
from tests.support import database
from tests.support.ollama import NOBODY, FakeOllama
from tests.support.polling import eventually
from tests.support.stdio import StdioServer, command, environment

GONE_WITHIN_SECS = 2.0


def test_every_line_of_standard_output_is_json_rpc_whatever_is_printed(db: Path, tmp_path: Path) -> None:
    # What a careless library does: print at import and from below Python.
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os, threading\n"
        "def babble():\n"
        "    import sys; print('a banner'); os.write(1, b'from below\\n'); sys.__stdout__.write('x\\n')\n"
        "timer = threading.Timer(0.15, babble); timer.daemon = True; timer.start()\n"
    )
    noise = {"PYTHONPATH": str(tmp_path), "PYTHONWARNINGS": "always", "AGENT_MEMORY_LOG": "debug"}
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY, **noise) as server:
        server.initialize()
        server.request("tools/call", {"name": "memory_search", "arguments": {"query": "x"}})
        server.logged("from below")
    assert server.lines
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in server.lines)
    assert any("Service initialized" in line for line in server.stderr)


def test_utf8_goes_in_and_out_under_a_narrow_locale(db: Path) -> None:
    narrow = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C"}
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY, **narrow) as server:
        server.initialize()
        server.send_line(
            '{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"memory_store","arguments":'
            '{"content":"★🎉 naïve 用户","type":"TODO"}}}'.encode()
        )
        server.reply("s")
        listed = server.request("tools/call", {"name": "memory_list"})["result"]["content"][0]["text"]
    assert json.loads(listed)[0]["content"] == "★🎉 naïve 用户"
    assert database.value(db, "content", 1) == "★🎉 naïve 用户"


def test_no_input_at_all_ends_the_server_well(db: Path) -> None:
    ended = subprocess.run(
        command("--db", str(db), "serve"), stdin=subprocess.DEVNULL, capture_output=True, env=environment(), timeout=20
    )
    assert (ended.returncode, ended.stdout) == (0, b"")


def test_the_end_of_input_ends_the_server_within_two_seconds_even_while_embedding(db: Path, ollama: FakeOllama) -> None:
    with ollama.holding(), StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=ollama.url) as server:
        server.initialize()
        store = server.begin("tools/call", {"name": "memory_store", "arguments": {"content": "kept", "type": "TODO"}})
        eventually(lambda: any(request.path == "/api/embed" for request in ollama.requests))
        started = time.monotonic()
        assert server.close() == 0
        took = time.monotonic() - started
    assert took < GONE_WITHIN_SECS
    # The memory that was on its way is kept and acknowledged, only without its vector.
    assert server.reply(store)["result"]["content"][0]["text"] == "1"
    assert database.row(db, 1)["embedding_status"] == 0


@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
def test_the_end_of_input_ends_a_server_whose_output_nobody_reads(db: Path, method: str) -> None:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {"name": "memory_search", "arguments": {"query": "x"}},
    }
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        memory.store("x " * 2_000, "TODO")
    with subprocess.Popen(
        command("--db", str(db), "serve"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment(), bufsize=0,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        for _ in range(100):
            server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.close()
        assert server.wait(20) == 0


def test_calls_that_run_when_the_input_ends_are_answered_first(db: Path) -> None:
    lines = b"".join(
        json.dumps(
            {"jsonrpc": "2.0", "id": n, "method": "tools/call",
             "params": {"name": "memory_store", "arguments": {"content": f"fact {n}", "type": "TODO"}}}
        ).encode() + b"\n"
        for n in range(40)
    )  # fmt: skip
    ended = subprocess.run(
        command("--db", str(db), "serve"), input=lines, capture_output=True, env=environment(), timeout=20
    )
    replies = [json.loads(line) for line in ended.stdout.splitlines()]
    assert sorted(reply["id"] for reply in replies) == list(range(40))
    assert database.count(db) == 40


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_the_server_goes_when_its_client_dies_behind_a_launcher_that_holds_the_pipe(db: Path, tmp_path: Path) -> None:
    pid_file, log = tmp_path / "pid", tmp_path / "log"
    # The client starts a shell, which starts the server on a pipe that the shell keeps open for itself.
    launcher = (
        f"mkfifo {tmp_path}/in; exec 3<>{tmp_path}/in; "
        f"{sys.executable} -m agent_memory serve <&3 2>{log} & echo $! >{pid_file}; wait"
    )
    client = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.run(['sh', '-c', {launcher!r}])"],
        env=environment(AGENT_MEMORY_DB=str(db)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = int(eventually(lambda: pid_file.exists() and pid_file.read_text()))
    eventually(lambda: log.exists() and "lifecycle sweep complete" in log.read_text())
    client.kill()
    client.wait()

    eventually(lambda: not alive(server), timeout=15)


def alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(db: Path, stop: signal.Signals) -> None:
    with subprocess.Popen(
        command("--db", str(db), "serve"), stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as server:
        assert server.stderr is not None
        eventually(lambda: b"Service initialized" in server.stderr.readline())
        server.send_signal(stop)
        assert server.wait(20) in (0, -stop)


def test_a_database_that_cannot_be_opened_ends_the_start_with_one_sentence(tmp_path: Path) -> None:
    not_a_database = tmp_path / "notes.txt"
    not_a_database.write_text("these are my notes, " * 100)
    ended = subprocess.run(
        command("--db", str(not_a_database), "serve"), stdin=subprocess.DEVNULL, capture_output=True, env=environment()
    )
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert f"Error: opening database at {not_a_database}: " in ended.stderr.decode()
    assert b"Traceback" not in ended.stderr
    assert not_a_database.read_text().startswith("these are my notes")


def test_a_broken_setting_ends_the_start_naming_the_variable(db: Path) -> None:
    ended = subprocess.run(
        command("--db", str(db), "serve"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(AGENT_MEMORY_SWEEP_SECS="soon"),
    )
    assert ended.returncode == 2
    assert b"AGENT_MEMORY_SWEEP_SECS must be between" in ended.stderr


def test_two_servers_on_one_file_share_every_memory_at_once(db: Path) -> None:
    with (
        StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY) as one,
        StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY) as other,
    ):
        one.initialize()
        other.initialize()
        one.request("tools/call", {"name": "memory_store", "arguments": {"content": "shared fact", "type": "DECISION"}})
        found = other.request("tools/call", {"name": "memory_search", "arguments": {"query": "shared"}})
    assert json.loads(found["result"]["content"][0]["text"])["results"][0]["content"] == "shared fact"


def test_the_start_logs_one_line_about_the_embedder(db: Path, ollama: FakeOllama) -> None:
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=ollama.url) as server:
        server.initialize()
        server.logged("semantic search ready (nomic-embed-text)")
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY) as server:
        server.initialize()
        server.logged(f"Ollama unreachable at {NOBODY} — search falls back to keyword")
