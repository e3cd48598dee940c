"""The errors of the memory graph, below the one tree of the distribution.

::

    AgentMemoryError
    └── MemorizzError                     exit 2: the caller can mend it
        ├── MemoryArchiveError            also a ValueError: an archive, or what was asked of one, is refused
        │   └── ArchiveConflict           exit 1: records are there already and no policy says what becomes of them
        ├── ConfigurationError            no provider, or one that cannot be opened as configured
        └── ProviderError                 a provider refused or failed
            ├── InvalidRecord             also a ValueError: the provider cannot hold such a record
            ├── RecordExists              a record of that identity is there already
            ├── ReadOnlyProvider          it was opened for reading only
            └── ProviderFault             exit 1: the storage below failed
"""

from __future__ import annotations

from agent_memory.errors import AgentMemoryError


class MemorizzError(AgentMemoryError):
    """Base of every error that ``memorizz`` raises on purpose."""

    jsonrpc_code = -32602
    http_status = 400
    exit_code = 2


class MemoryArchiveError(MemorizzError, ValueError):
    """An archive is not valid, or cannot be made or restored as asked; nothing was written."""


class ArchiveConflict(MemoryArchiveError):
    """Records of the archive exist at the destination, and they are neither to be skipped nor replaced."""

    http_status = 409
    exit_code = 1


class ConfigurationError(MemorizzError):
    """The settings name no usable provider."""


class ProviderError(MemorizzError):
    """Base of what a provider raises."""


class InvalidRecord(ProviderError, ValueError):
    """The provider cannot hold a record like this one."""


class RecordExists(ProviderError):
    """A record of that id is there already and was not to be replaced."""


class ReadOnlyProvider(ProviderError):
    """The provider was opened for reading only."""


class ProviderFault(ProviderError):
    """The storage below failed."""

    jsonrpc_code = -32603
    http_status = 500
    exit_code = 1
