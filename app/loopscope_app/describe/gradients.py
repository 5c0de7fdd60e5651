"""Gradients that a model can have, and the verdict on gradients over the iterations of a loop."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopscope.explain import BranchWalkedBack, WalkedBack
from loopscope.ir import (
    REAL_FLOATS,
    ROOT,
    Model,
    PartialShape,
    Signature,
    iteration_words,
    significant,
)
from loopscope.object_cache import cache_by_object
from loopscope_app.describe.node_index import places

_MOST_CONSTANTS = 300


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


@cache_by_object
def has_gradient(model: Model) -> bool:
    """Return True if a model has a float output, and a float input or constant."""
    return bool(targets(model) and sources(model))


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


_SEVERITY: Mapping[str, int] = {
    "is not a number": 0,
    "explodes": 1,
    "vanishes": 2,
    "is cut off": 3,
    "does not flow": 4,
    "flows": 5,
}
"""Order of verdicts, the worst first."""
_MOST_SENTENCES = 8


def most_severe(walk: WalkedBack) -> int | None:
    """Return the index of the adjoint with the worst verdict; None without adjoints."""
    kinds = [_SEVERITY[adjoint.fate.kind] for adjoint in walk.adjoints]
    return kinds.index(min(kinds)) if kinds else None


def headline(walk: WalkedBack) -> str:
    """Return the worst verdict as a sentence, with names in backticks."""
    number = most_severe(walk)
    if number is None:
        return ""
    adjoint = walk.adjoints[number]
    subject = "The gradient" if len(walk.adjoints) == 1 else f"The gradient of `{adjoint.name}`"
    fate = adjoint.fate
    if fate.kind not in ("vanishes", "explodes", "flows") or not math.isfinite(fate.last):
        return f"**{subject} {adjoint.sentence}.**"
    ends = ((fate.start, fate.begins), (fate.last, fate.last_place))
    way = ", ".join(
        f"{significant(norm, 2)} at {iteration_words(min(place, walk.count - 1))}"
        for norm, place in ends
    )
    pace = adjoint.sentence.partition("; ")[2]
    return f"**{subject} {fate.kind}: {way}**{f'; {pace}' if pace else ''}."


def branch_headline(branches: Sequence[BranchWalkedBack]) -> str:
    """Return the verdict on Ifs, for a gradient without loops; a missing flow comes first."""
    ordered = sorted(branches, key=lambda branch: "does not flow" not in branch.sentence)
    return f"**The gradient {ordered[0].sentence}.**" if ordered else ""


def sentences(walk: WalkedBack) -> list[str]:
    """Return the verdicts on the other adjoints, and the contributions of iterations."""
    worst = most_severe(walk)
    words = [
        f"Gradient of `{adjoint.name}` **{adjoint.sentence}**."
        for number, adjoint in enumerate(walk.adjoints)
        if number != worst
    ]
    words += [f"Contribution to `{entry.name}`: {entry.sentence}." for entry in walk.contributions]
    more = [f"{len(words) - _MOST_SENTENCES:,} more."] if len(words) > _MOST_SENTENCES else []
    return [*words[:_MOST_SENTENCES], *more]
