"""``gradients`` and ``stop_gradient`` as in TensorFlow."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from loopscope.builder.frame import GraphFrame
from loopscope.builder.gradient import dead_ends
from loopscope.builder.gradient.dead_ends import DeadEnd, Ways
from loopscope.builder.gradient.node_edits import drop_unused
from loopscope.builder.gradient.reverse import Seed, adjoints
from loopscope.builder.gradient.rules import filled
from loopscope.builder.graph_builder import Graph, graph_of
from loopscope.builder.structure import align_leaves, leaves
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.model import ModelGraph as Finished
from loopscope.ir.rt_info import NO_WAY_BACK
from loopscope.ir.shape import is_of_an_array


def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str | None = None) -> list[Tensor]:
    """Return the derivative of the sum of all elements of ``ys`` with respect to each of ``xs``:
    one tensor of its type and shape each, in order.

    ``ys``, ``xs``: a tensor, or several in any structure. ``grad_ys``: a weight for each element of
    ``ys``, in its shape (None: ones); the weight of a single tensor may be in a list. The
    derivative is zero if no ``y`` depends on an ``x``. Loops and branches are differentiated like
    other operations. Integers, conditions and trip counts end a path.

    ``BuildError`` for an ``x`` without a derivative, such as an integer, and for an operation
    without a rule on a path from one of ``xs`` to one of ``ys``; the message contains the path. A
    Python warning lists the causes if integers, step functions or conditions cut all paths to an
    ``x``, because its zeros are then not informative.
    """
    results = with_reasons(ys, xs, grad_ys, name)
    for leaf, (_, ends) in zip(leaves(xs), results, strict=True):
        if ends and not any(item.is_asked_for for item in ends):
            target_names = ", ".join(item.value.name for item in leaves(ys))
            warnings.warn(dead_ends.sentence(target_names, leaf.value.name, ends), stacklevel=2)
    return [tensor for tensor, _ in results]


def with_reasons(
    ys: Any, xs: Any, grad_ys: Any = None, name: str | None = None
) -> list[tuple[Tensor, list[DeadEnd] | None]]:
    """Return the result of ``gradients``, and for each gradient the places that cut all its paths
    (None if a path is intact).
    """
    source_leaves, targets = leaves(xs), leaves(ys)
    graph = graph_of([leaf.value for leaf in (*targets, *source_leaves)], "gradients")
    weights_structure = _unwrap_weight(ys, grad_ys)
    weights = (
        [None] * len(targets)
        if weights_structure is None
        else [leaf.value for leaf in align_leaves(ys, weights_structure, "gradients(): grad_ys")]
    )
    if not targets or not source_leaves:
        raise BuildError(
            f"gradients(): {'xs' if targets else 'ys'} is empty, expected at least one tensor"
        )
    with _unchanged_on_failure(graph.frame):
        sources = [_require_real(graph, leaf.value, f"xs{leaf.path}") for leaf in source_leaves]
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
            by_source = adjoints(graph, seeds, sources)
            results = [
                filled(graph, 0, source) if adjoint is None else adjoint
                for adjoint, source in zip(by_source, sources, strict=True)
            ]
        pruned = drop_unused(graph.frame, first, results)
        return [(pruned.moved(tensor), cut) for tensor, cut in zip(results, ends, strict=True)]


def _unwrap_weight(ys: Any, grad_ys: Any) -> Any:
    """Return the weight of a single tensor, which may be in a list, as in TensorFlow. A list of the
    tensor's rank is the weight itself.
    """
    if not isinstance(ys, Tensor) or not isinstance(grad_ys, (list, tuple)) or len(grad_ys) != 1:
        return grad_ys
    (only,) = grad_ys
    return (
        only if only is None or isinstance(only, Tensor) or np.ndim(grad_ys) != ys.rank else grad_ys
    )


@contextmanager
def _unchanged_on_failure(frame: GraphFrame) -> Iterator[None]:
    """Restore the graph if differentiation fails, because forward loops may already have additional
    outputs.
    """
    nodes, tensors = list(frame.nodes), list(frame.tensors)
    try:
        with frame.all_or_nothing():
            yield
    except BaseException as error:
        frame.nodes[:], frame.tensors[:] = nodes, tensors
        if isinstance(error, RecursionError):
            raise BuildError("gradients(): loops and branches are nested too deeply") from None
        raise


def _require_real(graph: Graph, value: object, what: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise BuildError(f"gradients(): {what} is {value!r}, expected a tensor")
    tensor = graph.frame.bring(value)
    if tensor.element_type not in REAL_FLOATS:
        raise BuildError(
            f"gradients(): {what} is {tensor!r}, but only f64, f32, f16 and bf16 have "
            "derivatives: convert it before it is used"
        )
    if tensor.shape.is_static and not is_of_an_array(tensor.shape.lengths):
        raise BuildError(
            f"gradients(): {what} is {shorten(repr(tensor))}, which is larger than any array"
        )
    return tensor


def _seed(graph: Graph, value: object, weight: Any, path: str) -> Seed:
    target = _require_real(graph, value, f"ys{path}")
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


def stop_gradient(input: Any, name: str | None = None) -> Tensor:  # TensorFlow's name
    """Return ``input`` unchanged; ``gradients`` treats the result as a constant.

    The result is a Convert to the same type, which every runtime supports. Its ``rt_info`` marks
    that it has no gradient.
    """
    graph = graph_of([input], "stop_gradient")
    tensor = graph.lift(input, what="stop_gradient(): input")
    if tensor.element_type is None:
        raise BuildError(
            f"stop_gradient(): input is {tensor!r}, expected a known element type: convert it first"
        )
    to = {"destination_type": str(tensor.element_type)}
    return graph.frame.add(
        "Convert",
        "opset1",
        to,
        (tensor,),
        (tensor.known,),
        name=name or "StopGradient",
        rt_info=NO_WAY_BACK,
    )[0]
