"""Execution of a TensorFlow 2 program graph by graph, with interpreted While and If operations.

Loaded in a separate process by ``source_process.py``; it imports nothing of Loopscope. A graph
without loops and branches runs as a whole. Other graphs run operation by operation, so that carried
values can be recorded.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.execute import execute
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

if TYPE_CHECKING:
    from loopscope.peers.source.watching import Watch

WHILE = ("While", "StatelessWhile")
IF = ("If", "StatelessIf")
CALL = ("PartitionedCall", "StatefulPartitionedCall")
LOWERED = ("Enter", "RefEnter")
"""Operations of TensorFlow 1 loops."""
WHOLE = ("Case", "StatelessCase", "For", "RemoteCall")
_LOWERED = "The source's loops are those of TensorFlow 1 (Enter, Exit), which were not watched."
_SIGNATURE = "serving_default"


def run(
    watching: Any,
    source: Any,
    arrays: Sequence[np.ndarray],
    names: Sequence[Sequence[str]],
    target: str,
) -> str:
    """Run a program and write the recording; return name and version of TensorFlow.

    Raise ``ValueError`` for inputs that the program does not accept.
    """
    version = f"TensorFlow {tf.__version__}"
    tf.config.set_visible_devices([], "GPU")  # on the CPU, like the runtimes
    concrete = (
        signature(source)
        if isinstance(source, str)
        else concrete_function(source, arrays, names, watching)
    )
    input_tensors = concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)]
    inputs = [tensor.op.name for tensor in input_tensors]
    order = watching.ordered(inputs, names, "the program")
    arguments = [
        fed(watching, tensor, arrays[number])
        for tensor, number in zip(input_tensors, order, strict=True)
    ]
    watch = watching.Watch()
    graph = TensorFlowGraph(concrete.graph, "", watch, -1, "body")
    lowered = graph.lowered
    if lowered or not graph.has_regions:
        watch.regions = []
        results = whole(concrete, arguments)
    else:
        results = graph.run([*arguments, *concrete.captured_inputs])
    watch.write(
        target,
        output_names(concrete),
        [as_array(value) for value in results],
        framework=version,
        inputs=[[name, number] for name, number in zip(inputs, order, strict=True)],
        unwatched=_LOWERED if lowered else watch.run_as_a_whole(),
    )
    return version


def signature(folder: str) -> Any:
    """Return the served function of a SavedModel; raise ``ValueError`` if it is not unique."""
    loaded = tf.saved_model.load(folder)
    signatures = loaded.signatures
    if _SIGNATURE not in signatures and len(signatures) != 1:
        raise ValueError(
            f"the SavedModel has the signatures {', '.join(sorted(signatures)) or '(none)'}, "
            f"and not {_SIGNATURE!r}"
        )
    concrete = signatures[_SIGNATURE if _SIGNATURE in signatures else next(iter(signatures))]
    concrete.kept = loaded  # variables live as long as the loaded object
    return concrete


def concrete_function(
    source: Any, arrays: Sequence[np.ndarray], names: Sequence[Sequence[str]], watching: Any
) -> Any:
    """Return a concrete function unchanged.

    For a function, a Keras model or a ``tf.function``, return the concrete function for these
    inputs.
    """
    if hasattr(source, "structured_input_signature"):
        return source
    function = source if hasattr(source, "get_concrete_function") else tf.function(source)
    if getattr(function, "input_signature", None) is not None:
        return function.get_concrete_function()
    parameters = inspect.signature(
        source.call if hasattr(source, "call") else getattr(source, "python_function", source)
    ).parameters
    required = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        and name != "self"
    ]
    order = (
        watching.ordered(required, names, "the function")
        if len(required) == len(arrays)
        else range(len(arrays))
    )
    tensor_names = required if len(required) == len(arrays) else [None] * len(arrays)
    specs = [
        tf.TensorSpec(arrays[number].shape, arrays[number].dtype, name)
        for number, name in zip(order, tensor_names, strict=True)
    ]
    return function.get_concrete_function(*specs)


def fed(watching: Any, tensor_spec: Any, array: np.ndarray) -> Any:
    """Return an input as the program accepts it."""
    name = tensor_spec.op.name
    if tensor_spec.shape.rank is not None:
        watching.fitting(name, array, tensor_spec.shape.as_list())
    tensor = tf.constant(array)
    cast = tf.cast(tensor, tensor_spec.dtype)
    if cast.dtype != tensor.dtype and not np.array_equal(
        tf.cast(cast, tensor.dtype).numpy(), array
    ):
        raise ValueError(
            f"the input {name!r} is of type {array.dtype}, "
            f"and the program takes {tensor_spec.dtype.name}, which cannot hold its values"
        )
    return cast


def whole(concrete: Any, arguments: Sequence[Any]) -> list[Any]:
    """Run a function as a whole, without recording."""
    return list(
        _call_function(concrete.graph, concrete.name, [*arguments, *concrete.captured_inputs])
    )


def output_names(concrete: Any) -> list[str]:
    """Return the names of the outputs: dictionary keys, or the names of the operations."""
    structure = concrete.structured_outputs
    if isinstance(structure, Mapping) and len(structure) == len(concrete.outputs):
        return sorted(map(str, structure))
    return [tensor.op.name for tensor in concrete.outputs]


def as_array(value: Any) -> np.ndarray | None:
    """Return a tensor as an array; narrow floats become f32. Return None if it is not a tensor of
    numbers.
    """
    if (
        value is None
        or value.dtype in (tf.variant, tf.resource, tf.string)
        or value.dtype.is_complex
    ):
        return None
    array = np.asarray(value.numpy())
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)


# -- graphs


@cache
def library_graph(name: str) -> Any:
    """Return the graph of a function by name."""
    return function_def_to_graph(context.context().get_function_def(name))


class TensorFlowGraph:
    """A graph of the program with its inner graphs."""

    def __init__(self, graph: Any, name: str, watch: Watch, parent: int, body: str) -> None:
        self.graph, self.name, self.watch = graph, name, watch
        self.numbers: dict[str, int] = {}
        """Region number of each operation that is a region."""
        self.inside: dict[str, list[TensorFlowGraph]] = {}
        """Inner graphs of each operation that has any."""
        self.carried: dict[str, Sequence[int]] = {}
        """Indices of the inputs that each While changes."""
        operations = graph.get_operations()
        self.lowered: bool = any(operation.type in LOWERED for operation in operations)
        for operation in operations:
            if operation.type in WHILE:
                indices = self.carried[operation.name] = carried_places(operation)
                names = [operation.inputs[place].op.name for place in indices]
                self._declare(
                    operation,
                    "while_loop",
                    parent,
                    body,
                    {"cond": "condition", "body": "body"},
                    names,
                )
            elif operation.type in IF:
                self._declare(
                    operation,
                    "cond",
                    parent,
                    body,
                    {"then_branch": "then", "else_branch": "else"},
                    [],
                )
            elif operation.type in WHOLE:
                watch.whole.append(operation.name)
            elif operation.type in CALL:
                called = operation.get_attr("f").name
                self.inside[operation.name] = [
                    TensorFlowGraph(library_graph(called), called, watch, parent, body)
                ]
        inner = [member for members in self.inside.values() for member in members]
        self.lowered |= any(member.lowered for member in inner)
        self.has_regions: bool = bool(self.numbers) or any(member.has_regions for member in inner)

    def _declare(
        self,
        operation: Any,
        kind: str,
        parent: int,
        body: str,
        attributes: Mapping[str, str],
        carried: Sequence[str],
    ) -> None:
        number = self.numbers[operation.name] = self.watch.declare(
            operation.name, kind, parent, body, carried
        )
        names = {
            inner: operation.get_attr(attribute).name for attribute, inner in attributes.items()
        }
        self.inside[operation.name] = [
            TensorFlowGraph(library_graph(name), name, self.watch, number, inner)
            for inner, name in names.items()
        ]

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the outputs for values of all inputs."""
        if not self.has_regions and self.name:
            return list(_call_function(self.graph, self.name, arguments))
        values = {
            tensor.ref(): value for tensor, value in zip(self.graph.inputs, arguments, strict=True)
        }
        for operation in self.graph.get_operations():
            if any(tensor.ref() in values for tensor in operation.outputs) or operation.type in (
                "NoOp",
                "Placeholder",
            ):
                continue
            results = self._execute(
                operation, [values[tensor.ref()] for tensor in operation.inputs]
            )
            values.update(
                {
                    tensor.ref(): value
                    for tensor, value in zip(operation.outputs, results, strict=True)
                }
            )
        return [values[tensor.ref()] for tensor in self.graph.outputs]

    def _execute(self, operation: Any, arguments: Sequence[Any]) -> Sequence[Any]:
        graphs = self.inside.get(operation.name, [])
        if operation.type in CALL:
            return graphs[0].run(arguments)
        if operation.type in IF:
            first = is_true(arguments[0])
            self.watch.took(self.numbers[operation.name], first)
            return graphs[0 if first else 1].run(arguments[1:])
        if operation.type in WHILE:
            return self._while(operation.name, graphs, list(arguments))
        return executed(operation, arguments)

    def _while(self, name: str, graphs: Sequence[TensorFlowGraph], values: list[Any]) -> list[Any]:
        (condition, body), number, places = graphs, self.numbers[name], self.carried[name]
        self.watch.began(number, [as_array(values[place]) for place in places])
        while is_true(condition.run(values)[0]):
            values = body.run(values)
            self.watch.iterated(number, [as_array(values[place]) for place in places])
        return values


