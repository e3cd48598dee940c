"""The semantic cache: answers that were given to questions."""

from __future__ import annotations

import hashlib
import json
from typing import Any, ClassVar

from memorizz.checks import Count, Share, Text
from memorizz.providers.base import UNSET
from memorizz.records import Record
from memorizz.stores.base import Store
from memorizz.taxonomy import MemoryType


class SemanticCache(Store):
    """Answers by ``cache_key``, which follows from question, session, user, agent and application if not given. The
    physical id is ``sc-`` and the first half of the key's SHA-256. ``timestamp`` is in unix seconds."""

    memory_type = MemoryType.SEMANTIC_CACHE
    types: ClassVar = {
        "cache_key": Text,
        "query": Text,
        "query_text": str | None,
        "response": str,
        "scope": str | None,
        "similarity_threshold": Share,
        "hit_count": Count,
        "usage_count": Count,
        "session_id": str | None,
        "metadata": dict[str, Any] | None,
        "expires_at": str | float | None,
    }
    defaults: ClassVar = {
        "scope": "agent",
        "similarity_threshold": 0.85,
        "hit_count": 0,
        "usage_count": 0,
        "metadata": {},
        "expires_at": None,
    }
    times = ("created_at",)

    def create(self, query: str, response: str, *, session_id: str | None = None, **fields: Any) -> str:
        """Keep an answer, in place of one of the same key that this scope may change, and return its ``cache_key``.

        Raises:
            InvalidRecord: A field breaks its rule, or the key is another user's.
            RecordExists: The key is taken by a record that this scope does not see.
        """
        key = fields.get("cache_key") or self._key(query, session_id, fields)
        asked = {"query": query, "query_text": query, "response": response, "session_id": session_id}
        record = {"timestamp": self._clock().timestamp(), **asked, **fields, "cache_key": key}
        with self._alone(), self.provider.transaction():
            prepared, _ = self._prepared(record, cache_id(str(key)))
            old = self._owned(key)
            if old is None:
                return self._create(record, physical_id=cache_id(key))
            self.provider.store({**prepared, "_id": old["_id"], "id": old["_id"]}, self.memory_type)
        return str(key)

    def lookup(self, query: str, *, session_id: str | None = None, **fields: Any) -> Record | None:
        """The answer to exactly that question, or ``None``; the hit is counted. ``fields`` as in :meth:`create`."""
        with self._alone():
            found = self.get(fields.get("cache_key") or self._key(query, session_id, fields))
            if found is not None:
                counts = {name: int(found.get(name) or 0) + 1 for name in ("hit_count", "usage_count")}
                self._change(found, counts)
                found |= counts
            return found

    def _key(self, query: str, session_id: str | None, fields: dict[str, Any]) -> str:
        user = fields.get("user_id") if self.user_id is UNSET else self.user_id
        application = self.application_id or fields.get("application_id")
        asked = [query, session_id, user, fields.get("agent_id"), application]
        return hashlib.sha256(json.dumps(asked, default=repr).encode()).hexdigest()


def cache_id(cache_key: str) -> str:
    """The physical id of the answer with that key."""
    # Half a surrogate pair is the provider's to refuse.
    digest = hashlib.sha256(cache_key.encode(errors="surrogatepass")).hexdigest()
    return f"sc-{digest[:32]}"
