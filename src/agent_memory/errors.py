"""The one exception tree. Each class fixes how every door reports it.

::

    AgentMemoryError                 exit 1
    ├── InvalidInput                 JSON-RPC -32602, HTTP 400, exit 2: the caller can mend it
    │   ├── InvalidArgument          "invalid argument: <field> <rule> (got <value>)"
    │   │   └── InvalidFile          "invalid argument: line <n>: <defect>": a file to import, exit 1
    │   ├── FormatTooNew             a file to import that a newer version wrote, exit 1
    │   ├── InvalidType              "invalid memory type '<value>' (expected one of ...)"
    │   └── InvalidSetting           a flag or an environment variable
    ├── MalformedParameters          MCP result with isError, HTTP 400, exit 2: the request has not the
    │                                documented shape, so no operation was tried
    ├── StorageError                 JSON-RPC -32603, HTTP 500, exit 1: only a generic sentence, the detail
    │                                is in the log
    ├── OpenError                    exit 1: the database cannot be opened, so nothing starts
    │   └── SchemaTooNew
    ├── Closed                       JSON-RPC -32603, HTTP 500, exit 1: the memory was closed, its file was moved away,
    │                                or this is a forked child
    └── EmbeddingError               never leaves the service: stores and searches degrade instead
        ├── EmbedderUnreachable      nobody answers: counted by the circuit breaker
        └── EmbeddingRejected        an answer that is an error or not the documented embedding
"""

from __future__ import annotations

from typing import ClassVar


def shorten(text: str) -> str:
    """``text`` for a message: at most 80 characters of it."""
    return text if len(text) <= 80 else text[:79] + "…"


class AgentMemoryError(Exception):
    """Base of every error this package raises on purpose."""

    jsonrpc_code: ClassVar[int] = -32603
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1


class InvalidInput(AgentMemoryError):
    """The caller sent a value that breaks a documented rule; nothing was read or written."""

    jsonrpc_code = -32602
    http_status = 400
    exit_code = 2


class InvalidArgument(InvalidInput):
    """A field is outside its rule; ``rule`` names the field, the rule and the value."""

    def __init__(self, rule: str) -> None:
        super().__init__(f"invalid argument: {rule}")


class InvalidFile(InvalidArgument):
    """A file to import is not what its format says; ``line`` counts from 1. Nothing was imported."""

    exit_code = 1

    def __init__(self, line: int, defect: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {defect}")


class FormatTooNew(InvalidInput):
    """A newer agent-memory exported the file; nothing was imported."""

    exit_code = 1

    def __init__(self, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            f"file is format version {shorten(str(found))} but this binary reads up to version {supported} — "
            "upgrade agent-memory"
        )


class InvalidType(InvalidInput):
    """The memory type is none of the six."""

    def __init__(self, value: object, expected: str) -> None:
        super().__init__(f"invalid memory type '{shorten(str(value))}' (expected one of {expected})")


class InvalidSetting(InvalidInput):
    """A flag or an environment variable has an unusable value."""


class MalformedParameters(AgentMemoryError):
    """The parameters have not the documented shape: a field is missing, unknown or of the wrong type."""

    jsonrpc_code = -32602
    http_status = 400
    exit_code = 2

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"failed to deserialize parameters: {reason}")


class StorageError(AgentMemoryError):
    """The database failed while an operation ran. The engine's own text goes to the log, never to a client."""

    def __init__(self, operation: str) -> None:
        self.operation = operation
        super().__init__(f"{operation} failed due to a storage error (details are in the server log)")


class OpenError(AgentMemoryError):
    """The database cannot be opened; the file was not migrated."""


class SchemaTooNew(OpenError):
    """A newer agent-memory wrote the file; it was left untouched."""

    def __init__(self, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            f"database schema is version {found} but this binary supports up to version {supported} — "
            "upgrade agent-memory (brew upgrade unityinflow/tap/agent-memory) "
            "or point --db at a different file"
        )


class Closed(AgentMemoryError):
    """The memory is closed, its file was moved away, or it was opened in the parent of this forked process."""


class EmbeddingError(AgentMemoryError):
    """A text could not be turned into a vector."""


class EmbedderUnreachable(EmbeddingError):
    """The embedder refused the connection, did not answer in time, or was asked too soon after it did not."""


class EmbeddingRejected(EmbeddingError):
    """The embedder answered with an error or with something that is not the documented embedding."""