def carried_places(loop: Any) -> list[int]:
    """Return the indices of the inputs that a While's body changes, except TensorFlow's own
    counter.
    """
    body = library_graph(loop.get_attr("body").name)
    counter = loop.inputs[0].op.name.endswith("/loop_counter") if len(loop.inputs) else False
    return [
        index
        for index in range(int(counter), len(loop.inputs))
        if _source_operation(body.outputs[index]) is not body.inputs[index].op
    ]


def _source_operation(tensor: Any) -> Any:
    """Return the operation that computes a value, skipping Identity."""
    operation = tensor.op
    while operation.type == "Identity":
        operation = operation.inputs[0].op
    return operation


def is_true(value: Any) -> bool:
    """Return the truth of a condition as While and If define it: a scalar's value, or whether a
    tensor has elements.
    """
    array = np.asarray(value.numpy())
    return bool(array) if array.ndim == 0 else array.size > 0


class NamedFunction:
    """Reference to a function, for an operation that calls it."""

    def __init__(self, name: str) -> None:
        self.name = name


def _call_function(graph: Any, name: str, arguments: Sequence[Any]) -> Sequence[Any]:
    """Call a library function as a whole."""
    results = tf.raw_ops.StatefulPartitionedCall(
        args=list(arguments), Tout=[tensor.dtype for tensor in graph.outputs], f=NamedFunction(name)
    )
    return results if isinstance(results, (list, tuple)) else [results]


