"""Planner from Model to Plan: assigns a slot to every value, binds kernels to attributes, and
lowers port maps.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from loopscope.checks.check import CheckedModel, checked
from loopscope.checks.order import order
from loopscope.checks.propagate import Propagated
from loopscope.executor.plan.analyses import holds_sequences
from loopscope.executor.plan.computed_once import ConstantFolding, share
from loopscope.executor.plan.expressions import (
    NO_EXPRESSIONS,
    Expressions,
    expressions_of,
    input_types,
)
from loopscope.executor.plan.lowering import (
    LOOP_KINDS,
    bound_kernel,
    bound_shape_function,
    branch,
    broadcasts_inputs,
    initial_value,
    loop,
    print_fields,
    source_slot,
)
from loopscope.executor.plan.optimisation_flags import EVERYTHING, Optimise
from loopscope.executor.plan.plan import (
    ABSENT,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Plan,
    Program,
    Region,
    find_hidden,
)
from loopscope.executor.plan.slots import ProgramIndex, Slot, TableIndex
from loopscope.ir.address import ROOT, labels, nodes
from loopscope.ir.constant import Constant
from loopscope.ir.memory import no_garbage_collection
from loopscope.ir.model import LOOP, LayerId, Model, ModelGraph, Node
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.custom.verification import Agreeing
from loopscope.ops.declare import Operation, Role, typed
from loopscope.ops.dialect import catalogue_for
from loopscope.ops.kernel_arithmetic import promoting


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
        folding = ConstantFolding(optimise.fold)
        plan = _Planner(model, catalogue, optimise, checked_model.propagated, folding).plan()
        if optimise.cse:
            share(plan)
    return plan


_TRUE = Node(LayerId(-1), "true", "Const", constant=Constant.of(np.array(True)))


@dataclass(eq=False)
class _Planner:
    model: Model
    catalogue: Catalogue
    optimise: Optimise
    propagated: Propagated
    folding: ConstantFolding
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
            kept_bytes=self.folding.reserved_bytes,
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
            slots[node.id, 0] = source_slot(graph, slots, node, 0)
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
                self.folding.steady.add(program.slots[node.id, 0])
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
            source_slot(graph, program.slots, node, index) for index in range(len(node.inputs))
        )
        outputs = tuple(program.slots[node.id, index] for index in range(len(node.outputs)))
        build = partial(Instruction, node, label, operation.title, inputs, outputs)
        match operation.role:
            case Role.REGION:
                return build(region=self._region(program, node, label, inputs, outputs, number))
            case Role.READ_VALUE | Role.ASSIGN:
                variable = self._variable(str(node.attributes.get("variable_id", "")))
                return build(
                    initial_value(operation, node),
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
        if operation.counts_outputs:
            keywords["outputs"] = len(node.outputs)
        is_custom = self.catalogue.is_foreign(operation)
        build = partial(
            build,
            state=self._state() if operation.stateful else None,
            only_tensors=operation.only_tensors,
            checked=is_custom or self._holds_sequences or self._lacks_weights,
        )
        is_mixed = (program.address, node.id) in self.propagated.mixed
        broadcasts = len(node.inputs) > 1 and broadcasts_inputs(operation)
        if operation.prepare is not None:
            call = operation.prepare(keywords, len(node.outputs))
            if is_mixed:
                call = promoting(call, operation.name, operation.alike)
            return build(call, several=True, broadcasts=broadcasts, settled=True, kernel=call)
        several = operation.outputs != 1
        kernel = bound_kernel(operation, keywords)
        if is_mixed:
            kernel = promoting(kernel, operation.name, operation.alike)
            return build(kernel, several, kernel=kernel)
        if is_custom:
            kernel = Agreeing(operation, kernel, attributes, several=several)
        expressions = self._expressions(graph, node, operation, attributes, is_custom=is_custom)
        return build(
            self.folding.fold(program, graph, node, operation, keywords, kernel) or kernel,
            several,
            expressions.symbol,
            broadcasts=broadcasts,
            float_symbol=expressions.float_symbol,
            integer_symbol=expressions.integer_symbol,
            kernel=kernel,
            is_identity=operation.identity and bool(expressions.symbol),
            infer=None if is_custom else bound_shape_function(operation, attributes),
            **print_fields(operation, keywords),
        )

    def _expressions(
        self,
        graph: ModelGraph,
        node: Node,
        operation: Operation,
        attributes: Mapping[str, Any],
        *,
        is_custom: bool,
    ) -> Expressions:
        """Return the expressions of an operation, empty if every execution must call its kernel."""
        if is_custom or (self._holds_sequences and operation.only_tensors):
            return NO_EXPRESSIONS
        return expressions_of(operation, attributes, input_types(graph, node))

    @cached_property
    def _holds_sequences(self) -> bool:
        return holds_sequences(self.model, self.catalogue)

    @cached_property
    def _lacks_weights(self) -> bool:
        return any(
            node.constant is not None and not node.constant.is_kept for _, node in nodes(self.model)
        )

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
            return self._if(node, inner["then"], inner["else"], inputs, outputs, table)
        if node.type in LOOP_KINDS:
            return self._loop(node, inner["body"], inputs, outputs, table)
        called = branch(node.body("body"), inner["body"], inputs)
        self.folding.mark_parameters(called.bindings)
        return CallRegion(called, outputs, table)

    def _if(
        self,
        node: Node,
        then_program: Program,
        else_program: Program,
        inputs: tuple[Slot, ...],
        outputs: tuple[Slot, ...],
        table: TableIndex,
    ) -> IfRegion:
        then = branch(node.body("then"), then_program, inputs)
        otherwise = branch(node.body("else"), else_program, inputs)
        self.folding.mark_parameters((*then.bindings, *otherwise.bindings))
        return IfRegion(
            inputs[0], then, otherwise, outputs, table, first_decides=self.model.dialect != "onnx"
        )

    def _loop(
        self,
        node: Node,
        body_program: Program,
        inputs: tuple[Slot, ...],
        outputs: tuple[Slot, ...],
        table: TableIndex,
    ) -> LoopRegion:
        is_onnx_loop = node.type == LOOP and self.model.dialect == "onnx"
        region = loop(
            node,
            node.body("body"),
            body_program,
            self._with_condition(inputs) if is_onnx_loop else inputs,
            outputs,
            table,
        )
        if not region.declared:
            self.folding.mark_parameters(
                (invariant.parameter, invariant.source) for invariant in region.invariants
            )
        if not is_onnx_loop:
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
