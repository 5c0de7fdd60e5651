"""Gradients held against central differences: what a derivative is, computed without any rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.builder.graph_builder import Graph
from loopscope.builder.structure import leaves
from loopscope.debug.inputs import Inputs, bind
from loopscope.debug.session import Session
from loopscope.errors import InputError
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.model import LayerId, Model, OutputRef, Signature
from loopscope.ir.prune import pruned
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.transform.cut import cut
from loopscope.transform.in_double_precision import in_double_precision
from loopscope.transform.with_gradients import Names, gradients, outside

_RELATIVE, _ABSOLUTE = 1e-6, 1e-7
"""Of f64: the extrapolated difference is right to about 1e-9 of the function's own size; a wrong
rule is wrong in its first digits.
"""
_SEED = 1
"""Random operations give the same numbers in each run."""
_STEPS = 1e-3, 1e-5
"""Relative to the value that is moved; the smaller one is taken where a function bends too much
for the other, and costs digits.
"""
_MOST_ELEMENTS = 64
"""Of one input are moved; of larger ones so many, spread evenly."""


@dataclass(frozen=True, slots=True)
class GradientDifference:
    """One element of one input where the two disagree."""

    name: str
    place: tuple[int, ...]
    gradient: float
    by_differences: float

    def __str__(self) -> str:
        place = f"[{','.join(map(str, self.place))}]" if self.place else ""
        return f"{self.name!r}{place}: the gradient is {self.gradient:.6g}, central differences give {self.by_differences:.6g}"


@dataclass(frozen=True, slots=True)
class GradientCheck:
    """What came of the comparison; ``print`` of it says where the gradient is wrong."""

    compared: int
    """Elements of inputs."""
    largest: float
    """The largest difference, relative to the size of what is compared where that is above 1."""
    wrong: tuple[GradientDifference, ...]

    @property
    def ok(self) -> bool:
        """Whether all elements agree."""
        return not self.wrong

    def __str__(self) -> str:
        if self.ok:
            return f"the gradient agrees with central differences in {self.compared} elements, the largest difference is {self.largest:.1e}"
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
    """Compares the gradient of a function with central differences in f64, element by element of
    each input of floats.

    ``model_or_function``: a model, or a function that gets tensors of a graph under construction
    and gives one or several, such as ``lambda x, w: ops.tanh(x @ w)``. ``inputs``: for a function
    an array for each argument (floats become f64), for a model what ``loopscope.run`` takes. The
    target is the sum of ``of`` (default: all outputs of floats), each element of them weighted
    differently for a function, so that errors do not cancel; ``with_respect_to``: tensors outside
    of bodies (default: all inputs of floats). A model is made to compute in f64 for this.

    Choose inputs at which the function is smooth: at a kink no derivative is right. Errors are
    those of ``loopscope.gradients`` and ``loopscope.run``.
    """
    if isinstance(model_or_function, Model):
        return _of_model(model_or_function, inputs, of, with_respect_to, catalogue)
    if not isinstance(inputs, (Sequence, Mapping)) or isinstance(inputs, str):
        raise InputError(
            f"check_gradient() of a function takes its arguments as a sequence of arrays, not {type(inputs).__name__}"
        )
    arrays = [
        _wide(array) for array in (inputs.values() if isinstance(inputs, Mapping) else inputs)
    ]
    names = (
        list(inputs)
        if isinstance(inputs, Mapping)
        else [f"argument {number}" for number in range(len(arrays))]
    )
    model = _built(model_or_function, dict(zip(map(str, names), arrays, strict=True)), catalogue)
    return _of_model(model, arrays, "target", None, catalogue)


def _wide(given: Any) -> np.ndarray:
    array = np.asarray(given)
    return array if array.dtype.kind in "biu" else array.astype(np.float64)


def _built(
    function: Callable[..., Any], arrays: Mapping[str, np.ndarray], catalogue: Catalogue
) -> Model:
    """A model of the function whose target weights each element of what it gives."""
    graph = Graph("check", catalogue=catalogue)
    with graph:
        tensors = [
            graph.parameter(name, array.dtype, array.shape) for name, array in arrays.items()
        ]
        given = [leaf.value for leaf in leaves(function(*tensors))]
        total = None
        for tensor in given:
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


def _of_model(
    model: Model,
    inputs: Inputs,
    of: Names | None,
    with_respect_to: Names | None,
    catalogue: Catalogue,
) -> GradientCheck:
    model = in_double_precision(model)
    arrays = bind(model, inputs)
    targets = _real(model.outputs) if of is None else _several(of)
    chosen = _real(model.inputs) if with_respect_to is None else _several(with_respect_to)
    made = gradients(model, targets, chosen, catalogue=catalogue)
    outputs = (
        Session(made, catalogue=catalogue)
        .run([arrays[one.layer] for one in made.inputs], seed=_SEED)
        .outputs[len(model.outputs) :]
    )
    values = pruned(model, [(name, outside(model, name)) for name in chosen])
    bases = (
        Session(values, catalogue=catalogue)
        .run([arrays[one.layer] for one in values.inputs], seed=_SEED)
        .outputs
    )
    parts = []
    for name, base, gradient in zip(chosen, bases, outputs, strict=True):
        moved = np.array(base, np.float64)
        parts.append(
            _Part(
                name,
                _target(model, targets, outside(model, name), arrays, moved, catalogue),
                moved,
                np.asarray(gradient),
            )
        )
    return _compared(parts)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A tensor that is moved in place, and what the target is then."""

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
    """The sum of the targets as a function of what ``moved`` holds, in place of one tensor."""
    opened, parameter = cut(model, source, "moved")
    sources = [
        (name, parameter if (one := outside(model, name)) == source else one) for name in targets
    ]
    needed = pruned(opened, sources)
    session = Session(needed, catalogue=catalogue)
    feeds = [moved if one.layer == parameter.layer else arrays[one.layer] for one in needed.inputs]

    def total() -> float:
        session.reset()
        return float(
            sum(
                np.asarray(output, np.float64).sum()
                for output in session.run(feeds, seed=_SEED).outputs
            )
        )

    return total


def _real(signatures: Sequence[Signature]) -> list[str]:
    return [one.name for one in signatures if one.element_type in REAL_FLOATS]


def _several(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _compared(parts: Sequence[_Part]) -> GradientCheck:
    wrong: list[GradientDifference] = []
    compared, largest = 0, 0.0
    for part in parts:
        for index in np.unique(
            np.linspace(
                0, max(part.value.size - 1, 0), min(part.value.size, _MOST_ELEMENTS)
            ).astype(np.int64)
        ):
            place = tuple(int(one) for one in np.unravel_index(index, part.value.shape))
            found = float(part.gradient[place])
            slope = next((one for one in _slopes(part, place) if _agree(found, one)), None)
            if slope is None:
                slope = _slope(part.target, part.value, place, _STEPS[-1])
                wrong.append(GradientDifference(part.name, place, found, slope))
            compared += 1
            largest = max(largest, abs(found - slope) / max(1.0, abs(slope)))
    return GradientCheck(compared, largest, tuple(wrong))


def _agree(gradient: float, slope: float) -> bool:
    return abs(gradient - slope) <= _ABSOLUTE + _RELATIVE * abs(slope)


def _slopes(part: _Part, place: tuple[int, ...]) -> Iterator[float]:
    return (_slope(part.target, part.value, place, step) for step in _STEPS)


def _slope(
    target: Callable[[], float], array: np.ndarray, place: tuple[int, ...], relative: float
) -> float:
    """The central difference over a step and over half of it, extrapolated to no step at all."""
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
