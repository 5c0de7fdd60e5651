"""Plan of a model: every value in a numbered slot, every node an instruction with its kernel bound,
every region lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from loopscope.checks.propagate import Propagated
from loopscope.executor.plan.body_ports import (
    Binding,
    CarriedValue,
    Concatenated,
    Counter,
    Invariant,
    LastValue,
    Sliced,
    Unfed,
)
from loopscope.executor.plan.optimisation_flags import Optimise
from loopscope.executor.plan.slots import (
    ProgramIndex,
    Slot,
    TableIndex,
    constant_value,
    own_bytes,
)
from loopscope.ir.address import graphs
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId, Model, Node, Port
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import Known, Operation

ABSENT = Slot(0)
"""Slot of inputs that a node leaves out; it holds None."""


LoopKind = Literal["Loop", "TensorIterator", "Scan", "SequenceMap"]
RegionKind = LoopKind | Literal["If", "Function"]


@dataclass(frozen=True, eq=False)
class LoopRegion:
    """A Loop, TensorIterator, Scan or SequenceMap: its body and its ports."""

    kind: LoopKind
    program: Program
    trip_count: Slot | None
    """Outer slot; None if the sliced inputs decide."""
    condition: Slot | None
    """Outer slot of the initial condition; None for true."""
    condition_result: Slot | None
    """Body slot; None for always true."""
    invariants: tuple[Invariant, ...]
    carried: tuple[CarriedValue, ...]
    sliced: tuple[Sliced, ...]
    counters: tuple[Counter, ...]
    unfed: tuple[Unfed, ...]
    outputs: tuple[LastValue | Concatenated, ...]
    table: TableIndex
    """Number of its table in the recording."""
    negative_is_no_limit: bool = True
    """True if a negative trip count means no limit, as in OpenVINO; in ONNX it means no
    iteration.
    """
    declared: Mapping[Slot, ElementType] = field(default_factory=dict[Slot, ElementType])
    """Declared element types of a TensorIterator's Parameters, by slot. Entering values are
    converted to them, as in OpenVINO.
    """

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.program,)

    @cached_property
    def binding(self) -> Mapping[Slot, Binding]:
        """Source of each Parameter, by slot."""
        ports: tuple[Binding, ...] = (
            *self.invariants,
            *self.unfed,
            *self.carried,
            *self.sliced,
            *self.counters,
        )
        return {port.parameter: port for port in ports}

    @cached_property
    def outer_slots(self) -> frozenset[Slot]:
        """Slots of the enclosing graph that Parameters receive values from."""
        initial = (port.initial for port in self.carried if port.initial is not None)
        return frozenset(
            (
                *(port.source for port in self.invariants),
                *(port.source for port in self.sliced),
                *initial,
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One body of an If."""

    name: str
    program: Program
    bindings: tuple[tuple[Slot, Slot], ...]
    """(Parameter slot, outer slot) pairs."""
    unfed: tuple[Unfed, ...]
    results: tuple[Slot, ...]
    """Body slot of each output of the If."""


@dataclass(frozen=True, slots=True, eq=False)
class IfRegion:
    """An If: the condition and its two bodies."""

    condition: Slot
    then: Branch
    otherwise: Branch
    outputs: tuple[Slot, ...]
    table: TableIndex
    first_decides: bool = True
    """True if a condition may be a list of several elements; False for ONNX."""
    kind: Literal["If"] = "If"

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.then.program, self.otherwise.program)


@dataclass(frozen=True, slots=True, eq=False)
class CallRegion:
    """A named subgraph that is called once (an ONNX function)."""

    branch: Branch
    outputs: tuple[Slot, ...]
    table: TableIndex
    kind: Literal["Function"] = "Function"

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.branch.program,)


