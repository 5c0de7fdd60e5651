"""What the machine runs: every value in a numbered slot, every node an instruction with its kernel bound, every region lowered."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.check.propagate import Propagated, propagate
from engine.ir import aligned
from engine.ir.element_type import ElementType
from engine.ir.model import LayerId, Model, Node
from engine.ops.bounds import check_elements
from engine.ops.catalogue import Catalogue
from engine.ops.declare import Operation

if TYPE_CHECKING:
    from engine.run.plan.overrides import Overrides

_LEAST_MOVED, _MOST_MOVED = 1 << 12, 1 << 25
ABSENT = 0
"""The slot of inputs that a node leaves out; it holds None."""


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """A Parameter that receives the value of a Result of the iteration before."""

    parameter: int
    initial: int | None
    """Outer slot of the first value; None: unconnected, zeros as OpenVINO does."""
    result: int
    layer: LayerId
    """The body's Parameter."""
    result_layer: LayerId


@dataclass(frozen=True, slots=True, eq=False)
class Sliced:
    """A Parameter that receives part i of an outer tensor along an axis."""

    parameter: int
    source: int
    axis: int
    start: int
    end: int
    stride: int
    part_size: int
    layer: LayerId
    whole_parts: bool = True
    """False for ONNX: a part is one element along the axis, and the axis is dropped. Sequences are taken apart too."""


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """A Parameter that receives the iteration number."""

    parameter: int
    element_type: ElementType
    shape: tuple[int, ...]
    layer: LayerId

    def number(self, iteration: int) -> np.ndarray | np.generic:
        value: np.generic = self.element_type.dtype.type(iteration)
        if not self.shape:
            return value
        check_elements(math.prod(self.shape), "the iteration number")
        return np.full(self.shape, value)


@dataclass(frozen=True, slots=True, eq=False)
class LastValue:
    """An output of a loop: the value of a Result in the last iteration."""

    slot: int
    result: int
    initial: int | None
    """Outer slot that it equals when no iteration ran; None: never computed then."""
    carried_without_initial: int | None
    """Parameter slot whose zeros it equals when no iteration ran (unconnected carried Parameter)."""
    layer: LayerId


@dataclass(frozen=True, slots=True, eq=False)
class Concatenated:
    """An output of a loop: the values of a Result in all iterations, joined along an axis."""

    slot: int
    result: int
    axis: int
    reverse: bool
    stacked: bool
    layer: LayerId
    part_size: int = 1
    start: int = 0
    end: int = -1
    into_sequence: bool = False
    """ONNX SequenceMap: the values become a sequence."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopRegion:
    """A Loop, TensorIterator or Scan: its body and what goes in and out of it."""

    kind: str
    program: Program
    trip_count: int | None
    """Outer slot; None: the sliced inputs decide."""
    condition: int | None
    """Outer slot of the initial condition; None: true."""
    condition_result: int | None
    """Body slot; None: always true."""
    invariants: tuple[tuple[int, int], ...]
    """(Parameter slot, outer slot) pairs."""
    carried: tuple[Carried, ...]
    sliced: tuple[Sliced, ...]
    counters: tuple[Counter, ...]
    unfed: tuple[tuple[int, LayerId], ...]
    """Parameters that nothing feeds: zeros."""
    outputs: tuple[LastValue | Concatenated, ...]
    table: int
    """Number of its table in the trace."""
    negative_is_no_limit: bool = True
    """What a negative trip count means: no limit in OpenVINO, no iteration in ONNX."""
    declared: Mapping[int, ElementType] = field(default_factory=dict[int, ElementType])
    """Of a TensorIterator, the element types of its Parameters by slot: what enters is converted to them, as in OpenVINO."""

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.program,)


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One body of an If."""

    name: str
    program: Program
    bindings: tuple[tuple[int, int], ...]
    """(Parameter slot, outer slot) pairs."""
    unfed: tuple[tuple[int, LayerId], ...]
    results: tuple[int, ...]
    """Body slot of each output of the If."""


