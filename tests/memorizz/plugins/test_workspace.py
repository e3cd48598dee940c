"""Which namespace a project's memory is in."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.memorizz.cli.conftest import Run


def expected(slug: str, root: Path) -> str:
    return f"project-{slug}-{hashlib.sha256(str(root).encode()).hexdigest()[:6]}"


def test_a_folder_in_a_git_work_tree_is_the_project_of_its_top(run: Run, project: Path, memory_id: str) -> None:
    deep = project / "src" / "deep"
    deep.mkdir(parents=True)
    for folder in (project, deep):
        assert run("plugin", "memory-id", folder).stdout == f"{memory_id}\n"
    described = json.loads(run("plugin", "memory-id", deep, "--json").stdout)
    assert described == {"memory_id": memory_id, "root": str(project)}


def test_a_folder_outside_of_any_work_tree_is_a_project_itself(run: Run, tmp_path: Path) -> None:
    assert run("plugin", "memory-id").stdout == f"{expected(tmp_path.name.replace('_', '-').lower(), tmp_path)}\n"
    assert run("plugin", "memory-id", "/").stdout == "project-project-8a5eda\n"


def test_without_git_a_folder_is_a_project_itself(run: Run, project: Path, tmp_path: Path) -> None:
    deep = project / "deep"
    deep.mkdir()
    done = run("plugin", "memory-id", deep, PATH=str(tmp_path / "nowhere"))
    assert (done.stdout, done.stderr) == (f"{expected('deep', deep)}\n", "")


def test_a_link_leads_to_the_project_it_points_at(run: Run, project: Path, memory_id: str, tmp_path: Path) -> None:
    (tmp_path / "shortcut").symlink_to(project)
    plain = tmp_path / "plain"
    plain.mkdir()
    (tmp_path / "other").symlink_to(plain)
    assert run("plugin", "memory-id", "shortcut").stdout == f"{memory_id}\n"
    assert run("plugin", "memory-id", "other").stdout == f"{expected('plain', plain)}\n"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Shop", "shop"),
        ("my_shop.v2", "my-shop-v2"),
        ("--a  b--", "a-b"),
        ("Café", "caf"),
        ("灯台", "project"),
        ("...", "project"),
        ("x" * 50, "x" * 40),
        ("y" * 39 + " z", "y" * 39 + "-"),
    ],
)
def test_the_name_is_cut_to_what_is_safe_in_an_id(run: Run, tmp_path: Path, name: str, slug: str) -> None:
    folder = tmp_path / "places" / name
    folder.mkdir(parents=True)
    assert run("plugin", "memory-id", "--", folder).stdout == f"{expected(slug, folder)}\n"


def test_a_path_that_is_not_text_has_a_namespace_too(run: Run, tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)  # noqa: PTH102 - the name is no text
    shown = run("plugin", "memory-id", os.fsdecode(folder)).stdout
    assert shown == f"project-caf-{hashlib.sha256(folder).hexdigest()[:6]}\n"


def test_what_is_no_folder_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("missing", "file"):
        done = run("plugin", "memory-id", name)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"Error: there is no folder {tmp_path / name}, so it is no project\n"


def test_git_that_does_not_answer_is_no_reason_for_another_namespace(run: Run, project: Path, tmp_path: Path) -> None:
    programs = tmp_path / "slow"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    (programs / "git").chmod(0o755)
    done = run("plugin", "memory-id", project, PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "git did not say within 3 seconds" in done.stderr


def test_a_moved_checkout_has_another_namespace(run: Run, project: Path, memory_id: str, tmp_path: Path) -> None:
    moved = tmp_path / "moved" / project.name
    moved.parent.mkdir()
    project.rename(moved)
    subprocess.run(["git", "-C", str(moved), "status"], check=True, capture_output=True)
    assert run("plugin", "memory-id", moved).stdout == f"{expected('harbor-lights', moved)}\n"
    assert expected("harbor-lights", moved) != memory_id
