"""The tool log: which tool was called with what, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from memorizz.checks import Text, invalid
from memorizz.stores.base import Store
from memorizz.taxonomy import MemoryType


class ToolLog(Store):
    """Calls by ``tool_log_id``. ``arguments`` is JSON text and ``result`` text; ``outcome`` is ``success`` or
    ``failure`` if nothing else is said."""

    memory_type = MemoryType.TOOL_LOG
    types: ClassVar = {
        "tool_name": Text,
        "arguments": str,
        "result": str | None,
        "success": bool,
        "error": str | None,
        "outcome": str | None,
        "outcome_details": dict[str, Any] | None,
        "tool_call_id": str | None,
    }

    def create(
        self,
        tool_name: str,
        arguments: Mapping[str, Any] | str,
        result: Any = None,
        *,
        error: str | None = None,
        success: bool | None = None,
        **fields: Any,
    ) -> str:
        """Keep a call and return its id. It succeeded if there is no ``error``, unless ``success`` says otherwise.

        Raises:
            InvalidRecord: A field breaks its rule, or arguments or result are not JSON data.
            RecordExists: Its ``tool_log_id`` is taken.
        """
        succeeded = error is None if success is None else success
        called: dict[str, Any] = {
            "tool_name": tool_name,
            "arguments": self._text("arguments", arguments),
            "result": None if result is None else self._text("result", result),
            "success": succeeded,
            "error": error,
            "outcome": "success" if succeeded else "failure",
            "outcome_details": {},
        }
        return self._create({**called, **fields})

    def _text(self, name: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        try:
            return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise invalid(self.memory_type, None, name, "text or JSON data", value) from None