@dataclass(frozen=True, slots=True, eq=False)
class IfRegion:
    """An If: the condition and its two bodies."""

    condition: int
    then: Branch
    otherwise: Branch
    outputs: tuple[int, ...]
    table: int
    kind: str = "If"

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.then.program, self.otherwise.program)


@dataclass(frozen=True, slots=True, eq=False)
class CallRegion:
    """A named subgraph that is called once (an ONNX function)."""

    branch: Branch
    outputs: tuple[int, ...]
    table: int
    kind: str = "Function"

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
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    call: Callable[..., Any] | None = None
    several: bool = False
    """The kernel gives a tuple."""
    symbol: str = ""
    """A Python expression over {0}, {1} that equals the call, element by element."""
    broadcasts: bool = False
    """Its output may have more elements than all of its inputs together."""
    state: int | None = None
    """Slot of the hidden state of a random operation."""
    variable: int | None = None
    """Slot of the variable that ReadValue and Assign share."""
    float_symbol: str = ""
    """As ``symbol``, for f32 and f64 only; may call functions of ``np``."""
    region: Region | None = None
    settled: bool = False
    """What the call gives needs no settling, and may be no tensor."""
    only_tensors: bool = True
    """As the operation's."""
    checked: bool = False
    """Whether its inputs are looked at, and in generated code what it returns: its kernel is a user's, or the model holds sequences."""
    kernel: Callable[..., Any] | None = None
    """The kernel with its attributes bound; ``call`` gives the same, and may keep what it makes of constants."""


