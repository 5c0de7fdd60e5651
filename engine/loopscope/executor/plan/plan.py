"""What the machine runs: every value in a numbered slot, every node an instruction with its
kernel bound, every region lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from loopscope.checks.propagate import Propagated, propagate
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
from loopscope.executor.plan.numbers import ProgramIndex, Slot, TableIndex
from loopscope.executor.plan.optimisation_flags import Optimise
from loopscope.ir import aligned
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId, Model, Node
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import Known, Operation
from loopscope.ops.values import NOT_KEPT

_LEAST_MOVED, _MOST_MOVED = 1 << 12, 1 << 25
ABSENT = Slot(0)
"""The slot of inputs that a node leaves out; it holds None."""


LoopKind = Literal["Loop", "TensorIterator", "Scan", "SequenceMap"]
RegionKind = LoopKind | Literal["If", "Function"]


@dataclass(frozen=True, eq=False)
class LoopRegion:
    """A Loop, TensorIterator or Scan: its body and what goes in and out of it."""

    kind: LoopKind
    program: Program
    trip_count: Slot | None
    """Outer slot; None: the sliced inputs decide."""
    condition: Slot | None
    """Outer slot of the initial condition; None: true."""
    condition_result: Slot | None
    """Body slot; None: always true."""
    invariants: tuple[Invariant, ...]
    carried: tuple[CarriedValue, ...]
    sliced: tuple[Sliced, ...]
    counters: tuple[Counter, ...]
    unfed: tuple[Unfed, ...]
    outputs: tuple[LastValue | Concatenated, ...]
    table: TableIndex
    """Number of its table in the trace."""
    negative_is_no_limit: bool = True
    """What a negative trip count means: no limit in OpenVINO, no iteration in ONNX."""
    declared: Mapping[Slot, ElementType] = field(default_factory=dict[Slot, ElementType])
    """Of a TensorIterator, the element types of its Parameters by slot: what enters is converted
    to them, as in OpenVINO.
    """

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.program,)

    @cached_property
    def binding(self) -> Mapping[Slot, Binding]:
        """What each Parameter receives, by slot."""
        every: tuple[Binding, ...] = (
            *self.invariants,
            *self.unfed,
            *self.carried,
            *self.sliced,
            *self.counters,
        )
        return {one.parameter: one for one in every}

    @cached_property
    def outer_slots(self) -> frozenset[Slot]:
        """The slots of the graph around that Parameters receive values from."""
        initial = (one.initial for one in self.carried if one.initial is not None)
        return frozenset(
            (
                *(one.source for one in self.invariants),
                *(one.source for one in self.sliced),
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
    """Whether a condition may be a list of several elements: False for ONNX."""
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
    """Its segment in addresses."""
    title: str
    """Operation with version, for messages."""
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    call: Callable[..., Any] | None = None
    several: bool = False
    """The kernel gives a tuple."""
    symbol: str = ""
    """A Python expression over {0}, {1} that equals the call, element by element."""
    broadcasts: bool = False
    """Its output may have more elements than all of its inputs together."""
    state: Slot | None = None
    """Slot of the hidden state of a random operation."""
    variable: Slot | None = None
    """Slot of the variable that ReadValue and Assign share."""
    assigns: bool = False
    """It is an Assign."""
    float_symbol: str = ""
    """As ``symbol``, for f32 and f64 only; may call functions of ``np``."""
    integer_symbol: str = ""
    """As ``symbol``, for numbers of one integer type of numpy, and divisors other than 0."""
    region: Region | None = None
    settled: bool = False
    """What the call gives needs no settling, and may be no tensor."""
    only_tensors: bool = True
    """As the operation's."""
    checked: bool = False
    """Whether its inputs are looked at, and in generated code what it returns: its kernel is a
    user's, or the model holds sequences.
    """
    kernel: Callable[..., Any] | None = None
    """The kernel with its attributes bound; ``call`` gives the same, and may keep what it makes
    of constants.
    """
    is_identity: bool = False
    """Whether its output is its input."""
    shows: Callable[..., str] | None = None
    """The line that an execution shows, of its inputs."""
    shows_first: int = -1
    """So many executions show one; all, where it is negative."""
    infer: Callable[[Sequence[Known]], tuple[Known, ...]] | None = None
    """Its shape function with its attributes bound, where there is one and nobody has a say in
    what the kernel returns.
    """
    same_as: tuple[Slot, ...] = ()
    """The outputs of an earlier instruction of its graph that computes the very same, one for
    one; empty where there is none.
    """

    @property
    def reads(self) -> tuple[Slot, ...]:
        """All slots that it takes values from."""
        return self.inputs + self.same_as


