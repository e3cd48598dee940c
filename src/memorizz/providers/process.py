"""The process that opened a provider: connections and locks are of no use in one that was forked from it."""

from __future__ import annotations

import os

from memorizz.errors import ProviderFault


class OwnProcess:
    """The process that made this object."""

    def __init__(self) -> None:
        self._id = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether it is the one that asks."""
        return self._id == os.getpid()

    def check(self) -> None:
        """Refuse another process.

        Raises:
            ProviderFault: This one was forked.
        """
        if not self.is_here:
            raise ProviderFault("a provider cannot be used in a forked process; open one there")
