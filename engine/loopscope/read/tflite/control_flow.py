"""WHILE and IF of a TensorFlow Lite file as Loop and If. Variables that their subgraphs access are
inputs and outputs of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.model import IF, LOOP, BackEdge, Body, BodyName, InputMap, OutputMap
from loopscope.ir.shape import DYNAMIC
from loopscope.read.tflite.drafts import Budget, Declared, Draft, DraftValue
from loopscope.read.tflite.operator_nodes import declared
from loopscope.read.tflite.schema import OperatorInfo, SchemaFile, Subgraph, TensorInfo
from loopscope.read.tflite.variables import (
    Content,
    Handle,
    VariableFrame,
    Variables,
    require_tensor,
    tensor_outputs,
    tensors_of,
    variable_name,
)

MAX_DEPTH = 100
"""Largest nesting depth of subgraphs."""
SUBGRAPH_FIELDS = {"WHILE": (0, 1), "IF": (0, 1), "CALL": (0,), "CALL_ONCE": (0,)}
"""Option fields of operators that name subgraphs."""
_REGION_NAME = re.compile(r"(^|/)(while|cond|if|case)[^/]*$", re.IGNORECASE)

Inline = Callable[[VariableFrame, int, Sequence[Content], tuple[int, ...]], list[Content]]
"""Function that writes a subgraph's operators into a graph, and returns the subgraph's outputs."""


class RegionReader:
    """Reader of the operators WHILE and IF of one file."""

    def __init__(self, file: SchemaFile, budget: Budget, inline: Inline) -> None:
        self._file, self._budget, self._inline = file, budget, inline
        self._variables_by_call: dict[tuple[int, tuple[str | None, ...]], Variables] = {}

    def add_while(
        self,
        frame: VariableFrame,
        info: OperatorInfo,
        inputs: list[Content],
        outputs: list[TensorInfo],
        active: tuple[int, ...],
    ) -> Sequence[Content]:
        """Add a Loop whose condition is computed once before it, and in its body for the next
        iteration.
        """
        condition, body = info.subgraph(0), info.subgraph(1)
        name = _region_name(info, outputs)
        variables = {**self._variables(condition, inputs), **self._variables(body, inputs)}
        outer = [
            *tensors_of(inputs),
            *(frame.read(variable, tensor) for variable, tensor in variables.items()),
        ]
        before = self._condition(frame, condition, inputs, active)
        loop_body, assigned = self._loop_body((condition, body), name, inputs, variables, active)
        trips = frame.draft.constant(f"{name}/trip_count", np.int64(-1))
        after = [*tensor_outputs(inputs, outputs, info), *variables.values()]
        loop_outputs = frame.draft.add(
            LOOP,
            "opset5",
            name,
            (trips, before, *outer),
            [declared(tensor) for tensor in after],
            bodies=(loop_body,),
        )
        return self._leave(frame, inputs, loop_outputs, variables, assigned)

    def _loop_body(
        self,
        subgraphs: tuple[int, int],
        name: str,
        inputs: list[Content],
        variables: Variables,
        active: tuple[int, ...],
    ) -> tuple[Body, Iterable[str]]:
        """Return the body, which ends with the condition of the next iteration, and the variables
        that it assigns.
        """
        condition, body = subgraphs
        inner = VariableFrame(Draft(self._budget))
        arguments, parameters = self._enter(inner, self._file.subgraph(body), inputs, variables)
        results = self._inline(inner, body, arguments, active)
        next_condition = inner.draft.result(
            "condition", self._condition(inner, condition, results, active)
        )
        next_values = [
            content
            for content, start in zip(results, inputs, strict=False)
            if isinstance(start, DraftValue)
        ]
        if len(results) != len(inputs) or len(tensors_of(next_values)) != len(next_values):
            raise ValueError(
                f"the body of WHILE {shorten(name, 60)!r} returns {len(results)} values,"
                f" expected those {len(inputs)} that it carries"
            )
        values = [*tensors_of(next_values), *(inner.values[variable] for variable in variables)]
        layers = [
            inner.draft.result(f"result_{index}", value) for index, value in enumerate(values)
        ]
        first = 2 + len(parameters)
        return Body(
            "body",
            inner.draft.graph(self._file.subgraph(body).name),
            tuple(
                InputMap(2 + index, parameter.layer) for index, parameter in enumerate(parameters)
            ),
            (
                *(OutputMap(first + index, layer) for index, layer in enumerate(layers)),
                OutputMap(-1, next_condition, purpose="execution_condition"),
            ),
            tuple(
                BackEdge(layer, parameter.layer)
                for layer, parameter in zip(layers, parameters, strict=True)
            ),
        ), inner.assigned

    def add_if(
        self,
        frame: VariableFrame,
        info: OperatorInfo,
        inputs: list[Content],
        outputs: list[TensorInfo],
        active: tuple[int, ...],
    ) -> Sequence[Content]:
        if not inputs:
            raise ValueError("IF has no condition")
        name, branch_inputs = _region_name(info, outputs), inputs[1:]
        branches = (info.subgraph(0), info.subgraph(1))
        variables: dict[str, TensorInfo] = {}
        for branch in branches:
            variables |= self._variables(branch, branch_inputs)
        outer = [
            *tensors_of(branch_inputs),
            *(frame.read(variable, tensor) for variable, tensor in variables.items()),
        ]
        names: tuple[BodyName, BodyName] = ("then", "else")
        bodies: list[Body] = []
        assigned: dict[str, None] = {}
        for body_name, branch in zip(names, branches, strict=True):
            body, assigned_in_branch = self._branch_body(
                body_name, branch, name, branch_inputs, variables, active
            )
            if len(body.outputs) != len(outputs) + len(variables):
                raise ValueError(
                    f"a branch of IF {shorten(name, 60)!r} returns"
                    f" {len(body.outputs) - len(variables)} values, expected {len(outputs)}"
                )
            bodies.append(body)
            assigned |= assigned_in_branch
        condition = require_tensor(inputs[0], name)
        after = [declared(tensor) for tensor in (*outputs, *variables.values())]
        if_outputs = frame.draft.add(
            IF, "opset8", name, (condition, *outer), after, bodies=tuple(bodies)
        )
        for variable, value in zip(variables, if_outputs[len(outputs) :], strict=True):
            if variable in assigned:
                frame.assign(variable, value)
        return if_outputs[: len(outputs)]

    def _branch_body(
        self,
        body_name: BodyName,
        branch: int,
        name: str,
        inputs: Sequence[Content],
        variables: Variables,
        active: tuple[int, ...],
    ) -> tuple[Body, dict[str, None]]:
        """Return a branch, which returns its outputs and then all variables, and the variables
        that it assigns.
        """
        inner = VariableFrame(Draft(self._budget))
        subgraph = self._file.subgraph(branch)
        arguments, parameters = self._enter(inner, subgraph, inputs, variables)
        values = [
            *(
                require_tensor(result, name)
                for result in self._inline(inner, branch, arguments, active)
            ),
            *(inner.values[variable] for variable in variables),
        ]
        layers = [
            inner.draft.result(f"result_{index}", value) for index, value in enumerate(values)
        ]
        first = 1 + len(parameters)
        return Body(
            body_name,
            inner.draft.graph(subgraph.name),
            tuple(
                InputMap(1 + index, parameter.layer) for index, parameter in enumerate(parameters)
            ),
            tuple(OutputMap(first + index, layer) for index, layer in enumerate(layers)),
        ), inner.assigned

    def _enter(
        self,
        inner: VariableFrame,
        subgraph: Subgraph,
        inputs: Iterable[Content],
        variables: Variables,
    ) -> tuple[list[Content], list[DraftValue]]:
        """Return the arguments of a body's subgraph, and the Parameters among them, variables
        last.
        """
        arguments: list[Content] = []
        parameters: list[DraftValue] = []
        for index, content in enumerate(inputs):
            if isinstance(content, Handle):
                arguments.append(content)
                continue
            tensor = (
                subgraph.tensor(subgraph.inputs[index]) if index < len(subgraph.inputs) else None
            )
            name = tensor.name if tensor is not None else f"argument_{index}"
            kind = tensor.element_type if tensor is not None else content.element_type
            parameters.append(inner.draft.parameter(name, Declared(kind, DYNAMIC, (name,))))
            arguments.append(parameters[-1])
        for variable, tensor in variables.items():
            parameters.append(inner.draft.parameter(variable, Declared(tensor.element_type)))
            inner.values[variable] = parameters[-1]
        return arguments, parameters

    def _leave(
        self,
        frame: VariableFrame,
        inputs: Sequence[Content],
        loop_outputs: Sequence[DraftValue],
        variables: Variables,
        assigned: Iterable[str],
    ) -> Sequence[Content]:
        """Return the outputs of a loop: a handle for each carried handle, else the loop's value."""
        values = iter(loop_outputs)
        contents = [content if isinstance(content, Handle) else next(values) for content in inputs]
        after = dict(zip(variables, values, strict=True))
        for variable in assigned:
            frame.assign(variable, after[variable])
        return contents

    def _condition(
        self, frame: VariableFrame, index: int, inputs: Sequence[Content], active: tuple[int, ...]
    ) -> DraftValue:
        results = self._inline(frame, index, inputs, active)
        if len(results) != 1:
            raise ValueError(f"the condition of WHILE returns {len(results)} values, expected 1")
        return require_tensor(results[0], "the condition of WHILE")

    def _variables(self, index: int, inputs: Sequence[Content]) -> Variables:
        """Return the variables that a subgraph or its callees access, with a tensor of each one's
        type.
        """
        return self._variables_of(
            index,
            tuple(content.variable if isinstance(content, Handle) else None for content in inputs),
            (),
        )

    def _variables_of(
        self, index: int, handles: tuple[str | None, ...], active: tuple[int, ...]
    ) -> Variables:
        known = self._variables_by_call.get((index, handles))
        if known is not None:
            return known
        if index in active or len(active) > MAX_DEPTH:
            return {}  # reported when the subgraph is inlined
        subgraph = self._file.subgraph(index)
        names = {
            number: handle
            for number, handle in zip(subgraph.inputs, handles, strict=False)
            if handle is not None
        }
        variables: dict[str, TensorInfo] = {}
        for info in subgraph.operators:
            match info.name:
                case "VAR_HANDLE":
                    names |= dict.fromkeys(info.outputs, variable_name(info))
                case "READ_VARIABLE" | "ASSIGN_VARIABLE":
                    numbers = info.outputs if info.name == "READ_VARIABLE" else info.inputs[1:]
                    if info.inputs and info.inputs[0] in names and numbers:
                        variables.setdefault(names[info.inputs[0]], subgraph.tensor(numbers[0]))
                case "WHILE" | "IF" | "CALL":
                    call_inputs = info.inputs[1:] if info.name == "IF" else info.inputs
                    call_handles = tuple(names.get(number) for number in call_inputs)
                    for option in SUBGRAPH_FIELDS[info.name]:
                        variables |= self._variables_of(
                            info.subgraph(option), call_handles, (*active, index)
                        )
                    if info.name == "WHILE":
                        names |= {
                            after: name
                            for after, name in zip(info.outputs, call_handles, strict=False)
                            if name is not None
                        }
        self._variables_by_call[index, handles] = variables
        return variables


def _region_name(info: OperatorInfo, outputs: Sequence[TensorInfo]) -> str:
    """Return the scope of a loop or branch, which one of its outputs often names: ``while``,
    ``body/cond``.
    """
    scopes = (tensor.name for tensor in outputs if _REGION_NAME.search(tensor.name))
    return next(scopes, outputs[0].name if outputs else info.name)
