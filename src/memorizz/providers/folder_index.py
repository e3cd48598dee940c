"""The index of one store and the journal beside it.

The record files are what is true; index and journal say in which order the records were added, and save reading the
files. A change is announced in the journal, on disk, before it happens to the files; so whatever a killed program
leaves is either as before or as announced, and which of the two the files tell. Only when the computer itself stopped
may files lack what the journal says, and are made good from it. Now and then the journal is folded into ``index.json``,
which other programs read.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from agent_memory.files import sync_directory
from memorizz.errors import ProviderFault
from memorizz.providers import folder_files
from memorizz.providers.folder_entries import (
    Delete,
    Entry,
    IndexTooNew,
    Put,
    index_entries,
    index_text,
    journal_lines,
    journal_text,
    make_entry,
    natural_of,
)
from memorizz.providers.folder_names import INDEX, JOURNAL, file_name, record_name
from memorizz.providers.folder_naturals import NaturalIds
from memorizz.providers.values import Unreadable, decode
from memorizz.taxonomy import MemoryType

log = logging.getLogger(__name__)

_FOLD_BYTES: Final = 4 << 20
_NOT_KNOWN: Final = b""
"""In place of an entry that has to be made from the record's file."""


class _Seen(NamedTuple):
    inode: int
    mtime_ns: int
    size: int


