"""Gradients held against central differences: what a derivative is, computed without any rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.build.graph_builder import Graph
from engine.build.structure import leaves
from engine.debug.inputs import Inputs, bind
from engine.debug.session import Session
from engine.errors import InputError
from engine.ir.model import Model
from engine.ops.catalogue import CATALOGUE, Catalogue
from engine.transform.with_gradients import gradients

_RELATIVE, _ABSOLUTE = 1e-6, 1e-7
"""Of f64: the extrapolated difference is right to about 1e-9 of the function's own size; a wrong rule is wrong in its first digits."""
_MOST_ELEMENTS = 64
"""Of one input are moved; of larger ones so many, spread evenly."""


@dataclass(frozen=True, slots=True)
class Difference:
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
    wrong: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether all elements agree."""
        return not self.wrong

    def __str__(self) -> str:
        if self.ok:
            return f"the gradient agrees with central differences in {self.compared} elements, the largest difference is {self.largest:.1e}"
        shown = "; ".join(map(str, self.wrong[:5]))
        more = f"; and {len(self.wrong) - 5} more" if len(self.wrong) > 5 else ""
        return f"the gradient is wrong in {len(self.wrong)} of {self.compared} elements: {shown}{more}"


def check_gradient(
    model_or_function: Model | Callable[..., Any],
    inputs: Inputs,
    of: Sequence[str] | str | None = None,
    with_respect_to: Sequence[str] | str | None = None,
    *,
    catalogue: Catalogue = CATALOGUE,
) -> GradientCheck:
    """Compares the gradient of a function with central differences in f64, element by element of each input of floats.

    ``model_or_function``: a model, or a function that gets tensors of a graph under construction and gives one or several, such as
    ``lambda x, w: ops.tanh(x @ w)``. ``inputs``: for a function an array for each argument (floats become f64), for a model what
    ``engine.run`` takes. The target is the sum of ``of`` (default: all outputs of floats), each element of them weighted
    differently for a function, so that errors do not cancel; ``with_respect_to`` are inputs (default: all of floats).

    Choose inputs at which the function is smooth: at a kink no derivative is right. Errors are those of ``engine.gradients`` and
    ``engine.run``.
    """
    if isinstance(model_or_function, Model):
        return _of_model(model_or_function, inputs, of, with_respect_to, catalogue)
    if not isinstance(inputs, (Sequence, Mapping)) or isinstance(inputs, str):
        raise InputError(f"check_gradient() of a function takes its arguments as a sequence of arrays, not {type(inputs).__name__}")
    arrays = [_wide(array) for array in (inputs.values() if isinstance(inputs, Mapping) else inputs)]
    names = list(inputs) if isinstance(inputs, Mapping) else [f"argument {number}" for number in range(len(arrays))]
    model = _built(model_or_function, dict(zip(map(str, names), arrays, strict=True)), catalogue)
    return _of_model(model, arrays, "target", None, catalogue)


def _wide(given: Any) -> np.ndarray:
    array = np.asarray(given)
    return array if array.dtype.kind in "biu" else array.astype(np.float64)


def _built(function: Callable[..., Any], arrays: Mapping[str, np.ndarray], catalogue: Catalogue) -> Model:
    """A model of the function whose target weights each element of what it gives."""
    graph = Graph("check", catalogue=catalogue)
    with graph:
        tensors = [graph.parameter(name, array.dtype, array.shape) for name, array in arrays.items()]
        given = [leaf.value for leaf in leaves(function(*tensors))]
        total = None
        for tensor in given:
            if tensor.element_type is not None and tensor.element_type.is_float:
                flat = graph.apply("Reshape", (tensor, np.array([-1])), {"special_zero": False})[0]
                count = graph.apply("ReduceProd", (graph.apply("ShapeOf", (flat,), {})[0], np.array([0])), {})[0]
                places = graph.apply("Range", (np.int64(0), count, np.int64(1)), {"output_type": tensor.element_type})[0]
                weights = graph.apply("Cos", (places,), {})[0]
                part = graph.apply("ReduceSum", (flat * weights, np.array([0])), {})[0]
                total = part if total is None else total + part
        if total is None:
            raise InputError("check_gradient(): the function does not give a tensor of floats")
        return graph.model({"target": total})


def _of_model(model: Model, inputs: Inputs, of: Any, with_respect_to: Any, catalogue: Catalogue) -> GradientCheck:
    arrays = {node: np.array(array) for node, array in bind(model, inputs).items()}
    names = {signature.layer: signature.name for signature in model.inputs}
    floats = [layer for layer, array in arrays.items() if array.dtype.kind == "f"]
    chosen = [names[layer] for layer in floats] if with_respect_to is None else _several(with_respect_to)
    targets = _several(of) if of is not None else [one.name for one in model.outputs if one.element_type and one.element_type.is_float]
    session = Session(gradients(model, targets, chosen, catalogue=catalogue), catalogue=catalogue)
    feeds = [arrays[signature.layer] for signature in model.inputs]
    outputs = session.run(feeds).outputs
    places = [number for number, one in enumerate(model.outputs) if {one.name, *one.names} & set(targets)]

    def target() -> float:
        given = session.run(feeds).outputs
        return float(sum(np.asarray(given[place], np.float64).sum() for place in places))

    return _compared(target, [(name, arrays[_layer(names, name)], outputs[len(model.outputs) + k]) for k, name in enumerate(chosen)])


def _several(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _layer(names: Mapping[Any, str], name: str) -> Any:
    return next(layer for layer, one in names.items() if one == name)


def _compared(target: Callable[[], float], parts: Sequence[tuple[str, np.ndarray, np.ndarray]]) -> GradientCheck:
    wrong: list[Difference] = []
    compared, largest = 0, 0.0
    for name, array, gradient in parts:
        for index in np.unique(np.linspace(0, max(array.size - 1, 0), min(array.size, _MOST_ELEMENTS)).astype(np.int64)):
            place = tuple(int(one) for one in np.unravel_index(index, array.shape))
            slope, found = _slope(target, array, place), float(gradient[place])
            difference = abs(found - slope)
            compared += 1
            largest = max(largest, difference / max(1.0, abs(slope)))
            if not difference <= _ABSOLUTE + _RELATIVE * abs(slope):
                wrong.append(Difference(name, place, found, slope))
    return GradientCheck(compared, largest, tuple(wrong))


def _slope(target: Callable[[], float], array: np.ndarray, place: tuple[int, ...]) -> float:
    """The central difference over a step and over half of it, extrapolated to no step at all."""
    value = array[place]
    step = 1e-3 * max(1.0, abs(float(value)))
    slopes = []
    for width in (step, step / 2):
        array[place] = value + width
        above = target()
        array[place] = value - width
        slopes.append((above - target()) / (2 * width))
    array[place] = value
    return (4 * slopes[1] - slopes[0]) / 3
