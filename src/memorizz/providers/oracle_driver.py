"""python-oracledb: imported when a provider is opened, and its pool of connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from memorizz.errors import ConfigurationError

if TYPE_CHECKING:
    from types import ModuleType


class Pool(Protocol):
    """Where connections come from. Closing a connection gives it back."""

    def acquire(self) -> Any: ...

    def close(self, force: bool = False) -> None: ...


class Address(NamedTuple):
    """What a pool is opened with."""

    user: str
    password: str
    dsn: str
    minimum: int
    maximum: int
    increment: int
    wait_seconds: float


def load() -> ModuleType:
    """The library.

    Raises:
        ConfigurationError: It is not installed.
    """
    try:
        import oracledb
    except ImportError:
        raise ConfigurationError(
            "the provider 'oracle' needs the library python-oracledb: pip install 'agent-memory[oracle]'"
        ) from None
    return oracledb


def open_pool(address: Address) -> Pool:
    """A pool of connections in thin mode, which needs no Oracle software on this machine.

    Raises:
        oracledb.Error: It cannot be made.
    """
    driver = load()
    pool: Pool = driver.create_pool(
        user=address.user,
        password=address.password,
        dsn=address.dsn,
        min=address.minimum,
        max=address.maximum,
        increment=address.increment,
        getmode=driver.POOL_GETMODE_TIMEDWAIT,
        wait_timeout=round(address.wait_seconds * 1000),
    )
    return pool
