"""Model -> Plan: gives every value a slot, binds kernels and their attributes, and lowers port
maps to slots.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from loopscope.checks.check import CheckedModel, checked
from loopscope.checks.order import order
from loopscope.executor.plan.constant_folding import FoldedKernel
from loopscope.executor.plan.lowering import LOOP_KINDS, branch, loop
from loopscope.executor.plan.numbers import ProgramIndex, Slot, TableIndex
from loopscope.executor.plan.optimisation_flags import EVERYTHING, Optimise
from loopscope.executor.plan.plan import (
    ABSENT,
    CallRegion,
    IfRegion,
    Instruction,
    Plan,
    Program,
    Region,
    bound,
    find_hidden,
)
from loopscope.executor.plan.sequences import holds_sequences
from loopscope.executor.plan.sharing import share
from loopscope.ir.address import ROOT, labels
from loopscope.ir.collecting import no_garbage_collection
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LOOP, LayerId, Model, ModelGraph, Node, OutputRef
from loopscope.ir.shape import PartialShape
from loopscope.ir.walk import nodes
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.custom.agreement import Agreeing
from loopscope.ops.declare import Known, Operation, Role, typed
from loopscope.ops.dialect import catalogue_for
from loopscope.ops.infer import comparison, elementwise
from loopscope.ops.mixed_types import promoting


def plan_of(
    model: Model, catalogue: Catalogue = CATALOGUE, optimise: Optimise = EVERYTHING
) -> Plan:
    """The plan of a whole model, made once for each model, catalogue and choice;
    ``InvalidModel`` when the model has errors.
    """
    plans = _PLANS.setdefault(model, weakref.WeakKeyDictionary()).setdefault(catalogue, {})
    plan = plans.get(optimise)
    if plan is None:
        ours = catalogue_for(model.dialect, catalogue)
        with no_garbage_collection():
            plan = plans[optimise] = plan_checked(checked(model, ours), ours, optimise)
    return plan


def plans_of(model: Model) -> list[Plan]:
    """The plans that there are of a model."""
    return [plan for plans in list(_PLANS.get(model, {}).values()) for plan in list(plans.values())]


_PLANS: weakref.WeakKeyDictionary[
    Model, weakref.WeakKeyDictionary[Catalogue, dict[Optimise, Plan]]
] = weakref.WeakKeyDictionary()


def plan_checked(
    checked_model: CheckedModel, catalogue: Catalogue, optimise: Optimise = EVERYTHING
) -> Plan:
    """The plan of a model that has been checked."""
    # A copy of the outermost object: a plan that held the model itself would keep it, and so
    # itself, in the table above for ever.
    plan = _Planner(replace(checked_model.model), catalogue, optimise, checked_model.mixed).plan()
    if optimise.cse:
        share(plan)
    return plan


_MOST_KEPT_BYTES = 1 << 30
_TRUE = Node(LayerId(-1), "true", "Const", constant=Constant.of(np.array(True)))


@dataclass(eq=False)
class _Planner:
    model: Model
    catalogue: Catalogue
    optimise: Optimise
    mixed: frozenset[tuple[str, LayerId]]
    """Nodes, each with its graph's address, whose operands are promoted to one type."""
    slot_count: int = 1
    programs: list[Program] = field(default_factory=list[Program])
    graphs: list[ModelGraph] = field(default_factory=list[ModelGraph])
    tables: list[tuple[Program, Instruction] | None] = field(
        default_factory=list["tuple[Program, Instruction] | None"]
    )
    constants: list[tuple[Slot, Node]] = field(default_factory=list[tuple[Slot, Node]])
    variables: dict[str, Slot] = field(default_factory=dict[str, Slot])
    states: list[Slot] = field(default_factory=list[Slot])
    operations: dict[tuple[ProgramIndex, LayerId], Operation] = field(
        default_factory=dict[tuple[ProgramIndex, LayerId], Operation]
    )
    kept_bytes: int = 0
    """Bytes that kernels may keep of what they make of constants."""
    steady: set[Slot] = field(default_factory=set[Slot])
    """Slots that hold the same in all runs: a Const, what is computed from such, and what a body
    takes of either.
    """
    true: Slot | None = None
    """Slot of a condition that is always true."""

    def plan(self) -> Plan:
        main = self._open(ROOT, self.model.graph, None, 0)
        done = 0
        while done < len(self.programs):
            self._fill(self.programs[done], self.graphs[done])
            done += 1
        find_hidden(self.programs)
        return Plan(
            model=self.model,
            catalogue=self.catalogue,
            main=main,
            programs=tuple(self.programs),
            slot_count=self.slot_count,
            regions=tuple(entry for entry in self.tables if entry is not None),
            constant_slots=tuple(self.constants),
            variables=self.variables,
            states=tuple(self.states),
            operations=self.operations,
            optimise=self.optimise,
            kept_bytes=self.kept_bytes,
        )

    def _slot(self) -> Slot:
        self.slot_count += 1
        return Slot(self.slot_count - 1)

    def _open(self, address: str, graph: ModelGraph, parent: Program | None, owner: int) -> Program:
        """A program with slots for everything in its graph; its instructions are filled in
        later, so that nesting needs no recursion.
        """
        program = Program(address, ProgramIndex(len(self.programs)), parent, owner)
        slots: dict[tuple[LayerId, int], Slot] = {}
        for node in graph.nodes:
            if node.type != "Result":
                for output in range(len(node.outputs)):
                    slots[node.id, output] = self._slot()
        for node in graph.results:
            slots[node.id, 0] = _source_slot(graph, slots, node, 0)
        program.slots = slots
        program.parameters = {node.id: slots[node.id, 0] for node in graph.parameters}
        program.results = {node.id: slots[node.id, 0] for node in graph.results}
        self.programs.append(program)
        self.graphs.append(graph)
        return program

    def _fill(self, program: Program, graph: ModelGraph) -> None:
        label = labels(graph)
        program.layer_of_label = {text: layer for layer, text in label.items()}
        instructions: list[Instruction] = []
        for node in (graph.by_id[layer] for layer in order(graph).layers):
            operation = self.catalogue.find(node.type, node.opset)
            role = operation.role if operation else Role.COMPUTE
            if role is Role.CONSTANT or node.constant is not None:
                self.constants.append((program.slots[node.id, 0], node))
                self.steady.add(program.slots[node.id, 0])
            elif role not in (Role.PARAMETER, Role.RESULT):
                assert operation is not None
                self.operations[program.index, node.id] = operation
                instructions.append(
                    self._instruction(
                        program, graph, node, label[node.id], operation, len(instructions)
                    )
                )
        program.instructions = tuple(instructions)
        program.regions = tuple(
            number for number, instruction in enumerate(instructions) if instruction.region
        )
        for number in program.regions:
            region = instructions[number].region
            assert region is not None
            self.tables[region.table] = (program, instructions[number])

    def _instruction(
        self,
        program: Program,
        graph: ModelGraph,
        node: Node,
        label: str,
        operation: Operation,
        number: int,
    ) -> Instruction:
        inputs = tuple(
            _source_slot(graph, program.slots, node, index) for index in range(len(node.inputs))
        )
        outputs = tuple(program.slots[node.id, index] for index in range(len(node.outputs)))
        made = partial(Instruction, node, label, operation.title, inputs, outputs)
        match operation.role:
            case Role.REGION:
                return made(region=self._region(program, node, label, inputs, outputs, number))
            case Role.READ_VALUE | Role.ASSIGN:
                variable = self._variable(str(node.attributes.get("variable_id", "")))
                return made(
                    _initial(operation, node),
                    variable=variable,
                    assigns=operation.role is Role.ASSIGN,
                )
        return self._computing(program, graph, node, operation, made)

    def _computing(
        self,
        program: Program,
        graph: ModelGraph,
        node: Node,
        operation: Operation,
        made: Callable[..., Instruction],
    ) -> Instruction:
        """An instruction that calls a kernel; ``made`` takes what it has beside its inputs and
        outputs.
        """
        attributes = typed(operation, node.attributes)
        keywords = dict(attributes)
        own = self.catalogue.is_foreign(operation)
        checked, tensors = own or self._holds_sequences, operation.only_tensors
        called = checked and (own or tensors)
        symbol, of_floats, of_integers = (
            ("", "", "") if called else _expressions(operation, keywords, self._types(graph, node))
        )
        if operation.counts_outputs:
            keywords["outputs"] = len(node.outputs)
        made = partial(
            made,
            state=self._state() if operation.stateful else None,
            only_tensors=tensors,
            checked=checked or self._lacks_weights,
        )
        mixed = (program.address, node.id) in self.mixed
        if operation.prepare is not None:
            call = operation.prepare(keywords, len(node.outputs))
            if mixed:
                call = promoting(call, operation.alike)
            return made(call, several=True, settled=True, kernel=call)
        assert operation.kernel is not None
        several = operation.outputs != 1
        kernel = bound(operation.kernel, keywords)
        if mixed:
            kernel = promoting(kernel, operation.alike)
            return made(kernel, several, kernel=kernel)
        if own:
            kernel = Agreeing(operation, kernel, attributes, several=several)
        shows = None if operation.shows is None else partial(operation.shows, **keywords)
        shape = operation.infer
        return made(
            self._keeping(program, graph, node, operation, keywords, kernel) or kernel,
            several,
            symbol,
            broadcasts=len(node.inputs) > 1 and _broadcasts(operation),
            float_symbol=of_floats,
            integer_symbol=of_integers,
            kernel=kernel,
            is_identity=operation.identity and bool(symbol),
            shows=shows,
            shows_first=keywords.get("first_n", -1) if shows else -1,
            infer=None if shape is None or own else lambda inputs: shape(inputs, attributes),
        )

    @cached_property
    def _holds_sequences(self) -> bool:
        return holds_sequences(self.model, self.catalogue)

    @cached_property
    def _lacks_weights(self) -> bool:
        return any(
            node.constant is not None and not node.constant.is_kept for _, node in nodes(self.model)
        )

    def _keeping(
        self,
        program: Program,
        graph: ModelGraph,
        node: Node,
        operation: Operation,
        keywords: Mapping[str, Any],
        kernel: Callable[..., Any],
    ) -> Callable[..., Any] | None:
        """For inputs that are constants, a kernel that keeps what it makes of them, within a
        bound for all; None for others.
        """
        sources = graph.sources[node.id]
        kept = sources[operation.kept_input] if len(sources) > operation.kept_input else None
        foldable = self.optimise.fold and operation.pure and not operation.stateful
        if (
            operation.kernel is not None
            and foldable
            and sources
            and all(self._is_steady(program, source) for source in sources)
        ):
            size = _bytes([Known(port.element_type, port.shape) for port in node.outputs])
            if self._keeps(size):
                self.steady.update(
                    program.slots[node.id, index] for index in range(len(node.outputs))
                )
                return FoldedKernel(kernel, size)
        elif operation.by_constant is not None and self._is_steady(program, kept):
            made = operation.by_constant(self._constant(graph, kept), **keywords)
            if made is not None and self._keeps(made.most_bytes):
                return made
        return None

    def _types(self, graph: ModelGraph, node: Node) -> list[ElementType | None]:
        """What each input is declared to be, where it is."""
        sources = graph.sources[node.id]
        return [
            None if one is None else graph.by_id[one.layer].outputs[one.output].element_type
            for one in sources[: len(node.inputs)]
        ]

    def _is_steady(self, program: Program, source: OutputRef | None) -> bool:
        return source is not None and program.slots[source.layer, source.output] in self.steady

    def _take(self, bindings: Iterable[tuple[Slot, Slot]]) -> None:
        """Parameters that always equal a slot of the graph around, each with that slot."""
        self.steady.update(parameter for parameter, outer in bindings if outer in self.steady)

    def _constant(self, graph: ModelGraph, source: OutputRef | None) -> Known:
        """Type and shape of such a tensor."""
        assert source is not None
        node = graph.by_id[source.layer]
        if node.constant is not None:
            return Known(node.constant.element_type, PartialShape.of(node.constant.shape))
        port = node.outputs[source.output]
        return Known(port.element_type, port.shape)

    def _keeps(self, size: int) -> bool:
        """Whether so many bytes more may be kept; then they count."""
        if self.kept_bytes + size > _MOST_KEPT_BYTES:
            return False
        self.kept_bytes += size
        return True

    def _variable(self, name: str) -> Slot:
        if name not in self.variables:
            self.variables[name] = self._slot()
        return self.variables[name]

    def _state(self) -> Slot:
        self.states.append(self._slot())
        return self.states[-1]

    def _region(
        self,
        program: Program,
        node: Node,
        label: str,
        inputs: tuple[Slot, ...],
        outputs: tuple[Slot, ...],
        number: int,
    ) -> Region:
        self.tables.append(None)
        table = TableIndex(len(self.tables) - 1)
        place = f"{program.address}/{label}"
        inner = {
            body.name: self._open(f"{place}/{body.name}", body.graph, program, number)
            for body in node.bodies
        }
        if "then" in inner:
            then, otherwise = (
                branch(node.body(name), inner[name], inputs) for name in ("then", "else")
            )
            self._take((*then.bindings, *otherwise.bindings))
            return IfRegion(
                inputs[0],
                then,
                otherwise,
                outputs,
                table,
                first_decides=self.model.dialect != "onnx",
            )
        body = node.body("body")
        if node.type not in LOOP_KINDS:
            called = branch(body, inner["body"], inputs)
            self._take(called.bindings)
            return CallRegion(called, outputs, table)
        onnx_loop = node.type == LOOP and self.model.dialect == "onnx"
        region = loop(
            node,
            body,
            inner["body"],
            self._with_condition(inputs) if onnx_loop else inputs,
            outputs,
            table,
        )
        if not region.declared:
            self._take((one.parameter, one.source) for one in region.invariants)
        if not onnx_loop:
            return region
        return replace(
            region, condition=None if inputs[1] == ABSENT else inputs[1], negative_is_no_limit=False
        )

    def _with_condition(self, inputs: tuple[Slot, ...]) -> tuple[Slot, ...]:
        """The inputs of an ONNX Loop: a condition that is left out is true, also for the body,
        which may look at it.
        """
        if inputs[1] != ABSENT:
            return inputs
        if self.true is None:
            self.true = self._slot()
            self.constants.append((self.true, _TRUE))
        return (inputs[0], self.true, *inputs[2:])


