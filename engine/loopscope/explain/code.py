"""A model as code: a graph with all loops and branches as readable Python, with the node of each
line.

``runnable_code`` returns a file that computes the same numbers. Only identifiers of letters,
digits and ``_``, numbers and quoted text from the model enter the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from loopscope.errors import AddressError, EngineError
from loopscope.executor.plan.plan import (
    Branch,
    CallRegion,
    IfRegion,
    Instruction,
    LoopRegion,
    Plan,
    Program,
)
from loopscope.executor.plan.slots import Slot
from loopscope.explain.code_parts import (
    CodeLine,
    Listing,
    Operands,
    array_text,
    attribute_text,
    fits_in_code,
    stored,
)
from loopscope.explain.loop_code import LoopCode
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import SEQUENCE_MAP
from loopscope.ops.declare import REQUIRED, typed

_MAX_DEPTH = 12
"""Maximum nesting depth of written bodies: CPython allows 20 nested loops, and deeper code is
unreadable.
"""
_HEADER = ("import numpy as np", "from numpy import inf, nan", "")
_RUNTIME_IMPORT = (
    "from loopscope.explain.running import "
    "ElementType, converted, iterations, join, {kernel}, part, parts"
)


_Lines: TypeAlias = "CodeLine | Iterator[_Lines]"


def listing(plan: Plan, static: str = "main") -> Listing:
    """Return the code of the graph at a static address as a function of its Parameters.

    The function of a body is one iteration. Raise ``AddressError`` if the graph does not exist.
    """
    return _Writer(plan).listing(static)


def runnable_code(plan: Plan, static: str = "main", inputs: Sequence[np.ndarray] = ()) -> Listing:
    """Return the code as a complete Python file.

    The file reads ``WEIGHTS`` from ``weights.npz``, to which the caller writes ``weights`` of the
    result. With ``inputs``, the file calls its function with them and prints the results. Raise
    ``EngineError`` if bodies are nested too deeply for one function.
    """
    writer = _Writer(plan)
    body = writer.listing(static)
    if not body.complete:
        raise EngineError(
            f"bodies of {static} are nested more than {_MAX_DEPTH} deep: write them one by one"
        )
    named_inputs = {f"input_{number}": value for number, value in enumerate(inputs)}
    weights = {
        **body.weights,
        **{name: stored(value) for name, value in named_inputs.items() if not fits_in_code(value)},
    }
    name = next(line.text for line in body.lines if line.text.startswith("def "))[4:].partition(
        "("
    )[0]
    call = f"    for output in {name}({', '.join(map(array_text, named_inputs, inputs))}):"
    foot = ["", "", 'if __name__ == "__main__":', call, "        print(output)"] if inputs else []
    head = [
        *_HEADER,
        _RUNTIME_IMPORT.format(kernel="onnx_kernel" if writer.is_onnx else "kernel"),
        "",
    ]
    if weights or plan.lacks_weights:
        head.append('WEIGHTS = dict(np.load("weights.npz"))')
    head += [
        "VARIABLES = {}",
        *(f"{name} = {expression}" for expression, name in writer.kernels.items()),
        "",
        "",
    ]
    return Listing((*map(CodeLine, head), *body.lines, *map(CodeLine, foot)), weights, True)


class _Writer:
    """Writer of the code of one graph.

    Its methods yield lines, and generators of the lines of nested graphs. An explicit stack of
    generators supports bodies deeper than Python's recursion limit.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.operands = Operands(plan)
        self.kernels: dict[str, str] = {}
        """Identifier of each kernel, by the expression that creates it."""
        self.is_onnx = plan.model.dialect == "onnx"
        self.complete = True

    def listing(self, static: str) -> Listing:
        program = self.plan.program_by_address.get(static)
        if program is None:
            raise AddressError(f"there is no graph at {static}")
        lines: list[CodeLine] = []
        stack: list[Iterator[_Lines]] = [self._function(program)]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, CodeLine):
                lines.append(item)
            else:
                stack.append(item)
        separator = (CodeLine(""), CodeLine("")) if self.operands.constants else ()
        return Listing(
            (*self.operands.constants, *separator, *lines), self.operands.weights, self.complete
        )

    def _function(self, program: Program) -> Iterator[_Lines]:
        self.operands.add_graph(program)
        name = self.operands.identifiers.unique("_".join(program.address.split("/")[-2:]))
        parameters = [self.operands.new(slot) for slot in program.parameters.values()]
        yield CodeLine(f"def {name}({', '.join(parameters)}):")
        for slot in self.plan.states:
            if slot in program.hidden:
                self.operands.names[slot] = self.operands.identifiers.unique("state")
                yield CodeLine(
                    f"    {self.operands.names[slot]} = {self.plan.fresh_values(0)[slot]}"
                )
        yield self._graph(program, 1)
        results = [self.operands.read(slot) for slot in program.results.values()]
        if program.parent is None:
            results = [
                self.operands.read(program.results[signature.layer])
                for signature in self.plan.model.outputs
            ]
        yield CodeLine(f"    return ({', '.join(results)}{',' if len(results) == 1 else ''})")

    def _graph(self, program: Program, depth: int) -> Iterator[_Lines]:
        self.operands.add_graph(program)
        for instruction in program.instructions:
            address = f"{program.address}/{instruction.label}"
            match instruction.region:
                case None:
                    yield CodeLine("    " * depth + self._operation(instruction), address)
                case _ if depth > _MAX_DEPTH:
                    self.complete = False
                    yield CodeLine("    " * depth + "...  # too deep to be shown here", address)
                case LoopRegion() as region:
                    yield self._loop(region, address, depth)
                case IfRegion() as region:
                    yield CodeLine(
                        f"{'    ' * depth}if {self.operands.read(region.condition)}:", address
                    )
                    yield self._branch(region.then, region.outputs, address, depth + 1)
                    yield CodeLine(f"{'    ' * depth}else:", address)
                    yield self._branch(region.otherwise, region.outputs, address, depth + 1)
                case CallRegion() as region:
                    yield self._branch(region.branch, region.outputs, address, depth)

    def _operation(self, instruction: Instruction) -> str:
        targets = [self.operands.new(slot) for slot in instruction.outputs]
        if instruction.variable is not None:
            return self._variable(instruction, targets)
        floats = {self.operands.types.get(slot) for slot in instruction.inputs} in (
            {ElementType.F32},
            {ElementType.F64},
        )
        symbol = instruction.symbol or (instruction.float_symbol if floats else "")
        if symbol:
            return f"{targets[0]} = {symbol.format(*self.operands.operand_texts(instruction))}"
        arguments = [self.operands.read(slot) for slot in instruction.inputs]
        keywords = (
            self._onnx_keywords(instruction) if self.is_onnx else _kernel_keywords(instruction)
        )
        arguments += [
            f"{name}={self.operands.attribute(value)}" for name, value in keywords.items()
        ]
        results = ", ".join(targets) + ("," if instruction.several and len(targets) == 1 else "")
        if instruction.state is not None:
            state = self.operands.names[instruction.state]
            arguments.append(f"state={state}")
            results = f"({results}), {state}" if instruction.several else f"{results}, {state}"
        name = self._kernel(instruction)
        return (
            f"{results} = {name}({', '.join(arguments)})"
            if targets
            else f"{name}({', '.join(arguments)})"
        )

    def _kernel(self, instruction: Instruction) -> str:
        """Return the identifier of the instruction's kernel."""
        node, title = instruction.node, instruction.title
        expression = (
            f"onnx_kernel({node.type!r}, {node.opset!r})" if self.is_onnx else f"kernel({title!r})"
        )
        if expression not in self.kernels:
            self.kernels[expression] = self.operands.identifiers.unique(title)
        return self.kernels[expression]

    def _onnx_keywords(self, instruction: Instruction) -> dict[str, Any]:
        """Return the attributes of a node that differ from the defaults, and the output count if
        the kernel requires it.
        """
        node = instruction.node
        operation = self.plan.catalogue.find(node.type, node.opset)
        if operation is None:
            return {}
        attributes = typed(operation, node.attributes)
        defaults = {
            attribute.keyword: attribute_text(attribute.default)
            for attribute in operation.attributes
            if attribute.default is not REQUIRED
        }
        keywords = {
            name: value
            for name, value in attributes.items()
            if defaults.get(name) != attribute_text(value)
        }
        return (
            {**keywords, "outputs": len(instruction.outputs)} if instruction.several else keywords
        )

    def _variable(self, instruction: Instruction, targets: list[str]) -> str:
        name = repr(str(instruction.node.attributes.get("variable_id", "")))
        if instruction.assigns:
            return " = ".join(
                [*targets, f"VARIABLES[{name}]", self.operands.read(instruction.inputs[0])]
            )
        if not instruction.inputs:
            return f"{targets[0]} = VARIABLES[{name}]"
        return f"{targets[0]} = VARIABLES.get({name}, {self.operands.read(instruction.inputs[0])})"

    def _branch(
        self, branch: Branch, outputs: tuple[Slot, ...], address: str, depth: int
    ) -> Iterator[_Lines]:
        self.operands.add_graph(branch.program)
        pad = "    " * depth
        for parameter, source in branch.bindings:
            self.operands.names[parameter] = self.operands.read(source)
        for unfed in branch.unfed:
            zero = self.operands.zero(branch.program, unfed.layer)
            yield CodeLine(f"{pad}{self.operands.new(unfed.parameter)} = {zero}", address)
        yield self._graph(branch.program, depth)
        for slot, result in zip(outputs, branch.results, strict=False):
            yield CodeLine(
                f"{pad}{self.operands.new(slot)} = {self.operands.read(result)}", address
            )
        if not outputs and not branch.program.instructions:
            yield CodeLine(f"{pad}pass", address)

    def _loop(self, region: LoopRegion, address: str, depth: int) -> Iterator[_Lines]:
        if region.kind == SEQUENCE_MAP:
            raise EngineError(f"{address}: a SequenceMap is not written as code")
        self.operands.add_graph(region.program)
        code = LoopCode(self.operands, region, address, depth)
        yield from code.opening()
        yield self._graph(region.program, depth + 1)
        yield from code.closing()


def _kernel_keywords(instruction: Instruction) -> dict[str, Any]:
    """Return the attributes bound to an operation's kernel that differ from the kernel's
    defaults.
    """
    kernel = instruction.kernel
    if not isinstance(kernel, partial):
        return {}
    defaults = getattr(kernel.func, "__kwdefaults__", None) or {}
    return {
        name: value
        for name, value in kernel.keywords.items()
        if name not in defaults or defaults[name] != value
    }
