"""Comparison of gradients with central differences, which are computed without differentiation
rules. They are computed in f64; a new input replaces the tensor whose elements are moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from loopscope.builder.graph_builder import Graph
from loopscope.builder.structure import leaves
from loopscope.debug.inputs import Inputs, bind
from loopscope.debug.session import Session
from loopscope.errors import InputError
from loopscope.ir.address import graphs
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import REAL_FLOATS, ElementType
from loopscope.ir.model import Edge, LayerId, Model, ModelGraph, Node, OutputRef, Port, Signature
from loopscope.ir.named_tensors import pruned
from loopscope.ir.readable import significant
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.transform.with_gradients import Names, gradients, outside

_RELATIVE, _ABSOLUTE = 1e-6, 1e-7
"""Tolerances in f64. The extrapolated difference is accurate to about 1e-9 of the function's size;
a wrong rule errs in the first digits.
"""
_SEED = 1
"""Seed of random operations, so that each run uses the same numbers."""
_STEPS = 1e-3, 1e-5
"""Steps relative to the value. The smaller step, which costs digits, is used if the function bends
too much for the larger.
"""
_MAX_ELEMENTS = 64
"""Maximum number of elements per input that are moved; of a larger input, evenly spread ones."""


@dataclass(frozen=True, slots=True)
class GradientDifference:
    """An element of an input at which the gradient and the central difference disagree."""

    name: str
    place: tuple[int, ...]
    gradient: float
    by_differences: float

    def __str__(self) -> str:
        place = f"[{','.join(map(str, self.place))}]" if self.place else ""
        return (
            f"{self.name!r}{place}: the gradient is {significant(self.gradient, 6)}, "
            f"central differences give {significant(self.by_differences, 6)}"
        )


@dataclass(frozen=True, slots=True)
class GradientCheck:
    """Result of the comparison. Its text names the wrong elements."""

    compared: int
    """Number of compared elements of inputs."""
    largest: float
    """Largest difference; relative to the slope if its magnitude is above 1."""
    wrong: tuple[GradientDifference, ...]

    @property
    def ok(self) -> bool:
        """True if all elements agree."""
        return not self.wrong

    def __str__(self) -> str:
        if self.ok:
            return (
                f"the gradient agrees with central differences in {self.compared} elements, "
                f"the largest difference is {significant(self.largest, 2)}"
            )
        shown = "; ".join(map(str, self.wrong[:5]))
        more = f"; and {len(self.wrong) - 5} more" if len(self.wrong) > 5 else ""
        return (
            f"the gradient is wrong in {len(self.wrong)} of {self.compared} elements: {shown}{more}"
        )


def check_gradient(
    model_or_function: Model | Callable[..., Any],
    inputs: Inputs,
    of: Names | None = None,
    with_respect_to: Names | None = None,
    *,
    catalogue: Catalogue = CATALOGUE,
) -> GradientCheck:
    """Compare the gradient of a function with central differences in f64, element by element of
    each float input.

    ``model_or_function`` is a model, or a function from tensors of a graph under construction to
    one or several tensors, such as ``lambda x, w: ops.tanh(x @ w)``. ``inputs`` are an array for
    each argument of a function (floats become f64), or the inputs of a model as for
    ``loopscope.run``. The target is the sum of ``of`` (default: all float outputs). For a function
    each of its elements has a different weight, so that errors do not cancel. ``with_respect_to``
    are tensors outside of bodies (default: all float inputs). A model is converted to f64 for the
    comparison.

    Choose inputs at which the function is smooth: at a kink no derivative is right. Raises the
    errors of ``loopscope.gradients`` and ``loopscope.run``.
    """
    if isinstance(model_or_function, Model):
        return _check_model(model_or_function, inputs, of, with_respect_to, catalogue)
    if not isinstance(inputs, (Sequence, Mapping)) or isinstance(inputs, str):
        raise InputError(
            "check_gradient() of a function takes its arguments as a sequence of arrays, "
            f"not {type(inputs).__name__}"
        )
    arrays = [
        _as_f64(array) for array in (inputs.values() if isinstance(inputs, Mapping) else inputs)
    ]
    names = (
        list(inputs)
        if isinstance(inputs, Mapping)
        else [f"argument {number}" for number in range(len(arrays))]
    )
    model = _build_model(
        model_or_function, dict(zip(map(str, names), arrays, strict=True)), catalogue
    )
    return _check_model(model, arrays, "target", None, catalogue)


def _as_f64(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return array if array.dtype.kind in "biu" else array.astype(np.float64)


def _build_model(
    function: Callable[..., Any], arrays: Mapping[str, np.ndarray], catalogue: Catalogue
) -> Model:
    """Return a model of the function whose target is a weighted sum of the elements of its
    results.
    """
    graph = Graph("check", catalogue=catalogue)
    with graph:
        tensors = [
            graph.parameter(name, array.dtype, array.shape) for name, array in arrays.items()
        ]
        results = [leaf.value for leaf in leaves(function(*tensors))]
        total = None
        for tensor in results:
            if tensor.element_type is not None and tensor.element_type.is_float:
                flat = graph.apply("Reshape", (tensor, np.array([-1])), {"special_zero": False})[0]
                count = graph.apply(
                    "ReduceProd", (graph.apply("ShapeOf", (flat,), {})[0], np.array([0])), {}
                )[0]
                places = graph.apply(
                    "Range", (np.int64(0), count, np.int64(1)), {"output_type": tensor.element_type}
                )[0]
                weights = graph.apply("Cos", (places,), {})[0]
                part = graph.apply("ReduceSum", (flat * weights, np.array([0])), {})[0]
                total = part if total is None else total + part
        if total is None:
            raise InputError("check_gradient(): the function does not give a tensor of floats")
        return graph.model({"target": total})


def _check_model(
    model: Model,
    inputs: Inputs,
    of: Names | None,
    with_respect_to: Names | None,
    catalogue: Catalogue,
) -> GradientCheck:
    model = in_double_precision(model)
    arrays = bind(model, inputs)
    targets = _float_names(model.outputs) if of is None else _as_list(of)
    chosen = _float_names(model.inputs) if with_respect_to is None else _as_list(with_respect_to)
    with_gradients = gradients(model, targets, chosen, catalogue=catalogue)
    outputs = (
        Session(with_gradients, catalogue=catalogue)
        .run([arrays[signature.layer] for signature in with_gradients.inputs], seed=_SEED)
        .outputs[len(model.outputs) :]
    )
    values = pruned(model, [(name, outside(model, name)) for name in chosen])
    bases = (
        Session(values, catalogue=catalogue)
        .run([arrays[signature.layer] for signature in values.inputs], seed=_SEED)
        .outputs
    )
    parts = []
    for name, base, gradient in zip(chosen, bases, outputs, strict=True):
        value = np.array(base, np.float64)
        parts.append(
            _Part(
                name,
                _target(model, targets, outside(model, name), arrays, value, catalogue),
                value,
                np.asarray(gradient),
            )
        )
    return _compare(parts)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A tensor that is moved in place, and the resulting target."""

    name: str
    target: Callable[[], float]
    value: np.ndarray
    gradient: np.ndarray


