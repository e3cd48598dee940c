"""The benchmarks still run; what they measure is in bench/RESULTS.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent / "bench"


def bench(script: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, str(BENCH / script), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "script",
    ["startup.py", "calls.py", "search.py", "rest.py", "transfer.py", "memory_graph.py", "official_sdk_server.py"],
)
def test_every_script_starts(script: str) -> None:
    assert "usage" in bench(script, "--help")


def test_the_search_benchmark_prints_its_table() -> None:
    assert "| two words | hybrid |" in bench("search.py", "--sizes", "100", "--seconds", "0.01")


def test_the_transfer_benchmark_prints_its_table() -> None:
    assert "| export |" in bench("transfer.py", "--memories", "100")


def test_the_rest_benchmark_prints_its_tables() -> None:
    printed = bench("rest.py", "--sizes", "100", "--seconds", "0.05")
    assert "| GET /api/memories, limit 20 |" in printed
    assert "| POST /api/memories |" in printed


def test_the_memory_graph_benchmark_prints_its_table() -> None:
    assert "| sqlite: copy with new ids |" in bench("memory_graph.py", "--records", "50")
