"""Who is told when a debugger has moved: a canvas in a notebook, which follows what a cell does."""

from __future__ import annotations

from collections.abc import Callable
from weakref import ref


class Listeners:
    """Those of one debugger. Its copies share this object, and their moves are nobody's
    business.
    """

    def __init__(self, owner: object) -> None:
        self._owner = ref(owner)
        self._calls: list[Callable[[], object]] = []

    def add(self, call: Callable[[], object]) -> None:
        """Called after every move from now on."""
        self._calls.append(call)

    def tell(self, mover: object) -> None:
        """Tells that one has moved."""
        if self._owner() is mover:
            for call in self._calls:
                call()
