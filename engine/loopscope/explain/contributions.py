"""The gradient of a value that all iterations share, such as a weight, as a sum: how much of it
each iteration contributed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.body_ports import Concatenated, LastValue
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Instruction, LoopRegion, Program
from loopscope.explain.adjoint_pairs import RegionPair, invariant_inputs
from loopscope.explain.cut_off import why_unused
from loopscope.explain.history import evenly
from loopscope.explain.norms import norm, value, values
from loopscope.explain.paired_executions import PairedExecutions
from loopscope.ir.iteration import iteration_range, iteration_words

_MOST_ELEMENTS = 1 << 28
"""Elements of all contributions together that are computed; of more iterations, so many that lie
evenly.
"""
_MOST_ITERATIONS = 2_000
_ALIKE = 0.95
"""Contributions whose smallest is so much of the largest are about the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Contribution:
    """What the iterations of a forward loop added to one gradient."""

    name: str
    """Of the value, outside of the loop."""
    iterations: np.ndarray
    """Of the forward loop, ascending: all, or so many that lie evenly."""
    norms: np.ndarray
    """Euclidean, of what each iteration added, f64."""
    shares: np.ndarray
    """The part of the whole gradient that each of them is, along its direction: they add up to 1
    where no iteration is left out. NaN where the gradient is 0.
    """
    sentence: str


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """Where a gradient and its parts are: what an iteration adds is a value of the body, or the
    product of two.
    """

    name: str
    inner: Slot
    """The Parameter in the forward body of the value whose gradient it is."""
    total: Slot
    parts: tuple[Slot, ...]
    product: Instruction | None = None


def contributions(run: Run, passes: PairedExecutions) -> tuple[Contribution, ...]:
    """Of one execution of a backward loop."""
    return (
        ()
        if passes.tie.loops is None
        else tuple(_contribution(run, passes, *passes.tie.loops, one) for one in _sums(passes.tie))
    )


def _contribution(
    run: Run, passes: PairedExecutions, forward: LoopRegion, backward: LoopRegion, one: _Sum
) -> Contribution:
    whole = value(run, passes.tie.program, passes.row, one.total)
    direction = None if whole is None else np.asarray(whole).astype(np.float64).reshape(-1)
    squared = 0.0 if direction is None else float(direction @ direction)
    size = 1 if direction is None else max(direction.size, 1)
    chosen = evenly(len(passes.backward), max(2, min(_MOST_ITERATIONS, _MOST_ELEMENTS // size)))
    found: list[tuple[int, float, float]] = []
    for place, part in zip(
        chosen,
        _parts(run, backward.program, one, [passes.backward[each] for each in chosen]),
        strict=True,
    ):
        if part is not None:
            along = (
                float(direction @ part.astype(np.float64).reshape(-1)) / squared
                if direction is not None and squared
                else np.nan
            )
            found.insert(0, (len(passes.forward) - 1 - place, norm(part), along))
    iterations, norms, shares = (np.array([each[number] for each in found]) for number in range(3))
    reason = "" if norms.any() else why_unused(run, forward.program, (one.inner,), passes.forward)
    return Contribution(
        one.name,
        iterations.astype(np.int64),
        norms,
        shares,
        _sentence(iterations, norms, shares, reason),
    )


def _sums(tie: RegionPair) -> Iterator[_Sum]:
    assert tie.loops is not None
    backward, known = tie.loops[1], invariant_inputs(tie)
    joined: dict[int, list[Concatenated]] = {}
    for output in backward.outputs:
        for number in tie.of_output(output.slot):
            if number not in known:
                continue
            if isinstance(output, Concatenated):
                joined.setdefault(number, []).append(output)
            elif (added := _added(backward, output)) is not None:
                name, inner = known[number]
                yield _Sum(name, inner, output.slot, (added,))
    for number, factors in joined.items():
        by_slot = {one.slot: one for one in factors}
        product = next(
            (
                one
                for one in tie.program.instructions
                if len(one.inputs) == 2 and by_slot.keys() >= set(one.inputs)
            ),
            None,
        )
        if product is not None:
            name, inner = known[number]
            yield _Sum(
                name,
                inner,
                product.outputs[0],
                tuple(by_slot[slot].result for slot in product.inputs),
                product,
            )


def _added(backward: LoopRegion, output: LastValue) -> Slot | None:
    """What is added to a running sum in each iteration."""
    port = next((one for one in backward.carried if one.result == output.result), None)
    made = backward.program.producer.get(output.result)
    if port is None or made is None:
        return None
    added = [slot for slot in backward.program.instructions[made].inputs if slot != port.parameter]
    return added[0] if len(added) == 1 else None


def _parts(
    run: Run, program: Program, one: _Sum, rows: Sequence[int]
) -> Iterator[np.ndarray | None]:
    if one.product is None:
        yield from values(run, program, rows, one.parts[0])
        return
    assert one.product.call is not None
    factors = [values(run, program, rows, slot) for slot in one.parts]
    for left, right in zip(*factors, strict=True):
        yield None if left is None or right is None else np.asarray(one.product.call(left, right))


def _sentence(iterations: np.ndarray, norms: np.ndarray, shares: np.ndarray, reason: str) -> str:
    giving = np.flatnonzero(norms)
    if not len(iterations):
        return "there was no iteration to contribute"
    if not len(giving):
        return f"does not flow: {reason or 'every iteration adds 0'}"
    most = _most(iterations, norms, shares)
    first, last = int(giving[0]), int(giving[-1])
    if len(giving) == len(norms):
        return most
    if last - first + 1 != len(giving):
        return f"{len(giving):,} of {len(norms):,} iterations contribute; {most}"
    if first == last:
        return f"only {iteration_words(int(iterations[first]))} contributes"
    return (
        f"only {iteration_range(int(iterations[first]), int(iterations[last]))} contribute; {most}"
    )


def _most(iterations: np.ndarray, norms: np.ndarray, shares: np.ndarray) -> str:
    giving = norms[norms > 0]
    if len(giving) > 1 and giving.min() > _ALIKE * giving.max():
        return "each about the same"
    top = int(np.argmax(norms))
    share = f", {shares[top]:.0%} of it" if 0 <= shares[top] <= 1 else ""
    return f"{iteration_words(int(iterations[top]))} contributes most{share}"
