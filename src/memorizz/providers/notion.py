"""A Notion data source as provider: one page a record, and a journal on this machine of what was written."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from agent_memory.errors import shorten
from memorizz import config as settings
from memorizz.errors import ConfigurationError, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.providers.base import MemoryProvider
from memorizz.providers.contract import Capabilities, Problem
from memorizz.providers.folder_lock import FolderLock
from memorizz.providers.notion_area import Area
from memorizz.providers.notion_http import BASE_URL, NotionClient, SystemTimer, Timer
from memorizz.providers.notion_journal import DELETED, Journal, remembered_properties
from memorizz.providers.notion_pages import broken_rule, draft
from memorizz.providers.notion_reading import Reader
from memorizz.providers.notion_upkeep import Upkeep, status_of
from memorizz.providers.notion_writing import Writer
from memorizz.providers.process import OwnProcess
from memorizz.records import Record, natural_id
from memorizz.taxonomy import ID_FIELDS, MemoryType

_ANY_TIME: Final = 2**53


class NotionConfig(NamedTuple):
    """Which data source, and how it is spoken to.

    Without ``token`` it is the variable ``NOTION_TOKEN``. ``state_path`` is the journal; without it that is
    ``notion/<data_source_id>.sqlite3`` in the home directory of the memory graph.
    """

    data_source_id: str
    token: str | None = None
    state_path: str | Path | None = None
    timeout: float = 30
    requests_per_second: float = 2.5
    max_retries: int = 4
    max_query_pages: int = 100
    read_only: bool = False
    base_url: str = BASE_URL

    def __repr__(self) -> str:
        shown = {**self._asdict(), "token": None if self.token is None else "***"}
        return f"NotionConfig({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


class NotionProvider(MemoryProvider):
    """Records as pages of one data source. No transactions; a restore that was cut off goes on with conflict skip.

    Raises:
        ConfigurationError: The configuration is not usable, or there is no such data source, or it is no memory.
        ProviderFault: Notion does not answer.
    """

    def __init__(self, config: NotionConfig, timer: Timer | None = None) -> None:
        super().__init__()
        config = self.config = _checked(config)
        self.data_source_id = config.data_source_id
        self._process = OwnProcess()
        self._is_closed = False
        self._local = threading.local()
        timer = timer or SystemTimer()
        self.client = make_client(config, timer)
        self._area = Area(self.client, self.data_source_id, config.max_query_pages)
        path = state_path(config, self.data_source_id)
        self._journal = Journal(None if config.read_only else path, self.data_source_id)
        self._lock = FolderLock(path.with_name(path.name + ".lock"))
        try:
            self._learn(path)
        except BaseException:
            self.close()
            raise
        self._reader = Reader(self._area, self._journal)
        self._writer = Writer(self._area, self._journal, self._reader, self.client, timer, config.max_retries)
        self._upkeep = Upkeep(self._area, self._journal, self._reader, self.data_source_id, path)

    @property
    def capabilities(self) -> Capabilities:
        """Neither atomic nor with snapshots."""
        return Capabilities(read_only=self.config.read_only)

    def check(self, store: MemoryType, id: str, record: Record) -> None:
        """See ``Provider.check``: an id has 1 to 512 characters and none for control, a page less than 440 kB."""
        draft(store, id, record, _ANY_TIME)

    def get(self, store: MemoryType, id: str) -> Record | None:
        """See ``Provider.get``. Raises ``ProviderFault`` when the page holds no record."""
        self._refuse_misuse()
        row = self._reader.locate(store, [id]).get(id)
        if row is not None and row.text is None:
            raise ProviderFault(f"{store} {shorten(id)!r}: {row.problem}")
        return None if row is None else row.record()

    def find(self, store: MemoryType, ids: Iterable[str]) -> dict[str, str]:
        """See ``Provider.find``."""
        self._refuse_misuse()
        wanted = [id for id in dict.fromkeys(ids) if not broken_rule(id)]
        if not wanted:
            return {}
        if store not in ID_FIELDS:
            return {id: id for id in self._reader.locate(store, wanted)}
        rows = self._reader.rows(store)
        found = {row.id: row.id for row in rows}
        naturals = ((natural_id(store, row.record()), row.id) for row in reversed(rows) if row.text is not None)
        found.update((natural, id) for natural, id in naturals if natural is not None)
        return {id: found[id] for id in wanted if id in found}

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """See ``Provider.scan``. What was deleted from here meanwhile is not met."""
        self._refuse_misuse()
        # A line may say so of a page that somebody has taken out of the trash since.
        before = {entry.id for entry in self._journal.entries([DELETED], store)}
        for row in self._reader.rows(store):
            if row.text is None:
                continue
            entry = None if row.id in before else self._journal.entry(store, row.id)
            if entry is None or entry.status != DELETED:
                yield row.record()

    def count(self, store: MemoryType) -> int:
        """See ``Provider.count``."""
        self._refuse_misuse()
        return sum(row.text is not None for row in self._reader.rows(store))

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        """See ``Provider.put``. After a fault the records before it are written, and the journal knows which."""
        self._refuse_misuse()
        self._refuse_reading_only()
        rows = dict(records)
        for id, record in records:
            draft(store, id, record, _ANY_TIME)
        if not replace and len(rows) < len(records):
            ids = [id for id, _ in records]
            twice = next(id for number, id in enumerate(ids) if id in ids[:number])
            raise RecordExists(f"{store} {shorten(twice)!r}: the id is given twice")
        if rows:
            with self._writing():
                self._writer.put(store, rows, replace=replace)

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """See ``Provider.delete``. The pages go to the trash of Notion."""
        self._refuse_misuse()
        self._refuse_reading_only()
        with self._writing():
            return self._writer.delete(store, ids)

    def problems(self) -> list[Problem]:
        """See ``Provider.problems``. A page that belongs to no store counts to the knowledge base."""
        self._refuse_misuse()
        return self._reader.problems()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See ``Provider.snapshot``. What was read inside is not asked for again."""
        self._refuse_misuse()
        with self._reader.reading():
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See ``Provider.transaction``. No other program of this machine writes meanwhile."""
        self._refuse_misuse()
        self._refuse_reading_only()
        with self._writing(remember=True):
            yield

    def index_status(self) -> dict[str, Any]:
        """What the journal says of the writes from this machine. Nothing is asked of Notion."""
        self._refuse_misuse()
        return self._upkeep.status()

    def repair_index(self) -> dict[str, Any]:
        """Find out what became of writes that were cut off, and confirm those that are pending; what was done."""
        self._refuse_misuse()
        self._refuse_reading_only()
        with self._writing(remember=True):
            return self._upkeep.repair()

    def sync(self, memory_store_type: MemoryType | str | None = None, force: bool = False) -> dict[str, Any]:
        """Bring the journal up to what is in Notion, for one store or all; what was done.

        Pages that it does not know are taken up, those that are gone are noted, and pending ones are confirmed; with
        ``force`` those that were confirmed before as well.
        """
        self._refuse_misuse()
        self._refuse_reading_only()
        stores = list(MemoryType) if memory_store_type is None else [MemoryType.parse(memory_store_type)]
        with self._writing(remember=True):
            return self._upkeep.sync(stores, force=force)

    def close(self) -> None:
        """Release everything."""
        if not self._process.is_here or self._is_closed:
            return
        self._is_closed = True
        self.client.close()
        self._journal.close()
        self._lock.close()

    @contextmanager
    def _writing(self, *, remember: bool = False) -> Iterator[None]:
        with self._lock.held():
            if getattr(self._local, "is_writing", False):
                yield
                return
            # What was read before the lock was taken may be out of date.
            with self._reader.anew(remember=remember):
                self._local.is_writing = remember
                try:
                    yield
                finally:
                    self._local.is_writing = False

    def _learn(self, path: Path) -> None:
        """Know the properties. Once they are in the journal, opening asks nothing of Notion."""
        if self.config.read_only:
            self._area.learn(remembered_properties(path), make=False)
            return
        if not self._journal.properties():
            with self._lock.held():
                if not self._journal.properties():
                    self._area.learn({}, make=True)
                    self._journal.remember(self._area.properties)
        self._area.properties = self._journal.properties()

    def _refuse_misuse(self) -> None:
        self._process.check()
        if self._is_closed:
            raise ProviderFault("the provider was closed")

    def _refuse_reading_only(self) -> None:
        if self.config.read_only:
            raise ReadOnlyProvider(f"the Notion data source {self.data_source_id} was opened for reading only")


def make_client(config: NotionConfig, timer: Timer | None = None) -> NotionClient:
    """A client with the token of the configuration or, where it has none, of the environment.

    Raises:
        ConfigurationError: There is no token, or it or the address cannot be used.
    """
    config = _checked(config)
    token = config.token or settings.notion_token()
    if not token:
        raise ConfigurationError("Notion needs the token of an integration, in the variable NOTION_TOKEN")
    return NotionClient(
        token,
        base_url=config.base_url,
        timeout=config.timeout,
        requests_per_second=config.requests_per_second,
        max_retries=config.max_retries,
        timer=timer,
    )


def state_path(config: NotionConfig, data_source_id: str) -> Path:
    """Where the journal is."""
    if config.state_path is not None:
        return Path(config.state_path).expanduser().absolute()
    return settings.home_directory() / "notion" / f"{data_source_id}.sqlite3"


def journal_status(config: NotionConfig) -> dict[str, Any]:
    """What :meth:`NotionProvider.index_status` says, without a token. A journal that is not there is not made.

    Raises:
        ConfigurationError: The configuration is not usable, or the journal is not one.
    """
    config = _checked(config)
    path = state_path(config, config.data_source_id)
    journal = Journal(path if path.exists() else None, config.data_source_id)
    try:
        return status_of(journal, config.data_source_id, path)
    finally:
        journal.close()


def _checked(config: NotionConfig) -> NotionConfig:
    """The configuration with numbers in place of texts, and with hyphens in the id."""
    for name, (least, most) in {"max_retries": (0, 20), "max_query_pages": (1, 100)}.items():
        value = getattr(config, name)
        if type(value) is not int or not least <= value <= most:
            raise ConfigurationError(f"{name} must be an integer from {least} to {most} (got {value!r:.80})")
    for name, most in (("timeout", 600), ("requests_per_second", 1_000_000)):
        value = _number(getattr(config, name))
        if type(value) not in (int, float) or not 0 < value <= most:
            raise ConfigurationError(f"{name} must be a number above 0 and at most {most} (got {value!r:.80})")
        config = config._replace(**{name: value})
    try:
        return config._replace(data_source_id=str(UUID(str(config.data_source_id))))
    except ValueError:
        raise ConfigurationError(
            f"data_source_id must be the UUID of a Notion data source (got {shorten(str(config.data_source_id))!r})"
        ) from None


def _number(value: Any) -> Any:
    """What a variable of the environment says, as a number if it is one."""
    try:
        if isinstance(value, str):
            return int(value) if value.isdigit() else float(value)
    except ValueError:
        pass
    return value
