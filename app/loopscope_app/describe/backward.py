"""What of a model can be walked back: its targets, and what they may be differentiated by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loopscope.ir import REAL_FLOATS, ROOT, Model, PartialShape, Signature
from loopscope_app.describe.node_index import places

_MOST_CONSTANTS = 300


@dataclass(frozen=True, slots=True)
class Backward:
    """A gradient: what is differentiated, and by what, by tensor names or addresses."""

    of: tuple[str, ...]
    with_respect_to: tuple[str, ...]

    @property
    def words(self) -> str:
        """What it is.

        >>> Backward(("loss",), ("x", "w")).words
        'how loss changes with x, w'
        """
        return f"how {' + '.join(self.of)} changes with {', '.join(self.with_respect_to)}"


def targets(model: Model) -> Mapping[str, str]:
    """The outputs of floats by name, numbers first; of each what is differentiated: of a tensor
    the sum of its elements.
    """
    floats = [one for one in model.outputs if one.element_type in REAL_FLOATS]
    numbers = [one for one in floats if _is_number(one.shape)]
    others = [one for one in floats if not _is_number(one.shape)]
    return {_name(one): _name(one) for one in numbers} | {
        _name(one): f"sum of {_name(one)}" for one in others
    }


def sources(model: Model) -> Mapping[str, str]:
    """What a target can be differentiated by, with words for each: the inputs of floats, and
    constants such as weights.
    """
    found = {
        _name(one): f"{_name(one)} · {one.element_type}{one.shape}"
        for one in model.inputs
        if one.element_type in REAL_FLOATS
    }
    for place in places(model).values():
        port = place.node.outputs[0] if place.node.outputs else None
        if (
            place.graph_address == ROOT
            and place.node.type == "Const"
            and port is not None
            and port.element_type in REAL_FLOATS
        ):
            found[place.address] = f"{place.node.name} · {port.element_type}{port.shape}"
            if len(found) >= _MOST_CONSTANTS:
                break
    return found


def usual_sources(model: Model) -> tuple[str, ...]:
    """The inputs of floats."""
    return tuple(_name(one) for one in model.inputs if one.element_type in REAL_FLOATS)


def _name(one: Signature) -> str:
    return next(iter(one.names), one.name)


def _is_number(shape: PartialShape) -> bool:
    return shape.is_static and all(length == 1 for length in shape.lengths)
