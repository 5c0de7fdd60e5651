"""Subgraphs of a TensorFlow Lite file as graphs: calls are inlined, WHILE and IF have bodies.

Variables become ReadValue and Assign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.model import IF, LOOP, BackEdge, Body, InputMap, ModelGraph, OutputMap
from loopscope.ir.shape import DYNAMIC
from loopscope.read.file_limits import ReadLimits
from loopscope.read.tflite.drafts import Budget, Declared, Draft, DraftValue
from loopscope.read.tflite.operator_nodes import Operator, declared
from loopscope.read.tflite.operator_rules import RULES
from loopscope.read.tflite.remainder import Fragment
from loopscope.read.tflite.schema import OperatorInfo, SchemaFile, Subgraph, TensorInfo
from loopscope.read.tflite.variables import (
    Content,
    Handle,
    VariableFrame,
    Variables,
    require_handle,
    require_tensor,
    tensor_outputs,
    tensors_of,
    variable_name,
)

TFLITE = "tflite"
"""Opset of operators without a translation."""
_MAX_DEPTH = 100
"""Largest nesting depth of subgraphs."""
_REGION_NAME = re.compile(r"(^|/)(while|cond|if|case)[^/]*$", re.IGNORECASE)
_SUBGRAPH_FIELDS = {"WHILE": (0, 1), "IF": (0, 1), "CALL": (0,), "CALL_ONCE": (0,)}
"""Option fields of operators that name subgraphs."""
STATEFUL = frozenset({"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})
CONTROL_FLOW = frozenset(_SUBGRAPH_FIELDS) | STATEFUL


class GraphReader:
    """Reader that turns the subgraphs of one file into graphs."""

    def __init__(
        self,
        file: SchemaFile,
        limits: ReadLimits,
        fragments: Mapping[int, Fragment] = MappingProxyType({}),
    ) -> None:
        self._file = file
        self._fragments = fragments
        self._budget = Budget(limits)
        self._variables_by_call: dict[tuple[int, tuple[str | None, ...]], Variables] = {}
        self.untranslated: dict[int, dict[int, str]] = {}
        """Names of operators without a translation, by subgraph and index."""

    def outermost(self) -> ModelGraph:
        """Return the graph of the first subgraph."""
        subgraph = self._file.subgraph(0)
        inputs, outputs = self._file.signature_names()
        frame = VariableFrame(Draft(self._budget), is_outermost=True)
        arguments: list[Content] = []
        for index in subgraph.inputs:
            tensor = subgraph.tensor(index)
            names = tuple(dict.fromkeys(filter(None, (tensor.name, inputs.get(index)))))
            arguments.append(
                frame.draft.parameter(
                    tensor.name.removesuffix(":0"),
                    Declared(tensor.element_type, tensor.shape, names),
                )
            )
        values = self._inline(frame, 0, arguments, ())
        for variable in frame.assigned:
            value = frame.values[variable]
            frame.draft.add(
                "Assign",
                "opset6",
                f"{variable}/Assign",
                (value,),
                (Declared(),),
                {"variable_id": variable},
            )
        for index, content in zip(subgraph.outputs, values, strict=True):
            frame.draft.result(
                outputs.get(index) or f"{subgraph.tensor(index).name.removesuffix(':0')}:0",
                require_tensor(content, subgraph.name),
            )
        return frame.draft.graph()

    def _inline(
        self,
        frame: VariableFrame,
        index: int,
        arguments: Sequence[Content],
        active: tuple[int, ...],
    ) -> list[Content]:
        """Write a subgraph's operators into a graph, and return its outputs."""
        subgraph = self._file.subgraph(index)
        if index in active:
            raise ValueError(
                f"subgraph {index} ({shorten(subgraph.name, 60)!r}) calls itself, expected"
                " subgraphs without recursion"
            )
        if len(active) > _MAX_DEPTH:
            raise ValueError(f"subgraphs are nested deeper than {_MAX_DEPTH}")
        if len(arguments) != len(subgraph.inputs):
            input_count = len(subgraph.inputs)
            raise ValueError(
                f"subgraph {index} ({shorten(subgraph.name, 60)!r}) has {input_count} inputs, but"
                f" is called with {len(arguments)}"
            )
        contents: dict[int, Content] = dict(zip(subgraph.inputs, arguments, strict=True))
        for place, info in enumerate(subgraph.operators):
            inputs = [
                None if number < 0 else self._content(frame, subgraph, contents, number)
                for number in info.inputs
            ]
            results = self._operator(frame, (index, place), inputs, (*active, index))
            if len(results) != len(info.outputs):
                raise ValueError(
                    f"{info.name} in subgraph {index} has {len(info.outputs)} outputs,"
                    f" expected {len(results)}"
                )
            contents.update(zip(info.outputs, results, strict=True))
        return [self._content(frame, subgraph, contents, number) for number in subgraph.outputs]

    def _content(
        self, frame: VariableFrame, subgraph: Subgraph, contents: dict[int, Content], number: int
    ) -> Content:
        content = contents.get(number)
        if content is None:
            tensor = subgraph.tensor(number)
            constant = self._file.constant(tensor)
            if constant is None:
                raise ValueError(
                    f"tensor {shorten(tensor.name, 60)!r} of subgraph"
                    f" {shorten(subgraph.name, 60)!r} is read, but no operator before computes it"
                )
            content = contents[number] = frame.draft.constant(tensor.name, constant, (tensor.name,))
        return content

    def _operator(
        self,
        frame: VariableFrame,
        position: tuple[int, int],
        inputs: list[Content | None],
        active: tuple[int, ...],
    ) -> Sequence[Content]:
        index, place = position
        subgraph = self._file.subgraph(index)
        info = subgraph.operators[place]
        outputs = [subgraph.tensor(number) for number in info.outputs]
        match info.name:
            case "WHILE":
                return self._while(frame, info, _require_all(info, inputs), outputs, active)
            case "IF":
                return self._if(frame, info, _require_all(info, inputs), outputs, active)
            case "CALL":
                return self._inline(frame, info.subgraph(0), _require_all(info, inputs), active)
            case "CALL_ONCE":
                return self._call_once(frame, info, active)
            case "VAR_HANDLE":
                return (Handle(variable_name(info)),)
            case "READ_VARIABLE":
                return (
                    frame.read(
                        require_handle(info, inputs), outputs[0] if outputs else _no_output(info)
                    ),
                )
            case "ASSIGN_VARIABLE":
                frame.assign(
                    require_handle(info, inputs),
                    require_tensor(inputs[1] if len(inputs) > 1 else None, info.name),
                )
                return ()
        values = [
            None if content is None else require_tensor(content, info.name) for content in inputs
        ]
        rule = RULES.get(info.name)
        if rule is not None and outputs:
            tensors = [subgraph.tensor(number) if number >= 0 else None for number in info.inputs]
            return rule(Operator(frame.draft, info, values, (tensors, outputs)))
        fragment = self._fragments.get(index)
        if fragment is not None:
            contents = {
                number: value
                for number, value in zip(info.inputs, values, strict=True)
                if value is not None
            }
            fragment_outputs = fragment.write(frame.draft, info, contents, outputs)
            if fragment_outputs is not None:
                return fragment_outputs
        self.untranslated.setdefault(index, {})[place] = info.name
        name = outputs[0].name if outputs else info.name
        return frame.draft.add(
            info.name, TFLITE, name, values, [declared(tensor) for tensor in outputs]
        )

    def _while(
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
        first = 2 + len(outer)
        loop_body = Body(
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
        )
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
        return self._leave(frame, inputs, loop_outputs, variables, inner.assigned)

    def _if(
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
        bodies: list[Body] = []
        assigned: dict[str, None] = {}
        for branch_name, branch in zip(("then", "else"), branches, strict=True):
            inner = VariableFrame(Draft(self._budget))
            arguments, parameters = self._enter(
                inner, self._file.subgraph(branch), branch_inputs, variables
            )
            results = self._inline(inner, branch, arguments, active)
            if len(results) != len(outputs):
                raise ValueError(
                    f"a branch of IF {shorten(name, 60)!r} returns {len(results)} values,"
                    f" expected {len(outputs)}"
                )
            values = [
                *(require_tensor(result, name) for result in results),
                *(inner.values[variable] for variable in variables),
            ]
            layers = [
                inner.draft.result(f"result_{index}", value) for index, value in enumerate(values)
            ]
            assigned |= inner.assigned
            bodies.append(
                Body(
                    "then" if branch_name == "then" else "else",
                    inner.draft.graph(self._file.subgraph(branch).name),
                    tuple(
                        InputMap(1 + index, parameter.layer)
                        for index, parameter in enumerate(parameters)
                    ),
                    tuple(
                        OutputMap(1 + len(outer) + index, layer)
                        for index, layer in enumerate(layers)
                    ),
                )
            )
        condition = require_tensor(inputs[0], name)
        after = [declared(tensor) for tensor in (*outputs, *variables.values())]
        if_outputs = frame.draft.add(
            IF, "opset8", name, (condition, *outer), after, bodies=tuple(bodies)
        )
        for variable, value in zip(variables, if_outputs[len(outputs) :], strict=True):
            if variable in assigned:
                frame.assign(variable, value)
        return if_outputs[: len(outputs)]

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

    def _call_once(
        self, frame: VariableFrame, info: OperatorInfo, active: tuple[int, ...]
    ) -> Sequence[Content]:
        """Compute the initial values of variables."""
        if not frame.is_outermost:
            raise ValueError("CALL_ONCE is in a subgraph, expected it in the first one")
        starting = VariableFrame(frame.draft, is_outermost=True)
        self._inline(starting, info.subgraph(0), (), active)
        frame.initial |= {variable: starting.values[variable] for variable in starting.assigned}
        return ()

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
        if index in active or len(active) > _MAX_DEPTH:
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
                    for option in _SUBGRAPH_FIELDS[info.name]:
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


def _require_all(info: OperatorInfo, inputs: list[Content | None]) -> list[Content]:
    contents = [content for content in inputs if content is not None]
    if len(contents) < len(inputs):
        raise ValueError(f"{info.name} has an input that is left out, expected all of them")
    return contents


def _no_output(info: OperatorInfo) -> TensorInfo:
    raise ValueError(f"{info.name} has no output")
