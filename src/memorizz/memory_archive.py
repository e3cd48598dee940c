"""Portable archives of a memory graph: the names that programs import."""

from __future__ import annotations

from memorizz.archive.envelope import FORMAT, MAX_BYTES, MAX_RECORDS, VERSION, seal_archive, validate_archive
from memorizz.archive.files import archive_json, read_archive, write_archive
from memorizz.archive.transfer import MemoryArchive
from memorizz.errors import MemoryArchiveError
from memorizz.taxonomy import ID_FIELDS, TAXONOMY

__all__ = [
    "FORMAT",
    "ID_FIELDS",
    "MAX_BYTES",
    "MAX_RECORDS",
    "TAXONOMY",
    "VERSION",
    "MemoryArchive",
    "MemoryArchiveError",
    "archive_json",
    "read_archive",
    "seal_archive",
    "validate_archive",
    "write_archive",
]
