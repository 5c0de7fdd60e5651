"""``SparseTensor`` and ``IndexedSlices``: three tensors that stand for one, as TensorFlow has
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loopscope.builder.graph_builder import graph_of
from loopscope.builder.shape_invariants import Composite
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import INDEX_TYPES
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape, static

_ANY = Dimension()


@dataclass(frozen=True, slots=True, eq=False)
class SparseTensor(Composite):
    """A tensor of which only some elements are kept; all others are zero.

    ``indices``: [n, rank], ``values``: [n], ``dense_shape``: [rank]. As a loop variable its
    invariant is the shape of ``dense_shape``, [rank]: the number of elements may always change.
    ``BuildError`` for parts of other ranks.
    """

    indices: Any
    values: Any
    dense_shape: Any

    def __post_init__(self) -> None:
        _lift_parts(self, indices=2, values=1, dense_shape=1)

    def get_shape(self) -> PartialShape:
        """Of the tensor that it stands for: as many unknown lengths as its rank, when that is
        known.
        """
        rank = self.dense_shape.shape.at(0)
        return PartialShape((_ANY,) * rank.length) if rank.is_static else DYNAMIC

    def invariants(self, given: PartialShape | None, what: str) -> Sequence[PartialShape | None]:
        shape = self.dense_shape.shape if given is None else given
        if shape.rank not in (None, 1):
            raise BuildError(
                f"{what} is {shape}, expected the shape of a SparseTensor's dense_shape, which has one length: the rank"
            )
        rank = shape.at(0) if shape.rank == 1 else _ANY
        return PartialShape((_ANY, rank)), PartialShape((_ANY,)), PartialShape((rank,))


@dataclass(frozen=True, slots=True, eq=False)
class IndexedSlices(Composite):
    """Some parts of a tensor along its first axis.

    ``values``: [n, ...], ``indices``: [n], where each part belongs, ``dense_shape``: [rank]. As a
    loop variable its invariant is the shape of ``values``. ``BuildError`` for parts of other ranks.
    """

    values: Any
    indices: Any
    dense_shape: Any

    def __post_init__(self) -> None:
        _lift_parts(self, values=None, indices=1, dense_shape=1)

    def invariants(self, given: PartialShape | None, what: str) -> Sequence[PartialShape | None]:
        if given is None:
            return None, None, None
        if given.dimensions is None:
            return DYNAMIC, PartialShape((_ANY,)), PartialShape((_ANY,))
        if not given.dimensions:
            raise BuildError(
                f"{what} is {given}, expected the shape of the values of IndexedSlices, which have at least one axis"
            )
        return given, PartialShape((given.at(0),)), PartialShape((static(len(given.dimensions)),))


def _lift_parts(made: SparseTensor | IndexedSlices, **ranks: int | None) -> None:
    """Makes the parts tensors of the current graph; None for a rank: any but 0."""
    called = type(made).__name__
    given = {name: getattr(made, name) for name in ranks}
    graph = graph_of(given.values(), called)
    for name, rank in ranks.items():
        tensor: Tensor = graph.lift(given[name], what=f"{called}: {name}")
        if tensor.rank is not None and (
            tensor.rank != rank if rank is not None else tensor.rank == 0
        ):
            expected = f"rank {rank}" if rank is not None else "at least one axis"
            raise BuildError(f"{called}: {name} is {tensor!r}, expected {expected}")
        if name != "values" and tensor.element_type not in (None, *INDEX_TYPES):
            raise BuildError(f"{called}: {name} is {tensor!r}, expected i32 or i64")
        object.__setattr__(made, name, tensor)