def executed(operation: Any, arguments: Sequence[Any]) -> Sequence[Any]:
    """Execute one operation and return its outputs."""
    if operation.type == "Const":
        return [
            tf.constant(tf.make_ndarray(operation.get_attr("value")), operation.outputs[0].dtype)
        ]
    attributes: list[Any] = []
    for attribute in operation.op_def.attr:
        attributes += [
            attribute.name,
            _attribute(attribute.type, operation.get_attr(attribute.name)),
        ]
    return list(
        execute(
            operation.type.encode(),
            len(operation.outputs),
            list(arguments),
            tuple(attributes),
            context.context(),
        )
    )


def _attribute(kind: str, value: Any) -> Any:
    """Return an attribute as the runtime accepts it.

    Types become numbers. A shape becomes its lengths, -1 for any length, or None for any rank.
    """
    match kind:
        case "func":
            return NamedFunction(value.name)
        case "type":
            return value.as_datatype_enum
        case "list(type)":
            return [item.as_datatype_enum for item in value]
        case "shape":
            return _lengths(value)
        case "list(shape)":
            return [_lengths(item) for item in value]
        case _:
            return value


def _lengths(shape: Any) -> list[int] | None:
    tensor_shape = tf.TensorShape(shape)
    return (
        None
        if tensor_shape.rank is None
        else [-1 if length is None else length for length in tensor_shape.as_list()]
    )