@dataclass(eq=False)
class Program:
    """The plan of one graph. Filled while planning, never changed after."""

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
    """Slot of the value that each Result takes."""
    slots: Mapping[tuple[LayerId, int], Slot] = field(
        default_factory=dict[tuple[LayerId, int], Slot]
    )
    """Slot of every node output; a Result counts as its input."""
    layer_of_label: Mapping[str, LayerId] = field(default_factory=dict[str, LayerId])
    regions: tuple[int, ...] = ()
    """Numbers of the instructions that are regions."""
    hidden: tuple[Slot, ...] = ()
    """Slots of random states and variables that it or its bodies use."""
    fetched: frozenset[Slot] = frozenset()
    """Slots whose values are asked for, the Results' apart: a run keeps them to its end."""

    @cached_property
    def region(self) -> Region | None:
        """What runs it, in the graph around; None for the outermost graph."""
        return None if self.parent is None else self.parent.instructions[self.owner].region

    @property
    def loop(self) -> LoopRegion | None:
        """The loop whose body it is; None for a branch, a function and the outermost graph."""
        return self.region if isinstance(self.region, LoopRegion) else None

    @property
    def branch(self) -> Branch | None:
        """The branch of an If, or the called function, that it is; None for the body of a loop
        and the outermost graph.
        """
        match self.region:
            case IfRegion() as region:
                return region.then if self is region.then.program else region.otherwise
            case CallRegion() as region:
                return region.branch
            case _:
                return None

    @property
    def branch_name(self) -> str:
        return self.address.rpartition("/")[2]

    @cached_property
    def producer(self) -> Mapping[Slot, int]:
        """For each slot that an instruction fills, the number of that instruction."""
        return {
            slot: number
            for number, instruction in enumerate(self.instructions)
            for slot in instruction.outputs
        }

    @cached_property
    def done_with(self) -> tuple[tuple[Slot, ...], ...]:
        """For each instruction, the slots of earlier instructions and its own that nothing reads
        after it; never what a Result takes.
        """
        last = {
            slot: number
            for number, one in enumerate(self.instructions)
            for slot in (*one.reads, *one.outputs)
        }
        done: list[list[Slot]] = [[] for _ in self.instructions]
        for slot in self.producer.keys() - self.results.values() - self.fetched:
            done[last[slot]].append(slot)
        return tuple(map(tuple, done))

    def takes(self, slot: Slot) -> bool:
        """Whether anything in it takes a slot's value, or it hands it on."""
        return slot in self.results.values() or any(
            slot in instruction.reads for instruction in self.instructions
        )

    @cached_property
    def parameter_slots(self) -> frozenset[Slot]:
        """The slots of its Parameters."""
        return frozenset(self.parameters.values())

    @cached_property
    def owned(self) -> frozenset[Slot]:
        """All slots of this graph itself."""
        return frozenset(self.slots.values())

    def around(self) -> Iterator[Program]:
        """It and the graphs around it, innermost first."""
        program: Program | None = self
        while program is not None:
            yield program
            program = program.parent


