"""``gradients`` as TensorFlow has it: nodes that compute how some tensors change with others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from loopscope.builder.frame import GraphFrame
from loopscope.builder.gradient import dead_ends
from loopscope.builder.gradient.dead_ends import DeadEnd, Ways
from loopscope.builder.gradient.reverse import Seed, adjoints
from loopscope.builder.gradient.rules import filled
from loopscope.builder.gradient.unused import drop_unused
from loopscope.builder.graph_builder import Graph, graph_of
from loopscope.builder.structure import aligned, leaves
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.model import ModelGraph as Finished
from loopscope.ir.shape import is_of_an_array


def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str | None = None) -> list[Tensor]:
    """How the sum of all elements of ``ys`` changes with each of ``xs``: one tensor of its type and
    shape for each, in order.

    ``ys``, ``xs``: a tensor, or several in any structure. ``grad_ys``: for each of ``ys`` the
    weight of each of its elements, in its shape (None: ones); of one tensor the weight may stand in
    a list. Zeros where nothing depends on an ``x``. Loops and branches are walked back like
    everything else; whole numbers, conditions and numbers of iterations end a path.

    ``BuildError`` for an ``x`` that has no derivative, such as a whole number, and for an operation
    without a rule on a path from one of ``xs`` to one of ``ys``: it names the path. A warning of
    Python says where all ways to an ``x`` are cut by whole numbers, steps or conditions, so that
    its zeros tell nothing.
    """
    found = with_reasons(ys, xs, grad_ys, name)
    for leaf, (_, ends) in zip(leaves(xs), found, strict=True):
        if ends and not any(one.is_asked_for for one in ends):
            of = ", ".join(one.value.name for one in leaves(ys))
            warnings.warn(dead_ends.sentence(of, leaf.value.name, ends), stacklevel=2)
    return [tensor for tensor, _ in found]


def with_reasons(
    ys: Any, xs: Any, grad_ys: Any = None, name: str | None = None
) -> list[tuple[Tensor, list[DeadEnd] | None]]:
    """The same, and beside each gradient where all ways to it are cut; None where one is not."""
    wanted, targets = leaves(xs), leaves(ys)
    graph = graph_of([leaf.value for leaf in (*targets, *wanted)], "gradients")
    given = _of_one(ys, grad_ys)
    weights = (
        [None] * len(targets)
        if given is None
        else [leaf.value for leaf in aligned(ys, given, "gradients(): grad_ys")]
    )
    if not targets or not wanted:
        raise BuildError(
            f"gradients(): {'xs' if targets else 'ys'} is empty: there is nothing to differentiate"
        )
    with _unchanged_on_failure(graph.frame):
        sources = [_real(graph, leaf.value, f"xs{leaf.path}") for leaf in wanted]
        first = len(graph.frame.nodes)
        with graph.within(name or "backward"):
            seeds = [
                _seed(graph, leaf.value, weight, leaf.path)
                for leaf, weight in zip(targets, weights, strict=True)
            ]
            ways = Ways(
                Finished(tuple(graph.frame.nodes), tuple(graph.frame.edges)), graph.catalogue
            )
            ends = [
                ways.dead_ends(source.source, [seed.target.source for seed in seeds])
                for source in sources
            ]
            found = adjoints(graph, seeds, sources)
            made = [
                filled(graph, 0, source) if one is None else one
                for one, source in zip(found, sources, strict=True)
            ]
        kept = drop_unused(graph.frame, first, made)
        return [(kept.moved(tensor), cut) for tensor, cut in zip(made, ends, strict=True)]


def _of_one(ys: Any, grad_ys: Any) -> Any:
    """The weight of a single tensor, which may come in a list, as in TensorFlow; a list that has
    the tensor's rank is the weight itself.
    """
    if not isinstance(ys, Tensor) or not isinstance(grad_ys, (list, tuple)) or len(grad_ys) != 1:
        return grad_ys
    (only,) = grad_ys
    return (
        only if only is None or isinstance(only, Tensor) or np.ndim(grad_ys) != ys.rank else grad_ys
    )


@contextmanager
def _unchanged_on_failure(frame: GraphFrame) -> Iterator[None]:
    """The loops of a graph get outputs for the way back, which go away again when there is no
    way back.
    """
    nodes, tensors = list(frame.nodes), list(frame.tensors)
    try:
        with frame.all_or_nothing():
            yield
    except BaseException as error:
        frame.nodes[:], frame.tensors[:] = nodes, tensors
        if isinstance(error, RecursionError):
            raise BuildError(
                "gradients(): loops and branches lie too deep in each other to be walked back"
            ) from None
        raise


def _real(graph: Graph, value: object, what: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise BuildError(f"gradients(): {what} is {value!r}, expected a tensor")
    tensor = graph.frame.bring(value)
    if tensor.element_type not in REAL_FLOATS:
        raise BuildError(
            f"gradients(): {what} is {tensor!r}, and only f64, f32, f16 and bf16 have derivatives: convert it before it is used"
        )
    if tensor.shape.is_static and not is_of_an_array(tensor.shape.lengths):
        raise BuildError(
            f"gradients(): {what} is {shorten(repr(tensor))}, which is larger than any array"
        )
    return tensor


def _seed(graph: Graph, value: object, weight: Any, path: str) -> Seed:
    target = _real(graph, value, f"ys{path}")
    if weight is None:
        return Seed(target, filled(graph, 1, target))
    lifted = graph.lift(
        weight, [target.element_type] if target.element_type else [], f"gradients(): grad_ys{path}"
    )
    if (
        lifted.element_type is not target.element_type
        or target.shape.intersect(lifted.shape) is None
    ):
        raise BuildError(
            f"gradients(): grad_ys{path} is {lifted!r}, expected the type and shape of {target!r}"
        )
    return Seed(target, lifted)
