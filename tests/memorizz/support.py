"""The material of the memory graph's tests: archives and a folder that the reference program wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
VALID = sorted(DATA.glob("*.memorizz.json"))


def archive(name: str = "agent_plain") -> dict[str, Any]:
    """One of the valid archives, by its name without ending."""
    found: dict[str, Any] = json.loads((DATA / f"{name}.memorizz.json").read_text(encoding="utf-8"))
    return found


def reference_folder(target: Path) -> Path:
    """A copy, at ``target``, of the folder that the reference provider wrote."""
    shutil.copytree(DATA / "filesystem-store", target)
    return target
