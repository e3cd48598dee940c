"""Which record has which natural id, kept up while records come and go."""

from __future__ import annotations


class NaturalIds:
    """Natural id to physical id. Of several records with one natural id, the first one counts.

    ``stale`` means that it has to be built again, from all records.
    """

    def __init__(self) -> None:
        self.stale = True
        self._first: dict[str, str] = {}
        self._shared: set[str] = set()

    def clear(self) -> None:
        """Begin to build."""
        self.stale = False
        self._first.clear()
        self._shared.clear()

    def add(self, natural: str | None, id: str) -> None:
        """Note a record."""
        if natural is not None and self._first.setdefault(natural, id) != id:
            self._shared.add(natural)

    def change(self, id: str, old: str | None, new: str | None) -> None:
        """Note that a record has another natural id than before; ``None`` is none, or no record."""
        if self.stale or old == new:
            return
        if old is not None and self._first.get(old) == id:
            if old in self._shared:
                self.stale = True
                return
            del self._first[old]
        self.add(new, id)

    def get(self, natural: str) -> str | None:
        """The physical id of the record."""
        return self._first.get(natural)
