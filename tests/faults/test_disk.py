"""A disk that is full and a file that is damaged: a clear error, and nothing that was there is lost."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import agent_memory
from tests.support import database
from tests.support.doors import McpDoor
from tests.support.ollama import NOBODY
from tests.support.stdio import StdioServer

STORAGE_FAULT = "{} failed due to a storage error (details are in the server log)"


def call(server: StdioServer, tool: str, **arguments: Any) -> dict[str, Any]:
    return server.request("tools/call", {"name": tool, "arguments": arguments})


def test_a_full_disk_is_an_error_message_and_earlier_rows_are_intact(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        earlier = [memory.store(f"kept {number}", "TODO") for number in range(5)]
    limit = 400 * 1024
    server = StdioServer(
        [sys.executable, "-m", "agent_memory", "serve"],
        {**os.environ, "AGENT_MEMORY_DB": str(db), "AGENT_MEMORY_OLLAMA_URL": NOBODY},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    with server:
        server.initialize()
        stored = []
        for number in range(40):
            reply = call(server, "memory_store", content=f"{number} " + "filling " * 3000, type="TODO")
            if "error" in reply:
                break
            stored.append(int(reply["result"]["content"][0]["text"]))
        assert reply["error"] == {"code": -32603, "message": STORAGE_FAULT.format("store")}
        # The server lives on, reads, and stores again what fits.
        listed = json.loads(call(server, "memory_list")["result"]["content"][0]["text"])
        assert {memory["id"] for memory in listed} == {*earlier, *stored}
        server.logged("store failed: ")
    database.check_integrity(db)
    assert set(database.rows(db, "SELECT id FROM memories")) == {*earlier, *stored}


def test_the_command_line_reports_a_full_disk_in_one_sentence(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        memory.store("kept", "TODO")
    limit = db.stat().st_size
    ended = subprocess.run(
        [sys.executable, "-m", "agent_memory", "--db", str(db), "store", "-", "--type", "TODO"],
        input=("filling " * 60_000).encode(),
        capture_output=True,
        env={**os.environ, "AGENT_MEMORY_OLLAMA_URL": NOBODY},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert STORAGE_FAULT.format("store") in ended.stderr.decode()
    assert b"Traceback" not in ended.stderr
    assert database.rows(db, "SELECT content FROM memories") == ["kept"]


@pytest.mark.parametrize("fate", ["moved", "removed", "replaced"])
def test_nothing_is_acknowledged_once_the_file_is_gone(db: Path, fate: str) -> None:
    with McpDoor(db).server as server:
        server.initialize()
        call(server, "memory_store", content="one", type="TODO")
        if fate == "removed":
            db.unlink()
        else:
            db.rename(db.with_name("elsewhere.db"))
        if fate == "replaced":
            db.write_bytes(b"")
        for tool, arguments in (("memory_store", {"content": "two", "type": "TODO"}), ("memory_list", {})):
            error = call(server, tool, **arguments)["error"]
            assert error["code"] == -32603
            assert error["message"] == (
                f"the file {db} was moved, replaced or removed while it was open; restart this program"
            )


def test_a_file_damaged_under_a_running_server_gives_errors_and_doctor_names_the_backup(
    db: Path, tmp_path: Path
) -> None:
    with McpDoor(db).server as server:
        server.initialize()
        call(server, "memory_store", content="x", type="TODO")
        database.rows(db, "PRAGMA wal_checkpoint(TRUNCATE)")
        backup = tmp_path / "memory.db.backup-pre-0003-20260101"
        backup.write_bytes(db.read_bytes())
        with db.open("rb+") as file:
            file.write(b"\0" * 4096)
        reply = call(server, "memory_list")
        assert reply["error"]["code"] == -32603
        assert server.request("ping")["result"] == {}
    examined = subprocess.run(
        [sys.executable, "-m", "agent_memory", "--db", str(db), "doctor"],
        capture_output=True,
        text=True,
        env={**os.environ, "AGENT_MEMORY_OLLAMA_URL": NOBODY},
    )
    assert examined.returncode == 1
    assert "integrity: the file is damaged" in examined.stdout
    assert str(backup) in examined.stdout
    assert "Traceback" not in examined.stderr
