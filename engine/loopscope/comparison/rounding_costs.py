"""Search for the weights and carried states of a model that must not be rounded to a narrower
type.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from loopscope.checks.propagate import propagate
from loopscope.comparison.drift import outputs_apart
from loopscope.debug.inputs import Inputs
from loopscope.debug.result import Result, RunStopped
from loopscope.debug.session import run
from loopscope.errors import EngineError
from loopscope.executor.machine.limits import Limits
from loopscope.ir.address import PlacedGraph, graphs
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.model import LayerId, Model, ModelGraph, Node, OutputRef
from loopscope.ir.readable import significant
from loopscope.ops.dialect import catalogue_for
from loopscope.transform.index_arithmetic import index_arithmetic
from loopscope.transform.rounding import rounded

_MAX_STEPS_TO_READER = 16


@dataclass(frozen=True, slots=True)
class RoundingCandidate:
    """A weight or carried state that may be rounded."""

    address: str
    """Address without iterations."""
    kind: str
    """``weight`` or ``state``."""
    readers: tuple[str, ...]
    """Names, as in the file, of the operations that compute with the value."""

    @property
    def is_inside(self) -> bool:
        """True if the value is in the body of a loop or branch."""
        return self.address.count("/") > 1


@dataclass(frozen=True, slots=True)
class Cost:
    """Effect on the outputs of rounding one candidate alone."""

    candidate: RoundingCandidate
    error: float
    """Largest relative error of an output; infinite if the run fails or an output has a different
    shape.
    """


@dataclass(frozen=True, slots=True)
class Precision:
    """Costs of rounding, and the candidates that must not be rounded."""

    to: str
    tolerance: float
    costs: tuple[Cost, ...]
    """Costs in descending order."""
    everything: float
    """Error if all candidates are rounded."""
    stay: tuple[RoundingCandidate, ...]
    """Candidates to leave unrounded, in descending order of cost.

    Rounding all others is within the tolerance; rounding any one of these as well is not.
    """
    error: float
    """Error if all other candidates are rounded."""

    @property
    def names(self) -> tuple[str, ...]:
        """Operations of the outermost graph that compute with unrounded values, for NNCF's
        IgnoredScope.

        NNCF rejects names inside loops and branches, and compresses nothing there.
        """
        return tuple(
            dict.fromkeys(
                name
                for candidate in self.stay
                if not candidate.is_inside
                for name in candidate.readers
            )
        )

    @property
    def inside(self) -> tuple[RoundingCandidate, ...]:
        """Candidates inside loops and branches that must not be rounded."""
        return tuple(candidate for candidate in self.stay if candidate.is_inside)

    @property
    def sentence(self) -> str:
        """Summary of the result."""
        total = len(self.costs)
        if not self.stay:
            every = f"All {total:,}" if total > 1 else "The only candidate"
            apart = f"at most {significant(self.error, 2)} apart" if self.error else "the same"
            return f"{every} can be rounded to {self.to}: the outputs are {apart}."
        return (
            f"{len(self.stay):,} of {total:,} have to stay: with all rounded to {self.to} "
            f"the outputs are {significant(self.everything, 2)} apart, "
            f"with the others alone {significant(self.error, 2)}."
        )


def candidates(model: Model) -> tuple[RoundingCandidate, ...]:
    """Return the weights of a model (float Consts with several rows) and the floats that its loops
    carry.

    Values from which only shapes and indices follow are excluded.
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
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Precision:
    """Round each candidate alone, rank its cost at the outputs, and find a minimal set to leave
    unrounded.

    The search is greedy. All candidates are rounded; those with the highest cost are restored one
    by one until the outputs are within ``tolerance`` (relative to the largest magnitude). Each
    restored candidate is then rounded again if the outputs stay within it. ``report`` receives the
    number of finished runs and the maximum number of runs. Raise ``EngineError`` for a model
    without candidates, or after more than ``seconds``.
    """
    everyone = candidates(model)
    if not everyone:
        raise EngineError(
            "there is nothing to round: the model has no weights of several rows "
            "and no loop that carries floats"
        )
    trial = _Trial(
        model,
        inputs,
        to,
        run(model, inputs, limits=Limits(seconds=seconds)),
        time.monotonic() + seconds,
        3 * len(everyone),
        report,
    )
    costs = sorted(
        (Cost(candidate, trial.error([candidate])) for candidate in everyone),
        key=lambda cost: -cost.error,
    )
    everything = error = trial.error(everyone) if len(everyone) > 1 else costs[0].error
    stay: list[RoundingCandidate] = []
    for cost in costs:
        if error <= tolerance:
            break
        stay.append(cost.candidate)
        error = trial.error([candidate for candidate in everyone if candidate not in stay])
    # The last one is needed: without it the outputs were not within the tolerance.
    for candidate in stay[-2::-1]:
        fewer = [other for other in stay if other != candidate]
        new_error = trial.error([other for other in everyone if other not in fewer])
        if new_error <= tolerance:
            stay, error = fewer, new_error
    return Precision(to, tolerance, tuple(costs), everything, tuple(stay), error)


@dataclass(slots=True, eq=False)
class _Trial:
    """Runs with some candidates rounded, compared with the unrounded run."""

    model: Model
    inputs: Inputs
    to: str
    plain: Result
    until: float
    total: int
    report: Callable[[int, int], None]
    done: int = 0

    def error(self, rounded_candidates: Sequence[RoundingCandidate]) -> float:
        self.done += 1
        self.report(min(self.done, self.total), self.total)
        if not rounded_candidates:
            return 0.0
        seconds = self.until - time.monotonic()
        if seconds <= 0:
            raise EngineError(f"the time is up after {self.done - 1:,} runs: allow more seconds")
        try:
            model = rounded(
                self.model, {candidate.address: self.to for candidate in rounded_candidates}
            )
            result = run(model, self.inputs, limits=Limits(seconds=seconds))
        except RunStopped as stopped:
            if stopped.cause != "error":
                raise
            return math.inf
        error = outputs_apart(self.model, self.plain, model, result)
        return math.inf if math.isnan(error) else error


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
    """Return the operations that compute with a value and a non-Const, skipping operations that
    unpack a weight.
    """
    return tuple(dict.fromkeys(_reading(graph, OutputRef(node.id, 0), node.constant is not None)))


def _reading(graph: ModelGraph, source: OutputRef, constant: bool) -> Iterator[str]:
    waiting = [(source, 0)]
    while waiting:
        output, depth = waiting.pop(0)
        for layer, _ in graph.consumers.get(output, ()):
            reader = graph.by_id[layer]
            if reader.type == "Result":
                continue
            if (
                constant
                and depth < _MAX_STEPS_TO_READER
                and not reader.bodies
                and _unpacks(graph, reader, output)
            ):
                waiting.append((OutputRef(layer, 0), depth + 1))
            else:
                yield reader.name


def _unpacks(graph: ModelGraph, reader: Node, source: OutputRef) -> bool:
    """Return True if all other inputs of an operation are Consts, or follow from Consts alone."""
    waiting = [
        origin for origin in graph.sources[reader.id] if origin is not None and origin != source
    ]
    for _ in range(_MAX_STEPS_TO_READER * 4):
        if not waiting:
            return True
        node = graph.by_id[waiting.pop().layer]
        if node.type == "Parameter" or node.bodies:
            return False
        if node.constant is None:
            waiting += [origin for origin in graph.sources[node.id] if origin is not None]
    return False
