"""Listeners that are called when a debugger has moved, such as a canvas in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from weakref import ref


class Listeners:
    """Listeners of one debugger. Copies of the debugger share this object, but their moves are not
    reported.
    """

    def __init__(self, owner: object) -> None:
        self._owner = ref(owner)
        self._calls: list[Callable[[], object]] = []

    def add(self, call: Callable[[], object]) -> None:
        """Call ``call`` after every move from now on."""
        self._calls.append(call)

    def notify(self, mover: object) -> None:
        """Report a move of ``mover`` to the listeners."""
        if self._owner() is mover:
            for call in self._calls:
                call()
