"""Operations of the forward loops and branches that backward loops and branches compute again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.executor.plan.plan import Instruction, LoopRegion, Plan, Program
from loopscope.ir.address import Address, Segment, decode
from loopscope.ir.rt_info import WalksBack

_Count = Callable[[str], int | None]
"""Iteration count of the loop at an address; None if unknown or not required."""


@dataclass(frozen=True, slots=True)
class _Graph:
    """A graph of the forward pass, or a graph that contains a copy of it."""

    program: Program
    address: str


def computed_again(run: Run, address: str) -> tuple[str, ...]:
    """Return the addresses at which the backward pass recomputes an operation of a loop or branch.

    A backward loop starts each iteration from the forward carried values and recomputes the rest,
    including nested branches and loops. A value set by hand must be set at all these addresses.
    Return an empty tuple if there are none.
    """

    def count(loop: str) -> int | None:
        program, row = run.rows_of(Address.parse(loop))
        label = loop.rpartition("/")[2]
        for region in (
            instruction.region for instruction in program.instructions if instruction.label == label
        ):
            if isinstance(region, LoopRegion):
                first, end = run.timeline.executions.rows_of(region, row)
                return end - first
        return None

    try:
        parsed = Address.parse(address)
        run.rows_of(parsed)
        return tuple(_copy_addresses(run.plan, parsed, count))
    except EngineError:  # the run has not reached the address
        return ()


def copies_of(plan: Plan, address: str) -> tuple[str, ...]:
    """Return the static addresses that recompute an operation, for any of its iterations."""
    return tuple(
        _copy_addresses(plan, Address.parse(Address.parse(address).static), lambda loop: None)
    )


def _copy_addresses(plan: Plan, address: Address, count: _Count) -> Iterator[str]:
    graphs = [_Graph(plan.main, plan.main.address)]
    for node, body in zip(address.segments[1:-1:2], address.segments[2:-1:2], strict=True):
        original = f"{graphs[0].address}/{node.label}"
        iterations = None if node.iteration is None else count(original)
        graphs = [
            inner for graph in graphs for inner in _bodies_of(graph, node, body.label, iterations)
        ]
        if not graphs or not graphs[0].address.startswith(original):
            return
    last = address.segments[-1].label
    for graph in graphs[1:]:
        if _computes(graph.program, last):
            yield f"{graph.address}/{last}" + (f":{address.output}" if address.output else "")


def _bodies_of(graph: _Graph, node: Segment, body: str, count: int | None) -> Iterator[_Graph]:
    """Yield the body of the named node, then the bodies of the nodes that walk it back."""
    for number in graph.program.regions:
        instruction = graph.program.instructions[number]
        if instruction.label == node.label:
            yield from _body_of(graph, instruction, body, node.iteration)
    for number in graph.program.regions:
        instruction = graph.program.instructions[number]
        walks_back = WalksBack.of(instruction.node)
        if walks_back is None or walks_back.forward != decode(node.label):
            continue
        if node.iteration is None:
            yield from _body_of(graph, instruction, body, None)
        elif count is not None and node.iteration < count:
            yield from _body_of(graph, instruction, body, count - 1 - node.iteration)


def _body_of(
    graph: _Graph, instruction: Instruction, body: str, iteration: int | None
) -> Iterator[_Graph]:
    assert instruction.region is not None
    address = f"{graph.address}/{Segment(instruction.label, iteration)}/{body}"
    for program in instruction.region.programs:
        if program.address.rpartition("/")[2] == body:
            yield _Graph(program, address)


def _computes(program: Program, label: str) -> bool:
    layer = program.layer_of_label.get(label)
    return layer is not None and program.slots.get((layer, 0)) in program.producer
