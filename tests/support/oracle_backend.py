"""The Oracle provider for the suites that every provider passes: records there have none of the fields it demands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memorizz.providers.oracle import OracleConfig, OracleProvider
from memorizz.providers.oracle_schema import TABLES
from memorizz.records import Record
from memorizz.taxonomy import ID_FIELDS, MemoryType
from tests.support.oracle import OWNER, Database

_NOTE = "‹filled›"


def open_provider(database: Database, **options: Any) -> OracleProvider:
    """The provider on a stand-in for a database."""
    return OracleProvider(OracleConfig(OWNER, "secret", "db.example/harbor", **options), connect=database.connect)


def open_lenient(path: str, read_only: bool = False) -> OracleProvider:
    """The provider over a file, which fills what records must have."""
    # Where there is nothing to read, nothing is to be made either.
    file = Path(path) if Path(path).exists() or not read_only else Path(":memory:")
    config = OracleConfig(OWNER, "secret", "db.example/harbor", read_only=read_only)
    return Lenient(config, connect=Database(file).connect)


class Lenient(OracleProvider):
    """Gives a record the fields that its table demands, and takes them away again when it is read."""

    def check(self, store: MemoryType, id: str, record: Record) -> None:
        super().check(store, id, _filled(store, record))

    def get(self, store: MemoryType, id: str) -> Record | None:
        found = super().get(store, id)
        return None if found is None else _emptied(found)

    def scan(self, store: MemoryType) -> Iterator[Record]:
        yield from map(_emptied, super().scan(store))

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        super().put(store, [(id, _filled(store, record)) for id, record in records], replace=replace)


def _filled(store: MemoryType, record: Record) -> Record:
    if type(record) is not dict or _NOTE in record:
        return record
    filled = {
        column.key: column.choices[0] if column.choices else "-"
        for column in TABLES[store].columns
        if column.required and column.default is None and column.name != ID_FIELDS.get(store.value)
    }
    missing = {name: value for name, value in filled.items() if record.get(name) in (None, "")}
    return {**record, **missing, _NOTE: {name: record[name] for name in missing if name in record}} | (
        {f"{_NOTE}names": list(missing)}
    )


def _emptied(record: Record) -> Record:
    names = record.pop(f"{_NOTE}names", [])
    before = record.pop(_NOTE, {})
    return {name: value for name, value in record.items() if name not in names} | before
