"""Forward loops on a picture while their backward loops run: the iteration that is walked back
now, and the adjoints along back edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from loopscope.debug.run import Run
from loopscope.debug.visible_rows import Status
from loopscope.errors import EngineError
from loopscope.explain.adjoint_pairs import RegionPair, adjoint_parameters, ties
from loopscope.explain.paired_executions import forward_row
from loopscope.ir.address import decode
from loopscope.ir.iteration import iteration_words


@dataclass(frozen=True, slots=True, eq=False)
class Mirrored:
    """One tied pair of loops at the cursor, of which the backward one has begun."""

    tie: RegionPair
    forward: str
    """Address of the forward loop with the iterations of the loops around it."""
    backward: str
    count: int
    """Iterations of the forward loop."""
    first: int
    """The first row of its body."""
    now: int | None
    """The iteration that is being walked back; None while the backward loop is not being run."""

    @property
    def forward_body(self) -> str:
        """Without iterations."""
        return f"{self.tie.forward_address}/body"

    @property
    def shown(self) -> int:
        """The iteration of the forward loop that is to be seen: the one that is walked back,
        else the last.
        """
        return self.count - 1 if self.now is None else self.now

    def adjoint_of(self, parameter: str) -> str:
        """Address of the adjoint of what the iteration that is shown hands to the next one, by the
        label of the Parameter that takes it; empty where it has none.
        """
        assert self.tie.loops is not None
        backward = self.tie.loops[1].program
        port = next(
            (
                port
                for name, port in adjoint_parameters(self.tie)
                if name == decode(parameter.partition("~")[0])
            ),
            None,
        )
        label = next(
            (
                label
                for label, layer in backward.layer_of_label.items()
                if port is not None and layer == port.layer
            ),
            "",
        )
        return f"{self.backward}[{self.count - 1 - self.shown}]/body/{label}" if label else ""


def mirrored(run: Run) -> Mapping[str, Mirrored]:
    """The tied loops at the cursor, by the static address of the forward one; of several that
    walk it back the one that is doing so.
    """
    found = sorted(_mirrored(run), key=lambda one: one.now is not None)
    return {one.tie.forward_address: one for one in found}


def _mirrored(run: Run) -> Iterator[Mirrored]:
    tied = [tie for tie in ties(run.plan) if tie.loops is not None]
    if not tied:
        return
    scene, rows_of, address = run.scene(), run.timeline.executions.rows_of, run.timeline.address
    open_iterations = {frame.static: frame.iteration for frame in run.frames()}
    for tie in tied:
        around = scene.shown.get(tie.program.index)
        if tie.loops is None or around is None or tie.loops[1].program.index not in scene.shown:
            continue
        try:
            home = forward_row(run, tie, around.row)
        except EngineError:
            continue
        first, end = rows_of(tie.loops[0], home)
        back = open_iterations.get(tie.loops[1].program.address)
        now = None if back is None else end - first - 1 - back
        if now is None or now >= 0:
            names = (
                f"{address(tie.forward_program, home)}/{tie.forward.label}",
                f"{address(tie.program, around.row)}/{tie.backward.label}",
            )
            yield Mirrored(tie, *names, end - first, first, now)


def statuses(run: Run, found: Mapping[str, Mirrored]) -> dict[str, Status]:
    """Of the nodes of forward loops in the iterations that are walked back."""
    told: dict[str, Status] = {}
    for one in found.values():
        if one.now is not None and one.tie.loops is not None:
            program = one.tie.loops[0].program
            told |= run.scene().with_row(program, one.first + one.now).statuses_inside(program)
    return told


def headers(found: Mapping[str, Mirrored]) -> dict[str, str]:
    """What the frames of both loops say while one walks the other back, by static address."""
    told = {}
    for forward, one in found.items():
        if one.now is not None:
            told[forward] = f"{iteration_words(one.now, one.count)}, walked back now"
            told[one.tie.backward_address] = f"walks back {iteration_words(one.now)}"
    return told


def named_now(found: Mapping[str, Mirrored], address: str) -> str:
    """A place, with the iteration that is walked back now where it lies in a loop that is, and
    names none itself.
    """
    around = [
        one
        for one in found.values()
        if one.now is not None and address.startswith(f"{one.forward_body}/")
    ]
    if not around:
        return address
    innermost = max(around, key=lambda one: len(one.forward_body))
    return f"{innermost.forward}[{innermost.now}]/body/{address.removeprefix(f'{innermost.forward_body}/')}"


def walked_back_now(run: Run, address: str) -> str:
    """What a picture shows of a place at the cursor: in a loop that is walked back, the
    iteration that is walked back now.
    """
    return named_now(mirrored(run), address)
