"""What was reviewed is what is written, what is gone is not shown as empty, and credentials are shown nowhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import agent_memory
from memorizz import MemoryType
from tests.memorizz.cli.conftest import Run, environment, run  # noqa: F401
from tests.memorizz.portal import stores
from tests.memorizz.portal.conftest import Start, on
from tests.memorizz.support import archive
from tests.support.ollama import NOBODY

JSON = {"Content-Type": "application/json"}


def test_an_import_does_not_go_into_a_memory_that_was_connected_meanwhile(start: Start, tmp_path: Path) -> None:
    portal = start(*on(tmp_path / "a.sqlite3"))
    seen = portal.page("/memory-transfer").text.partition('data-connection="')[2].partition('"')[0]
    body, url = json.dumps(archive("types_kb_conv")).encode(), "/api/memory-transfer/import?dry_run=false"
    form = f"backend=sqlite&path={tmp_path / 'b.sqlite3'}&create=true".encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert portal.request("POST", "/connect", form, kind, raw=True).status == 303
    refused = portal.request("POST", url, body, {**JSON, "X-Memorizz-Connection": seen}, raw=True)
    assert refused.status == 409
    assert "another memory has been connected" in refused.json["detail"]
    assert portal.request("POST", url, body, JSON, raw=True).json["ok"]


@pytest.mark.parametrize("backend", ["filesystem", "sqlite"])
def test_a_memory_that_is_gone_is_no_empty_one(start: Start, tmp_path: Path, backend: str) -> None:
    place = tmp_path / ("folder" if backend == "filesystem" else "m.sqlite3")
    (stores.folder if backend == "filesystem" else stores.sqlite)(place).close()
    portal = start(*on(place))
    assert portal.request("GET", "/").status == 200
    if backend == "filesystem":
        shutil.rmtree(place)
    else:
        place.unlink()
    assert "is gone" in portal.request("GET", "/api/memory-transfer/export").json["detail"]
    assert portal.request("GET", "/").status == 400


def test_credentials_inside_texts_are_in_no_heading_and_no_list(start: Start, tmp_path: Path) -> None:
    place = tmp_path / "m.sqlite3"
    secret = '{"api_key":"SEKRET","x":1}'
    with stores.sqlite(place) as provider:
        provider.put(MemoryType.TOOL_LOG, [("t", {"content": secret, "agent_id": "a", "tool_log_id": "t"})])
        provider.put(MemoryType.KNOWLEDGE_BASE, [("k", {"content": secret, "agent_id": "a"})])
        provider.store_memagent({"agent_id": "a", "name": "Keel", "instruction": '{"password":"SEKRET"}'})
    portal = start(*on(place))
    for path in (
        "/", "/agents", "/memory/tool-log", "/memory/knowledge-base", "/memory/knowledge-base/record?id=k",
        "/memory/agents", "/memory/agents/record?id=a", "/agents/a/playground", "/agents/a/playground?tab=settings",
        "/agents/a/playground?tab=recall&q=x", "/memory-transfer",
    ):  # fmt: skip
        assert "SEKRET" not in portal.page(path).text, path


def test_an_export_refuses_an_option_that_it_does_not_know(start: Start, tmp_path: Path) -> None:
    portal = start(*on(tmp_path / "m.sqlite3"))
    answer = portal.request("GET", "/api/memory-transfer/export?include_delegate=false")
    assert answer.status == 400
    assert "there is no option 'include_delegate'" in answer.json["detail"]


def test_a_record_that_cannot_be_read_breaks_no_other_page(start: Start, tmp_path: Path) -> None:
    place = tmp_path / "folder"
    with stores.folder(place) as provider:
        provider.put(MemoryType.KNOWLEDGE_BASE, [("k", {"content": "x"})])
        provider.store_memagent({"agent_id": "a", "name": "Keel"})
        entry: dict[str, Any] = {"target_record_id": "k", "memory_type": "knowledge_base", "action": "created"}
        provider.put(MemoryType.SHARED_MEMORY, [stores.entry("c", entry)])
    (place / "knowledge_base" / "k.json").write_bytes(b"\xff\xfe")
    (place / "agents" / "a.json").write_bytes(b"{")
    portal = start(*on(place))
    assert "knowledge_base" in portal.page("/traces/memory-evolution").text
    for path in ("/agents/a/playground", "/memory/knowledge-base/record?id=k"):
        answer = portal.request("GET", path)
        assert answer.status == 404
        assert b"cannot be read" in answer.body


def test_a_read_only_portal_counts_no_use_and_makes_no_typed_memory(
    start: Start,
    tmp_path: Path,
    run: Run,  # noqa: F811
) -> None:
    db, place = tmp_path / "typed.db", tmp_path / "m.sqlite3"
    stores.sqlite(place).close()
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        memory.store("the harbor", "TODO")
    portal = start(*on(place), "--read-only", "--memory-db", str(db), AGENT_MEMORY_OLLAMA_URL=NOBODY)
    for _ in range(3):
        assert "the harbor" in portal.page("/memories?q=harbor").text
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        found = memory.get(1)
    assert found is not None
    assert found.access_count == 0
    refused = run("ui", "--no-connect", "--read-only", "--memory-db", str(tmp_path / "none.db"), "--port", "0")
    assert refused.returncode == 2
    assert "a read-only portal makes none" in refused.stderr
    assert not (tmp_path / "none.db").exists()
