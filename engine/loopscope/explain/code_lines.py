"""Generated code, with the model node that each line belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of code and the node that it belongs to."""

    text: str
    address: str = ""
    """Static address, such as ``main/while_3/body/Add_1``; empty if the line belongs to no node."""


@dataclass(frozen=True, eq=False)
class Listing:
    """The code of a graph."""

    lines: tuple[CodeLine, ...]
    weights: Mapping[str, np.ndarray]
    """Constants too large to write out, by the name under which the code reads them."""
    complete: bool
    """False if bodies were omitted because they are nested too deeply."""

    @property
    def text(self) -> str:
        """Text of all lines."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def address_of(self, number: int) -> str:
        """Return the static address of a line (counted from 1); empty if the line belongs to no
        node.
        """
        return self.lines[number - 1].address

    def lines_of(self, address: str) -> tuple[int, ...]:
        """Return the lines (counted from 1) of the node at a static address."""
        return self._by_address.get(address, ())

    @cached_property
    def _by_address(self) -> dict[str, tuple[int, ...]]:
        numbers_by_address: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines, 1):
            if line.address:
                numbers_by_address.setdefault(line.address, []).append(number)
        return {address: tuple(numbers) for address, numbers in numbers_by_address.items()}
