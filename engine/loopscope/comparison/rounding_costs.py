"""Which weights and carried states of a model have to stay as they are when the others are
rounded to a narrower type.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from loopscope.checks.propagate import propagate
from loopscope.comparison.drift import outputs_apart
from loopscope.debug.fetches import run
from loopscope.debug.inputs import Inputs
from loopscope.debug.result import Result, RunStopped
from loopscope.errors import EngineError
from loopscope.executor.machine.limits import Limits
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.model import LayerId, Model, ModelGraph, Node, OutputRef
from loopscope.ir.walk import PlacedGraph, graphs
from loopscope.ops.dialect import catalogue_for
from loopscope.transform.index_arithmetic import index_arithmetic
from loopscope.transform.rounding import rounded

_MOST_STEPS_TO_A_READER = 16


@dataclass(frozen=True, slots=True)
class RoundingCandidate:
    """A weight or a carried state that may be rounded."""

    address: str
    """Without iterations."""
    kind: str
    """``weight`` or ``state``."""
    readers: tuple[str, ...]
    """The names of the operations that compute with it, as files have them."""

    @property
    def is_inside(self) -> bool:
        """Whether it is in the body of a loop or a branch."""
        return self.address.count("/") > 1


@dataclass(frozen=True, slots=True)
class Cost:
    """What rounding one candidate alone does to the outputs."""

    candidate: RoundingCandidate
    error: float
    """The largest relative error of an output; infinite when the run fails, or an output has
    another shape.
    """


@dataclass(frozen=True, slots=True)
class Precision:
    """What rounding costs, and what has to stay."""

    to: str
    tolerance: float
    costs: tuple[Cost, ...]
    """The costliest first."""
    everything: float
    """The error when all candidates are rounded."""
    stay: tuple[RoundingCandidate, ...]
    """Rounding all others keeps the outputs within the tolerance; any one of these more would
    not. The costliest first.
    """
    error: float
    """The error when all others are rounded."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the operations of the outermost graph that compute with what has to stay,
        for NNCF's IgnoredScope: NNCF refuses names inside loops and branches, and compresses
        nothing there.
        """
        return tuple(
            dict.fromkeys(name for one in self.stay if not one.is_inside for name in one.readers)
        )

    @property
    def inside(self) -> tuple[RoundingCandidate, ...]:
        """What has to stay inside loops and branches."""
        return tuple(one for one in self.stay if one.is_inside)

    @property
    def sentence(self) -> str:
        """What came of it."""
        total = len(self.costs)
        if not self.stay:
            every = f"All {total:,}" if total > 1 else "The only candidate"
            apart = f"at most {self.error:.2g} apart" if self.error else "the same"
            return f"{every} can be rounded to {self.to}: the outputs are {apart}."
        return (
            f"{len(self.stay):,} of {total:,} have to stay: with all rounded to {self.to} the outputs are {self.everything:.2g} apart, "
            f"with the others alone {self.error:.2g}."
        )


def candidates(model: Model) -> tuple[RoundingCandidate, ...]:
    """Return the weights of a model (Consts of floats with several rows), and the floats that its
    loops carry.

    Values that only shapes and indices follow from are not among them.
    """
    known = propagate(model, catalogue_for(model.dialect))
    indices = index_arithmetic(model, known)
    return tuple(
        RoundingCandidate(
            f"{place.address}/{place.labels[node.id]}", kind, _readers(place.graph, node)
        )
        for place in graphs(model)
        for node in place.graph.nodes
        if (kind := _kind(place, node))
        and known.output(place.address, node.id).element_type in REAL_FLOATS
        and (place.address, node.id, 0) not in indices
    )


def precision(
    model: Model,
    inputs: Inputs,
    *,
    to: str,
    tolerance: float,
    seconds: float = 600.0,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> Precision:
    """Rounds each candidate alone to a type, ranks what that costs at the outputs, and finds a
    smallest set that has to stay.

    Greedy: all are rounded; of those that cost most, one after the other stays until the outputs
    are within ``tolerance`` (a part of the largest magnitude); then each that stays is rounded
    again where that is still within it. ``told`` hears how many runs of at most how many are done.
    ``EngineError`` for a model without candidates, and when it takes longer than ``seconds``.
    """
    every = candidates(model)
    if not every:
        raise EngineError(
            "there is nothing to round: the model has no weights of several rows and no loop that carries floats"
        )
    trial = _Trial(
        model,
        inputs,
        to,
        run(model, inputs, limits=Limits(seconds=seconds)),
        time.monotonic() + seconds,
        3 * len(every),
        told,
    )
    costs = sorted((Cost(one, trial.error([one])) for one in every), key=lambda cost: -cost.error)
    everything = error = trial.error(every) if len(every) > 1 else costs[0].error
    stay: list[RoundingCandidate] = []
    for cost in costs:
        if error <= tolerance:
            break
        stay.append(cost.candidate)
        error = trial.error([one for one in every if one not in stay])
    for one in stay[
        -2::-1
    ]:  # the last one is needed: without it the outputs were not within the tolerance
        fewer = [other for other in stay if other != one]
        again = trial.error([other for other in every if other not in fewer])
        if again <= tolerance:
            stay, error = fewer, again
    return Precision(to, tolerance, tuple(costs), everything, tuple(stay), error)


@dataclass(slots=True, eq=False)
class _Trial:
    """Runs with some candidates rounded, held against the run without."""

    model: Model
    inputs: Inputs
    to: str
    plain: Result
    until: float
    total: int
    told: Callable[[int, int], None]
    done: int = 0

    def error(self, some: Sequence[RoundingCandidate]) -> float:
        self.done += 1
        self.told(min(self.done, self.total), self.total)
        if not some:
            return 0.0
        left = self.until - time.monotonic()
        if left <= 0:
            raise EngineError(f"the time is up after {self.done - 1:,} runs: allow more seconds")
        try:
            made = rounded(self.model, {one.address: self.to for one in some})
            result = run(made, self.inputs, limits=Limits(seconds=left))
        except RunStopped as stopped:
            if stopped.cause != "error":
                raise
            return math.inf
        apart = outputs_apart(self.model, self.plain, made, result)
        return math.inf if math.isnan(apart) else apart


def _kind(place: PlacedGraph, node: Node) -> str:
    constant = node.constant
    if constant is not None:
        return (
            "weight"
            if len(constant.shape) > 1
            and constant.shape[-1] > 1
            and math.prod(constant.shape[:-1]) > 1
            else ""
        )
    carried = (
        {edge.to_layer for edge in place.body.back_edges}
        if place.body is not None
        else set[LayerId]()
    )
    return "state" if node.id in carried else ""


def _readers(graph: ModelGraph, node: Node) -> tuple[str, ...]:
    """The operations that compute with a value and with what is no Const: past those that only
    unpack a weight.
    """
    return tuple(dict.fromkeys(_reading(graph, OutputRef(node.id, 0), node.constant is not None)))


def _reading(graph: ModelGraph, source: OutputRef, constant: bool) -> Iterator[str]:
    waiting = [(source, 0)]
    while waiting:
        one, depth = waiting.pop(0)
        for layer, _ in graph.consumers.get(one, ()):
            reader = graph.by_id[layer]
            if reader.type == "Result":
                continue
            if (
                constant
                and depth < _MOST_STEPS_TO_A_READER
                and not reader.bodies
                and _unpacks(graph, reader, one)
            ):
                waiting.append((OutputRef(layer, 0), depth + 1))
            else:
                yield reader.name


def _unpacks(graph: ModelGraph, reader: Node, source: OutputRef) -> bool:
    """Whether all else that an operation reads are Consts, or follows from Consts alone."""
    waiting = [one for one in graph.sources[reader.id] if one is not None and one != source]
    for _ in range(_MOST_STEPS_TO_A_READER * 4):
        if not waiting:
            return True
        node = graph.by_id[waiting.pop().layer]
        if node.type == "Parameter" or node.bodies:
            return False
        if node.constant is None:
            waiting += [one for one in graph.sources[node.id] if one is not None]
    return False
