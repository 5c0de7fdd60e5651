"""Which backward loop or If belongs to which forward one, as the ``rt_info`` of a model with
gradients tells it.
"""

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
"""Before the name of a carried Parameter of the forward loop: the Parameter of the backward body
that is its adjoint.
"""


@dataclass(frozen=True, slots=True, eq=False)
class RegionPair:
    """A loop or If and the one that walks it back, which is in the same graph, or in what walks
    back the body that it is in.
    """

    home: Program
    """The graph of the forward one."""
    forward: Instruction
    program: Program
    """The graph of the backward one."""
    backward: Instruction
    inputs: tuple[tuple[int, ...], ...]
    """Of each output of the backward one, the inputs of the forward one whose gradient it is or
    is made of; empty in older files.
    """

    @property
    def forward_address(self) -> str:
        """Without iterations, like ``backward_address``."""
        return f"{self.home.address}/{self.forward.label}"

    @property
    def backward_address(self) -> str:
        return f"{self.program.address}/{self.backward.label}"

    @property
    def loops(self) -> tuple[LoopRegion, LoopRegion] | None:
        """The forward and the backward loop; None of an If."""
        one, other = self.forward.region, self.backward.region
        return (
            (one, other) if isinstance(one, LoopRegion) and isinstance(other, LoopRegion) else None
        )

    @property
    def branches(self) -> IfRegion | None:
        """The forward If; None of a loop."""
        return self.forward.region if isinstance(self.forward.region, IfRegion) else None

    def of_output(self, slot: Slot) -> tuple[int, ...]:
        """The inputs of the forward one that an output of the backward one belongs to."""
        numbers = [number for number, one in enumerate(self.backward.outputs) if one == slot]
        return self.inputs[numbers[0]] if numbers and numbers[0] < len(self.inputs) else ()


_found: WeakKeyDictionary[Plan, tuple[RegionPair, ...]] = WeakKeyDictionary()
"""Of each plan: a picture asks at every step."""


def ties(plan: Plan) -> tuple[RegionPair, ...]:
    """All of a model, those of outer graphs first."""
    kept = _found.get(plan)
    if kept is None:
        kept = _found[plan] = _all(plan)
    return kept


def _all(plan: Plan) -> tuple[RegionPair, ...]:
    found: list[RegionPair] = []
    homes: dict[ProgramIndex, Program] = {}
    for program in plan.programs:
        for tie in _in(program, homes.get(program.index, program)):
            found.append(tie)
            homes |= dict(_bodies(tie))
    return tuple(found)


def _bodies(tie: RegionPair) -> Iterator[tuple[ProgramIndex, Program]]:
    """For each body of a backward one, the body that it walks back."""
    assert tie.forward.region is not None
    assert tie.backward.region is not None
    for one, other in zip(tie.backward.region.programs, tie.forward.region.programs, strict=True):
        yield one.index, other


def _in(program: Program, home: Program) -> list[RegionPair]:
    by_name = {
        home.instructions[number].node.name: home.instructions[number] for number in home.regions
    }
    found = []
    for number in program.regions:
        backward = program.instructions[number]
        said = WalksBack.of(backward.node)
        forward = by_name.get(said.forward) if said is not None else None
        if said is None or forward is None or forward is backward:
            continue
        tie = RegionPair(home, forward, program, backward, said.inputs)
        if tie.loops is not None or (
            tie.branches is not None and isinstance(backward.region, IfRegion)
        ):
            found.append(tie)
    return found


def adjoint_parameters(tie: RegionPair) -> tuple[tuple[str, CarriedValue], ...]:
    """Of each carried value of a forward loop that has an adjoint: its name, and the port of the
    adjoint.
    """
    if tie.loops is None:
        return ()
    forward, backward = tie.loops
    names = {name_of(tie.forward, port) for port in forward.carried}
    found = []
    for port in backward.carried:
        called = name_of(tie.backward, port) or ""
        name = called.removeprefix(ADJOINT)
        if called.startswith(ADJOINT) and name in names:
            found.append((name, port))
    return tuple(found)


def name_of(instruction: Instruction, port: CarriedValue) -> str | None:
    """The name of a carried Parameter in the body of a loop."""
    node = (
        instruction.node.bodies[0].graph.by_id.get(port.layer) if instruction.node.bodies else None
    )
    return None if node is None else node.name


def invariant_inputs(tie: RegionPair) -> Mapping[int, tuple[str, Slot]]:
    """The inputs of a forward loop that are the same in all iterations, by number: the name
    outside, and the Parameter in the body.
    """
    if tie.loops is None:
        return {}
    parameters = {port.source: port.parameter for port in tie.loops[0].invariants}
    return {
        number: (outer_name(tie.home, slot), parameters[slot])
        for number, slot in enumerate(tie.forward.inputs)
        if slot in parameters
    }


def outer_name(program: Program, slot: Slot) -> str:
    """The name of what gives a value in a graph."""
    results = set(program.results)
    by_layer = {layer: label for label, layer in program.layer_of_label.items()}
    for (layer, output), one in program.slots.items():
        if one == slot and layer not in results and layer in by_layer:
            return decode(by_layer[layer]) + (f":{output}" if output else "")
    return "an input"
