"""The keyword rankings over the ``memories_fts`` table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import apsw

from agent_memory.domain.memory import Filters
from agent_memory.domain.words import any_of, fragments, glued_words, is_bare, words
from agent_memory.store.memories import DECAY_SQL, FILTER_SQL, filter_bindings

LONGEST_EXPRESSION: Final = 16_384

_UNPARSABLE: Final = re.compile(
    r"fts5[: ]|unterminated string|no such column|unknown special query|expected integer, got|parser stack overflow"
)

# Only such text can hold an unspaced script.
_BEYOND_ASCII: Final = "octet_length(m.content) > length(m.content)"

_BLENDED: Final = f"""
SELECT m.id FROM memories_fts JOIN memories m ON m.id = memories_fts.rowid
WHERE memories_fts MATCH :query AND {FILTER_SQL}
ORDER BY -bm25(memories_fts) + {DECAY_SQL} DESC, m.id LIMIT :limit"""

_RELEVANCE: Final = """
SELECT m.id FROM (
    SELECT rowid AS id, bm25(memories_fts) AS cost FROM memories_fts
    WHERE memories_fts MATCH :query ORDER BY cost, id LIMIT :limit
) found JOIN memories m ON m.id = found.id ORDER BY found.cost, found.id"""

_FILTERED_RELEVANCE: Final = f"""
SELECT m.id FROM memories_fts JOIN memories m ON m.id = memories_fts.rowid
WHERE memories_fts MATCH :query AND {FILTER_SQL}
ORDER BY bm25(memories_fts), m.id LIMIT :limit"""


def blended(
    connection: apsw.Connection, query: str, filters: Filters, limit: int, now: int, *, strict: bool
) -> list[int]:
    """Ids by relevance plus decay, the order of keyword mode."""
    return _answer(connection, _BLENDED, query, filters, {"limit": limit, "now": now}, strict=strict)


def relevance(connection: apsw.Connection, query: str, filters: Filters, limit: int, *, strict: bool) -> list[int]:
    """Ids by relevance alone, the keyword ranking that hybrid mode fuses."""
    sql = _FILTERED_RELEVANCE if filters else _RELEVANCE
    return _answer(connection, sql, query, filters, {"limit": limit}, strict=strict)


def _answer(
    connection: apsw.Connection, sql: str, query: str, filters: Filters, extra: dict[str, Any], *, strict: bool
) -> list[int]:
    """What FTS5 finds for ``query`` as written; for what it cannot parse, what it finds for any of the words.

    A query of more than 16,384 characters counts as one that it cannot parse, and is read up to there.

    Unless ``strict``, bare words that match nothing together are tried one by one as well, and words inside
    text of scripts written without spaces, which FTS5 keeps as one token, are found after its own matches.
    """
    bindings = {**filter_bindings(filters), **extra}
    found = _as_written(connection, sql, query, bindings)
    if found is not None and (strict or not is_bare(query)):
        return found
    terms = words(query[:LONGEST_EXPRESSION])
    if not terms:
        return found or []
    if not found:
        found = _match(connection, sql, any_of(terms), bindings)
    if not strict and len(found) < extra["limit"]:
        inside = _inside_unspaced_text(connection, terms, filters, extra["limit"], alone=not found)
        found = list(dict.fromkeys([*found, *inside]))
    return found[: extra["limit"]]


def _as_written(connection: apsw.Connection, sql: str, query: str, bindings: dict[str, Any]) -> list[int] | None:
    """What FTS5 finds for ``query``, or ``None`` where it cannot parse it."""
    # FTS5 would read only as far as a NUL, takes what follows a leading star for a command to itself, and needs
    # time that grows with the square of a long query.
    if "\0" in query or query.lstrip().startswith("*") or len(query) > LONGEST_EXPRESSION:
        return None
    try:
        return _match(connection, sql, query, bindings)
    except apsw.SQLError as error:
        if _UNPARSABLE.search(str(error)):
            return None
        raise


def _match(connection: apsw.Connection, sql: str, expression: str, bindings: dict[str, Any]) -> list[int]:
    return [row[0] for row in connection.execute(sql, {**bindings, "query": expression})]


def _inside_unspaced_text(
    connection: apsw.Connection, terms: Sequence[str], filters: Filters, limit: int, *, alone: bool
) -> list[int]:
    """Ids of memories that hold pieces of ``terms`` inside an unspaced script, those with the most pieces first.

    Words of spaced scripts glued to such text are looked for only when nothing else was found (``alone``): a
    scan of the contents is their price.
    """
    pieces = fragments(terms)
    if pieces:
        hits = " + ".join(f"(instr(m.content, :piece{index}) > 0)" for index in range(len(pieces)))
        rows = connection.execute(
            f"""SELECT id FROM (
                SELECT m.id, m.last_accessed, {hits} AS hits FROM memories m WHERE {_BEYOND_ASCII} AND {FILTER_SQL}
            ) WHERE hits > 0 ORDER BY hits DESC, last_accessed DESC, id LIMIT :limit""",
            {
                **filter_bindings(filters),
                **{f"piece{index}": piece for index, piece in enumerate(pieces)},
                "limit": limit,
            },
        )
        return [row[0] for row in rows]
    if not alone:
        return []
    pattern = glued_words(terms)
    candidates = connection.execute(
        f"""SELECT m.id, m.content FROM memories m WHERE {_BEYOND_ASCII} AND {FILTER_SQL}
        ORDER BY m.last_accessed DESC, m.id""",
        filter_bindings(filters),
    )
    found: list[int] = []
    for memory_id, content in candidates:
        if pattern.search(content):
            found.append(memory_id)
            if len(found) == limit:
                break
    return found