@dataclass(eq=False)
class Plan:
    """A whole model, ready to run."""

    model: Model
    catalogue: Catalogue
    main: Program
    programs: tuple[Program, ...]
    slot_count: int
    regions: tuple[tuple[Program, Instruction], ...]
    """By table number: the program and the instruction of each region."""
    constant_slots: tuple[tuple[Slot, Node], ...]
    variables: Mapping[str, Slot]
    """Slot of each variable by its id."""
    states: tuple[Slot, ...]
    """Slots of the states of random operations."""
    operations: Mapping[tuple[ProgramIndex, LayerId], Operation]
    """Operation of each computing node, by program number and layer."""
    optimise: Optimise = field(default_factory=Optimise)
    """What may be left out of a run."""
    kept_bytes: int = 0
    """Bytes that kernels keep, at most, of what they make of constants."""
    live: frozenset[Slot] | None = None
    """The slots that get values, of a plan for a few tensors only; None: all."""
    removed: tuple[str, ...] = ()
    """Of such a plan the operations that do not run, by static address; of a node with bodies
    not what is in them.
    """
    parts: dict[object, Plan | None] = field(
        default_factory=dict[object, "Plan | None"], init=False, repr=False
    )
    """Plans for a few of its tensors that runs have asked for lately, with the code that was
    generated for them; None: this plan.
    """

    @cached_property
    def propagated(self) -> Propagated:
        """What shape inference knows of the whole model."""
        return propagate(self.model, self.catalogue)

    @cached_property
    def constants(self) -> tuple[tuple[Slot, Any], ...]:
        """Slot and value of every Const, decoded when the plan first runs."""
        outermost = self.main.owned
        return tuple(
            (
                slot,
                settle(_constant(node) if slot in outermost else _on_cache_lines(_constant(node))),
            )
            for slot, node in self.constant_slots
        )

    @property
    def made_bytes(self) -> int:
        """Bytes of constants that had to be copied, and of what kernels keep of them; none
        before the first run.
        """
        if "constants" not in self.__dict__:
            return 0
        return self.kept_bytes + sum(_own_bytes(value) for _, value in self.constants)

    @cached_property
    def constant(self) -> Mapping[Slot, Any]:
        """The same by slot."""
        return dict(self.constants)

    @cached_property
    def constant_numbers(self) -> frozenset[Slot]:
        """The slots of Consts."""
        return frozenset(slot for slot, _ in self.constant_slots)

    @cached_property
    def lacks_weights(self) -> bool:
        """Whether there are Consts without their data: the model is that of a run which was
        saved without weights.
        """
        return any(
            node.constant is not None and not node.constant.is_kept
            for _, node in self.constant_slots
        )

    @cached_property
    def program_by_address(self) -> Mapping[str, Program]:
        return {program.address: program for program in self.programs}

    def fresh_values(self, entropy: int) -> list[Any]:
        """The slots at the start of a run: constants in place, random states at the run's
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
        """Whether a run may show anything."""
        return any(
            instruction.shows is not None
            for program in self.programs
            for instruction in program.instructions
        )


def find_hidden(programs: Sequence[Program]) -> None:
    """Random states and variables of a program include those of its bodies; inner programs come
    after outer ones.
    """
    hidden: dict[ProgramIndex, set[Slot]] = {program.index: set() for program in programs}
    for program in reversed(programs):
        found = hidden[program.index]
        for instruction in program.instructions:
            found.update(
                slot for slot in (instruction.state, instruction.variable) if slot is not None
            )
        program.hidden = tuple(sorted(found))
        if program.parent is not None:
            hidden[program.parent.index] |= found


def _constant(node: Node) -> Any:
    if node.constant is None:
        raise ValueError(f"Const {node.name!r} has no data")
    return node.constant.array() if node.constant.is_kept else NOT_KEPT


def _on_cache_lines(array: Any) -> Any:
    """The array where it is fast to multiply with, when that pays: weights of a loop, in each
    iteration.
    """
    if array is NOT_KEPT:
        return array
    worth = (
        _LEAST_MOVED <= array.nbytes <= _MOST_MOVED
        and array.dtype.kind == "f"
        and array.flags.c_contiguous
    )
    if not worth or aligned.is_aligned(array):
        return array
    moved = aligned.empty(array.shape, array.dtype)
    moved[...] = array
    moved.flags.writeable = False
    return moved


def settle(value: Any) -> Any:
    """Rank-0 numbers become numpy scalars, which compute ten times faster than 0-d arrays."""
    if (
        isinstance(value, np.ndarray)
        and value.ndim == 0
        and value.dtype.names is None
        and value.dtype != object
    ):
        return value[()]
    return value


def bound(kernel: Callable[..., Any], keywords: Mapping[str, Any]) -> Callable[..., Any]:
    """A kernel with its attributes bound."""
    return partial(kernel, **keywords) if keywords else kernel


def _own_bytes(value: Any) -> int:
    """Bytes of an array that is no view into a file of weights."""
    if not isinstance(value, np.ndarray):
        return 0
    while isinstance(value.base, np.ndarray):
        value = value.base
    return value.nbytes if value.base is None else 0
