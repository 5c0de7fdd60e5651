"""Values of one name in a trace, by row: the data of a ``Recorded`` node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from loopscope.ir.address import graphs
from loopscope.ir.model import Model, Node

RECORDED: Final = "Recorded"
"""Type of the nodes that return values of a trace."""
RECORDED_OPSET: Final = "loopscope trace"
VALUES: Final = "values"
"""Attribute of a ``Recorded`` node that contains its ``ValuesByRow``."""
MOST_SAMPLES: Final = 64
"""Number of elements that represent a tensor beyond the budget of its trace."""
ENDINGS: Final = "endings"
"""Entry in the runtime information of a loop of a trace: its ``RecordedEnding`` by row."""


class ValuesByRow(Struct, frozen=True, eq=False):
    """The values of one name in all iterations of one loop, numbered over the whole trace."""

    values: np.ndarray | Sequence[np.ndarray | np.generic | None]
    """A value for each row; None where nothing was recorded.

    An array contains scalars of one type.
    """
    starts: tuple[np.ndarray, ...] = ()
    """First row of each execution of the loop and of the loops around it, by the row around.

    The outermost loop, which runs once, is not included.
    """
    fingerprints: Mapping[int, Mapping[str, Any]] = {}
    """Facts about the values beyond the budget, by row.

    Such a value is represented by its sampled elements.
    """
    is_control: bool = False
    """True for a trip count, a condition or an unknown initial value, which no program recorded
    under that name.
    """

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"{len(self.values):,} recorded values"

    def at(self, iterations: Sequence[int]) -> np.ndarray | np.generic | None:
        """Return the value at the iterations of the loops around it, outermost first."""
        row = iterations[0] if iterations else 0
        for starts, iteration in zip(self.starts, iterations[1:], strict=True):
            row = starts[row] + iteration
        return self.values[row]


class RecordedEnding(Struct, frozen=True):
    """The end of one execution of a loop, as the recorder saw it."""

    total: int | None
    """Number of iterations that the program announced; None if it did not."""
    reason: str = ""
    """Reason that the program gave, or the decision that was made last; empty if unknown."""
    complete: bool = True
    """False if the recording ends before the loop."""
    executed: bool = True
    """False if the program did not reach the loop."""


def is_trace(model: Model) -> bool:
    """Return True if a model returns the values of a trace instead of computing any."""
    return model.meta_data.get(RECORDED_OPSET) is True


def is_control(node: Node) -> bool:
    """Return True if a node of a trace only controls how the trace runs."""
    rows = node.attributes.get(VALUES)
    return isinstance(rows, ValuesByRow) and rows.is_control


def is_recorded(node: Node) -> bool:
    """Return True if a node returns values that a program recorded under its name."""
    return node.type == RECORDED and not is_control(node)


def recorded_values(model: Model) -> int:
    """Return the number of names under which the program recorded values."""
    return sum(is_recorded(node) for place in graphs(model) for node in place.graph.nodes)


def recorded_ending(node: Node, row: int) -> RecordedEnding | None:
    """Return the recorded end of a loop in a row of the graph around it.

    None for a loop that is not from a trace.
    """
    endings = node.rt_info.get(ENDINGS)
    if not isinstance(endings, tuple) or row >= len(endings):
        return None
    ending = endings[row]
    return ending if isinstance(ending, RecordedEnding) else None


def sample_indices(size: int) -> np.ndarray:
    """Return the indices of the elements that represent a flat tensor.

    >>> sample_indices(3).tolist(), sample_indices(1000)[[0, 1, -1]].tolist()
    ([0, 1, 2], [0, 15, 999])
    """
    count = min(size, MOST_SAMPLES)
    return np.linspace(0, size - 1, count).astype(np.int64) if size else np.zeros(0, np.int64)
