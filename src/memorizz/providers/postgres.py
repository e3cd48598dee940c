"""One schema of a PostgreSQL database as provider: shared by many machines, written as a whole, read as of one moment.

The driver is imported with the first provider that is opened: people who use another one need not have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.errors import shorten
from memorizz.errors import ConfigurationError, InvalidRecord, ProviderFault, RecordExists
from memorizz.providers.base import MemoryProvider
from memorizz.providers.contract import Capabilities, Problem
from memorizz.providers.ids import MAX_ID, broken_rule, is_text
from memorizz.providers.values import Unreadable, decode, encode
from memorizz.records import Record, field, natural_id, payload
from memorizz.taxonomy import MemoryType

if TYPE_CHECKING:
    from memorizz.providers.postgres_sessions import Sessions

_MAX_BYTES: Final = 200_000_000
_PAGE: Final = 500
_CHUNK: Final = 5_000
_BATCH_ROWS: Final = 2_000
_BATCH_CHARACTERS: Final = 8_000_000
_NUL: Final = "\0"


class PostgresConfig(NamedTuple):
    """Which database, as ``postgresql://user@host/database``, and which schema of it. ``read_only`` writes nothing."""

    url: str
    schema: str = "memorizz"
    read_only: bool = False

    def __repr__(self) -> str:
        """As any named tuple, but without the password."""
        url = re.sub(r"//([^:/@]*):[^/]*@", r"//\1:***@", self.url)
        url = re.sub(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)", r"\1***", url)
        return f"PostgresConfig(url={url!r}, schema={self.schema!r}, read_only={self.read_only!r})"


class _Row(NamedTuple):
    """The columns of a record that it says itself."""

    id: str
    natural_id: str | None
    memory_id: str | None
    agent_id: str | None
    user_id: str | None
    body: str


class PostgresProvider(MemoryProvider):
    """Records in two tables of one schema, with transactions and snapshots.

    Raises:
        ConfigurationError: The driver is missing, the address is none, or the schema is another program's or a newer
            version's.
        ProviderFault: The database cannot be reached, or failed.
    """

    def __init__(self, config: PostgresConfig) -> None:
        super().__init__()
        self.config = config
        self._sessions = _sessions(config)

    @property
    def capabilities(self) -> Capabilities:
        """Atomic, with snapshots."""
        return Capabilities(read_only=self.config.read_only, atomic=True, snapshot=True)

    def check(self, store: MemoryType, id: str, record: Record) -> None:
        """See ``Provider.check``: an id has 1 to 512 characters, none of them U+0000; a record less than 200 MB."""
        _row(store, id, record)

    def get(self, store: MemoryType, id: str) -> Record | None:
        """See ``Provider.get``. Raises ``ProviderFault`` when the row holds no record."""
        if _broken_rule(id):
            return None
        rows = self._sessions.read("get", store.value, id)
        try:
            return {**decode(rows[0][0]), "_id": id, "id": id} if rows else None
        except Unreadable as error:
            raise ProviderFault(f"{store} {shorten(id)!r}: the row {error}") from None

    def find(self, store: MemoryType, ids: Iterable[str]) -> dict[str, str]:
        """See ``Provider.find``."""
        wanted = {_column(id): id for id in ids if is_text(id)}
        found: dict[str, str] = {}
        for chunk in _chunks(wanted):
            for key, id in self._sessions.read("find_natural", store.value, chunk):
                found.setdefault(wanted[key], id)
        for chunk in _chunks(id for id in wanted.values() if id not in found and not _broken_rule(id)):
            found.update((id, id) for (id,) in self._sessions.read("find_physical", store.value, chunk))
        return found

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """See ``Provider.scan``. Outside of a snapshot what is written meanwhile may be met or not."""
        for id, body in self._rows(store):
            try:
                yield {**decode(body), "_id": id, "id": id}
            except Unreadable:
                continue

    def count(self, store: MemoryType) -> int:
        """See ``Provider.count``."""
        found: int = self._sessions.read("count", store.value)[0][0]
        return found

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        """See ``Provider.put``. All of the records are written, or none."""
        rows: dict[str, _Row] = {}
        twice = None
        for id, record in records:
            twice = id if twice is None and id in rows else twice
            rows[id] = _row(store, id, record)
        with self._sessions.transaction():
            if not replace:
                if twice is not None:
                    raise RecordExists(f"{store} {shorten(twice)!r}: the id is given twice")
                self._refuse_taken(store, rows)
            for batch in _batches(rows.values()):
                # A column after the other: a statement takes any number of rows in six parameters.
                columns = [list(column) for column in zip(*batch, strict=True)]
                self._sessions.write("replace" if replace else "insert", store.value, *columns)

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """See ``Provider.delete``."""
        wanted = [id for id in dict.fromkeys(ids) if not _broken_rule(id)]
        with self._sessions.transaction():
            return self._sessions.write("delete", store.value, wanted)

    def problems(self) -> list[Problem]:
        """See ``Provider.problems``."""
        found = []
        for store in MemoryType:
            for id, body in self._rows(store):
                try:
                    decode(body)
                except Unreadable as error:
                    found.append(Problem(store, id, f"the row {error}"))
        return found

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See ``Provider.snapshot``. What this thread writes meanwhile is not met either."""
        with self._sessions.snapshot():
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See ``Provider.transaction``. One inside another can be undone by itself.

        Other programs that write to the schema wait meanwhile, so what the block reads stays true until it ends.
        """
        with self._sessions.transaction():
            yield

    def restrict_role(self, role: str, user_id: str | None = None) -> None:
        """Let a role of the database see and write the records of one user only, by row level security.

        Without ``user_id`` it is the user that the session setting ``memorizz.user_id`` names. Calling it again
        replaces what was said of that role. It needs the role that owns the tables, which stays unrestricted.
        """
        self._sessions.restrict(role, None if user_id is None else _column(user_id))

    def close(self) -> None:
        """Release everything."""
        self._sessions.close()

    def _rows(self, store: MemoryType) -> Iterator[tuple[str, str]]:
        # By pages: nothing is held open while the caller works on a record.
        last = 0
        while True:
            page = self._sessions.read("page", store.value, last, _PAGE)
            for position, id, body in page:
                last = position
                yield id, body
            if len(page) < _PAGE:
                return

    def _refuse_taken(self, store: MemoryType, rows: Mapping[str, _Row]) -> None:
        taken = {id for chunk in _chunks(rows) for (id,) in self._sessions.read("find_physical", store.value, chunk)}
        for id in rows:
            if id in taken:
                raise RecordExists(f"{store} {shorten(id)!r}: a record of this id is there already")