Region = LoopRegion | IfRegion | CallRegion


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One node that computes: a kernel with its attributes bound, or a region."""

    node: Node
    label: str
    """Segment of the node in addresses."""
    title: str
    """Operation with version, for messages."""
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    call: Callable[..., Any] | None = None
    several: bool = False
    """True if the kernel returns a tuple."""
    symbol: str = ""
    """Python expression over {0}, {1} that equals the call, element by element."""
    broadcasts: bool = False
    """True if its output may have more elements than all of its inputs together."""
    state: Slot | None = None
    """Slot of the hidden state of a random operation."""
    variable: Slot | None = None
    """Slot of the variable that ReadValue and Assign share."""
    assigns: bool = False
    """True for an Assign."""
    float_symbol: str = ""
    """Expression like ``symbol`` for f32 and f64 only; it may call functions of ``np``."""
    integer_symbol: str = ""
    """Expression like ``symbol`` for numbers of one integer type of numpy, with divisors other than
    0.
    """
    region: Region | None = None
    settled: bool = False
    """True if the call returns values in the machine's representation; they may be other than
    tensors.
    """
    only_tensors: bool = True
    """Copy of the operation's ``only_tensors``."""
    checked: bool = False
    """True if its inputs are checked, and in generated code its results too, because the kernel is
    a user's or the model has sequences.
    """
    kernel: Callable[..., Any] | None = None
    """Kernel with its attributes bound. ``call`` returns the same values, and may store results of
    constants.
    """
    is_identity: bool = False
    """True if its output is its input."""
    shows: Callable[..., str] | None = None
    """Function from the inputs to the line that an execution prints."""
    shows_first: int = -1
    """Number of executions that print a line; negative for all."""
    infer: Callable[[Sequence[Known]], tuple[Known, ...]] | None = None
    """Shape function with its attributes bound; None if none exists or the kernel is a user's."""
    same_as: tuple[Slot, ...] = ()
    """Outputs of an earlier instruction of the graph that computes the same values; empty if none
    does.
    """

    @property
    def reads(self) -> tuple[Slot, ...]:
        """All slots that the instruction reads."""
        return self.inputs + self.same_as


@dataclass(eq=False)
class Program:
    """Plan of one graph. Filled while planning, never changed afterwards."""

    address: str
    """Static address: ``main`` or ``main/while_3/body``."""
    index: ProgramIndex
    parent: Program | None
    owner: int = 0
    """Number of the instruction of the parent that runs it."""
    instructions: tuple[Instruction, ...] = ()
    parameters: Mapping[LayerId, Slot] = field(default_factory=dict[LayerId, Slot])
    """Slot of each Parameter."""
    results: Mapping[LayerId, Slot] = field(default_factory=dict[LayerId, Slot])
    """Slot of the value of each Result."""
    slots: Mapping[tuple[LayerId, int], Slot] = field(
        default_factory=dict[tuple[LayerId, int], Slot]
    )
    """Slot of every node output; a Result has the slot of its input."""
    layer_of_label: Mapping[str, LayerId] = field(default_factory=dict[str, LayerId])
    regions: tuple[int, ...] = ()
    """Numbers of the instructions that are regions."""
    hidden: tuple[Slot, ...] = ()
    """Slots of random states and variables that the graph or its bodies use."""
    fetched: frozenset[Slot] = frozenset()
    """Slots of requested values, except Results; a run stores them to its end."""

    @cached_property
    def region(self) -> Region | None:
        """Region of the enclosing graph that runs this graph; None for the outermost graph."""
        return None if self.parent is None else self.parent.instructions[self.owner].region

    @property
    def loop(self) -> LoopRegion | None:
        """The loop whose body this graph is; None for a branch, a function and the outermost
        graph.
        """
        return self.region if isinstance(self.region, LoopRegion) else None

    @property
    def branch(self) -> Branch | None:
        """The If branch or called function that this graph is; None for a loop body and the
        outermost graph.
        """
        match self.region:
            case IfRegion() as region:
                return region.then if self is region.then.program else region.otherwise
            case CallRegion() as region:
                return region.branch
            case _:
                return None

    @cached_property
    def branch_name(self) -> str:
        return self.address.rpartition("/")[2]

    @cached_property
    def producer(self) -> Mapping[Slot, int]:
        """Number of the instruction that fills each slot."""
        return {
            slot: number
            for number, instruction in enumerate(self.instructions)
            for slot in instruction.outputs
        }

    @cached_property
    def done_with(self) -> tuple[tuple[Slot, ...], ...]:
        """Slots that nothing reads after each instruction, without the slots of Results."""
        last = {
            slot: number
            for number, instruction in enumerate(self.instructions)
            for slot in (*instruction.reads, *instruction.outputs)
        }
        done: list[list[Slot]] = [[] for _ in self.instructions]
        for slot in self.producer.keys() - self.results.values() - self.fetched:
            done[last[slot]].append(slot)
        return tuple(map(tuple, done))

    def takes(self, slot: Slot) -> bool:
        """Return True if an instruction reads the slot, or a Result returns it."""
        return slot in self.results.values() or any(
            slot in instruction.reads for instruction in self.instructions
        )

    @cached_property
    def parameter_slots(self) -> frozenset[Slot]:
        return frozenset(self.parameters.values())

    @cached_property
    def owned(self) -> frozenset[Slot]:
        """All slots of this graph itself."""
        return frozenset(self.slots.values())

    def around(self) -> Iterator[Program]:
        """Yield this graph and its enclosing graphs, innermost first."""
        program: Program | None = self
        while program is not None:
            yield program
            program = program.parent


