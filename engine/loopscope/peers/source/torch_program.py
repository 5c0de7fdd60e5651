"""A program of torch, run operation by operation, with its loops and branches interpreted.

Loaded in a process of its own by ``source_process.py``, so it imports nothing of ours. What torch's
loops and branches mean is said in its documentation of higher order operators (``torch.cond``,
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
"""The operators that are interpreted, with what we call them."""
BODIES: Mapping[str, Sequence[str]] = {
    "cond": ("then", "else"),
    "while_loop": ("condition", "body"),
    "scan": ("body",),
    "map": ("body",),
}
"""The graphs among their arguments, in order."""
OPERANDS: Mapping[str, Sequence[int]] = {
    "cond": (3,),
    "while_loop": (2, 3),
    "scan": (1, 2, 3),
    "map": (1, 2),
}
"""The arguments that their graphs take, in order."""
CARRIED = {"while_loop": 2, "scan": 1}
"""The argument that holds what a loop carries."""
CALLS = ("wrap_with_set_grad_enabled", "wrap_with_autocast", "invoke_subgraph")
"""Operators that call their graph once: what is in it counts as what is around it."""


def run(
    watching: Any,
    source: Any,
    given: Sequence[np.ndarray],
    names: Sequence[Sequence[str]],
    target: str,
) -> str:
    """Runs a program and writes down what happened; the name and version of torch.
    ``ValueError`` for what it cannot be given.
    """
    program = (
        torch.export.load(source)
        if isinstance(source, str)
        else exported(source, given, names, watching)
    )
    called = f"torch {torch.__version__.partition('+')[0]}"
    users = [
        spec for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT
    ]
    taken = [spec for spec in users if not isinstance(spec.arg, ConstantArgument)]
    order = watching.ordered([spec.arg.name for spec in taken], names, "the program")
    arguments = [
        fed(watching, program, spec.arg.name, given[number])
        for spec, number in zip(taken, order, strict=True)
    ]
    watch = watching.Watch()
    main = TorchGraph(program.graph_module, watch, -1, "body")
    with torch.no_grad():
        results = main.run(*_all_inputs(program, iter(arguments)))
    outputs = [(spec.arg, value) for spec, value in zip(program.graph_signature.output_specs, results, strict=True)
               if spec.kind == OutputKind.USER_OUTPUT]  # fmt: skip
    watch.write(
        target,
        [getattr(argument, "name", "") for argument, _ in outputs],
        [as_array(value) for _, value in outputs],
        framework=called,
        inputs=[[spec.arg.name, number] for spec, number in zip(taken, order, strict=True)],
        unwatched=watch.run_as_a_whole(),
    )
    return called


def exported(
    source: Any, given: Sequence[np.ndarray], names: Sequence[Sequence[str]], watching: Any
) -> ExportedProgram:
    """An exported program as it is; a module or a function is exported with the inputs as its
    examples.
    """
    if isinstance(source, ExportedProgram):
        return source
    module = source if isinstance(source, torch.nn.Module) else _module_of(source)
    parameters = inspect.signature(
        source.forward if isinstance(source, torch.nn.Module) else source
    ).parameters
    wanted = [
        name
        for name, one in parameters.items()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    order = (
        watching.ordered(wanted, names, "the function")
        if len(wanted) == len(given)
        else range(len(given))
    )
    return torch.export.export(
        module.eval(), tuple(torch.from_numpy(np.array(given[number])) for number in order)
    )


def _module_of(function: Callable[..., Any]) -> torch.nn.Module:
    """A module that calls a function, which has the parameters that the function has: inputs are
    called after them.
    """

    class Called(torch.nn.Module):
        def forward(self, *arguments: Any) -> Any:
            return function(*arguments)

    own = inspect.signature(function)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    Called.forward.__signature__ = own.replace(parameters=[first, *own.parameters.values()])  # type: ignore[attr-defined] # as in PEP 362
    return Called()


def fed(watching: Any, program: ExportedProgram, name: str, array: np.ndarray) -> Any:
    """An input as the program takes it: of its type, and a number where it is one."""
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
            f"the input {name!r} is of type {tensor.dtype}, and the program takes {meta.dtype}, which cannot hold its values"
        )
    return tensor.to(meta.dtype)


def _all_inputs(program: ExportedProgram, arguments: Any) -> list[Any]:
    """What the graph takes: weights and constants of the program, and the arguments where they
    belong.
    """
    kept = {**program.state_dict, **program.constants}
    return [_input(spec, kept, arguments) for spec in program.graph_signature.input_specs]


def _input(spec: InputSpec, kept: Mapping[str, Any], arguments: Any) -> Any:
    if spec.kind != InputKind.USER_INPUT:
        return kept[spec.target] if spec.target is not None else None
    return spec.arg.value if isinstance(spec.arg, ConstantArgument) else next(arguments)


def as_array(value: Any) -> np.ndarray | None:
    """A tensor or number as an array; the narrow floats as f32, which holds them. None for what
    is neither.
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
    """A graph of the program, with those inside it."""

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
        """What the graph around calls the values that this one takes."""
        self.numbers: dict[str, int] = {}
        """The region of each node that is one."""
        self.inside: dict[str, list[TorchGraph]] = {}
        """The graphs of each node that has some."""
        for node in module.graph.nodes:
            name = operator_name(node)
            if name in KINDS:
                self._declare(node, KINDS[name])
            elif name in CALLS:
                self.inside[node.name] = [
                    TorchGraph(one, watch, parent, body) for one in self._graphs(node)
                ]
            elif name and self._graphs(node):
                watch.whole.append(node.name)

    def _declare(self, node: torch.fx.Node, kind: str) -> None:
        carried = self._names(node.args[CARRIED[kind]]) if kind in CARRIED else []
        given = len(_listed(node.meta.get("val"))) - len(carried) if kind != "cond" else 0
        number = self.watch.declare(node.name, kind, self.parent, self.body, carried, max(given, 0))
        self.numbers[node.name] = number
        called = [name for place in OPERANDS[kind] for name in self._names(node.args[place])]
        bodies = zip(BODIES[kind], self._graphs(node), strict=True)
        self.inside[node.name] = [
            TorchGraph(graph, self.watch, number, body, called) for body, graph in bodies
        ]

    def _names(self, operands: Any) -> list[str]:
        return [self.called.get(str(one), str(one)) for one in _listed(operands)]

    def _graphs(self, node: torch.fx.Node) -> list[torch.fx.GraphModule]:
        named = (
            one for one in node.args if isinstance(one, torch.fx.Node) and one.op == "get_attr"
        )
        found = (getattr(self.module, str(one.target), None) for one in named)
        return [one for one in found if isinstance(one, torch.fx.GraphModule)]

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
                    next(waiting).run if isinstance(one, torch.fx.GraphModule) else one
                    for one in arguments
                )
                return cast("Callable[..., Any]", n.target)(*called)

    def _cond(self, number: int, graphs: Sequence[TorchGraph], arguments: Sequence[Any]) -> Any:
        first = bool(arguments[0])
        self.watch.took(number, first)
        return graphs[0 if first else 1].run(*arguments[3])

    def _while(self, number: int, graphs: Sequence[TorchGraph], arguments: Sequence[Any]) -> Any:
        asks, body = graphs
        values, more = list(arguments[2]), list(arguments[3])
        self.watch.began(number, [as_array(value) for value in values])
        while bool(_only(asks.run(*values, *more))):
            values = list(body.run(*values, *more))
            self.watch.iterated(number, [as_array(value) for value in values])
        return tuple(values)

    def _scan(self, number: int, body: TorchGraph, arguments: Sequence[Any]) -> Any:
        state, rows, more = list(arguments[1]), list(arguments[2]), list(arguments[3])
        carried = len(state)
        given: list[list[Any]] = []
        self.watch.began(number, [as_array(value) for value in state])
        for at in range(rows[0].shape[0]):
            values = list(body.run(*state, *(one[at] for one in rows), *more))
            self.watch.iterated(number, [as_array(value) for value in values])
            state = values[:carried]
            given.append(values[carried:])
        return [*state, *(torch.stack(one) for one in zip(*given, strict=True))]

    def _map(self, number: int, body: TorchGraph, arguments: Sequence[Any]) -> Any:
        rows, more = list(arguments[1]), list(arguments[2])
        given: list[list[Any]] = []
        self.watch.began(number, [])
        for at in range(rows[0].shape[0]):
            given.append(list(body.run(*(one[at] for one in rows), *more)))
            self.watch.iterated(number, [as_array(value) for value in given[-1]])
        return [torch.stack(one) for one in zip(*given, strict=True)]


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else ()


def _only(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value


def operator_name(node: torch.fx.Node) -> str:
    """The name of a higher order operator; empty for all else."""
    return node.target.name() if isinstance(node.target, torch._ops.HigherOrderOperator) else ""
