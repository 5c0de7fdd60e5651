"""Lines of code, each with the node of the model that it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One line of code, and the node that it is for."""

    text: str
    address: str = ""
    """Static address, such as ``main/while_3/body/Add_1``; empty for lines that belong to no
    node.
    """


@dataclass(frozen=True, eq=False)
class Listing:
    """The code of a graph."""

    lines: tuple[CodeLine, ...]
    weights: Mapping[str, np.ndarray]
    """Constants that are too large to be written out, by the name that the code reads them by."""
    complete: bool
    """False when bodies lie so deep that they were left out."""

    @property
    def text(self) -> str:
        """All lines."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def address_of(self, number: int) -> str:
        """The static address that a line (counted from 1) is for; empty when it is for none."""
        return self.lines[number - 1].address

    def lines_of(self, address: str) -> tuple[int, ...]:
        """The lines (counted from 1) of the node at a static address."""
        return self._by_address.get(address, ())

    @cached_property
    def _by_address(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines, 1):
            if line.address:
                found.setdefault(line.address, []).append(number)
        return {address: tuple(numbers) for address, numbers in found.items()}
