"""Whether a file lies where SQLite's write-ahead log cannot work: its index is shared memory, which network
and forwarded file systems do not share (https://www.sqlite.org/wal.html, "All processes ... must be on the
same host computer")."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_REMOTE: Final = re.compile(
    r"nfs\d*|cifs|smb\d*|smbfs|9p|afs|ceph|glusterfs|lustre|ncpfs|virtiofs|vboxsf|prl_fs|fakeowner|osxfs|grpcfuse"
    r"|fuse(\.(?!fuseblk).+)?"
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
        mount_point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1]))
        # Of mounts on one point the last in the table is the visible one.
        if place.is_relative_to(mount_point) and len(mount_point.parts) >= best[0]:
            best = (len(mount_point.parts), fields[2])
    return best[1] if _REMOTE.fullmatch(best[1]) else None
