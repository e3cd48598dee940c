"""Running `memorizz` as somebody who lives in a directory of the test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.memorizz.support import reference_folder

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No setting of the person who runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORIZZ_")}
    return {**kept, "HOME": str(tmp_path / "home")}


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    """Runs `memorizz` in ``tmp_path``."""

    def command(*arguments: str | Path, input: str | bytes = b"", **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "memorizz", *map(str, arguments)],
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            env={**environment, **more},
            cwd=tmp_path,
            timeout=60,
        )
        error = done.stderr.decode()
        assert "Traceback" not in error, error
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), error)

    return command


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """A copy of the folder that the reference provider wrote."""
    return reference_folder(tmp_path / "reference")
