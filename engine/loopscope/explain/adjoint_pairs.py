"""Pairs of forward and backward loops or Ifs, from the ``rt_info`` of a model with gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from loopscope.executor.plan.body_ports import CarriedValue
from loopscope.executor.plan.numbers import ProgramIndex, Slot
from loopscope.executor.plan.plan import IfRegion, Instruction, LoopRegion, Plan, Program
from loopscope.ir.address import decode
from loopscope.ir.gradient_info import WalksBack

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


_pairs_by_plan: WeakKeyDictionary[Plan, tuple[RegionPair, ...]] = WeakKeyDictionary()
"""Cached pairs of each plan, because drawing requests them at every step."""


def ties(plan: Plan) -> tuple[RegionPair, ...]:
    """Return all forward/backward pairs of a model, those of outer graphs first."""
    pairs = _pairs_by_plan.get(plan)
    if pairs is None:
        pairs = _pairs_by_plan[plan] = _find_pairs(plan)
    return pairs


def _find_pairs(plan: Plan) -> tuple[RegionPair, ...]:
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
