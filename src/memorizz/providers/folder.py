"""The directory of one store: a file for each record, and an index over them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from agent_memory.errors import shorten
from agent_memory.files import sync_directory
from memorizz.errors import InvalidRecord, RecordExists
from memorizz.providers import folder_files
from memorizz.providers.contract import Problem
from memorizz.providers.folder_entries import Delete, Put, make_entry, natural_of
from memorizz.providers.folder_files import Version
from memorizz.providers.folder_index import FolderIndex
from memorizz.providers.folder_lock import FolderLock, LockBusy
from memorizz.providers.folder_names import INDEX, broken_rule, file_name, folded, record_name
from memorizz.providers.folder_naturals import NaturalIds
from memorizz.providers.values import Unreadable, decode, encode
from memorizz.records import Record, natural_id
from memorizz.taxonomy import ID_FIELDS, MemoryType

log = logging.getLogger(__name__)

_DEFERRED_BYTES: Final = 1 << 20


class Draft(NamedTuple):
    """A record on its way into a file."""

    id: str
    content: bytes
    entry: bytes


class Folder:
    """Records by physical id. Safe to use from many threads; processes exclude each other through ``lock``."""

    def __init__(self, store: MemoryType, directory: Path, lock: FolderLock) -> None:
        self.store = store
        self.directory = directory
        self._lock = lock
        self._mutex = threading.RLock()
        self._index = FolderIndex(store, directory)
        self._learned: dict[str, tuple[Version, str | None]] = {}

    def draft(self, id: str, record: Record) -> Draft:
        """A record as it will be written.

        Raises:
            InvalidRecord: Its id is no file name, or its values are not JSON.
        """
        rule = broken_rule(id)
        if rule is not None:
            raise InvalidRecord(f"{self.store} {shorten(id)!r}: the id {rule}")
        return Draft(id, encode(self.store, id, record).encode(), make_entry(self.store, id, record))

    def read(self, id: str) -> Record | None:
        """The record of that id, or ``None``.

        Raises:
            Unreadable: What is there is no record.
        """
        content = None if broken_rule(id) else folder_files.read(self._path(id))
        if content is None:
            return None
        record = decode(content)
        if _is_anothers(record, id):
            return None
        return _as_known_today(record, id)

    def readable(self) -> Iterator[Record]:
        """Every record that can be read: those of the index in its order, then the others by name."""
        for id in self._ids():
            try:
                record = self.read(id)
            except (Unreadable, PermissionError):
                continue
            if record is not None:
                yield record

    def find(self, ids: Collection[str]) -> dict[str, str]:
        """See ``Provider.find``."""
        found = {}
        named: dict[str, str | None] = {}
        if self.store.value in ID_FIELDS:
            with self._mutex:
                naturals = self._natural_ids()
                named = {id: naturals.get(id) for id in ids}
        for id in ids:
            physical = named.get(id)
            if physical is not None and self._natural_from_file(physical) == id:
                found[id] = physical
            elif self._holds(id):
                found[id] = id
        return found

    def refuse_taken(self, drafts: Sequence[Draft]) -> None:
        """Raise ``RecordExists`` for the first that is there already."""
        for id, _, _ in drafts:
            if os.path.lexists(self._path(id)):
                raise RecordExists(f"{self.store} {shorten(id)!r}: a record of this id is there already")

    def write(self, drafts: Sequence[Draft], *, replace: bool) -> None:
        """Put records into their files; all are on disk when it returns.

        Raises:
            InvalidRecord: The file system takes two ids for one name; nothing was written.
            RecordExists: One is there, and is not to be replaced; nothing was written.
            OSError: The disk failed.
        """
        self._refuse_newer()
        self._refuse_twins(drafts)
        if not replace:
            self.refuse_taken(drafts)
        boot = folder_files.system_run()
        # A little gets to disk with the journal, which holds its content; nothing big is written twice.
        deferred = bool(boot) and sum(len(draft.content) for draft in drafts) <= _DEFERRED_BYTES
        staged = folder_files.stage(self.directory, [draft.content for draft in drafts], sync=not deferred)
        try:
            with self._lock.held():
                if replace:
                    self._refuse_anothers(drafts)
                else:
                    self.refuse_taken(drafts)
                lines = [
                    Put(draft.id, *file.version, msgspec.Raw(draft.entry))
                    for draft, file in zip(drafts, staged, strict=True)
                ]
                if deferred:
                    for line, draft in zip(lines, drafts, strict=True):
                        line.record, line.boot = msgspec.Raw(draft.content), boot
                size = self._index.announce(lines)
                for draft, file in zip(drafts, staged, strict=True):
                    os.replace(file.path, self._path(draft.id))
                if not deferred:
                    sync_directory(self.directory)
        except BaseException:
            folder_files.discard(staged)
            raise
        self._fold_if_due(size)

    def remove(self, ids: Collection[str]) -> int:
        """Remove records, readable or not, and forget what the index lists without a file; return how many there were.

        Raises:
            OSError: The disk failed.
        """
        self._refuse_newer()
        with self._lock.held():
            here = [id for id in ids if self._holds(id)]
            gone = set(ids).difference(here)
            if gone:
                with self._mutex:
                    self._index.refresh()
                    gone = {id for id in gone & self._index.entries.keys() if not self._index.is_deleted(id)}
            if not here and not gone:
                return 0
            boot = folder_files.system_run()
            lines = [Delete(id) for id in sorted(gone)]
            lines += [Delete(id, *(folder_files.version_of(self._path(id)) or (0, 0)), boot) for id in here]
            size = self._index.announce(lines)
            for id in here:
                Path(self._path(id)).unlink(missing_ok=True)
            if not boot:
                sync_directory(self.directory)
        self._fold_if_due(size)
        return len(here)

    def problems(self) -> Iterator[Problem]:
        """Files that hold no record, records that the index misses, and entries of the index without a file."""
        if not self.directory.is_dir():
            return
        # A record is announced before its file is there: what others write meanwhile is in the second look.
        listed, touched = self._indexed()
        names, odd = self._names()
        listed_since, touched_since = self._indexed()
        for name in odd:
            yield Problem(self.store, shorten(name), f"{name!a} is no file that can hold a record")
        for id in listed:
            if id not in names and id in listed_since and id not in touched and id not in touched_since:
                yield Problem(self.store, id, f"{INDEX} lists it, but there is no file {file_name(id)}")
        known = touched.union(listed, touched_since, listed_since)
        for id in sorted(names):
            try:
                content = folder_files.read(self._path(id))
                if content is None:
                    continue
                decode(content)
            except (Unreadable, OSError) as error:
                yield Problem(self.store, id, f"{file_name(id)} {error}")
                continue
            if id not in known:
                yield Problem(self.store, id, f"{file_name(id)} is not listed in {INDEX}")

    def _indexed(self) -> tuple[dict[str, None], set[str]]:
        """The ids that the index lists now, in their order, and those whose entries are newer than it."""
        with self._mutex:
            self._index.refresh()
            return dict.fromkeys(self._index.entries), set(self._index.touched)

    def is_pending(self) -> bool:
        """Whether the index is to be brought up to date."""
        return self._index.is_pending()

    def is_interrupted(self) -> bool:
        """Whether records wait in the journal since the computer stopped."""
        return self._index.is_interrupted()

    def fold(self) -> None:
        """Bring the index up to date."""
        with self._lock.held(), self._mutex:
            self._index.fold()

    def _fold_if_due(self, journal_size: int) -> None:
        # After the lock was free for a moment: others may have waited long enough.
        if self._index.is_due(journal_size):
            try:
                self.fold()
            except (LockBusy, OSError) as error:
                # What was to be written is written; the journal can wait for the next time.
                log.warning("the journal of %s was not folded: %s", self.directory, error)

    def _refuse_newer(self) -> None:
        """Raise ``ProviderFault`` for an index that this program may not change."""
        with self._mutex:
            self._index.load()

    def _path(self, id: str) -> str:
        return f"{self.directory}/{file_name(id)}"

    def _holds(self, id: str) -> bool:
        if broken_rule(id) or not os.path.lexists(self._path(id)):
            return False
        try:
            content = folder_files.read(self._path(id))
            return content is None or not _is_anothers(decode(content), id)
        except (Unreadable, OSError):
            return True

    def _names(self) -> tuple[set[str], list[str]]:
        """The ids that files have, and the names that look like a record's but are none."""
        ids, odd = set(), []
        try:
            with os.scandir(self.directory) as entries:
                for entry in entries:
                    id = record_name(entry.name)
                    if id is None:
                        continue
                    if entry.is_file() and not broken_rule(id):
                        ids.add(id)
                    else:
                        odd.append(entry.name)
        except FileNotFoundError:
            pass
        return ids, sorted(odd)

    def _ids(self) -> list[str]:
        with self._mutex:
            self._index.refresh()
            listed = list(self._index.entries)
        names, _ = self._names()
        ids = [id for id in listed if id in names]
        return [*ids, *sorted(names.difference(ids))] if len(ids) < len(names) else ids

    def _refuse_twins(self, drafts: Sequence[Draft]) -> None:
        by_name: dict[str, str] = {}
        for id, _, _ in drafts:
            other = by_name.setdefault(folded(id), id)
            if other != id and self._are_one_name(other, id):
                raise InvalidRecord(
                    f"{self.store} {shorten(id)!r}: the file system takes the id for that of {shorten(other)!r}"
                )

    def _are_one_name(self, one: str, other: str) -> bool:
        probe = folder_files.stage(self.directory, [b""])
        path = f"{self.directory}/.{one}"
        try:
            os.replace(probe[0].path, path)
            return os.path.lexists(f"{self.directory}/.{other}")
        finally:
            folder_files.discard([*probe, folder_files.Staged(path, probe[0].version)])

    def _refuse_anothers(self, drafts: Sequence[Draft]) -> None:
        for id, _, _ in drafts:
            content = folder_files.read(self._path(id))
            if content is None:
                continue
            try:
                record = decode(content)
            except Unreadable:
                continue
            if _is_anothers(record, id):
                raise InvalidRecord(
                    f"{self.store} {shorten(id)!r}: the file system takes the id for that of {record['_id']!r}, "
                    "whose record is there"
                )

    def _natural_ids(self) -> NaturalIds:
        self._index.refresh()
        naturals = self._index.naturals
        if naturals.stale:
            naturals.clear()
            listed = self._index.entries
            unlisted = sorted(self._names()[0].difference(listed))
            for id, entry in [*listed.items(), *((id, b"") for id in unlisted)]:
                if self._index.is_deleted(id) and not self._holds(id):
                    continue
                natural = natural_of(entry)
                naturals.add(self._natural_once(id) if natural is msgspec.UNSET else natural, id)
        return naturals

    def _natural_once(self, id: str) -> str | None:
        """The natural id in a file, which is read only if it is another than last time."""
        version = folder_files.version_of(self._path(id))
        if version is None:
            return None
        learned = self._learned.get(id)
        if learned is None or learned[0] != version:
            learned = self._learned[id] = (version, self._natural_from_file(id))
        return learned[1]

    def _natural_from_file(self, id: str) -> str | None:
        try:
            record = self.read(id)
        except Unreadable:
            return None
        return None if record is None else natural_id(self.store, record)


def _is_anothers(record: Record, id: str) -> bool:
    """Whether the file system took ``id`` for the name of another record's file."""
    own = record.get("_id")
    return isinstance(own, str) and own != id and folded(own) == folded(id)


def _as_known_today(record: Record, id: str) -> Record:
    for old, name in (("conversation_id", "thread_id"), ("associated_conversation_ids", "associated_thread_ids")):
        if old in record:
            value = record.pop(old)
            record.setdefault(name, value)
    record["_id"] = record["id"] = id
    return record
