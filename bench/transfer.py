"""How long an export and an import of a whole memory take, and how much memory they use.

    python bench/transfer.py [--memories 1000000]

A file of that many seeded memories (``corpus.py``), with a link for every tenth, is imported by the command into a
new database, imported again (every record a duplicate) and exported. Beside it, ``json`` of the standard library
copies the same file record by record, which is what any program in Python has to pay. Peak memory is that of the
process, as the system counts it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import corpus
from harness import NOWHERE, machine, progress, table

_COPY = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as source, open(sys.argv[2], "w", encoding="utf-8") as target:
    for line in source:
        target.write(json.dumps(json.loads(line), ensure_ascii=False, separators=(",", ":")) + "\\n")
"""


# A child's peak counts what its parent held when it was started, so a small process starts it.
_STARTER = """
import os, subprocess, sys, time
started = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - started, usage.ru_maxrss * 1024 / 1e6)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Run(NamedTuple):
    """Wall-clock seconds and peak resident memory, in MB (10^6 bytes), of one process."""

    seconds: float
    peak: float


def measure(command: Sequence[str]) -> Run:
    """Run a command, which has to succeed."""
    done = subprocess.run(
        [sys.executable, "-c", _STARTER, *command],
        env={**os.environ, "AGENT_MEMORY_OLLAMA_URL": NOWHERE},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, peak = map(float, done.stdout.split())
    return Run(seconds, peak)


def write(path: Path, memories: int) -> None:
    """A file in the portable format."""
    links = memories // 10
    header = {
        "record": "header", "format": "agent-memory-export", "version": 1, "exported_at": corpus.NOW,
        "embedding_model": corpus.MODEL, "embedding_dim": corpus.DIM, "schema_version": 3,
        "agent_memory_version": "0.1.0", "exported_rows": memories, "exported_links": links,
    }  # fmt: skip
    with open(path, "w", encoding="utf-8") as file:
        print(json.dumps(header), file=file)
        for key, new in enumerate(corpus.Corpus().memories(memories), 1):
            memory = {
                "record": "memory", "key": key, "type": new.type, "content": new.content, "tags": new.tags,
                "source": new.source, "scope": new.scope, "created_at": corpus.NOW, "last_accessed": corpus.NOW,
                "access_count": 0, "expires_at": None,
            }  # fmt: skip
            print(json.dumps(memory, ensure_ascii=False), file=file)
        for key in range(10, 10 * links + 1, 10):
            link = {"record": "link", "from": key - 1, "to": key, "kind": "caused_by", "created_at": corpus.NOW}
            print(json.dumps(link), file=file)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=1_000_000)
    memories = parser.parse_args().memories
    with tempfile.TemporaryDirectory() as directory:
        given, target, copied, db = (Path(directory) / name for name in ("in.jsonl", "out.jsonl", "copy.jsonl", "db"))
        progress(f"writing {memories} memories")
        write(given, memories)
        command = [sys.executable, "-m", "agent_memory", "--db", str(db)]
        runs = {}
        for name, arguments in (
            ("import", [*command, "import", "--from", "jsonl", str(given)]),
            ("import again", [*command, "import", "--from", "jsonl", str(given)]),
            ("export", [*command, "export", "--output", str(target)]),
            ("copy with json", [sys.executable, "-c", _COPY, str(given), str(copied)]),
        ):
            progress(name)
            runs[name] = measure(arguments)
        copy = runs["copy with json"].seconds
        rows = [
            (
                name,
                f"{run.seconds:.1f}",
                f"{memories / run.seconds:,.0f}",
                f"{run.seconds / copy:.2f} x",
                f"{run.peak:.0f}",
            )
            for name, run in runs.items()
        ]
        size = given.stat().st_size / 1e6
    print(f"{memories:,} memories, {memories // 10:,} links, {size:.0f} MB; {machine()}\n")
    print(table(("step", "s", "memories/s", "against the copy", "peak MB"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
