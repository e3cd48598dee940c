"""The runnable examples run, and what they claim is so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from memorizz import FileSystemConfig, FileSystemProvider, MemoryType
from memorizz.memory_archive import read_archive

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


def test_the_transfer_demo_says_that_oracle_is_not_part_of_this_version(tmp_path: Path) -> None:
    done = demo("--root", str(tmp_path / "demo"), "--oracle-config", "x.json")
    assert done.returncode == 2
    assert "Oracle is not part of this version" in done.stderr
    assert not (tmp_path / "demo").exists()
