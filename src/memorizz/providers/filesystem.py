"""A folder as provider: one directory for each store, one JSON file for each record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Self

from agent_memory.files import make_private_directory
from agent_memory.store.connection import BUSY_DEADLINE_SECS
from memorizz.errors import ConfigurationError, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.providers.base import MemoryProvider
from memorizz.providers.contract import Capabilities, Problem
from memorizz.providers.folder import Draft, Folder
from memorizz.providers.folder_entries import index_text
from memorizz.providers.folder_files import put_in_place
from memorizz.providers.folder_lock import FolderLock, LockBusy
from memorizz.providers.folder_names import INDEX
from memorizz.providers.process import OwnProcess
from memorizz.providers.values import Unreadable
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

_INDEX_LOCK = ".index-lock.sqlite3"
_SHARED_LOCK = ".shared-memory-lock.sqlite3"


class _Config(NamedTuple):
    root_path: Path
    lazy_vector_indexes: bool
    use_faiss: bool
    embedding_provider: Any
    embedding_config: dict[str, Any]
    read_only: bool


class FileSystemConfig(_Config):
    """Where the folder is. ``lazy_vector_indexes``, ``use_faiss`` and the embedding options are kept, not used.

    ``read_only`` leaves every byte of the folder as it is.
    """

    __slots__ = ()

    def __new__(
        cls,
        root_path: str | Path,
        lazy_vector_indexes: bool = False,
        use_faiss: bool = True,
        embedding_provider: Any = None,
        embedding_config: dict[str, Any] | None = None,
        read_only: bool = False,
    ) -> Self:
        """``root_path`` becomes absolute; ``~`` in it is the user's home."""
        path = Path(root_path).expanduser().resolve()
        return super().__new__(
            cls, path, lazy_vector_indexes, use_faiss, embedding_provider, embedding_config or {}, read_only
        )


class FileSystemProvider(MemoryProvider):
    """Records in a folder that other programs of this format read and write as well.

    Raises:
        ConfigurationError: There is no folder at the path, and none can be made.
        ProviderFault: The disk failed.
    """

    def __init__(self, config: FileSystemConfig) -> None:
        super().__init__()
        self.config = config
        self.root_path = config.root_path
        self._process = OwnProcess()
        self._closed = False
        self._lock = FolderLock(self.root_path / _INDEX_LOCK)
        self._shared_lock = FolderLock(self.root_path / _SHARED_LOCK)
        self._folders = {store: Folder(store, self.root_path / store.value, self._lock) for store in MemoryType}
        if config.read_only:
            if not self.root_path.is_dir():
                raise ConfigurationError(f"there is no folder {self.root_path} to read from")
            if any(folder.is_interrupted() for folder in self._folders.values()):
                raise ConfigurationError(
                    f"the folder {self.root_path} holds records that wait in a journal since the computer stopped: "
                    "open it for writing once"
                )
        else:
            self._prepare()

    @property
    def capabilities(self) -> Capabilities:
        """Neither atomic nor with snapshots."""
        return Capabilities(read_only=self.config.read_only)

    def check(self, store: MemoryType, id: str, record: Record) -> None:
        """See ``Provider.check``: the id must be the name of a file on this system."""
        self._folders[store].draft(id, record)

    def get(self, store: MemoryType, id: str) -> Record | None:
        """See ``Provider.get``. Raises ``ProviderFault`` when its file holds no record."""
        with self._open(store):
            try:
                return self._folders[store].read(id)
            except Unreadable as error:
                raise ProviderFault(f"{store} {id!r}: the record's file {error}") from None

    def find(self, store: MemoryType, ids: Iterable[str]) -> dict[str, str]:
        """See ``Provider.find``."""
        with self._open(store):
            return self._folders[store].find(dict.fromkeys(ids))

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """See ``Provider.scan``; records that the index misses come last."""
        with self._open(store):
            yield from self._folders[store].readable()

    def count(self, store: MemoryType) -> int:
        """See ``Provider.count``. Reads every file: only that tells whether it is a record."""
        return sum(1 for _ in self.scan(store))

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        """See ``Provider.put``. Should the disk fail half-way, some of the records may have been written."""
        self._refuse_when_read_only()
        folder = self._folders[store]
        drafts: dict[str, Draft] = {}
        for id, record in records:
            if id in drafts and not replace:
                raise RecordExists(f"{store} {id!r}: the id is given twice")
            drafts[id] = folder.draft(id, record)
        if drafts:
            with self._open(store):
                folder.write(list(drafts.values()), replace=replace)

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """See ``Provider.delete``; files that hold no record go as well."""
        self._refuse_when_read_only()
        with self._open(store):
            return self._folders[store].remove(dict.fromkeys(ids))

    def problems(self) -> list[Problem]:
        """See ``Provider.problems``. Reads every file."""
        found: list[Problem] = []
        for store, folder in self._folders.items():
            with self._open(store):
                found += folder.problems()
        return found

    def snapshot(self) -> AbstractContextManager[None]:
        """A block like any other."""
        return nullcontext()

    def transaction(self) -> AbstractContextManager[None]:
        """A block like any other."""
        return nullcontext()

    @contextmanager
    def exclusive(self, store: MemoryType) -> Iterator[None]:
        """A block in which no other program writes into the folder."""
        self._refuse_when_read_only()
        # Both, always in this order: a block inside another may be for shared memory.
        with self._open(store), self._shared_lock.held(), self._lock.held():
            yield

    def close(self) -> None:
        """Bring the indexes up to date and release everything."""
        if self._closed or not self._process.is_here:
            return
        try:
            if not self.config.read_only:
                self._fold()
        finally:
            self._closed = True
            self._lock.close()
            self._shared_lock.close()

    def _prepare(self) -> None:
        try:
            make_private_directory(self.root_path)
            for folder in self._folders.values():
                if not folder.directory.is_dir():
                    make_private_directory(folder.directory)
                    put_in_place(folder.directory / INDEX, index_text({}))
        except OSError as error:
            raise ConfigurationError(f"the folder {self.root_path} cannot be used: {error}") from None
        try:
            self._fold(wait=0.0)
        except LockBusy:
            # Whoever holds it is alive and will do it, and only records of a computer that stopped cannot wait.
            if any(folder.is_interrupted() for folder in self._folders.values()):
                self._fold()

    def _fold(self, wait: float = BUSY_DEADLINE_SECS) -> None:
        pending = [folder for folder in self._folders.values() if folder.is_pending()]
        if pending:
            with self._lock.held(wait):
                for folder in pending:
                    with self._open(folder.store):
                        folder.fold()

    def _refuse_when_read_only(self) -> None:
        if self.config.read_only:
            raise ReadOnlyProvider(f"the folder {self.root_path} was opened for reading only")

    @contextmanager
    def _open(self, store: MemoryType) -> Iterator[None]:
        if self._closed:
            raise ProviderFault(f"the folder {self.root_path} was closed")
        self._process.check()
        try:
            yield
        except OSError as error:
            raise ProviderFault(f"{store}: {error}") from None
