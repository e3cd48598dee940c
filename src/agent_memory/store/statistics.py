"""Counting what is in the file."""

from __future__ import annotations

import apsw

from agent_memory.domain.statistics import Statistics
from agent_memory.store import schema


def gather(connection: apsw.Connection, now: int) -> Statistics:
    """The statistics of an open file, with expiry judged at ``now``."""
    total, expired, embedded, oldest, newest = connection.execute(
        """SELECT count(*), count(*) FILTER (WHERE expires_at < ?), count(*) FILTER (WHERE embedding_status = 1),
        min(created_at), max(created_at) FROM memories""",
        (now,),
    ).get
    model, dim = schema.embedding_pin(connection)
    return Statistics(
        memories=total,
        by_type=dict(
            connection.execute("SELECT mem_type, count(*) FROM memories GROUP BY mem_type ORDER BY 2 DESC, 1")
        ),
        by_scope=dict(connection.execute("SELECT scope, count(*) FROM memories GROUP BY scope ORDER BY 2 DESC, 1")),
        links=connection.execute("SELECT count(*) FROM memory_links").get,
        expired=expired,
        embedded=embedded,
        pending=total - embedded,
        oldest=oldest,
        newest=newest,
        embedding_model=model or "",
        embedding_dim=int(dim) if dim and dim.isdecimal() else None,
        schema_version=schema.version(connection),
        file_bytes=connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").get,
    )
