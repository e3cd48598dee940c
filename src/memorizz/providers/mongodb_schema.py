"""The collections of a database and their indexes."""

from __future__ import annotations

import logging
from typing import Any, Final

from pymongo import IndexModel
from pymongo.errors import OperationFailure
from pymongo.synchronous.database import Database

from memorizz.providers.mongodb_documents import ORDER
from memorizz.taxonomy import ID_FIELDS, MemoryType

LOCK: Final = "memorizz_lock"
"""The collection whose one document is held by whoever writes a block."""

WRITER: Final = "writer"
"""The ``_id`` of that document."""

_MARK: Final = "memorizz_1"
_SIMILAR: Final = frozenset({85, 86})  # IndexOptionsConflict, IndexKeySpecsConflict
_log = logging.getLogger(__name__)

_TEXT: Final = {"$type": "string"}
_INDEXES: Final[dict[MemoryType, tuple[tuple[str, dict[str, Any]], ...]]] = {
    MemoryType.MEMAGENT: (("agent_id", {"unique": True, "partialFilterExpression": {"agent_id": _TEXT}}),),
    MemoryType.CONVERSATION_MEMORY: (
        ("agent_id", {}),
        ("thread_id", {}),
        ("memory_id thread_id timestamp", {}),
        ("user_id timestamp", {}),
    ),
    MemoryType.SHARED_MEMORY: (
        ("memory_id", {"name": "memorizz_memory_id"}),
        ("record_type agent_id", {}),
        ("record_type thread_id", {}),
        ("record_type trace_memory_id", {}),
        ("root_trace_id", {}),
    ),
    MemoryType.ENTITY_MEMORY: (
        ("memory_id user_id name", {}),
        ("memory_id user_id entity_id", {}),
        ("user_id updated_at", {}),
    ),
    MemoryType.SUMMARIES: (("memory_id period_end", {}), ("memory_id thread_id period_end", {})),
    MemoryType.SEMANTIC_CACHE: (("expires_at", {"expireAfterSeconds": 0}),),
    MemoryType.TOOL_LOG: (
        ("agent_id", {}),
        ("thread_id", {}),
        ("tool_name success", {}),
        ("memory_id timestamp", {}),
        ("user_id timestamp", {}),
    ),
}
"""What the reference implementation looks for. Where it makes an index unique on a field that two records of an archive
may share, there is one here of another name that is not."""


def exists(database: Database[Any]) -> bool:
    """Whether there is any of the collections."""
    names = [store.value for store in MemoryType]
    return bool(database.list_collection_names(filter={"name": {"$in": names}}, authorizedCollections=True))


def make(database: Database[Any]) -> None:
    """Make what is missing. What the user may not make is named in the log, and done without."""
    last = list(MemoryType)[-1]
    if _MARK in _names(database, last.value):
        return
    failed: list[OperationFailure] = []
    try:
        # Here, since what two programs make at once inside of transactions is a conflict.
        database[LOCK].update_one({"_id": WRITER}, {"$setOnInsert": {"turn": 0}}, upsert=True)
    except OperationFailure as error:
        failed.append(error)
    for store in MemoryType:
        models = _models(store)
        try:
            database[store.value].create_indexes(models)
        except OperationFailure:
            # One that is there under another name must not keep the others from being made.
            failed += _one_by_one(database, store, models)
    if failed:
        _log.warning(
            "the database %r: %d indexes could not be made, so looking for records may be slow (%s)",
            database.name,
            len(failed),
            (failed[0].details or {}).get("errmsg", failed[0]),
        )
        return
    database[last.value].create_index([(ORDER, 1)], name=_MARK)


def _one_by_one(database: Database[Any], store: MemoryType, models: list[IndexModel]) -> list[OperationFailure]:
    failed = []
    for model in models:
        try:
            database[store.value].create_indexes([model])
        except OperationFailure as error:
            # One of other options is there for the same fields.
            if error.code not in _SIMILAR:
                failed.append(error)
    return failed


def _names(database: Database[Any], collection: str) -> set[str]:
    try:
        return {index["name"] for index in database[collection].list_indexes()}
    except OperationFailure:
        # It may not even look.
        return set()


def _models(store: MemoryType) -> list[IndexModel]:
    documented = [
        IndexModel([(field, 1) for field in fields.split()], **more) for fields, more in _INDEXES.get(store, ())
    ]
    own = [] if store is list(MemoryType)[-1] else [IndexModel([(ORDER, 1)], name="memorizz_order")]
    natural = ID_FIELDS.get(store.value)
    if natural is not None and store is not MemoryType.MEMAGENT:
        own.append(IndexModel([(natural, 1)], name=f"memorizz_{natural}"))
    return documented + own
