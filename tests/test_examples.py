"""The runnable examples run, and what they claim is so."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from memorizz import FileSystemConfig, FileSystemProvider, MemoryType
from memorizz.memory_archive import read_archive
from memorizz.providers import oracle_driver
from tests.support.oracle import OWNER, Database

DEMO = Path(__file__).parent.parent / "examples" / "memory_transfer" / "demo.py"


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(DEMO), *arguments], capture_output=True, text=True, timeout=60)


def test_the_transfer_demo_leaves_the_evidence_it_speaks_of(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    done = demo("--root", str(root))
    assert done.returncode == 0, done.stderr
    assert "FAILED" not in done.stdout
    evidence = json.loads((root / "evidence.json").read_text())
    archive = read_archive(evidence["archive"])
    assert archive["manifest"]["counts"] == evidence["counts"]
    assert all(evidence["counts"].values())
    assert len(evidence["counts"]) == 13
    assert "sk-this-must-not-travel" not in Path(evidence["archive"]).read_text()
    for life in ("source", "restored", "copy"):
        with FileSystemProvider(FileSystemConfig(evidence[life]["root"])) as provider:
            agents = {str(record["agent_id"]): record for record in provider.scan(MemoryType.MEMAGENT)}
            keel, plover = evidence[life]["agents"]
            harbor, gauge = evidence[life]["namespaces"]
            assert agents[keel]["delegates"] == [plover]
            assert (agents[keel]["memory_ids"], agents[plover]["memory_ids"]) == ([harbor], [gauge])
    assert evidence["restored"]["id_map"] == {}
    assert evidence["copy"]["agents"] == [evidence["copy"]["id_map"][agent] for agent in evidence["source"]["agents"]]
    again = demo("--root", str(root))
    assert again.returncode == 2
    assert "holds an earlier run" in again.stderr


def connection(directory: Path, mode: int = 0o600, **more: object) -> Path:
    path = directory / "connection.json"
    path.write_text(json.dumps({"user": OWNER, "password": "hunter2", "dsn": "db.example/harbor", **more}))
    path.chmod(mode)
    return path


def test_the_transfer_demo_restores_into_oracle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    database = Database(tmp_path / "db")
    monkeypatch.setattr(oracle_driver, "open_pool", lambda _: database)
    monkeypatch.setattr(Database, "acquire", Database.connect, raising=False)
    monkeypatch.setattr(Database, "close", lambda _, **_options: None, raising=False)
    root = tmp_path / "demo"
    monkeypatch.setattr(sys, "argv", ["demo.py", "--root", str(root), "--oracle-config", str(connection(tmp_path))])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(DEMO), run_name="__main__")
    said = capsys.readouterr().out
    assert (ended.value.code, "FAILED" in said) == (0, False), said
    text = (root / "evidence.json").read_text()
    evidence = json.loads(text)
    assert evidence["restored"]["dsn"] == "db.example/harbor" and evidence["restored"]["schema"] == OWNER
    assert evidence["restored"]["counts"] == evidence["counts"]
    assert evidence["restored"]["id_map"]
    assert "hunter2" not in text + said
    assert not (root / "restored").exists()


@pytest.mark.parametrize(
    ("mode", "more", "message"),
    [
        (0o640, {}, "others can read"),
        (0o604, {}, "its mode is 0604"),
        (0o600, {"wallet": "x"}, "must hold a JSON object with user, password and dsn"),
    ],
)
def test_the_transfer_demo_refuses_a_connection_that_is_not_private_or_not_one(
    tmp_path: Path, mode: int, more: dict[str, object], message: str
) -> None:
    done = demo("--root", str(tmp_path / "demo"), "--oracle-config", str(connection(tmp_path, mode, **more)))
    assert done.returncode == 2
    assert message in done.stderr and "hunter2" not in done.stderr
    assert not (tmp_path / "demo").exists()
