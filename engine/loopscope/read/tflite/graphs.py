"""Subgraphs of a TensorFlow Lite file as graphs: calls are inlined, WHILE and IF have bodies.

Variables become ReadValue and Assign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from loopscope.errors import shorten
from loopscope.ir.model import ModelGraph
from loopscope.read.file_limits import ReadLimits
from loopscope.read.tflite.control_flow import MAX_DEPTH, SUBGRAPH_FIELDS, RegionReader
from loopscope.read.tflite.drafts import Budget, Declared, Draft, DraftValue
from loopscope.read.tflite.operator_nodes import Operator, declared
from loopscope.read.tflite.operator_rules import RULES
from loopscope.read.tflite.remainder import Fragment
from loopscope.read.tflite.schema import OperatorInfo, SchemaFile, Subgraph, TensorInfo
from loopscope.read.tflite.variables import (
    Content,
    Handle,
    VariableFrame,
    require_handle,
    require_tensor,
    variable_name,
)

TFLITE = "tflite"
"""Opset of operators without a translation."""
STATEFUL = frozenset({"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})
CONTROL_FLOW = frozenset(SUBGRAPH_FIELDS) | STATEFUL


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
        self._regions = RegionReader(file, self._budget, self._inline)
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
        if len(active) > MAX_DEPTH:
            raise ValueError(f"subgraphs are nested deeper than {MAX_DEPTH}")
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
                return self._regions.add_while(
                    frame, info, _require_all(info, inputs), outputs, active
                )
            case "IF":
                return self._regions.add_if(
                    frame, info, _require_all(info, inputs), outputs, active
                )
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
        return self._translate(frame, position, inputs)

    def _translate(
        self, frame: VariableFrame, position: tuple[int, int], inputs: list[Content | None]
    ) -> Sequence[DraftValue]:
        """Add the nodes of an operator on tensors: by its rule, by a conversion of the fragment
        around it, or as a node of its own name.
        """
        index, place = position
        subgraph = self._file.subgraph(index)
        info = subgraph.operators[place]
        outputs = [subgraph.tensor(number) for number in info.outputs]
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


def _require_all(info: OperatorInfo, inputs: list[Content | None]) -> list[Content]:
    contents = [content for content in inputs if content is not None]
    if len(contents) < len(inputs):
        raise ValueError(f"{info.name} has an input that is left out, expected all of them")
    return contents


def _no_output(info: OperatorInfo) -> TensorInfo:
    raise ValueError(f"{info.name} has no output")
