"""Values outside the documented bounds, shared by the operations that check them."""

from __future__ import annotations

LARGEST = 2**63 - 1
SMALLEST = -(2**63)
BAD_LIMITS = (0, -1, 201, 1_000_000, LARGEST, SMALLEST)
BAD_TTLS = (0, -1, 3_155_760_001, LARGEST, SMALLEST)
TYPES = ("DECISION", "PATTERN", "ERROR", "TODO", "ARCHITECTURE", "CONSTRAINT")
PINNED = {"DECISION", "ARCHITECTURE", "CONSTRAINT"}
MEMBERS = ["id", "content", "type", "tags", "scope", "decay_score", "created_at", "last_accessed"]
"""The members of a result row, in their order."""
INVISIBLE = ("", " ", " \n\t\r", "\u00a0\u2003", "\u200b", "\u200b\u200c\u200d\ufeff", "\u2060 \u00ad", "\x00\x01")


def limit_message(value: int) -> str:
    """How a limit out of its bounds is refused."""
    return f"invalid argument: limit must be between 1 and 200 (got {value})"


def ttl_message(value: int) -> str:
    """How a time to live out of its bounds is refused."""
    return f"invalid argument: ttl_secs must be between 1 and 3155760000 (got {value})"


def type_message(value: str) -> str:
    """How an unknown type is refused."""
    return f"invalid memory type '{value}' (expected one of DECISION, PATTERN, ERROR, TODO, ARCHITECTURE, CONSTRAINT)"