@dataclass(eq=False)
class Program:
    """The plan of one graph. Filled while planning, never changed after."""

    address: str
    """Static address: ``main`` or ``main/while_3/body``."""
    index: int
    parent: Program | None
    owner: int = 0
    """Number of the instruction of the parent that runs it."""
    instructions: tuple[Instruction, ...] = ()
    parameters: Mapping[LayerId, int] = field(default_factory=dict[LayerId, int])
    """Slot of each Parameter."""
    results: Mapping[LayerId, int] = field(default_factory=dict[LayerId, int])
    """Slot of the value that each Result takes."""
    slots: Mapping[tuple[LayerId, int], int] = field(default_factory=dict[tuple[LayerId, int], int])
    """Slot of every node output; a Result counts as its input."""
    layer_of_label: Mapping[str, LayerId] = field(default_factory=dict[str, LayerId])
    regions: tuple[int, ...] = ()
    """Numbers of the instructions that are regions."""
    hidden: tuple[int, ...] = ()
    """Slots of random states and variables that it or its bodies use."""

    @property
    def branch_name(self) -> str:
        return self.address.rpartition("/")[2]

    @cached_property
    def producer(self) -> Mapping[int, int]:
        """For each slot that an instruction fills, the number of that instruction."""
        return {slot: number for number, instruction in enumerate(self.instructions) for slot in instruction.outputs}

    @cached_property
    def done_with(self) -> tuple[tuple[int, ...], ...]:
        """For each instruction, the slots of earlier instructions and its own that nothing reads after it; never what a Result takes."""
        last = {slot: number for number, one in enumerate(self.instructions) for slot in (*one.inputs, *one.outputs)}
        done: list[list[int]] = [[] for _ in self.instructions]
        for slot in self.producer.keys() - self.results.values():
            done[last[slot]].append(slot)
        return tuple(map(tuple, done))

    def takes(self, slot: int) -> bool:
        """Whether anything in it takes a slot's value, or it hands it on."""
        return slot in self.results.values() or any(slot in instruction.inputs for instruction in self.instructions)

    @cached_property
    def parameter_slots(self) -> frozenset[int]:
        """The slots of its Parameters."""
        return frozenset(self.parameters.values())

    @cached_property
    def owned(self) -> frozenset[int]:
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
    constant_slots: tuple[tuple[int, Node], ...]
    variables: Mapping[str, int]
    """Slot of each variable by its id."""
    states: tuple[int, ...]
    """Slots of the states of random operations."""
    operations: Mapping[tuple[int, LayerId], Operation]
    """Operation of each computing node, by program number and layer."""
    generated: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """Functions generated for its loops, by table, recording and element types."""
    changes: Overrides | None = None
    """What a person sets in the runs of this plan; None for nothing."""

    def with_changes(self, changes: Overrides) -> Plan:
        """The plan of runs with changes."""
        made = replace(self, changes=changes, generated={})
        made.constants = self.constants
        return made

    @cached_property
    def propagated(self) -> Propagated:
        """What shape inference knows of the whole model."""
        return propagate(self.model, self.catalogue)

    @cached_property
    def changed(self) -> frozenset[int]:
        """Slots that are set somewhere: they are not the same in all rows, whatever the model says."""
        return frozenset(change.slot for change in self.changes.items) if self.changes else frozenset()

    @cached_property
    def changed_nests(self) -> frozenset[int]:
        """The numbers of all graphs that lie with changed slots in one node of the outermost graph."""
        places = {self._in_main(program) for program in self.programs if not self.changed.isdisjoint(program.owned)} - {None}
        return frozenset(program.index for program in self.programs if self._in_main(program) in places)

    @cached_property
    def changed_constants(self) -> tuple[tuple[Program, int], ...]:
        """The changed slots of Consts in bodies, with their graphs."""
        bodies = [program for program in self.programs if program.parent is not None]
        return tuple((body, slot) for body in bodies for slot in sorted(self.changed & self.constant_numbers & body.owned))

    def _in_main(self, program: Program) -> int | None:
        """The instruction of the outermost graph that a graph lies in."""
        return next((one.owner for one in program.around() if one.parent is self.main), None)

    @cached_property
    def constants(self) -> tuple[tuple[int, Any], ...]:
        """Slot and value of every Const, decoded when the plan first runs."""
        outermost = self.main.owned
        return tuple(
            (slot, settle(_constant(node) if slot in outermost else _on_cache_lines(_constant(node)))) for slot, node in self.constant_slots
        )

    @cached_property
    def constant(self) -> Mapping[int, Any]:
        """The same by slot."""
        return dict(self.constants)

    @cached_property
    def constant_numbers(self) -> frozenset[int]:
        """The slots of Consts."""
        return frozenset(slot for slot, _ in self.constant_slots)

    @cached_property
    def program_by_address(self) -> Mapping[str, Program]:
        return {program.address: program for program in self.programs}

    def fresh_values(self, entropy: int) -> list[Any]:
        """The slots at the start of a run: constants in place, random states at the run's entropy."""
        values: list[Any] = [None] * self.slot_count
        for slot, value in self.constants:
            values[slot] = value
        for number, slot in enumerate(self.states):
            values[slot] = (entropy + 0x9E3779B97F4A7C15 * number) % 2**63
        return values


def _constant(node: Node) -> np.ndarray:
    if node.constant is None:
        raise ValueError(f"Const {node.name!r} has no data")
    return node.constant.array()


def _on_cache_lines(array: np.ndarray) -> np.ndarray:
    """The array where it is fast to multiply with, when that pays: weights of a loop, in each iteration."""
    worth = _LEAST_MOVED <= array.nbytes <= _MOST_MOVED and array.dtype.kind == "f" and array.flags.c_contiguous
    if not worth or aligned.is_aligned(array):
        return array
    moved = aligned.empty(array.shape, array.dtype)
    moved[...] = array
    moved.flags.writeable = False
    return moved


def settle(value: Any) -> Any:
    """Rank-0 numbers become numpy scalars, which compute ten times faster than 0-d arrays."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.names is None and value.dtype != object:
        return value[()]
    return value


def bound(kernel: Callable[..., Any], keywords: Mapping[str, Any]) -> Callable[..., Any]:
    """A kernel with its attributes bound."""
    return partial(kernel, **keywords) if keywords else kernel
