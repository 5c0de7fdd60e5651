"""Gradients that a model can have: targets, and sources to differentiate them by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from loopscope.ir import REAL_FLOATS, ROOT, Model, PartialShape, Signature
from loopscope_app.describe.node_index import places

_MOST_CONSTANTS = 300
_differentiable: WeakKeyDictionary[Model, bool] = WeakKeyDictionary()
"""Answers of ``has_gradient``; an open model never changes."""


@dataclass(frozen=True, slots=True)
class Backward:
    """A gradient: targets and sources, by tensor name or address."""

    of: tuple[str, ...]
    with_respect_to: tuple[str, ...]

    @property
    def words(self) -> str:
        """Description of the gradient.

        >>> Backward(("loss",), ("x", "w")).words
        'how loss changes with x, w'
        """
        return f"how {' + '.join(self.of)} changes with {', '.join(self.with_respect_to)}"


def has_gradient(model: Model) -> bool:
    """Return True if a model has a float output, and a float input or constant."""
    if model not in _differentiable:
        _differentiable[model] = bool(targets(model) and sources(model))
    return _differentiable[model]


def targets(model: Model) -> Mapping[str, str]:
    """Return the float outputs with a description each, scalars first.

    The target of a tensor is the sum of its elements.
    """
    floats = [signature for signature in model.outputs if signature.element_type in REAL_FLOATS]
    numbers = [signature for signature in floats if _is_number(signature.shape)]
    others = [signature for signature in floats if not _is_number(signature.shape)]
    return {_name(signature): _name(signature) for signature in numbers} | {
        _name(signature): f"sum of {_name(signature)}" for signature in others
    }


def sources(model: Model) -> Mapping[str, str]:
    """Return the float inputs and constants, such as weights, with a description each."""
    descriptions = {
        _name(signature): f"{_name(signature)} · {signature.element_type}{signature.shape}"
        for signature in model.inputs
        if signature.element_type in REAL_FLOATS
    }
    for place in places(model).values():
        port = place.node.outputs[0] if place.node.outputs else None
        if (
            place.graph_address == ROOT
            and place.node.type == "Const"
            and port is not None
            and port.element_type in REAL_FLOATS
        ):
            descriptions[place.address] = f"{place.node.name} · {port.element_type}{port.shape}"
            if len(descriptions) >= _MOST_CONSTANTS:
                break
    return descriptions


def usual_sources(model: Model) -> tuple[str, ...]:
    """Return the names of the float inputs."""
    return tuple(
        _name(signature) for signature in model.inputs if signature.element_type in REAL_FLOATS
    )


def _name(signature: Signature) -> str:
    return next(iter(signature.names), signature.name)


def _is_number(shape: PartialShape) -> bool:
    return shape.is_static and all(length == 1 for length in shape.lengths)
