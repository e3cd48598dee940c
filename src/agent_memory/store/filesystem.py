"""Whether a file lies where SQLite's write-ahead log cannot work: its index is shared memory, which network
and forwarded file systems do not share (https://www.sqlite.org/wal.html, "All processes ... must be on the
same host computer")."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_REMOTE: Final = frozenset(
    {
        *("nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre"),
        *("ncpfs", "virtiofs", "vboxsf", "prl_fs", "fakeowner", "osxfs", "grpcfuse", "fuse"),
    }
)
_MOUNTS: Final = Path("/proc/mounts")


def remote_file_system(path: Path, mounts: Path | None = None) -> str | None:
    """The type of the network or forwarded file system that holds ``path``; ``None`` for a local one.

    Known from the mount table, so ``None`` as well on systems without ``/proc/mounts``.
    """
    table = _MOUNTS if mounts is None else mounts
    if not table.exists():
        return None
    place = path.resolve()
    best: tuple[int, str] = (-1, "")
    for line in table.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount_point = Path(_unescape(fields[1]))
        # Of mounts on one point the last in the table is the visible one.
        if place.is_relative_to(mount_point) and len(mount_point.parts) >= best[0]:
            best = (len(mount_point.parts), fields[2])
    kind = best[1]
    return kind if kind in _REMOTE or kind.startswith("fuse.") else None


def _unescape(mount_point: str) -> str:
    """The mount table writes white space and backslashes as three octal digits."""
    first, *rest = mount_point.split("\\")
    return first + "".join(chr(int(part[:3], 8)) + part[3:] for part in rest)
