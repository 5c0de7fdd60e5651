"""Watched expressions, evaluated at the cursor."""

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
from loopscope.ir.address_search import full_address
from loopscope.ir.readable import STEP


class Watches:
    """Watched expressions of one run, by id."""

    def __init__(self, run: Run) -> None:
        # A weak reference avoids a cycle, so that the memory of a run is freed with its last
        # reference.
        self._run: Run = weakref.proxy(run)
        self._items: dict[int, Expression] = {}
        self._next = 1

    def __repr__(self) -> str:
        texts = (f"{id} {expression.text}" for id, expression in self._items.items())
        return f"<watches: {', '.join(texts) or 'none'}>"

    def add(self, expression: str) -> int:
        """Watch an expression and return its id; ``ExpressionError`` if it is outside the
        language.
        """
        self._items[self._next] = parse(expression)
        self._next += 1
        return self._next - 1

    def remove(self, id: int) -> None:
        """Stop watching an expression."""
        self._items.pop(id, None)

    def items(self) -> tuple[tuple[int, str], ...]:
        """Return the id and text of each watched expression."""
        return tuple((id, expression.text) for id, expression in self._items.items())

    def values(self) -> dict[int, np.ndarray | str]:
        """Return the value of each watched expression at the cursor, or a sentence that explains
        why it has none.
        """
        results: dict[int, np.ndarray | str] = {}
        for id, expression in self._items.items():
            try:
                results[id] = self.evaluate(expression)
            except EngineError as error:
                results[id] = str(error)
        return results

    def evaluate(self, expression: Expression | str) -> np.ndarray:
        """Return the value of an expression at the cursor. Names are nodes of the open graphs,
        innermost first, or whole addresses.
        """
        parsed = parse(expression) if isinstance(expression, str) else expression
        return as_public(parsed.value(self._lookup))

    def _lookup(self, name: str) -> Any:
        run = self._run
        open_graphs = run.frames()
        if name == ITERATION:
            iterations = [graph.iteration for graph in open_graphs if graph.iteration is not None]
            if not iterations:
                raise ExpressionError("there is no iteration outside a loop")
            return np.int64(iterations[-1])
        for graph in reversed(open_graphs):
            program = run.plan.program_by_address[graph.static]
            if (label := label_of(program, name)) is not None:
                return run.value(f"{graph.address}/{label}")
        if "/" in name or STEP in name:
            return run.value(full_address(run.model, name))
        hint = ": an address is written in backticks" if name == ROOT else ""
        raise AddressError(f"there is no {name!r} in the graphs that are open here{hint}")
