"""Pairs of forward and backward loops or Ifs, and operations that both of a pair compute.

The ``rt_info`` of a model with gradients names the pairs. An execution of a forward loop is paired
with the execution of its backward loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from loopscope.debug.lookup import must_have_begun
from loopscope.debug.run import Run, expect_run
from loopscope.errors import AddressError, EngineError, ValueUnavailable
from loopscope.executor.plan.body_ports import CarriedValue
from loopscope.executor.plan.plan import IfRegion, Instruction, LoopRegion, Plan, Program
from loopscope.executor.plan.slots import ProgramIndex, Slot
from loopscope.ir.address import Address, Segment, decode
from loopscope.ir.rt_info import WalksBack
from loopscope.object_cache import cache_by_object

ADJOINT = "adjoint_of_"
"""Prefix of the backward Parameter that is the adjoint of a forward carried Parameter, whose name
follows.
"""


@dataclass(frozen=True, slots=True, eq=False)
class RegionPair:
    """A forward loop or If and its backward counterpart.

    The counterpart is in the same graph, or in the backward counterpart of the enclosing body.
    """

    forward_program: Program
    """Graph of the forward region."""
    forward: Instruction
    program: Program
    """Graph of the backward region."""
    backward: Instruction
    inputs: tuple[tuple[int, ...], ...]
    """Forward inputs whose gradient each backward output is, or contributes to; empty in older
    files.
    """

    @property
    def forward_address(self) -> str:
        """Address without iterations, as ``backward_address``."""
        return f"{self.forward_program.address}/{self.forward.label}"

    @property
    def backward_address(self) -> str:
        return f"{self.program.address}/{self.backward.label}"

    @property
    def loops(self) -> tuple[LoopRegion, LoopRegion] | None:
        """Forward and backward loop; None for an If."""
        forward, backward = self.forward.region, self.backward.region
        return (
            (forward, backward)
            if isinstance(forward, LoopRegion) and isinstance(backward, LoopRegion)
            else None
        )

    @property
    def branches(self) -> IfRegion | None:
        """Forward If; None for a loop."""
        return self.forward.region if isinstance(self.forward.region, IfRegion) else None

    def of_output(self, slot: Slot) -> tuple[int, ...]:
        """Return the forward inputs that a backward output belongs to."""
        numbers = [number for number, output in enumerate(self.backward.outputs) if output == slot]
        return self.inputs[numbers[0]] if numbers and numbers[0] < len(self.inputs) else ()


@cache_by_object  # drawing requests the pairs at every step
def ties(plan: Plan) -> tuple[RegionPair, ...]:
    """Return all forward/backward pairs of a model, those of outer graphs first."""
    pairs: list[RegionPair] = []
    homes: dict[ProgramIndex, Program] = {}
    for program in plan.programs:
        for tie in _pairs_in(program, homes.get(program.index, program)):
            pairs.append(tie)
            homes |= dict(_paired_bodies(tie))
    return tuple(pairs)


def _paired_bodies(tie: RegionPair) -> Iterator[tuple[ProgramIndex, Program]]:
    """Yield the index of each backward body with the forward body that it walks back."""
    assert tie.forward.region is not None
    assert tie.backward.region is not None
    for backward, forward in zip(
        tie.backward.region.programs, tie.forward.region.programs, strict=True
    ):
        yield backward.index, forward


def _pairs_in(program: Program, home: Program) -> list[RegionPair]:
    by_name = {
        home.instructions[number].node.name: home.instructions[number] for number in home.regions
    }
    pairs = []
    for number in program.regions:
        backward = program.instructions[number]
        walks_back = WalksBack.of(backward.node)
        forward = by_name.get(walks_back.forward) if walks_back is not None else None
        if walks_back is None or forward is None or forward is backward:
            continue
        tie = RegionPair(home, forward, program, backward, walks_back.inputs)
        if tie.loops is not None or (
            tie.branches is not None and isinstance(backward.region, IfRegion)
        ):
            pairs.append(tie)
    return pairs


def adjoint_parameters(tie: RegionPair) -> tuple[tuple[str, CarriedValue], ...]:
    """Return the name of each forward carried value with an adjoint, and the carried port of the
    adjoint.
    """
    if tie.loops is None:
        return ()
    forward, backward = tie.loops
    names = {name_of(tie.forward, port) for port in forward.carried}
    ports = []
    for port in backward.carried:
        parameter = name_of(tie.backward, port) or ""
        name = parameter.removeprefix(ADJOINT)
        if parameter.startswith(ADJOINT) and name in names:
            ports.append((name, port))
    return tuple(ports)


def name_of(instruction: Instruction, port: CarriedValue) -> str | None:
    """Return the name of a carried Parameter in the body of a loop."""
    node = (
        instruction.node.bodies[0].graph.by_id.get(port.layer) if instruction.node.bodies else None
    )
    return None if node is None else node.name


def invariant_inputs(tie: RegionPair) -> Mapping[int, tuple[str, Slot]]:
    """Return the invariant inputs of a forward loop by number: outer name and Parameter of the
    body.
    """
    if tie.loops is None:
        return {}
    parameters = {port.source: port.parameter for port in tie.loops[0].invariants}
    return {
        number: (outer_name(tie.forward_program, slot), parameters[slot])
        for number, slot in enumerate(tie.forward.inputs)
        if slot in parameters
    }


def outer_name(program: Program, slot: Slot) -> str:
    """Return the name of the node output that a slot of a graph belongs to."""
    results = set(program.results)
    by_layer = {layer: label for label, layer in program.layer_of_label.items()}
    for (layer, output), candidate in program.slots.items():
        if candidate == slot and layer not in results and layer in by_layer:
            return decode(by_layer[layer]) + (f":{output}" if output else "")
    return "an input"


@dataclass(frozen=True, slots=True, eq=False)
class PairedExecutions:
    """Rows of the two loops and of their bodies."""

    tie: RegionPair
    forward_row: int
    """Row of the graph of the forward loop."""
    row: int
    """Row of the graph of the backward loop."""
    forward: range
    """Rows of the forward body: its iterations in order."""
    backward: range
    """Rows of the backward body so far, last iteration first."""

    def addresses(self, run: Run) -> tuple[str, str]:
        """Return the addresses of the forward and the backward loop, including enclosing
        iterations.
        """
        pairs = (
            (self.tie.forward_program, self.forward_row, self.tie.forward),
            (self.tie.program, self.row, self.tie.backward),
        )
        forward, backward = (
            f"{run.timeline.address(graph, row)}/{loop.label}" for graph, row, loop in pairs
        )
        return forward, backward


def passes_in(run: Run, tie: RegionPair, row: int) -> PairedExecutions:
    """Return the paired executions of a backward loop in a row of its graph."""
    assert tie.loops is not None
    home = forward_row(run, tie, row)
    rows = (
        run.timeline.executions.rows_of(loop, outer_row)
        for loop, outer_row in zip(tie.loops, (home, row), strict=True)
    )
    return PairedExecutions(tie, home, row, *(range(*bounds) for bounds in rows))


def passes_of(run: Run, address: str) -> PairedExecutions:
    """Return the paired executions of the forward or backward loop at an address.

    Omitted iterations are those at the cursor. Raise ``AddressError`` if the loop is not part of a
    forward/backward pair, ``ValueUnavailable`` before the backward loop begins.
    """
    expect_run(run, "loopscope.adjoints")
    parsed = Address.parse(address)
    tie = next(
        (
            pair
            for pair in ties(run.plan)
            if parsed.static in (pair.backward_address, pair.forward_address) and pair.loops
        ),
        None,
    )
    if tie is None:
        raise AddressError(f"{address} is not part of a forward/backward loop pair")
    program, row = run.rows_of(parsed)
    if parsed.static == tie.forward_address:
        must_have_begun(run.timeline, program, row, program.instructions.index(tie.forward))
        row = backward_row(run, tie, row)
    must_have_begun(run.timeline, tie.program, row, tie.program.instructions.index(tie.backward))
    return passes_in(run, tie, row)


def forward_row(run: Run, tie: RegionPair, row: int) -> int:
    """Return the row of the forward region's graph that a row of the backward region's graph walks
    back.
    """
    if tie.forward_program is tie.program:
        return row
    outer_pair = _enclosing_pair(run, tie)
    outer, iteration = run.timeline.executions.parent_row(tie.program, row)
    return _body_row(run, outer_pair.forward, forward_row(run, outer_pair, outer), iteration)


def backward_row(run: Run, tie: RegionPair, row: int) -> int:
    """Return the row of the backward region's graph that walks back a row of the forward region's
    graph.

    Raise ``ValueUnavailable`` if it did not begin.
    """
    if tie.forward_program is tie.program:
        return row
    outer_pair = _enclosing_pair(run, tie)
    outer, iteration = run.timeline.executions.parent_row(tie.forward_program, row)
    home = backward_row(run, outer_pair, outer)
    if outer_pair.loops is not None:
        first, end = run.timeline.executions.rows_of(outer_pair.loops[0], outer)
        assert iteration is not None
        back, stop = run.timeline.executions.rows_of(outer_pair.loops[1], home)
        if back + end - first - 1 - iteration >= stop:
            raise ValueUnavailable(
                f"{outer_pair.forward_address} has no gradient as far as iteration {iteration} yet"
            )
        return back + end - first - 1 - iteration
    return _body_row(run, outer_pair.backward, home, None)


def _enclosing_pair(run: Run, tie: RegionPair) -> RegionPair:
    return next(
        pair
        for pair in ties(run.plan)
        if pair.backward.region is not None and tie.program in pair.backward.region.programs
    )


def _body_row(run: Run, instruction: Instruction, row: int, iteration: int | None) -> int:
    """Return the row of a body: ``iteration`` counted back from a loop's last, or the branch that
    an If took.
    """
    match instruction.region:
        case LoopRegion() as region:
            assert iteration is not None
            return run.timeline.executions.rows_of(region, row)[1] - 1 - iteration
        case IfRegion() as region:
            return run.timeline.executions.branch(region, row)[1]
        case _:
            raise ValueUnavailable(f"{instruction.label} has no body with a gradient")


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