def _target(
    model: Model,
    targets: Sequence[str],
    source: OutputRef,
    arrays: Mapping[LayerId, np.ndarray],
    moved: np.ndarray,
    catalogue: Catalogue,
) -> Callable[[], float]:
    """Return the sum of the targets as a function of the current content of ``moved``, in place of
    one tensor.
    """
    cut_model, parameter = with_new_input(model, source, "moved")
    sources = [
        (name, parameter if (target_source := outside(model, name)) == source else target_source)
        for name in targets
    ]
    needed = pruned(cut_model, sources)
    session = Session(needed, catalogue=catalogue)
    feeds = [
        moved if target_source.layer == parameter.layer else arrays[target_source.layer]
        for target_source in needed.inputs
    ]

    def total() -> float:
        session.reset()
        return float(
            sum(
                np.asarray(output, np.float64).sum()
                for output in session.run(feeds, seed=_SEED).outputs
            )
        )

    return total


def _float_names(signatures: Sequence[Signature]) -> list[str]:
    return [signature.name for signature in signatures if signature.element_type in REAL_FLOATS]


def _as_list(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _compare(parts: Sequence[_Part]) -> GradientCheck:
    wrong: list[GradientDifference] = []
    compared, largest = 0, 0.0
    for part in parts:
        for index in np.unique(
            np.linspace(0, max(part.value.size - 1, 0), min(part.value.size, _MAX_ELEMENTS)).astype(
                np.int64
            )
        ):
            place = tuple(
                int(index_or_slope) for index_or_slope in np.unravel_index(index, part.value.shape)
            )
            gradient = float(part.gradient[place])
            slope = next(
                (
                    index_or_slope
                    for index_or_slope in _slopes(part, place)
                    if _agree(gradient, index_or_slope)
                ),
                None,
            )
            if slope is None:
                slope = _slope(part.target, part.value, place, _STEPS[-1])
                wrong.append(GradientDifference(part.name, place, gradient, slope))
            compared += 1
            largest = max(largest, abs(gradient - slope) / max(1.0, abs(slope)))
    return GradientCheck(compared, largest, tuple(wrong))


def _agree(gradient: float, slope: float) -> bool:
    return abs(gradient - slope) <= _ABSOLUTE + _RELATIVE * abs(slope)


def _slopes(part: _Part, place: tuple[int, ...]) -> Iterator[float]:
    return (_slope(part.target, part.value, place, step) for step in _STEPS)


def _slope(
    target: Callable[[], float], array: np.ndarray, place: tuple[int, ...], relative: float
) -> float:
    """Return the central difference over a step and over half of it, extrapolated to step 0."""
    value = array[place]
    step = relative * max(1.0, abs(float(value)))
    slopes = []
    for width in (step, step / 2):
        array[place] = value + width
        above = target()
        array[place] = value - width
        slopes.append((above - target()) / (2 * width))
    array[place] = value
    return (4 * slopes[1] - slopes[0]) / 3


_TYPES = frozenset(str(element_type) for element_type in REAL_FLOATS)
"""Names of real float types.

IR attributes have such a value only where they name an element type.
"""
_ONNX_TYPES = frozenset({1, 10, 16})
"""TensorProto numbers of the floats that are narrower than double."""
_ONNX_DOUBLE = 11
_TYPE_ATTRIBUTES = frozenset(
    {"to", "dtype", "stash_type", "output_dtype", "output_datatype", "softmax_precision"}
)
"""ONNX attributes that name an element type by its TensorProto number."""


def in_double_precision(model: Model) -> Model:
    """Return the model with every real float as f64: constants, inputs, and types that attributes
    name.
    """
    converted: dict[int, ModelGraph] = {}
    for place in reversed(list(graphs(model))):
        nodes = tuple(_widen(node, converted) for node in place.graph.nodes)
        converted[id(place.graph)] = replace(place.graph, nodes=nodes)
    return replace(model, graph=converted[id(model.graph)], file="")


def _widen(node: Node, converted: Mapping[int, ModelGraph]) -> Node:
    constant = node.constant
    if constant is not None and constant.element_type in REAL_FLOATS:
        constant = Constant.of(constant.array().astype(np.float64))
    attributes = {name: _widen_attribute(name, value) for name, value in node.attributes.items()}
    return replace(
        node,
        attributes=MappingProxyType(attributes),
        inputs=tuple(map(_widen_port, node.inputs)),
        outputs=tuple(map(_widen_port, node.outputs)),
        constant=constant,
        bodies=tuple(replace(body, graph=converted[id(body.graph)]) for body in node.bodies),
    )


def _widen_attribute(name: str, value: object) -> object:
    if isinstance(value, str) and value.strip().lower() in _TYPES:
        return str(ElementType.F64)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(np.float64)
    return (
        _ONNX_DOUBLE
        if name in _TYPE_ATTRIBUTES and isinstance(value, int) and value in _ONNX_TYPES
        else value
    )


def _widen_port(port: Port) -> Port:
    return replace(port, element_type=ElementType.F64) if port.element_type in REAL_FLOATS else port


def with_new_input(model: Model, source: OutputRef, name: str) -> tuple[Model, OutputRef]:
    """Return the model with a new input in place of a tensor, and that input.

    The tensor is one of the outermost graph.
    """
    graph = model.graph
    port = graph.tensor(source)
    layer = LayerId(max(graph.by_id) + 1)
    attributes = {"shape": str(port.shape)[1:-1], "element_type": str(port.element_type)}
    parameter = Node(
        layer,
        name,
        "Parameter",
        "opset1",
        attributes,
        outputs=(Port(0, port.element_type, port.shape, form=port.form),),
    )
    edges = tuple(
        Edge(layer, 0, edge.to_layer, edge.to_port)
        if (edge.from_layer, edge.from_port) == (source.layer, port.id)
        else edge
        for edge in graph.edges
    )
    return replace(
        model, graph=replace(graph, nodes=(*graph.nodes, parameter), edges=edges)
    ), OutputRef(layer, 0)
