"""Backpropagation through a loop: the adjoint of each carried value over the iterations, and its
fate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run, expect_run
from loopscope.errors import EngineError
from loopscope.executor.plan.body_ports import CarriedValue
from loopscope.explain.adjoint_pairs import (
    PairedExecutions,
    RegionPair,
    adjoint_parameters,
    passes_in,
    passes_of,
    ties,
)
from loopscope.explain.adjoint_verdict import (
    AdjointFate,
    fate,
    norms,
    unused_inputs,
    value,
    what_cut_off,
    why_unused,
)
from loopscope.explain.contributions import Contribution, contributions
from loopscope.explain.history import evenly
from loopscope.ir.address import Address, decode
from loopscope.ir.readable import iteration_words

MOST_PLACES = 2_000
"""Maximum number of iterations whose norms are computed; longer loops are sampled evenly."""


@dataclass(frozen=True, slots=True, eq=False)
class AdjointHistory:
    """Derivative of the target by one carried value, over the iterations of the forward loop."""

    name: str
    """Name of the carried value in the forward body."""
    address: str
    """Address, without iterations, of the Parameter of the backward body that receives the adjoint.
    """
    places: np.ndarray
    """Iterations of the forward loop at whose start the adjoint is measured, ascending.

    The iteration count represents the end of the loop.
    """
    norms: np.ndarray
    """Euclidean norms (f64), one per entry of ``places``."""
    fate: AdjointFate
    sentence: str
    """Verdict, such as ``vanishes: from 1.0 at the end to 3e-09 in iteration 0; it halves per
    iteration``.
    """


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class WalkedBack:
    """An execution of a forward loop and the execution of the backward loop that belongs to it."""

    forward: str
    """Address of the forward loop, with the iterations of the enclosing loops."""
    backward: str
    tie: RegionPair
    count: int
    """Iteration count of the forward loop."""
    walked: int
    """Number of iterations walked back so far."""
    adjoints: tuple[AdjointHistory, ...]
    contributions: tuple[Contribution, ...]
    """Contribution of each iteration to the gradient of each invariant value, such as a weight."""

    def mirrored(self, iteration: int) -> int:
        """Return the forward iteration that a backward iteration walks back, and vice versa."""
        return self.count - 1 - iteration

    @property
    def sentence(self) -> str:
        """Readable line that pairs the iterations of both loops."""
        names = f"`{_last(self.backward)}` computes the gradient of `{_last(self.forward)}`"
        if not self.count:
            return f"{names}: there was no iteration."
        return f"{names}: its iteration 0 belongs to {iteration_words(self.count - 1, self.count)}."


@dataclass(frozen=True, slots=True)
class BranchWalkedBack:
    """An If of the outermost graph and the If that walks it back."""

    forward: str
    """Address of the forward If."""
    backward: str
    sentence: str
    """Description of the gradient that flows back through the If."""


def branches_of(run: Run) -> tuple[BranchWalkedBack, ...]:
    """Return every If of the outermost graph that has been walked back."""
    expect_run(run, "loopscope.adjoints")
    calls, branches = run.timeline.executions.calls, []
    for tie in ties(run.plan):
        if (
            tie.branches is None
            or tie.program.parent
            or not calls(tie.program, tie.program.instructions.index(tie.backward))
        ):
            continue
        why = unused_inputs(run, tie, (0,))
        ran = run.control_flow.record_of(tie.branches, 0, tie.forward_address).branch
        sentence = f"does not flow: {why}" if why else f"flows through the {ran} branch, which ran"
        branches.append(BranchWalkedBack(tie.forward_address, tie.backward_address, sentence))
    return tuple(branches)


def walks_of(run: Run) -> tuple[WalkedBack, ...]:
    """Return every loop of the outermost graph whose backward loop has begun, in the order of the
    backward loops.
    """
    expect_run(run, "loopscope.adjoints")
    calls = run.timeline.executions.calls
    outermost = [tie for tie in ties(run.plan) if tie.loops and tie.program.parent is None]
    pairs = [
        tie for tie in outermost if calls(tie.program, tie.program.instructions.index(tie.backward))
    ]
    return tuple(_walked(run, passes_in(run, tie, 0)) for tie in pairs)


def walked_back(run: Run, address: str) -> WalkedBack:
    """Return the forward/backward execution pair of the loop at an address; the loop may be either
    of the two.

    Iterations of enclosing loops that the address omits are those at the cursor. Raise
    ``AddressError`` if the loop is not part of a forward/backward pair, ``ValueUnavailable`` if the
    backward loop did not begin.
    """
    return _walked(run, passes_of(run, address))


def counterpart(run: Run, body: str) -> str:
    """Return the body address of the paired iteration, for an iteration of a forward or backward
    loop.

    Return an empty text if there is none, or before the paired iteration begins. For a loop that
    ran 31 times, the counterpart of ``main/loop[2]/body`` is
    ``main/backward%2Floop%2FLoop[28]/body``.
    """
    parsed = Address.parse(body)
    iteration = parsed.segments[-2].iteration if len(parsed.segments) > 2 else None
    try:
        passes = passes_of(run, body.rpartition("/")[0].rpartition("[")[0])
    except EngineError:
        return ""
    if not isinstance(iteration, int):
        return ""
    is_forward = parsed.static == f"{passes.tie.forward_address}/body"
    paired = len(passes.forward) - 1 - iteration
    iteration_count = len(passes.backward) if is_forward else len(passes.forward)
    return (
        f"{passes.addresses(run)[is_forward]}[{paired}]/body"
        if 0 <= paired < iteration_count
        else ""
    )


def _walked(run: Run, passes: PairedExecutions) -> WalkedBack:
    histories = tuple(
        _adjoint_history(run, passes, name, port) for name, port in adjoint_parameters(passes.tie)
    )
    counts = len(passes.forward), len(passes.backward)
    return WalkedBack(
        *passes.addresses(run), passes.tie, *counts, histories, contributions(run, passes)
    )


def _adjoint_history(
    run: Run, passes: PairedExecutions, name: str, port: CarriedValue
) -> AdjointHistory:
    """Return the history of one adjoint.

    A row's Parameter contains the adjoint left by the iteration after it. The last backward
    iteration leaves the adjoint of the loop's initial value.
    """
    assert passes.tie.loops is not None
    program, rows, count = passes.tie.loops[1].program, passes.backward, len(passes.forward)
    chosen = evenly(len(rows), MOST_PLACES)
    norm_by_place = dict(
        zip(
            (count - index for index in chosen),
            norms(run, program, [rows[index] for index in chosen], port.parameter),
            strict=True,
        )
    )
    if rows:
        norm_by_place[count - len(rows)] = norms(run, program, rows[-1:], port.result)[0]
    known = {place: size for place, size in norm_by_place.items() if size is not None}
    places, sizes = np.array(list(known), np.int64), np.array(list(known.values()), np.float64)
    adjoint_fate = fate(
        places,
        sizes,
        count,
        _smallest_normal(value(run, program, rows[0], port.parameter) if rows else None),
    )
    label = next(name for name, layer in program.layer_of_label.items() if layer == port.layer)
    return AdjointHistory(
        name,
        f"{program.address}/{label}",
        places[::-1],
        sizes[::-1],
        adjoint_fate,
        adjoint_fate.words(_reason(run, passes, port, adjoint_fate)),
    )


def _smallest_normal(array: np.ndarray | None) -> float:
    """Return the smallest normal number of the type of an array."""
    if array is None:
        return 0.0
    return float(
        np.finfo(array.dtype if array.dtype.kind == "f" else np.float32).tiny
    )  # bf16 has the exponents of f32


def _reason(
    run: Run, passes: PairedExecutions, port: CarriedValue, adjoint_fate: AdjointFate
) -> str:
    if adjoint_fate.kind == "is cut off":
        return what_cut_off(run, passes, adjoint_fate.last_place, port)
    if adjoint_fate.kind == "does not flow":
        return why_unused(
            run, passes.tie.forward_program, passes.tie.forward.outputs, (passes.forward_row,)
        )
    return ""


def _last(address: str) -> str:
    return decode(address.rpartition("/")[2].partition("[")[0])