@dataclass(eq=False)
class Plan:
    """A whole model, ready to run."""

    model: Model
    catalogue: Catalogue
    propagated: Propagated
    """Shape inference of the whole model."""
    main: Program
    programs: tuple[Program, ...]
    slot_count: int
    regions: tuple[tuple[Program, Instruction], ...]
    """Program and instruction of each region, by table number."""
    constant_slots: tuple[tuple[Slot, Node], ...]
    variables: Mapping[str, Slot]
    """Slot of each variable by its id."""
    states: tuple[Slot, ...]
    """Slots of the states of random operations."""
    operations: Mapping[tuple[ProgramIndex, LayerId], Operation]
    """Operation of each computing node, by program number and layer."""
    optimise: Optimise = field(default_factory=Optimise)
    """Enabled optimisations."""
    kept_bytes: int = 0
    """Maximum bytes of the results that kernels store for constants."""
    live: frozenset[Slot] | None = None
    """Slots that get values in a pruned plan; None for all."""
    removed: tuple[str, ...] = ()
    """Static addresses of the operations that a pruned plan does not run; a removed node stands for
    its bodies.
    """
    parts: dict[object, Plan | None] = field(
        default_factory=dict[object, "Plan | None"], init=False, repr=False
    )
    """Recently used pruned plans of this plan, with their generated code; None stands for this
    plan.
    """

    @cached_property
    def declared_results(self) -> Mapping[tuple[str, LayerId], Port]:
        """Types and shapes that an ONNX file declares for its graphs' outputs, by address and
        layer.
        """
        if self.model.dialect != "onnx":
            return {}
        return {
            (place.address, node.id): node.inputs[0]
            for place in graphs(self.model)
            for node in place.graph.results
            if node.inputs
        }

    @cached_property
    def constants(self) -> tuple[tuple[Slot, Any], ...]:
        """Slot and value of every Const, decoded at the first run of the plan."""
        outermost = self.main.owned
        return tuple(
            (slot, constant_value(node, in_loop=slot not in outermost))
            for slot, node in self.constant_slots
        )

    @property
    def made_bytes(self) -> int:
        """Bytes of copied constants and of results that kernels store; 0 before the first run."""
        if "constants" not in self.__dict__:
            return 0
        return self.kept_bytes + sum(own_bytes(value) for _, value in self.constants)

    @cached_property
    def constant(self) -> Mapping[Slot, Any]:
        """Values of the constants by slot."""
        return dict(self.constants)

    @cached_property
    def constant_numbers(self) -> frozenset[Slot]:
        """Slots of Consts."""
        return frozenset(slot for slot, _ in self.constant_slots)

    @cached_property
    def lacks_weights(self) -> bool:
        """True if Consts have no data, because the model is that of a run saved without weights."""
        return any(
            node.constant is not None and not node.constant.is_kept
            for _, node in self.constant_slots
        )

    @cached_property
    def program_by_address(self) -> Mapping[str, Program]:
        return {program.address: program for program in self.programs}

    def fresh_values(self, entropy: int) -> list[Any]:
        """Return the slot values at the start of a run: constants, and random states from the run's
        entropy.
        """
        values = self._values_before_a_run.copy()
        for number, slot in enumerate(self.states):
            values[slot] = (entropy + 0x9E3779B97F4A7C15 * number) % 2**63
        return values

    @cached_property
    def _values_before_a_run(self) -> list[Any]:
        values: list[Any] = [None] * self.slot_count
        for slot, value in self.constants:
            values[slot] = value
        return values

    @cached_property
    def prints(self) -> bool:
        """True if a run may print anything."""
        return any(
            instruction.shows is not None
            for program in self.programs
            for instruction in program.instructions
        )


def find_hidden(programs: Sequence[Program]) -> None:
    """Set the random states and variables of each program, including those of its bodies.

    Requires inner programs after outer ones.
    """
    hidden: dict[ProgramIndex, set[Slot]] = {program.index: set() for program in programs}
    for program in reversed(programs):
        slots = hidden[program.index]
        for instruction in program.instructions:
            slots.update(
                slot for slot in (instruction.state, instruction.variable) if slot is not None
            )
        program.hidden = tuple(sorted(slots))
        if program.parent is not None:
            hidden[program.parent.index] |= slots
