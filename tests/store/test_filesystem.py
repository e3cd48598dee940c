"""Telling network and forwarded file systems, where a write-ahead log cannot work, from local ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory.store.filesystem import remote_file_system


@pytest.mark.parametrize(
    ("kind", "remote"),
    [
        ("ext4", False), ("xfs", False), ("btrfs", False), ("overlay", False), ("tmpfs", False), ("fuseblk", False),
        ("nfs", True), ("nfs4", True), ("cifs", True), ("smb3", True), ("9p", True), ("virtiofs", True),
        ("fuse.sshfs", True), ("fuse", True), ("fakeowner", True),
    ],
)  # fmt: skip
def test_a_file_system_is_known_by_its_type(tmp_path: Path, kind: str, remote: bool) -> None:  # E9
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/root / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n")
    assert remote_file_system(tmp_path / "memory.db", mounts) == (kind if remote else None)


def test_the_deepest_and_last_mount_counts(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    inner = tmp_path / "with space"
    inner.mkdir()
    escaped = str(inner).replace(" ", "\\040")
    mounts.write_text(f"a / ext4 rw 0 0\nb {escaped} ext4 rw 0 0\nc {tmp_path} nfs rw 0 0\nd {escaped} cifs rw 0 0\n")
    assert remote_file_system(inner / "memory.db", mounts) == "cifs"
    assert remote_file_system(tmp_path / "memory.db", mounts) == "nfs"
    assert remote_file_system(Path("/memory.db"), mounts) is None


def test_without_a_mount_table_every_file_system_is_local(tmp_path: Path) -> None:
    assert remote_file_system(tmp_path / "memory.db", tmp_path / "missing") is None
