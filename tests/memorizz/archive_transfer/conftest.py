"""The providers of the other tests of exporting and importing."""

from __future__ import annotations

from tests.memorizz.transfer.conftest import open_empty, reference, target

__all__ = ["open_empty", "reference", "target"]
