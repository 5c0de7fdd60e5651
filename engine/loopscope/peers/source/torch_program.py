"""Execution of a torch program operation by operation, with interpreted loops and branches.

Loaded in a separate process by ``source_process.py``; it imports nothing of Loopscope. The
semantics of the loops and branches are those of torch's higher order operators (``torch.cond``,
``torch.while_loop``, ``torch.scan``, ``torch.map``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind

if TYPE_CHECKING:
    from loopscope.peers.source.watching import Watch

KINDS = {"cond": "cond", "while_loop": "while_loop", "scan": "scan", "map_impl": "map"}
"""Interpreted operators, with our names."""
BODIES: Mapping[str, Sequence[str]] = {
    "cond": ("then", "else"),
    "while_loop": ("condition", "body"),
    "scan": ("body",),
    "map": ("body",),
}
"""Graphs among the arguments, in order."""
OPERANDS: Mapping[str, Sequence[int]] = {
    "cond": (3,),
    "while_loop": (2, 3),
    "scan": (1, 2, 3),
    "map": (1, 2),
}
"""Arguments that the graphs receive, in order."""
CARRIED = {"while_loop": 2, "scan": 1}
"""Argument with the carried values."""
CALLS = ("wrap_with_set_grad_enabled", "wrap_with_autocast", "invoke_subgraph")
"""Operators that call their graph once, so that it counts as part of the enclosing graph."""


def run(
    watching: Any,
    source: Any,
    arrays: Sequence[np.ndarray],
    names: Sequence[Sequence[str]],
    target: str,
) -> str:
    """Run a program and write the recording; return name and version of torch.

    Raise ``ValueError`` for inputs that the program does not accept.
    """
    program = (
        torch.export.load(source)
        if isinstance(source, str)
        else exported(source, arrays, names, watching)
    )
    version = f"torch {torch.__version__.partition('+')[0]}"
    user_inputs = [
        spec for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT
    ]
    tensor_inputs = [spec for spec in user_inputs if not isinstance(spec.arg, ConstantArgument)]
    order = watching.ordered([spec.arg.name for spec in tensor_inputs], names, "the program")
    arguments = [
        fed(watching, program, spec.arg.name, arrays[number])
        for spec, number in zip(tensor_inputs, order, strict=True)
    ]
    watch = watching.Watch()
    main = TorchGraph(program.graph_module, watch, -1, "body")
    with torch.no_grad():
        results = main.run(*_all_inputs(program, iter(arguments)))
    outputs = [
        (spec.arg, value)
        for spec, value in zip(program.graph_signature.output_specs, results, strict=True)
        if spec.kind == OutputKind.USER_OUTPUT
    ]
    watch.write(
        target,
        [getattr(argument, "name", "") for argument, _ in outputs],
        [as_array(value) for _, value in outputs],
        framework=version,
        inputs=[[spec.arg.name, number] for spec, number in zip(tensor_inputs, order, strict=True)],
        unwatched=watch.run_as_a_whole(),
    )
    return version


def exported(
    source: Any, arrays: Sequence[np.ndarray], names: Sequence[Sequence[str]], watching: Any
) -> ExportedProgram:
    """Return an exported program unchanged; export a module or function with the inputs as
    examples.
    """
    if isinstance(source, ExportedProgram):
        return source
    module = source if isinstance(source, torch.nn.Module) else _module_of(source)
    parameters = inspect.signature(
        source.forward if isinstance(source, torch.nn.Module) else source
    ).parameters
    required = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    order = (
        watching.ordered(required, names, "the function")
        if len(required) == len(arrays)
        else range(len(arrays))
    )
    return torch.export.export(
        module.eval(), tuple(torch.from_numpy(np.array(arrays[number])) for number in order)
    )


def _module_of(function: Callable[..., Any]) -> torch.nn.Module:
    """Return a module that calls a function and has the function's parameters, so that inputs get
    their names.
    """

    class Called(torch.nn.Module):
        def forward(self, *arguments: Any) -> Any:
            return function(*arguments)

    own = inspect.signature(function)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = own.replace(parameters=[first, *own.parameters.values()])
    Called.forward.__dict__["__signature__"] = signature  # PEP 362
    return Called()


def fed(watching: Any, program: ExportedProgram, name: str, array: np.ndarray) -> Any:
    """Return an input as the program accepts it: converted to its type, or a Python number."""
    meta = next(
        node.meta["val"]
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name == name
    )
    if not isinstance(meta, torch.Tensor):
        return array.item()
    watching.fitting(
        name, array, [length if isinstance(length, int) else None for length in meta.shape]
    )
    tensor = torch.from_numpy(np.array(array))
    if tensor.dtype != meta.dtype and not torch.equal(
        tensor.to(meta.dtype).to(tensor.dtype), tensor
    ):
        raise ValueError(
            f"the input {name!r} is of type {tensor.dtype}, and the program takes {meta.dtype}, "
            f"which cannot hold its values"
        )
    return tensor.to(meta.dtype)


def _all_inputs(program: ExportedProgram, arguments: Any) -> list[Any]:
    """Return the graph's inputs: weights and constants of the program, with the arguments
    inserted.
    """
    stored = {**program.state_dict, **program.constants}
    return [_input(spec, stored, arguments) for spec in program.graph_signature.input_specs]


def _input(spec: InputSpec, stored: Mapping[str, Any], arguments: Any) -> Any:
    if spec.kind != InputKind.USER_INPUT:
        return stored[spec.target] if spec.target is not None else None
    return spec.arg.value if isinstance(spec.arg, ConstantArgument) else next(arguments)


def as_array(value: Any) -> np.ndarray | None:
    """Return a tensor or number as an array; narrow floats become f32. Return None for other
    values.
    """
    if isinstance(value, (bool, int, float)):
        return np.asarray(value)
    if not isinstance(value, torch.Tensor) or value.is_complex() or value.layout != torch.strided:
        return None
    plain = value.detach().cpu()
    if plain.dtype.is_floating_point and plain.dtype not in (
        torch.float16,
        torch.float32,
        torch.float64,
    ):
        plain = plain.float()
    return np.asarray(plain.numpy())


class TorchGraph(torch.fx.Interpreter):
    """A graph of the program with its inner graphs."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        watch: Watch,
        parent: int,
        body: str,
        called: Sequence[str] = (),
    ) -> None:
        super().__init__(module)
        self.watch, self.parent, self.body = watch, parent, body
        placeholders = (node.name for node in module.graph.nodes if node.op == "placeholder")
        self.called = dict(zip(placeholders, called, strict=False))
        """Names in the enclosing graph of the values that this graph receives."""
        self.numbers: dict[str, int] = {}
        """Region number of each node that is a region."""
        self.inside: dict[str, list[TorchGraph]] = {}
        """Inner graphs of each node that has any."""
        for node in module.graph.nodes:
            name = operator_name(node)
            if name in KINDS:
                self._declare(node, KINDS[name])
            elif name in CALLS:
                self.inside[node.name] = [
                    TorchGraph(graph, watch, parent, body) for graph in self._graphs(node)
                ]
            elif name and self._graphs(node):
                watch.whole.append(node.name)

    def _declare(self, node: torch.fx.Node, kind: str) -> None:
        carried = self._names(node.args[CARRIED[kind]]) if kind in CARRIED else []
        output_count = len(_listed(node.meta.get("val"))) - len(carried) if kind != "cond" else 0
        number = self.watch.declare(
            node.name, kind, self.parent, self.body, carried, max(output_count, 0)
        )
        self.numbers[node.name] = number
        called = [name for place in OPERANDS[kind] for name in self._names(node.args[place])]
        bodies = zip(BODIES[kind], self._graphs(node), strict=True)
        self.inside[node.name] = [
            TorchGraph(graph, self.watch, number, body, called) for body, graph in bodies
        ]

    def _names(self, operands: Any) -> list[str]:
        return [self.called.get(str(operand), str(operand)) for operand in _listed(operands)]

    def _graphs(self, node: torch.fx.Node) -> list[torch.fx.GraphModule]:
        attributes = (
            argument
            for argument in node.args
            if isinstance(argument, torch.fx.Node) and argument.op == "get_attr"
        )
        modules = (getattr(self.module, str(attribute.target), None) for attribute in attributes)
        return [module for module in modules if isinstance(module, torch.fx.GraphModule)]

    def run_node(self, n: torch.fx.Node) -> Any:
        name = operator_name(n)
        if name not in KINDS and name not in CALLS:
            return super().run_node(n)
        arguments, keywords = self.fetch_args_kwargs_from_env(n)
        arguments = tuple(arguments) + tuple(keywords.values())
        graphs = self.inside[n.name]
        match KINDS.get(name, ""):
            case "cond":
                return self._cond(self.numbers[n.name], graphs, arguments)
            case "while_loop":
                return self._while(self.numbers[n.name], graphs, arguments)
            case "scan":
                return self._scan(self.numbers[n.name], graphs[0], arguments)
            case "map":
                return self._map(self.numbers[n.name], graphs[0], arguments)
            case _:
                waiting = iter(graphs)
                called = (
                    next(waiting).run if isinstance(argument, torch.fx.GraphModule) else argument
                    for argument in arguments
                )
                return cast("Callable[..., Any]", n.target)(*called)

    def _cond(self, number: int, graphs: Sequence[TorchGraph], arguments: Sequence[Any]) -> Any:
        first = bool(arguments[0])
        self.watch.took(number, first)
        return graphs[0 if first else 1].run(*arguments[3])

    def _while(self, number: int, graphs: Sequence[TorchGraph], arguments: Sequence[Any]) -> Any:
        condition, body = graphs
        values, invariants = list(arguments[2]), list(arguments[3])
        self.watch.began(number, [as_array(value) for value in values])
        while bool(_only(condition.run(*values, *invariants))):
            values = list(body.run(*values, *invariants))
            self.watch.iterated(number, [as_array(value) for value in values])
        return tuple(values)

    def _scan(self, number: int, body: TorchGraph, arguments: Sequence[Any]) -> Any:
        state, rows, invariants = list(arguments[1]), list(arguments[2]), list(arguments[3])
        carried = len(state)
        outputs: list[list[Any]] = []
        self.watch.began(number, [as_array(value) for value in state])
        for iteration in range(rows[0].shape[0]):
            values = list(body.run(*state, *(row[iteration] for row in rows), *invariants))
            self.watch.iterated(number, [as_array(value) for value in values])
            state = values[:carried]
            outputs.append(values[carried:])
        return [*state, *(torch.stack(column) for column in zip(*outputs, strict=True))]

    def _map(self, number: int, body: TorchGraph, arguments: Sequence[Any]) -> Any:
        rows, invariants = list(arguments[1]), list(arguments[2])
        outputs: list[list[Any]] = []
        self.watch.began(number, [])
        for iteration in range(rows[0].shape[0]):
            outputs.append(list(body.run(*(row[iteration] for row in rows), *invariants)))
            self.watch.iterated(number, [as_array(value) for value in outputs[-1]])
        return [torch.stack(column) for column in zip(*outputs, strict=True)]


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else ()


def _only(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value


def operator_name(node: torch.fx.Node) -> str:
    """Return the name of a higher order operator; empty for other nodes."""
    return node.target.name() if isinstance(node.target, torch._ops.HigherOrderOperator) else ""
