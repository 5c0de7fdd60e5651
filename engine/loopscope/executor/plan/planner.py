"""Planner from Model to Plan: assigns a slot to every value, binds kernels to attributes, and
lowers port maps.
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
from loopscope.checks.propagate import Propagated
from loopscope.executor.plan.analyses import holds_sequences
from loopscope.executor.plan.computed_once import FoldedKernel, share
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
from loopscope.ir.address import ROOT, labels
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.memory import no_garbage_collection
from loopscope.ir.model import LOOP, LayerId, Model, ModelGraph, Node, OutputRef
from loopscope.ir.shape import PartialShape
from loopscope.ir.walk import nodes
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.custom.verification import Agreeing
from loopscope.ops.declare import Known, Operation, Role, typed
from loopscope.ops.dialect import catalogue_for
from loopscope.ops.infer import comparison, elementwise
from loopscope.ops.promotion import promoting


def plan_of(
    model: Model, catalogue: Catalogue = CATALOGUE, optimise: Optimise = EVERYTHING
) -> Plan:
    """Return the plan of a whole model, cached by model, catalogue and optimisations;
    ``InvalidModel`` if the model has errors.
    """
    plans = _PLANS.setdefault(model, weakref.WeakKeyDictionary()).setdefault(catalogue, {})
    plan = plans.get(optimise)
    if plan is None:
        dialect_catalogue = catalogue_for(model.dialect, catalogue)
        with no_garbage_collection():
            plan = plans[optimise] = plan_checked(
                checked(model, dialect_catalogue), dialect_catalogue, optimise
            )
    return plan


def plans_of(model: Model) -> list[Plan]:
    """Return the cached plans of a model."""
    return [plan for plans in list(_PLANS.get(model, {}).values()) for plan in list(plans.values())]


_PLANS: weakref.WeakKeyDictionary[
    Model, weakref.WeakKeyDictionary[Catalogue, dict[Optimise, Plan]]
] = weakref.WeakKeyDictionary()


def plan_checked(
    checked_model: CheckedModel, catalogue: Catalogue, optimise: Optimise = EVERYTHING
) -> Plan:
    """Return the plan of a checked model."""
    # Copy the outermost object: a plan with a reference to the model would never leave the weak
    # table above.
    model = replace(checked_model.model)
    with no_garbage_collection():
        plan = _Planner(model, catalogue, optimise, checked_model.propagated).plan()
        if optimise.cse:
            share(plan)
    return plan


_MAX_STORED_BYTES = 1 << 30
_TRUE = Node(LayerId(-1), "true", "Const", constant=Constant.of(np.array(True)))


@dataclass(eq=False)
class _Planner:
    model: Model
    catalogue: Catalogue
    optimise: Optimise
    propagated: Propagated
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
    """Bytes that kernels may use to store results of constants."""
    steady: set[Slot] = field(default_factory=set[Slot])
    """Slots with the same value in all runs: Consts, values computed from them, and body Parameters
    bound to them.
    """
    true: Slot | None = None
    """Slot of a condition that is always true."""
    known_operations: dict[tuple[str, str], Operation | None] = field(
        default_factory=dict[tuple[str, str], Operation | None]
    )
    """Operation of each type and opset in the model; None for an unknown operation."""

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
            propagated=self.propagated,
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
        """Return a program with slots for everything in its graph.

        Its instructions are filled in later, so that nesting does not need recursion.
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
            operation = self._operation(node.type, node.opset)
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

    def _operation(self, type: str, opset: str) -> Operation | None:
        """Return the operation of a node. Each type and opset is looked up once."""
        key = type, opset
        if key not in self.known_operations:
            self.known_operations[key] = self.catalogue.find(type, opset)
        return self.known_operations[key]

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
        build = partial(Instruction, node, label, operation.title, inputs, outputs)
        match operation.role:
            case Role.REGION:
                return build(region=self._region(program, node, label, inputs, outputs, number))
            case Role.READ_VALUE | Role.ASSIGN:
                variable = self._variable(str(node.attributes.get("variable_id", "")))
                return build(
                    _initial(operation, node),
                    variable=variable,
                    assigns=operation.role is Role.ASSIGN,
                )
        return self._computing(program, graph, node, operation, build)

    def _computing(
        self,
        program: Program,
        graph: ModelGraph,
        node: Node,
        operation: Operation,
        build: Callable[..., Instruction],
    ) -> Instruction:
        """Return an instruction that calls a kernel. ``build`` takes its fields except inputs and
        outputs.
        """
        attributes = typed(operation, node.attributes)
        keywords = dict(attributes)
        is_custom = self.catalogue.is_foreign(operation)
        checked, tensors = is_custom or self._holds_sequences, operation.only_tensors
        must_call = checked and (is_custom or tensors)
        symbol, of_floats, of_integers = (
            ("", "", "")
            if must_call
            else _expressions(operation, keywords, self._types(graph, node))
        )
        if operation.counts_outputs:
            keywords["outputs"] = len(node.outputs)
        build = partial(
            build,
            state=self._state() if operation.stateful else None,
            only_tensors=tensors,
            checked=checked or self._lacks_weights,
        )
        mixed = (program.address, node.id) in self.propagated.mixed
        broadcasts = len(node.inputs) > 1 and _broadcasts(operation)
        if operation.prepare is not None:
            call = operation.prepare(keywords, len(node.outputs))
            if mixed:
                call = promoting(call, operation.name, operation.alike)
            return build(call, several=True, broadcasts=broadcasts, settled=True, kernel=call)
        assert operation.kernel is not None
        several = operation.outputs != 1
        kernel = bound(operation.kernel, keywords)
        if mixed:
            kernel = promoting(kernel, operation.name, operation.alike)
            return build(kernel, several, kernel=kernel)
        if is_custom:
            kernel = Agreeing(operation, kernel, attributes, several=several)
        shows = None if operation.shows is None else partial(operation.shows, **keywords)
        shape = operation.infer
        return build(
            self._keeping(program, graph, node, operation, keywords, kernel) or kernel,
            several,
            symbol,
            broadcasts=broadcasts,
            float_symbol=of_floats,
            integer_symbol=of_integers,
            kernel=kernel,
            is_identity=operation.identity and bool(symbol),
            shows=shows,
            shows_first=keywords.get("first_n", -1) if shows else -1,
            infer=None if shape is None or is_custom else lambda inputs: shape(inputs, attributes),
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
        """Return a kernel that stores results of its constant inputs, within a bound for all
        kernels; None for other inputs.
        """
        sources = graph.sources[node.id]
        constant_source = (
            sources[operation.kept_input] if len(sources) > operation.kept_input else None
        )
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
        elif operation.by_constant is not None and self._is_steady(program, constant_source):
            prepared = operation.by_constant(self._constant(graph, constant_source), **keywords)
            if prepared is not None and self._keeps(prepared.most_bytes):
                return prepared
        return None

    def _types(self, graph: ModelGraph, node: Node) -> list[ElementType | None]:
        """Return the declared type of each input, or None."""
        sources = graph.sources[node.id]
        return [
            None
            if source is None
            else graph.by_id[source.layer].outputs[source.output].element_type
            for source in sources[: len(node.inputs)]
        ]

    def _is_steady(self, program: Program, source: OutputRef | None) -> bool:
        return source is not None and program.slots[source.layer, source.output] in self.steady

    def _take(self, bindings: Iterable[tuple[Slot, Slot]]) -> None:
        """Mark the Parameters that always equal a steady slot of the enclosing graph as steady."""
        self.steady.update(parameter for parameter, outer in bindings if outer in self.steady)

    def _constant(self, graph: ModelGraph, source: OutputRef | None) -> Known:
        """Return the type and shape of the steady tensor ``source``."""
        assert source is not None
        node = graph.by_id[source.layer]
        if node.constant is not None:
            return Known(node.constant.element_type, PartialShape.of(node.constant.shape))
        port = node.outputs[source.output]
        return Known(port.element_type, port.shape)

    def _keeps(self, size: int) -> bool:
        """Reserve bytes to store results. Return False if the bound does not allow them."""
        if self.kept_bytes + size > _MAX_STORED_BYTES:
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
            self._take((invariant.parameter, invariant.source) for invariant in region.invariants)
        if not onnx_loop:
            return region
        return replace(
            region, condition=None if inputs[1] == ABSENT else inputs[1], negative_is_no_limit=False
        )

    def _with_condition(self, inputs: tuple[Slot, ...]) -> tuple[Slot, ...]:
        """Return the inputs of an ONNX Loop, with a true condition if it is left out, because the
        body may read it.
        """
        if inputs[1] != ABSENT:
            return inputs
        if self.true is None:
            self.true = self._slot()
            self.constants.append((self.true, _TRUE))
        return (inputs[0], self.true, *inputs[2:])


def _bytes(tensors: Sequence[Known]) -> int:
    """Return the bytes of all tensors together; more than the bound if a type or length is
    unknown.
    """
    total = 0
    for known in tensors:
        if known.element_type is None or not known.shape.is_static:
            return _MAX_STORED_BYTES + 1
        total += math.prod(known.shape.lengths) * known.element_type.dtype.itemsize
    return total


def _fits_input_count(operation: Operation, inputs: int) -> bool:
    """Return True if the operation's expression has this number of inputs. Variadic operations have
    one for two inputs.
    """
    text = operation.symbol or operation.float_symbol
    return f"{{{inputs - 1}}}" in text and f"{{{inputs}}}" not in text


def _is_satisfied(when: Mapping[str, object], keywords: Mapping[str, object]) -> bool:
    return all(keywords.get(name) == value for name, value in when.items())


def _expressions(
    operation: Operation, attributes: Mapping[str, Any], inputs: Sequence[ElementType | None]
) -> tuple[str, str, str]:
    """Return the Python expressions of an operation for all types, floats and integers; empty if
    none exists.

    An expression requires input types that the operation accepts; for example, booleans cannot be
    negated.
    """
    if not (operation.symbol or operation.float_symbol):
        return "", "", ""
    types = operation.types
    is_unsupported = types and any(
        element_type is not None and element_type not in types[min(index, len(types) - 1)]
        for index, element_type in enumerate(inputs)
    )
    if is_unsupported or not (
        _is_satisfied(operation.symbol_when, attributes)
        and _fits_input_count(operation, len(inputs))
    ):
        return "", "", ""
    of_integers = (
        operation.integer_symbol if _is_satisfied(operation.integer_symbol_when, attributes) else ""
    )
    return operation.symbol, operation.float_symbol, of_integers


def _broadcasts(operation: Operation) -> bool:
    """Return True if the operation broadcasts its inputs against each other."""
    return operation.broadcasts or operation.infer in (elementwise, comparison)


def _source_slot(
    graph: ModelGraph, slots: Mapping[tuple[LayerId, int], Slot], node: Node, index: int
) -> Slot:
    sources = graph.sources[node.id]
    source = sources[index] if index < len(sources) else None
    return ABSENT if source is None else slots[source.layer, source.output]


def _initial(operation: Operation, node: Node) -> Callable[[], np.ndarray] | None:
    """Return the initial value of a variable without one: zeros of its declared type and shape,
    with length 0 for dynamic dimensions.
    """
    if operation.role != Role.READ_VALUE or node.inputs or operation.infer is None:
        return None
    (declared,) = operation.infer((), typed(operation, node.attributes))
    return partial(
        np.zeros,
        declared.shape.lengths_or_zeros(),
        (declared.element_type or ElementType.F32).dtype,
    )
