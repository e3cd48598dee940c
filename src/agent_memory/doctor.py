"""Examining, mending and straining a memory file: what ``agent-memory doctor`` runs.

Beside ``app`` the second place that names concrete classes, since an ill file must not be opened as a healthy
one is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from agent_memory import app
from agent_memory.config import Settings
from agent_memory.embed.ollama import OllamaEmbedder
from agent_memory.errors import OpenError, SchemaTooNew
from agent_memory.store import checkup, connection
from agent_memory.store.checkup import Finding

_PIN: Final = (OllamaEmbedder.model, OllamaEmbedder.dim)
_NO_EMBEDDER: Final = "http://127.0.0.1:9"
_STORING: Final = """
import sys, agent_memory
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with agent_memory.open(path, ollama_url=sys.argv[4]) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    ids = [memory.store(f"process {name} memory {number}", "TODO") for number in range(count)]
    print(*ids)
"""


@dataclass(frozen=True, slots=True)
class StressReport:
    """What a stress run promised and what the file then held."""

    processes: int
    stores_each: int
    acknowledged: int
    kept: int
    seconds: float
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every store was acknowledged and is there."""
        return not self.failures and self.kept == self.acknowledged == self.processes * self.stores_each


def examine(settings: Settings) -> list[Finding]:
    """Every finding about the file and its surroundings. Changes nothing, not even an older schema."""
    findings = [Finding("file", "ok", str(settings.db))]
    if settings.db.exists():
        findings += checkup.examine(settings.db, _PIN)
    else:
        findings = [_missing(settings.db)]
    return [*findings, _vector_module(), _embedder(settings)]


def _missing(path: Path) -> Finding:
    existing = next(parent for parent in path.parents if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return Finding(
            "file", "problem", f"{path} does not exist yet, and you cannot write to {existing} to create it",
            "make that directory writable for you, or name another file with --db",
        )  # fmt: skip
    return Finding("file", "ok", f"{path} does not exist yet", "it is created when a memory is first used")


def repair(settings: Settings) -> list[str]:
    """Mend what can be derived again and say what was done.

    Raises:
        OpenError: The file is missing, of a newer schema, or damaged beyond that.
    """
    if not settings.db.exists():
        raise OpenError(f"there is no database at {settings.db}")
    # An older file is migrated, with its backup, before it is mended.
    try:
        app.open_memory(settings).close()
    except SchemaTooNew:
        raise
    except OpenError:
        # A missing index keeps it from opening; that is what is mended below.
        pass
    try:
        return checkup.repair(settings.db)
    except apsw.Error as error:
        raise OpenError(f"repairing {settings.db}: {error}; run `agent-memory doctor` for what to do") from error


def stress(settings: Settings, processes: int, stores_each: int) -> StressReport:
    """Let ``processes`` processes store ``stores_each`` memories each into a scratch file on the same disk at once.

    The scratch file lies beside the database and is removed afterwards.
    """
    scratch = settings.db.with_name(f"{settings.db.name}.stress-{time.time_ns()}")
    app.open_memory(Settings(db=scratch, ollama_url=_NO_EMBEDDER)).close()
    try:
        return _strain(scratch, processes, stores_each)
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            scratch.with_name(scratch.name + ending).unlink(missing_ok=True)


def _strain(scratch: Path, processes: int, stores_each: int) -> StressReport:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _STORING, str(scratch), str(number), str(stores_each), _NO_EMBEDDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    started = time.perf_counter()
    ids: list[str] = []
    failures = []
    for process in running:
        assert process.stdin is not None
        try:
            process.stdin.write("go\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it failed already, and its exit code will say so
    for process in running:
        output, errors = process.communicate()
        ids += output.split()
        if process.returncode != 0:
            failures.append(errors.strip().splitlines()[-1] if errors.strip() else f"exit code {process.returncode}")
    seconds = time.perf_counter() - started
    with closing(connection.connect(scratch, read_only=True)) as opened:
        kept: int = opened.execute(
            "SELECT count(*) FROM memories WHERE id IN (SELECT value FROM json_each(?))",
            (f"[{','.join(ids)}]",),
        ).get
        failures += [finding.message for finding in checkup.examine(scratch, _PIN) if finding.status == "problem"]
    return StressReport(processes, stores_each, len(set(ids)), kept, seconds, tuple(failures))


def _vector_module() -> Finding:
    if connection.vector_extension() is not None:
        return Finding("sqlite-vec", "ok", "installed")
    return Finding(
        "sqlite-vec",
        "warning",
        "not installed, so search is by keyword only",
        "run `pip install sqlite-vec`; there is no build of it for musl-based systems such as Alpine",
    )


def _embedder(settings: Settings) -> Finding:
    health = OllamaEmbedder(settings.ollama_url).health()
    if health == "ready":
        return Finding("embedder", "ok", f"Ollama at {settings.ollama_url} has {OllamaEmbedder.model}")
    if health == "model_missing":
        return Finding(
            "embedder",
            "warning",
            f"Ollama at {settings.ollama_url} has no model {OllamaEmbedder.model}",
            f"run `ollama pull {OllamaEmbedder.model}`",
        )
    return Finding(
        "embedder",
        "warning",
        f"no Ollama answers at {settings.ollama_url}: search is by keyword only",
        "nothing has to be done; to search by meaning too, start Ollama or set AGENT_MEMORY_OLLAMA_URL",
    )