def _bytes(tensors: Sequence[Known]) -> int:
    """Bytes of all together; more than may be kept where a type or a length is unknown."""
    total = 0
    for known in tensors:
        if known.element_type is None or not known.shape.is_static:
            return _MOST_KEPT_BYTES + 1
        total += math.prod(known.shape.lengths) * known.element_type.dtype.itemsize
    return total


def _takes(operation: Operation, inputs: int) -> bool:
    """Whether the operation's expression is one of so many inputs: variadic operations have it
    for two.
    """
    text = operation.symbol or operation.float_symbol
    return f"{{{inputs - 1}}}" in text and f"{{{inputs}}}" not in text


def _holds(when: Mapping[str, object], keywords: Mapping[str, object]) -> bool:
    return all(keywords.get(name) == value for name, value in when.items())


def _expressions(
    operation: Operation, attributes: Mapping[str, Any], inputs: Sequence[ElementType | None]
) -> tuple[str, str, str]:
    """The Python expressions of an operation with these attributes, for all types, floats and
    integers; empty where there is none.

    None holds for inputs of a type that the operation does not have, such as numbers that are
    negated as booleans.
    """
    types = operation.types
    foreign = types and any(
        one is not None and one not in types[min(at, len(types) - 1)]
        for at, one in enumerate(inputs)
    )
    if foreign or not (
        _holds(operation.symbol_when, attributes) and _takes(operation, len(inputs))
    ):
        return "", "", ""
    some = operation.symbol or operation.float_symbol  # integers have none where these have none
    of_integers = (
        operation.integer_symbol
        if some and _holds(operation.integer_symbol_when, attributes)
        else ""
    )
    return operation.symbol, operation.float_symbol, of_integers


def _broadcasts(operation: Operation) -> bool:
    """Whether shape inference broadcasts the inputs against each other."""
    return operation.infer in (elementwise, comparison)


def _source_slot(
    graph: ModelGraph, slots: Mapping[tuple[LayerId, int], Slot], node: Node, index: int
) -> Slot:
    sources = graph.sources[node.id]
    source = sources[index] if index < len(sources) else None
    return ABSENT if source is None else slots[source.layer, source.output]


def _initial(operation: Operation, node: Node) -> Callable[[], np.ndarray] | None:
    """What a variable without an initial value begins with: zeros of its declared type and
    shape, dynamic dimensions counted as 0.
    """
    if operation.role != Role.READ_VALUE or node.inputs or operation.infer is None:
        return None
    (own,) = operation.infer((), typed(operation, node.attributes))
    return partial(
        np.zeros, own.shape.lengths_or_zeros(), (own.element_type or ElementType.F32).dtype
    )
