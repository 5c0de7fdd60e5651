"""Expressions that are looked at wherever the cursor is."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from loopscope.debug.breakpoints import ITERATION
from loopscope.debug.export_value import as_public
from loopscope.debug.expression import Expression, parse
from loopscope.debug.run import Run
from loopscope.debug.suggestions import label_of
from loopscope.errors import AddressError, EngineError, ExpressionError
from loopscope.ir.address import ROOT
from loopscope.ir.address_suffix import full_address
from loopscope.ir.readable import STEP


class Watches:
    """The watched expressions of one run, by id."""

    def __init__(self, run: Run) -> None:
        # No reference cycle, so that the memory of a run is freed with its last reference.
        self._run: Run = weakref.proxy(run)
        self._items: dict[int, Expression] = {}
        self._next = 1

    def __repr__(self) -> str:
        return f"<watches: {', '.join(f'{id} {one.text}' for id, one in self._items.items()) or 'none'}>"

    def add(self, expression: str) -> int:
        """Watches an expression from now on; gives its id. ``ExpressionError`` when it is
        outside the language.
        """
        self._items[self._next] = parse(expression)
        self._next += 1
        return self._next - 1

    def remove(self, id: int) -> None:
        """No longer watches an expression."""
        self._items.pop(id, None)

    def items(self) -> tuple[tuple[int, str], ...]:
        """Id and text of each."""
        return tuple((id, expression.text) for id, expression in self._items.items())

    def values(self) -> dict[int, np.ndarray | str]:
        """The value of each at the cursor, or a sentence that says why there is none."""
        found: dict[int, np.ndarray | str] = {}
        for id, expression in self._items.items():
            try:
                found[id] = self.evaluate(expression)
            except EngineError as error:
                found[id] = str(error)
        return found

    def evaluate(self, expression: Expression | str) -> np.ndarray:
        """The value of an expression at the cursor: names are nodes of the open graphs,
        innermost first, or whole addresses.
        """
        parsed = parse(expression) if isinstance(expression, str) else expression
        return as_public(parsed.value(self._lookup))

    def _lookup(self, name: str) -> Any:
        run = self._run
        opened = run.frames()
        if name == ITERATION:
            found = [one.iteration for one in opened if one.iteration is not None]
            if not found:
                raise ExpressionError("there is no iteration outside a loop")
            return np.int64(found[-1])
        for one in reversed(opened):
            program = run.plan.program_by_address[one.static]
            if (label := label_of(program, name)) is not None:
                return run.value(f"{one.address}/{label}")
        if "/" in name or STEP in name:
            return run.value(full_address(run.model, name))
        hint = ": an address is written in backticks" if name == ROOT else ""
        raise AddressError(f"there is no {name!r} in the graphs that are open here{hint}")
