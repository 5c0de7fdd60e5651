"""Overlay data of forward loops while their backward loops run: current iteration and adjoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from loopscope.debug.position import Status
from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.explain.adjoint_pairs import RegionPair, adjoint_parameters, forward_row, ties
from loopscope.ir.address import decode
from loopscope.ir.readable import iteration_words


@dataclass(frozen=True, slots=True, eq=False)
class LoopPair:
    """State of a forward loop and its backward loop at the cursor, after the backward loop has
    begun.
    """

    tie: RegionPair
    forward: str
    """Address of the forward loop, with iterations of the loops around it."""
    backward: str
    count: int
    """Number of iterations of the forward loop."""
    first: int
    """First row of the forward loop's body."""
    now: int | None
    """Forward iteration that the backward pass processes; None while the backward loop does not
    run.
    """

    @property
    def forward_body(self) -> str:
        """Static address of the forward loop's body."""
        return f"{self.tie.forward_address}/body"

    @property
    def shown(self) -> int:
        """Displayed iteration of the forward loop: the one that the backward pass processes, else
        the last.
        """
        return self.count - 1 if self.now is None else self.now

    def adjoint_of(self, parameter: str) -> str:
        """Return the address of the adjoint of a carried value at the displayed iteration.

        ``parameter`` is the label of the Parameter that receives the value. The result is empty
        without an adjoint.
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


def loop_pairs(run: Run) -> Mapping[str, LoopPair]:
    """Return the loop pairs at the cursor by the static address of the forward loop.

    If several backward loops belong to a forward loop, the running one is returned.
    """
    pairs = sorted(_loop_pairs(run), key=lambda pair: pair.now is not None)
    return {pair.tie.forward_address: pair for pair in pairs}


def _loop_pairs(run: Run) -> Iterator[LoopPair]:
    tied = [tie for tie in ties(run.plan) if tie.loops is not None]
    if not tied:
        return
    scene, rows_of, address = run.scene(), run.timeline.executions.rows_of, run.timeline.address
    open_iterations = {frame.static: frame.iteration for frame in run.frames()}
    for tie in tied:
        visible = scene.shown.get(tie.program.index)
        if tie.loops is None or visible is None or tie.loops[1].program.index not in scene.shown:
            continue
        try:
            home = forward_row(run, tie, visible.row)
        except EngineError:
            continue
        first, end = rows_of(tie.loops[0], home)
        back = open_iterations.get(tie.loops[1].program.address)
        now = None if back is None else end - first - 1 - back
        if now is None or now >= 0:
            names = (
                f"{address(tie.forward_program, home)}/{tie.forward.label}",
                f"{address(tie.program, visible.row)}/{tie.backward.label}",
            )
            yield LoopPair(tie, *names, end - first, first, now)


def statuses(run: Run, pairs: Mapping[str, LoopPair]) -> dict[str, Status]:
    """Return the statuses of the forward loops' nodes in the iterations that the backward pass
    processes.
    """
    result: dict[str, Status] = {}
    for pair in pairs.values():
        if pair.now is not None and pair.tie.loops is not None:
            program = pair.tie.loops[0].program
            result |= run.scene().with_row(program, pair.first + pair.now).statuses_inside(program)
    return result


def headers(pairs: Mapping[str, LoopPair]) -> dict[str, str]:
    """Return header texts for both loops of each active pair, by static address."""
    texts = {}
    for forward, pair in pairs.items():
        if pair.now is not None:
            texts[forward] = f"{iteration_words(pair.now, pair.count)}, gradient now"
            texts[pair.tie.backward_address] = f"gradient of {iteration_words(pair.now)}"
    return texts


def with_current_iteration(pairs: Mapping[str, LoopPair], address: str) -> str:
    """Return the address with the iteration that the backward pass processes, if it is inside such
    a loop.

    Addresses with an iteration of their own, and other addresses, are returned unchanged.
    """
    enclosing = [
        pair
        for pair in pairs.values()
        if pair.now is not None and address.startswith(f"{pair.forward_body}/")
    ]
    if not enclosing:
        return address
    innermost = max(enclosing, key=lambda pair: len(pair.forward_body))
    label = address.removeprefix(f"{innermost.forward_body}/")
    return f"{innermost.forward}[{innermost.now}]/body/{label}"


def walked_back_now(run: Run, address: str) -> str:
    """Return the displayed place for an address at the cursor.

    In a forward loop during its backward pass, it has the iteration that is processed.
    """
    return with_current_iteration(loop_pairs(run), address)