class FolderIndex:
    """What index and journal of one directory say. Its user sees to it that one thread at a time is inside.

    ``entries`` is by id in the order of adding. ``touched`` holds the last line of the journal for each id in it:
    whether the file is there, or is the one that the journal speaks of, only the file tells.
    """

    def __init__(self, store: MemoryType, directory: Path) -> None:
        self.entries: dict[str, Entry] = {}
        self.touched: dict[str, Put | Delete] = {}
        self.naturals = NaturalIds()
        self._store = store
        self._directory = directory
        self._index = directory / INDEX
        self._journal = directory / JOURNAL
        self._index_seen: _Seen | None = None
        self._journal_seen: _Seen | None = None
        self._consumed = 0
        self._loaded = False
        self._rebuilt = False

    def load(self) -> None:
        """Take in what is there, once.

        Raises:
            ProviderFault: The index has a version that this program does not know.
        """
        if not self._loaded:
            self.refresh()

    def refresh(self) -> None:
        """Take in what was written since the last call."""
        journal, index = _see(self._journal), _see(self._index)
        if not self._continues(journal, index):
            self._load_all(journal, index)
        elif journal is not None and journal.size > self._consumed:
            lines, end = self._read_journal(self._consumed)
            if _see(self._index) == index:
                self._journal_seen = journal
                self._apply(lines, end)
            else:
                # Folded meanwhile: what was read may be the middle of another journal.
                self._load_all(_see(self._journal), _see(self._index))

    def is_deleted(self, id: str) -> bool:
        """Whether the journal says so last; only a killed process leaves the file of such a record."""
        return isinstance(self.touched.get(id), Delete)

    def announce(self, lines: Sequence[Put | Delete]) -> int:
        """Put lines into the journal, on disk; return its size. For the holder of the folder's lock.

        Raises:
            OSError: They cannot be written; the journal is as it was.
        """
        flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(self._journal, flags, 0o600)
        try:
            start = _end_of_lines(descriptor)
            text = journal_text(lines)
            try:
                folder_files.write_all(descriptor, text)
                getattr(os, "fdatasync", os.fsync)(descriptor)
                if start == 0:
                    sync_directory(self._directory)
            except BaseException:
                os.ftruncate(descriptor, start)
                raise
        finally:
            os.close(descriptor)
        return start + len(text)

    def is_due(self, journal_size: int) -> bool:
        """Whether the journal is so big that it should be folded."""
        if journal_size <= _FOLD_BYTES:
            return False
        index = _see(self._index)
        return index is None or journal_size > index.size

    def is_pending(self) -> bool:
        """Whether something is to be folded: a journal, or records without a usable index."""
        return self._rebuilt or os.path.lexists(self._journal) or not os.path.lexists(self._index)

    def is_interrupted(self) -> bool:
        """Whether the computer stopped before files were on disk of which the journal speaks."""
        return any(_is_of_past_run(line) for line in self._read_journal(0)[0])

    def fold(self) -> None:
        """Bring ``index.json`` up to date and remove the journal. For the holder of the folder's lock."""
        self.refresh()
        for line in self.touched.values():
            if _is_of_past_run(line):
                self._make_good(line)
        for id, line in self.touched.items():
            version = folder_files.version_of(f"{self._directory}/{file_name(id)}")
            if version is None:
                self.entries.pop(id, None)
            elif id not in self.entries or version != (line.mtime_ns, line.size):
                self.entries[id] = _NOT_KNOWN
        for id in [id for id, entry in self.entries.items() if entry is _NOT_KNOWN]:
            made = self._entry_from_file(id)
            self.naturals.stale = True
            if made is None:
                del self.entries[id]
            else:
                self.entries[id] = made
        folder_files.discard_stale(self._directory)
        folder_files.sync_in_place(self._directory, [file_name(id) for id, line in self.touched.items() if line.boot])
        folder_files.put_in_place(self._index, index_text(self.entries))
        self._journal.unlink(missing_ok=True)
        sync_directory(self._directory)
        self._index_seen, self._journal_seen, self._consumed = _see(self._index), None, 0
        self._rebuilt = False
        self.touched.clear()

    def _continues(self, journal: _Seen | None, index: _Seen | None) -> bool:
        """Whether all that changed since the last look is that the journal may have grown."""
        if not self._loaded or index != self._index_seen:
            return False
        if journal is None:
            return self._consumed == 0
        same = self._journal_seen is None or self._journal_seen.inode == journal.inode
        return same and journal.size >= self._consumed

    def _load_all(self, journal: _Seen | None, index: _Seen | None) -> None:
        # The journal first: what is folded meanwhile is then met twice instead of not at all.
        lines, end = self._read_journal(0)
        self._load()
        self._index_seen, self._journal_seen = index, journal
        self._apply(lines, end)

    def _load(self) -> None:
        content = folder_files.read(self._index)
        entries = None
        if content is not None:
            try:
                entries = index_entries(content)
            except IndexTooNew as error:
                raise ProviderFault(f"{self._index} {error}") from None
            if entries is None:
                log.warning("%s is damaged and is made again from the record files", self._index)
        self._rebuilt = entries is None
        if entries is None:
            names = sorted(path.name for path in self._directory.iterdir()) if self._directory.is_dir() else []
            entries = {id: _NOT_KNOWN for id in map(record_name, names) if id is not None}
        self.entries = entries
        self.touched = {}
        self.naturals.stale = True
        self._consumed = 0
        self._loaded = True

    def _read_journal(self, start: int) -> tuple[list[Put | Delete], int]:
        try:
            with open(self._journal, "rb") as file:
                file.seek(start)
                content = file.read()
        except FileNotFoundError:
            content = b""
        # Behind the last line break is what another process is writing at this moment, or died while writing.
        whole = content[: content.rfind(b"\n") + 1]
        return journal_lines(whole), start + len(whole)

    def _apply(self, lines: list[Put | Delete], end: int) -> None:
        self._consumed = end
        for line in lines:
            old = self.entries.get(line.id)
            if isinstance(line, Put):
                if self.is_deleted(line.id):
                    self.entries.pop(line.id, None)
                    old = None
                # A copy: the line holds the record as well.
                self.entries[line.id] = bytes(line.entry)
                self._note(line.id, old, line.entry)
            else:
                # The entry stays, and with it the place, until the file is known to be gone.
                self._note(line.id, old, None)
            self.touched[line.id] = line

    def _note(self, id: str, old: Entry | None, new: Entry | None) -> None:
        if self.naturals.stale:
            return
        before, after = (None if entry is None else natural_of(entry) for entry in (old, new))
        if before is msgspec.UNSET or after is msgspec.UNSET:
            self.naturals.stale = True
        else:
            self.naturals.change(id, before, after)

    def _make_good(self, line: Put | Delete) -> None:
        path = self._directory / file_name(line.id)
        version = folder_files.version_of(path)
        if isinstance(line, Delete):
            if version == (line.mtime_ns, line.size):
                path.unlink()
            return
        assert line.record is not msgspec.UNSET
        content = folder_files.read(path)
        if content == bytes(line.record):
            return
        if content is not None and version is not None and version.mtime_ns > line.mtime_ns and _is_record(content):
            # Another program wrote it later.
            return
        log.warning("%s is made good from the journal: the computer stopped before it was on disk", path)
        folder_files.put_in_place(path, bytes(line.record))

    def _entry_from_file(self, id: str) -> bytes | None:
        content = folder_files.read(self._directory / file_name(id))
        try:
            return None if content is None else make_entry(self._store, id, decode(content))
        except Unreadable:
            return None


def _is_of_past_run(line: Put | Delete) -> bool:
    return bool(line.boot) and line.boot != folder_files.system_run()


def _is_record(content: bytes) -> bool:
    try:
        decode(content)
    except Unreadable:
        return False
    return True


def _see(path: Path) -> _Seen | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return _Seen(stat.st_ino, stat.st_mtime_ns, stat.st_size)


def _end_of_lines(descriptor: int) -> int:
    """The size of a journal, after cutting off a last line that somebody died while writing."""
    size = os.fstat(descriptor).st_size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        os.lseek(descriptor, start, os.SEEK_SET)
        found = os.read(descriptor, end - start).rfind(b"\n")
        end = start + found + 1 if found >= 0 else start
        if found >= 0:
            break
    if end < size:
        os.ftruncate(descriptor, end)
    return end