def _sessions(config: PostgresConfig) -> Sessions:
    try:
        from memorizz.providers.postgres_sessions import Sessions
    except ImportError:
        raise ConfigurationError(
            "the provider postgres needs the library psycopg: pip install 'agent-memory[postgres]'"
        ) from None
    return Sessions(config)


def _chunks(ids: Iterable[str]) -> Iterator[list[str]]:
    left = iter(ids)
    while chunk := list(islice(left, _CHUNK)):
        yield chunk


def _batches(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    batch: list[_Row] = []
    size = 0
    for row in rows:
        if batch and (len(batch) == _BATCH_ROWS or size + len(row.body) > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += len(row.body)
    if batch:
        yield batch


def _broken_rule(id: str) -> str | None:
    return broken_rule(id) or ("must not hold the character U+0000, which PostgreSQL has not" if _NUL in id else None)


def _row(store: MemoryType, id: str, record: Record) -> _Row:
    rule = _broken_rule(id)
    if rule is not None:
        raise InvalidRecord(f"{store} {shorten(id)!r}: the id {rule}")
    body = encode(store, id, record)
    if len(body) > _MAX_BYTES // 4 and len(body.encode()) > _MAX_BYTES:
        raise InvalidRecord(f"{store} {shorten(id)!r}: the record is bigger than {_MAX_BYTES} bytes")
    inner = payload(record)
    memory, agent, user = (_column(field(record, name, inner)) for name in ("memory_id", "agent_id", "user_id"))
    return _Row(id, _column(natural_id(store, record)), memory, agent, user, body)


def _column(value: Any) -> Any:
    """A value as its column holds it: what an index or the database cannot take stands there by its digest."""
    if not isinstance(value, str):
        return None
    if len(value) <= MAX_ID and _NUL not in value:
        return value
    return f"sha256:{sha256(value.encode()).hexdigest()}"
