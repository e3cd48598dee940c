"""Records in the collections of one database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from bson.raw_bson import RawBSONDocument
from pymongo import InsertOne, ReplaceOne
from pymongo.errors import BulkWriteError

from agent_memory.errors import shorten
from memorizz.errors import RecordExists
from memorizz.providers import mongodb_documents as documents
from memorizz.providers.contract import Problem
from memorizz.providers.mongodb import MongoDBConfig
from memorizz.providers.mongodb_documents import ORDER, Stored
from memorizz.providers.mongodb_sessions import Conflict, Documents, Sessions
from memorizz.providers.values import Unreadable
from memorizz.records import Record, natural_id
from memorizz.taxonomy import ID_FIELDS, MemoryType

_PAGE: Final = 500
_CHUNK: Final = 1_000
_IDS: Final = {"$type": ["string", "objectId"]}
_PLACED: Final = {"$gte": 0}


class Collections:
    """What a provider does, over ids that the database can take."""

    def __init__(self, config: MongoDBConfig) -> None:
        self.sessions = Sessions(config)
        self._clock = _Clock()

    def measure(self, store: MemoryType, id: str, record: Record) -> tuple[int, int]:
        """The bytes of the document that a record would be, and how many there may be."""
        document = documents.to_document(store, documents.key_for(id), record, self._clock.take(1))
        return documents.measure(document), documents.MAX_BYTES

    def get(self, store: MemoryType, id: str) -> Record | None:
        """The record of an id. Raises ``Unreadable`` when the document holds none."""
        found = self._stored(store, [id]).get(id)
        watched = self.sessions.watched
        if watched is not None:
            watched.setdefault((store.value, id), None if found is None else found.raw)
        return None if found is None else documents.to_record(found)

    def find(self, store: MemoryType, ids: Sequence[str]) -> dict[str, str]:
        """For natural or physical ids, the physical ones."""
        found: dict[str, str] = {}
        natural = ID_FIELDS.get(store.value)
        if natural is not None:
            for chunk in _chunks(ids):
                for id, physical in self._naturals(store, natural, chunk):
                    found.setdefault(id, physical)
        for chunk in _chunks([id for id in ids if id not in found]):
            keys = [key for id in chunk for key in documents.keys_of(id)]
            for at in self._query(store, {"_id": {"$in": keys}}, {"_id": 1}):
                id = str(documents.text_of(at.key))
                found[id] = id
        return found

    def scan(self, store: MemoryType) -> Iterator[Record]:
        """The records in their order."""
        for found in self._in_order(store):
            try:
                record = documents.to_record(found)
            except Unreadable:
                continue
            yield record

    def count(self, store: MemoryType) -> int:
        """How many records there are."""
        with self.sessions.faults():
            found = self.sessions.documents(store.value).count_documents({"_id": _IDS}, session=self.sessions.session)
        texts = [one.key for one in self._query(store, {"_id": {"$regex": "^[0-9a-f]{24}$"}}, {"_id": 1})]
        return found - len(self._hidden(store, texts))

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool) -> None:
        """Write records."""
        rows: dict[str, Record] = {}
        for id, record in records:
            if id in rows and not replace:
                raise RecordExists(f"{store} {shorten(id)!r}: the id is given twice")
            rows[id] = record
        if not rows:
            return
        before: dict[str, Stored] = {}
        for chunk in _chunks(rows):
            before |= self._stored(store, chunk)
        taken = next((id for id in rows if id in before), None)
        if taken is not None and not replace:
            raise RecordExists(f"{store} {shorten(taken)!r}: a record of this id is there already")
        made = self._documents(store, rows, before)
        if replace:
            self._replace(store, made, before)
        else:
            self._forget(store, rows)
            self._insert(store, list(made.values()))

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        """Remove records, and say how many there were."""
        removed = 0
        self._forget(store, ids)
        for chunk in _chunks(ids):
            keys = [found.key for found in self._stored(store, chunk, {"_id": 1}).values()]
            with self.sessions.faults():
                removed += (
                    self.sessions.documents(store.value)
                    .delete_many({"_id": {"$in": keys}}, session=self.sessions.writing)
                    .deleted_count
                )
        return removed

    def problems(self) -> list[Problem]:
        """The documents that hold no record."""
        found = []
        for store in MemoryType:
            texts = []
            for one in self._each(store):
                if documents.is_hex_text(one.key):
                    texts.append(one.key)
                try:
                    documents.to_record(one)
                except Unreadable as error:
                    found.append(Problem(store, str(documents.plain(one.key)), f"the document {error}"))
            found += [
                Problem(store, id, "the document has the text of an ObjectId as _id, and another has that ObjectId")
                for id in sorted(self._hidden(store, texts))
            ]
        return found

    def _stored(
        self, store: MemoryType, ids: Iterable[str], fields: Mapping[str, Any] | None = None
    ) -> dict[str, Stored]:
        """The documents of those ids."""
        keys = [key for id in ids for key in documents.keys_of(id)]
        found: dict[str, Stored] = {}
        for one in self._query(store, {"_id": {"$in": keys}}, fields):
            id = str(documents.text_of(one.key))
            if id not in found or one.key != id:
                found[id] = one
        return found

    def _query(
        self,
        store: MemoryType,
        wanted: Mapping[str, Any],
        fields: Mapping[str, Any] | None = None,
        *,
        sort: str | None = None,
        limit: int = 0,
    ) -> list[Stored]:
        return list(self._each(store, wanted, fields, sort=sort, limit=limit))

    def _each(
        self,
        store: MemoryType,
        wanted: Mapping[str, Any] | None = None,
        fields: Mapping[str, Any] | None = None,
        *,
        sort: str | None = None,
        limit: int = 0,
    ) -> Iterator[Stored]:
        with self.sessions.faults():
            cursor = self.sessions.documents(store.value).find(
                wanted,
                fields,
                sort=None if sort is None else [(sort, 1)],
                limit=limit,
                session=self.sessions.session,
            )
            for document in cursor:
                yield documents.stored(bytes(document.raw))

    def _naturals(self, store: MemoryType, natural: str, ids: Sequence[str]) -> list[tuple[str, str]]:
        """Natural and physical ids, in the order of the records."""
        wanted = set(ids)
        values = [value for id in ids for value in documents.natural_values(id)]
        found = self._query(store, {natural: {"$in": values}}, {natural: 1, ORDER: 1})
        found.sort(key=lambda one: -1 if one.order is None else one.order)
        rows = []
        for one in found:
            id = natural_id(store, {natural: documents.plain(one.fields.get(natural))})
            physical = documents.text_of(one.key)
            if id in wanted and physical is not None:
                rows.append((id, physical))
        return rows

    def _in_order(self, store: MemoryType) -> Iterator[Stored]:
        # By pages: nothing is held open while the caller works on a record.
        keys = [one.key for one in self._query(store, {ORDER: {"$not": _PLACED}}, {"_id": 1})]
        for start in range(0, len(keys), _PAGE):
            chunk = keys[start : start + _PAGE]
            page = {_hashable(one.key): one for one in self._query(store, {"_id": {"$in": chunk}})}
            yield from self._visible(store, [page[key] for key in map(_hashable, chunk) if key in page])
        last: float = 0
        seen: set[Any] = set()
        while True:
            # Those of one place are met together, whatever page the first of them was on.
            rows = self._query(store, {ORDER: {"$gte": last}}, sort=ORDER, limit=_PAGE + len(seen))
            yield from self._visible(store, [one for one in rows if _hashable(one.key) not in seen])
            if len(rows) < _PAGE:
                return
            last, before = rows[-1].order or last, last
            at_last = {_hashable(one.key) for one in rows if one.order == last}
            seen = at_last | seen if last == before else at_last

    def _visible(self, store: MemoryType, rows: Sequence[Stored]) -> Iterator[Stored]:
        hidden = self._hidden(store, [one.key for one in rows if documents.is_hex_text(one.key)])
        return (one for one in rows if one.key not in hidden) if hidden else iter(rows)

    def _hidden(self, store: MemoryType, texts: Iterable[str]) -> set[str]:
        """Those of the texts that another document has as ObjectId, which is the one that counts."""
        keys = [documents.key_for(text) for text in texts]
        return {
            str(one.key) for chunk in _chunks(keys) for one in self._query(store, {"_id": {"$in": chunk}}, {"_id": 1})
        }

    def _documents(
        self, store: MemoryType, rows: Mapping[str, Record], before: Mapping[str, Stored]
    ) -> dict[str, dict[str, Any]]:
        place = self._clock.take(len(rows))
        made = {}
        for id, record in rows.items():
            old = before.get(id)
            if old is None:
                made[id] = documents.to_document(store, documents.key_for(id), record, place)
                place += 1
            else:
                made[id] = documents.to_document(store, old.key, record, old.order, old)
        return made

    def _insert(self, store: MemoryType, made: Sequence[dict[str, Any]]) -> None:
        with self.sessions.faults():
            collection = self.sessions.documents(store.value)
            inserts: list[InsertOne[Any]] = [InsertOne(one) for one in made]
            try:
                collection.bulk_write(inserts, session=self.sessions.writing)
            except BulkWriteError as error:
                if self.sessions.writing is None:
                    self._take_back(collection, made, error)
                raise

    def _forget(self, store: MemoryType, ids: Iterable[str]) -> None:
        """Watch no longer what this thread writes itself."""
        watched = self.sessions.watched
        if watched is not None:
            for id in ids:
                watched.pop((store.value, id), None)

    def _take_back(self, collection: Documents, made: Sequence[dict[str, Any]], error: BulkWriteError) -> None:
        """Remove what was written before the one that was refused."""
        for failed in error.details.get("writeErrors", ())[:1]:
            collection.delete_many({"_id": {"$in": [one["_id"] for one in made[: failed["index"]]]}})

    def _replace(self, store: MemoryType, made: Mapping[str, dict[str, Any]], before: Mapping[str, Stored]) -> None:
        watched = self.sessions.watched
        writes: list[ReplaceOne[Any]] = []
        for id, document in made.items():
            wanted: dict[str, Any] = {"_id": document["_id"]}
            seen = watched is not None and (store.value, id) in watched
            if watched is not None and seen:
                raw = watched.pop((store.value, id))
                now = before[id].raw if id in before else None
                if raw != now:
                    raise Conflict(f"{store} {shorten(id)!r}: another program changed the record at the same time")
                if raw is not None:
                    wanted["$expr"] = {"$eq": ["$$ROOT", {"$literal": RawBSONDocument(raw)}]}
            writes.append(ReplaceOne(wanted, document, upsert="$expr" not in wanted))
        with self.sessions.faults():
            result = self.sessions.documents(store.value).bulk_write(writes, session=self.sessions.writing)
        if result.matched_count + len(result.upserted_ids or {}) < len(writes):
            raise Conflict(f"{store}: another program changed one of the records at the same time")


class _Clock:
    """Numbers that grow: for the next record a bigger one, in this program and, by their clocks, in the others."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._next = 0

    def take(self, number: int) -> int:
        """The first of so many that nobody else gets."""
        with self._mutex:
            first = max(self._next, time.time_ns())
            self._next = first + number
            return first


def _chunks(items: Iterable[Any]) -> Iterator[list[Any]]:
    left = iter(items)
    while chunk := list(islice(left, _CHUNK)):
        yield chunk


def _hashable(key: Any) -> Any:
    return key if documents.text_of(key) is not None else repr(key)
