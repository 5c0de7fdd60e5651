"""Backpropagation through a loop, looked at: the adjoint of each carried value over the
iterations, and what became of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run, expect_run
from loopscope.errors import EngineError
from loopscope.executor.plan.body_ports import CarriedValue
from loopscope.explain.adjoint_pairs import RegionPair, adjoint_parameters, ties
from loopscope.explain.adjoint_verdict import AdjointFate, fate
from loopscope.explain.contributions import Contribution, contributions
from loopscope.explain.cut_off import unused_inputs, what_cut_off, why_unused
from loopscope.explain.history import evenly
from loopscope.explain.norms import norms, value
from loopscope.explain.paired_executions import PairedExecutions, passes_in, passes_of
from loopscope.ir.address import Address, decode
from loopscope.ir.iteration import iteration_words

MOST_PLACES = 2_000
"""Iterations whose norms are taken; of more, so many that lie evenly."""


@dataclass(frozen=True, slots=True, eq=False)
class AdjointHistory:
    """How the target changes with one carried value, over the iterations of the forward loop."""

    name: str
    """Of the carried value in the forward body."""
    address: str
    """Of the Parameter that holds the adjoint in the backward body, without iterations."""
    places: np.ndarray
    """The iterations of the forward loop at whose beginning the adjoint stands, ascending; the
    number of iterations stands for the end.
    """
    norms: np.ndarray
    """Euclidean, f64, one for each place."""
    fate: AdjointFate
    sentence: str
    """The verdict, such as ``vanishes: from 1.0 at the end to 3e-09 in iteration 0; it halves
    per iteration``.
    """


@dataclass(frozen=True, slots=True, eq=False)
class WalkedBack:
    """One execution of a forward loop, and the one of the loop that walks it back."""

    forward: str
    """Addresses with the iterations of the loops around."""
    backward: str
    tie: RegionPair
    count: int
    """Iterations of the forward loop."""
    walked: int
    """Iterations that have been walked back so far."""
    adjoints: tuple[AdjointHistory, ...]
    contributions: tuple[Contribution, ...]
    """Of each value that is the same in all iterations, such as a weight, what each iteration
    adds to its gradient.
    """

    def mirrored(self, iteration: int) -> int:
        """The iteration of the forward loop that an iteration of the backward loop walks back,
        and the other way round.
        """
        return self.count - 1 - iteration

    @property
    def sentence(self) -> str:
        """What belongs to what."""
        names = f"`{_last(self.backward)}` walks `{_last(self.forward)}` back"
        if not self.count:
            return f"{names}: there was no iteration."
        return f"{names}: its iteration 0 walks back {iteration_words(self.count - 1, self.count)}."


@dataclass(frozen=True, slots=True)
class BranchWalkedBack:
    """An If of the outermost graph, and the one that walks it back."""

    forward: str
    """Addresses."""
    backward: str
    sentence: str
    """What came back through it."""


def branches_of(run: Run) -> tuple[BranchWalkedBack, ...]:
    """Every If of the outermost graph that has been walked back."""
    expect_run(run, "loopscope.adjoints")
    calls, found = run.timeline.executions.calls, []
    for tie in ties(run.plan):
        if (
            tie.branches is None
            or tie.program.parent
            or not calls(tie.program, tie.program.instructions.index(tie.backward))
        ):
            continue
        why = unused_inputs(run, tie, (0,))
        ran = run.control_flow.record_of(tie.branches, 0, tie.forward_address).branch
        said = f"does not flow: {why}" if why else f"flows through the {ran} branch, which ran"
        found.append(BranchWalkedBack(tie.forward_address, tie.backward_address, said))
    return tuple(found)


def walks_of(run: Run) -> tuple[WalkedBack, ...]:
    """Every loop of the outermost graph that is walked back and has begun to be, in the order in
    which they are walked back.
    """
    expect_run(run, "loopscope.adjoints")
    calls, outermost = (
        run.timeline.executions.calls,
        [tie for tie in ties(run.plan) if tie.loops and tie.program.parent is None],
    )
    begun = [
        tie for tie in outermost if calls(tie.program, tie.program.instructions.index(tie.backward))
    ]
    return tuple(_walked(run, passes_in(run, tie, 0)) for tie in begun)


def walked_back(run: Run, address: str) -> WalkedBack:
    """The backward walk that a loop at an address belongs to, as the forward or as the backward
    one.

    Where the address leaves out iterations of loops around, they are those at the cursor.
    ``AddressError`` when the loop neither walks another one back nor is walked back,
    ``ValueUnavailable`` when the backward loop has not begun.
    """
    return _walked(run, passes_of(run, address))


def counterpart(run: Run, body: str) -> str:
    """The iteration of the other loop that belongs to one of a forward or a backward loop, both as
    addresses of bodies.

    Empty where there is none, or where it has not begun. Of a loop that ran 31 times,
    ``main/loop[2]/body`` is walked back in ``main/backward%2Floop%2FLoop[28]/body``.
    """
    found = Address.parse(body)
    iteration = found.segments[-2].iteration if len(found.segments) > 2 else None
    try:
        passes = passes_of(run, body.rpartition("/")[0].rpartition("[")[0])
    except EngineError:
        return ""
    if not isinstance(iteration, int):
        return ""
    is_forward = found.static == f"{passes.tie.forward_address}/body"
    other = len(passes.forward) - 1 - iteration
    begun = len(passes.backward) if is_forward else len(passes.forward)
    return f"{passes.addresses(run)[is_forward]}[{other}]/body" if 0 <= other < begun else ""


def _walked(run: Run, passes: PairedExecutions) -> WalkedBack:
    histories = tuple(
        _history(run, passes, name, port) for name, port in adjoint_parameters(passes.tie)
    )
    counts = len(passes.forward), len(passes.backward)
    return WalkedBack(
        *passes.addresses(run), passes.tie, *counts, histories, contributions(run, passes)
    )


def _history(run: Run, passes: PairedExecutions, name: str, port: CarriedValue) -> AdjointHistory:
    """The Parameter holds what the iteration after has left; the last iteration leaves the
    adjoint of what the loop began with.
    """
    assert passes.tie.loops is not None
    program, rows, count = passes.tie.loops[1].program, passes.backward, len(passes.forward)
    chosen = evenly(len(rows), MOST_PLACES)
    found = dict(
        zip(
            (count - at for at in chosen),
            norms(run, program, [rows[at] for at in chosen], port.parameter),
            strict=True,
        )
    )
    if rows:
        found[count - len(rows)] = norms(run, program, rows[-1:], port.result)[0]
    known = {place: one for place, one in found.items() if one is not None}
    places, sizes = np.array(list(known), np.int64), np.array(list(known.values()), np.float64)
    what = fate(
        places, sizes, count, _least(value(run, program, rows[0], port.parameter) if rows else None)
    )
    label = next(one for one, layer in program.layer_of_label.items() if layer == port.layer)
    return AdjointHistory(
        name,
        f"{program.address}/{label}",
        places[::-1],
        sizes[::-1],
        what,
        what.words(_reason(run, passes, port, what)),
    )


def _least(one: np.ndarray | None) -> float:
    """The smallest normal number of a type."""
    if one is None:
        return 0.0
    return float(
        np.finfo(one.dtype if one.dtype.kind == "f" else np.float32).tiny
    )  # bf16 has the exponents of f32


def _reason(run: Run, passes: PairedExecutions, port: CarriedValue, what: AdjointFate) -> str:
    if what.kind == "is cut off":
        return what_cut_off(run, passes, what.at, port)
    if what.kind == "does not flow":
        return why_unused(run, passes.tie.home, passes.tie.forward.outputs, (passes.home,))
    return ""


def _last(address: str) -> str:
    return decode(address.rpartition("/")[2].partition("[")[0])
