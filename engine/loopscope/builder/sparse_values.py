"""``SparseTensor`` and ``IndexedSlices``: three tensors that represent one, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loopscope.builder.graph_builder import graph_of
from loopscope.builder.loop import Composite
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import INDEX_TYPES
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape, static

_ANY = Dimension()


@dataclass(frozen=True, slots=True, eq=False)
class SparseTensor(Composite):
    """A tensor with only some elements stored; all others are zero.

    ``indices``: [n, rank], ``values``: [n], ``dense_shape``: [rank]. As a loop variable its
    invariant is the shape of ``dense_shape``, [rank]; the number of elements may always change.
    ``BuildError`` for components of other ranks.
    """

    indices: Any
    values: Any
    dense_shape: Any

    def __post_init__(self) -> None:
        _lift_parts(self, indices=2, values=1, dense_shape=1)

    def get_shape(self) -> PartialShape:
        """Return the shape of the represented tensor: unknown lengths, as many as its rank if that
        is known.
        """
        rank = self.dense_shape.shape.at(0)
        return PartialShape((_ANY,) * rank.length) if rank.is_static else DYNAMIC

    def invariants(
        self, invariant: PartialShape | None, what: str
    ) -> Sequence[PartialShape | None]:
        shape = self.dense_shape.shape if invariant is None else invariant
        if shape.rank not in (None, 1):
            raise BuildError(
                f"{what} is {shape}, expected the shape of a SparseTensor's dense_shape, which "
                "has one length: the rank"
            )
        rank = shape.at(0) if shape.rank == 1 else _ANY
        return PartialShape((_ANY, rank)), PartialShape((_ANY,)), PartialShape((rank,))


@dataclass(frozen=True, slots=True, eq=False)
class IndexedSlices(Composite):
    """Some slices of a tensor along its first axis.

    ``values``: [n, ...], ``indices``: [n], the position of each slice, ``dense_shape``: [rank]. As
    a loop variable its invariant is the shape of ``values``. ``BuildError`` for components of other
    ranks.
    """

    values: Any
    indices: Any
    dense_shape: Any

    def __post_init__(self) -> None:
        _lift_parts(self, values=None, indices=1, dense_shape=1)

    def invariants(
        self, invariant: PartialShape | None, what: str
    ) -> Sequence[PartialShape | None]:
        if invariant is None:
            return None, None, None
        if invariant.dimensions is None:
            return DYNAMIC, PartialShape((_ANY,)), PartialShape((_ANY,))
        if not invariant.dimensions:
            raise BuildError(
                f"{what} is {invariant}, expected the shape of the values of IndexedSlices, which "
                "have at least one axis"
            )
        return (
            invariant,
            PartialShape((invariant.at(0),)),
            PartialShape((static(len(invariant.dimensions)),)),
        )


def _lift_parts(composite: SparseTensor | IndexedSlices, **ranks: int | None) -> None:
    """Convert the components to tensors of the current graph. A rank of None accepts any rank
    except 0.
    """
    caller = type(composite).__name__
    components = {name: getattr(composite, name) for name in ranks}
    graph = graph_of(components.values(), caller)
    for name, rank in ranks.items():
        tensor: Tensor = graph.lift(components[name], what=f"{caller}: {name}")
        if tensor.rank is not None and (
            tensor.rank != rank if rank is not None else tensor.rank == 0
        ):
            expected = f"rank {rank}" if rank is not None else "at least one axis"
            raise BuildError(f"{caller}: {name} is {tensor!r}, expected {expected}")
        if name != "values" and tensor.element_type not in (None, *INDEX_TYPES):
            raise BuildError(f"{caller}: {name} is {tensor!r}, expected i32 or i64")
        object.__setattr__(composite, name, tensor)
