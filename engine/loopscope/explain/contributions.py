"""The gradient of a loop-invariant value, such as a weight, split into the contribution of each
iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.body_ports import Concatenated, LastValue
from loopscope.executor.plan.plan import Instruction, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.adjoint_pairs import PairedExecutions, RegionPair, invariant_inputs
from loopscope.explain.adjoint_verdict import norm, value, values, why_unused
from loopscope.explain.history import evenly
from loopscope.ir.readable import iteration_range, iteration_words

_MAX_ELEMENTS = 1 << 28
"""Maximum total elements of all computed contributions; longer loops are sampled evenly."""
_MAX_ITERATIONS = 2_000
_SIMILARITY_RATIO = 0.95
"""Contributions are called about the same if smallest / largest exceeds this ratio."""


@dataclass(frozen=True, slots=True, eq=False)
class Contribution:
    """Contributions of the iterations of a forward loop to one gradient."""

    name: str
    """Name of the value outside the loop."""
    iterations: np.ndarray
    """Iterations of the forward loop, ascending: all, or an even sample."""
    norms: np.ndarray
    """Euclidean norm (f64) of each iteration's contribution."""
    shares: np.ndarray
    """Share of each contribution in the whole gradient, projected on the gradient's direction.

    The shares add up to 1 if no iteration is omitted. NaN if the gradient is 0.
    """
    sentence: str


@dataclass(frozen=True, slots=True, eq=False)
class _GradientSum:
    """Slots of a gradient and its summands: each summand is a body value or the product of two."""

    name: str
    inner: Slot
    """Parameter of the forward body for the value whose gradient this is."""
    total: Slot
    parts: tuple[Slot, ...]
    product: Instruction | None = None


def contributions(run: Run, passes: PairedExecutions) -> tuple[Contribution, ...]:
    """Return the contributions of one execution of a backward loop."""
    return (
        ()
        if passes.tie.loops is None
        else tuple(
            _contribution(run, passes, *passes.tie.loops, gradient)
            for gradient in _gradient_sums(passes.tie)
        )
    )


def _contribution(
    run: Run,
    passes: PairedExecutions,
    forward: LoopRegion,
    backward: LoopRegion,
    gradient: _GradientSum,
) -> Contribution:
    whole = value(run, passes.tie.program, passes.row, gradient.total)
    direction = None if whole is None else np.asarray(whole).astype(np.float64).reshape(-1)
    squared = 0.0 if direction is None else float(direction @ direction)
    size = 1 if direction is None else max(direction.size, 1)
    chosen = evenly(len(passes.backward), max(2, min(_MAX_ITERATIONS, _MAX_ELEMENTS // size)))
    entries: list[tuple[int, float, float]] = []
    for place, part in zip(
        chosen,
        _summands(run, backward.program, gradient, [passes.backward[index] for index in chosen]),
        strict=True,
    ):
        if part is not None:
            along = (
                float(direction @ part.astype(np.float64).reshape(-1)) / squared
                if direction is not None and squared
                else np.nan
            )
            entries.insert(0, (len(passes.forward) - 1 - place, norm(part), along))
    iterations, norms, shares = (
        np.array([index[number] for index in entries]) for number in range(3)
    )
    reason = (
        "" if norms.any() else why_unused(run, forward.program, (gradient.inner,), passes.forward)
    )
    return Contribution(
        gradient.name,
        iterations.astype(np.int64),
        norms,
        shares,
        _sentence(iterations, norms, shares, reason),
    )


def _gradient_sums(tie: RegionPair) -> Iterator[_GradientSum]:
    assert tie.loops is not None
    backward, known = tie.loops[1], invariant_inputs(tie)
    joined: dict[int, list[Concatenated]] = {}
    for output in backward.outputs:
        for number in tie.of_output(output.slot):
            if number not in known:
                continue
            if isinstance(output, Concatenated):
                joined.setdefault(number, []).append(output)
            elif (added := _summand(backward, output)) is not None:
                name, inner = known[number]
                yield _GradientSum(name, inner, output.slot, (added,))
    for number, factors in joined.items():
        by_slot = {factor.slot: factor for factor in factors}
        product = next(
            (
                candidate
                for candidate in tie.program.instructions
                if len(candidate.inputs) == 2 and by_slot.keys() >= set(candidate.inputs)
            ),
            None,
        )
        if product is not None:
            name, inner = known[number]
            yield _GradientSum(
                name,
                inner,
                product.outputs[0],
                tuple(by_slot[slot].result for slot in product.inputs),
                product,
            )


def _summand(backward: LoopRegion, output: LastValue) -> Slot | None:
    """Return the slot that each iteration adds to a running sum."""
    port = next((carried for carried in backward.carried if carried.result == output.result), None)
    producer = backward.program.producer.get(output.result)
    if port is None or producer is None:
        return None
    summands = [
        slot for slot in backward.program.instructions[producer].inputs if slot != port.parameter
    ]
    return summands[0] if len(summands) == 1 else None


def _summands(
    run: Run, program: Program, gradient: _GradientSum, rows: Sequence[int]
) -> Iterator[np.ndarray | None]:
    if gradient.product is None:
        yield from values(run, program, rows, gradient.parts[0])
        return
    assert gradient.product.call is not None
    factors = [values(run, program, rows, slot) for slot in gradient.parts]
    for left, right in zip(*factors, strict=True):
        yield (
            None
            if left is None or right is None
            else np.asarray(gradient.product.call(left, right))
        )


def _sentence(iterations: np.ndarray, norms: np.ndarray, shares: np.ndarray, reason: str) -> str:
    nonzero = np.flatnonzero(norms)
    if not len(iterations):
        return "there was no iteration to contribute"
    if not len(nonzero):
        return f"does not flow: {reason or 'every iteration adds 0'}"
    largest = _largest_contribution(iterations, norms, shares)
    first, last = int(nonzero[0]), int(nonzero[-1])
    if len(nonzero) == len(norms):
        return largest
    if last - first + 1 != len(nonzero):
        return f"{len(nonzero):,} of {len(norms):,} iterations contribute; {largest}"
    if first == last:
        return f"only {iteration_words(int(iterations[first]))} contributes"
    contributing = iteration_range(int(iterations[first]), int(iterations[last]))
    return f"only {contributing} contribute; {largest}"


def _largest_contribution(iterations: np.ndarray, norms: np.ndarray, shares: np.ndarray) -> str:
    positive = norms[norms > 0]
    if len(positive) > 1 and positive.min() > _SIMILARITY_RATIO * positive.max():
        return "each about the same"
    top = int(np.argmax(norms))
    share = f", {shares[top]:.0%} of it" if 0 <= shares[top] <= 1 else ""
    return f"{iteration_words(int(iterations[top]))} contributes most{share}"
