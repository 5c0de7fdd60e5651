"""Where the backward loops and branches of a model with gradients compute again what the forward
ones compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.executor.plan.plan import Instruction, LoopRegion, Plan, Program
from loopscope.ir.address import Address, Segment, decode
from loopscope.ir.gradient_info import WalksBack

_Count = Callable[[str], int | None]
"""How many iterations the loop at an address has run; None where that is not asked for or not
known.
"""


@dataclass(frozen=True, slots=True)
class _Graph:
    """A graph of the forward pass, or one that holds a copy of it."""

    program: Program
    address: str


def computed_again(run: Run, address: str) -> tuple[str, ...]:
    """Where the way back computes again what an operation in a loop or branch gave; empty where it
    does not.

    A loop that walks back begins every iteration with what was carried into it and computes the
    rest anew, also the branches and loops in its body; those are walked back in turn. Whoever sets
    a value by hand sets it in all these places.
    """

    def count(loop: str) -> int | None:
        program, row = run.rows_of(Address.parse(loop))
        label = loop.rpartition("/")[2]
        for region in (one.region for one in program.instructions if one.label == label):
            if isinstance(region, LoopRegion):
                first, end = run.timeline.executions.rows_of(region, row)
                return end - first
        return None

    try:
        parsed = Address.parse(address)
        run.rows_of(parsed)
        return tuple(_places(run.plan, parsed, count))
    except EngineError:  # the run has not come there
        return ()


def copies_of(plan: Plan, address: str) -> tuple[str, ...]:
    """The same without iterations, of an address whose iterations do not matter."""
    return tuple(_places(plan, Address.parse(Address.parse(address).static), lambda loop: None))


def _places(plan: Plan, address: Address, count: _Count) -> Iterator[str]:
    graphs = [_Graph(plan.main, plan.main.address)]
    for node, body in zip(address.segments[1:-1:2], address.segments[2:-1:2], strict=True):
        original = f"{graphs[0].address}/{node.label}"
        iterations = None if node.iteration is None else count(original)
        graphs = [inner for one in graphs for inner in _inside(one, node, body.label, iterations)]
        if not graphs or not graphs[0].address.startswith(original):
            return
    last = address.segments[-1].label
    for one in graphs[1:]:
        if _computes(one.program, last):
            yield f"{one.address}/{last}" + (f":{address.output}" if address.output else "")


def _inside(graph: _Graph, node: Segment, body: str, count: int | None) -> Iterator[_Graph]:
    """The body of the node of that name, then those of what walks it back."""
    for number in graph.program.regions:
        instruction = graph.program.instructions[number]
        if instruction.label == node.label:
            yield from _body(graph, instruction, body, node.iteration)
    for number in graph.program.regions:
        instruction = graph.program.instructions[number]
        said = WalksBack.of(instruction.node)
        if said is None or said.forward != decode(node.label):
            continue
        if node.iteration is None:
            yield from _body(graph, instruction, body, None)
        elif count is not None and node.iteration < count:
            yield from _body(graph, instruction, body, count - 1 - node.iteration)


def _body(
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
