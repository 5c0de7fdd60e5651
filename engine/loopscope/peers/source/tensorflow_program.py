"""A program of TensorFlow 2, run graph by graph, with its While and If operations interpreted.

Loaded in a process of its own by ``source_process.py``, so it imports nothing of ours. A graph
without loops and branches is run as a whole; one with some, operation by operation, so that what
each iteration carries can be written down.
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
"""What TensorFlow 1 makes loops of."""
WHOLE = ("Case", "StatelessCase", "For", "RemoteCall")
_LOWERED = "The source's loops are those of TensorFlow 1 (Enter, Exit), which were not watched."
_SIGNATURE = "serving_default"


def run(
    watching: Any,
    source: Any,
    given: Sequence[np.ndarray],
    names: Sequence[Sequence[str]],
    target: str,
) -> str:
    """Runs a program and writes down what happened; the name and version of TensorFlow.
    ``ValueError`` for what it cannot be given.
    """
    called = f"TensorFlow {tf.__version__}"
    tf.config.set_visible_devices([], "GPU")  # on the processor, as the runtimes are
    concrete = (
        signature(source)
        if isinstance(source, str)
        else concrete_function(source, given, names, watching)
    )
    wanted = concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)]
    inputs = [one.op.name for one in wanted]
    order = watching.ordered(inputs, names, "the program")
    arguments = [
        fed(watching, one, given[number]) for one, number in zip(wanted, order, strict=True)
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
        framework=called,
        inputs=[[name, number] for name, number in zip(inputs, order, strict=True)],
        unwatched=_LOWERED if lowered else watch.run_as_a_whole(),
    )
    return called


def signature(folder: str) -> Any:
    """What a SavedModel serves; ``ValueError`` where that cannot be told."""
    loaded = tf.saved_model.load(folder)
    found = loaded.signatures
    if _SIGNATURE not in found and len(found) != 1:
        raise ValueError(
            f"the SavedModel has the signatures {', '.join(sorted(found)) or '(none)'}, and not {_SIGNATURE!r}"
        )
    concrete = found[_SIGNATURE if _SIGNATURE in found else next(iter(found))]
    concrete.kept = loaded  # its variables live as long as what was loaded
    return concrete


def concrete_function(
    source: Any, given: Sequence[np.ndarray], names: Sequence[Sequence[str]], watching: Any
) -> Any:
    """A concrete function as it is; of a function, a model of Keras or a ``tf.function`` the one
    for these inputs.
    """
    if hasattr(source, "structured_input_signature"):
        return source
    function = source if hasattr(source, "get_concrete_function") else tf.function(source)
    if getattr(function, "input_signature", None) is not None:
        return function.get_concrete_function()
    plain = inspect.signature(
        source.call if hasattr(source, "call") else getattr(source, "python_function", source)
    ).parameters
    wanted = [
        name
        for name, one in plain.items()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD and name != "self"
    ]
    order = (
        watching.ordered(wanted, names, "the function")
        if len(wanted) == len(given)
        else range(len(given))
    )
    called = wanted if len(wanted) == len(given) else [None] * len(given)
    specs = [
        tf.TensorSpec(given[number].shape, given[number].dtype, name)
        for number, name in zip(order, called, strict=True)
    ]
    return function.get_concrete_function(*specs)


def fed(watching: Any, wanted: Any, array: np.ndarray) -> Any:
    """An input as the program takes it."""
    name = wanted.op.name
    if wanted.shape.rank is not None:
        watching.fitting(name, array, wanted.shape.as_list())
    tensor = tf.constant(array)
    cast = tf.cast(tensor, wanted.dtype)
    if cast.dtype != tensor.dtype and not np.array_equal(
        tf.cast(cast, tensor.dtype).numpy(), array
    ):
        raise ValueError(
            f"the input {name!r} is of type {array.dtype}, and the program takes {wanted.dtype.name}, which cannot hold its values"
        )
    return cast


def whole(concrete: Any, arguments: Sequence[Any]) -> list[Any]:
    """All at once, without a look inside."""
    return list(_called(concrete.graph, concrete.name, [*arguments, *concrete.captured_inputs]))


def output_names(concrete: Any) -> list[str]:
    """What the outputs are called: keys where the program gives a dictionary, else the
    operations that give them.
    """
    given = concrete.structured_outputs
    if isinstance(given, Mapping) and len(given) == len(concrete.outputs):
        return sorted(map(str, given))
    return [one.op.name for one in concrete.outputs]


def as_array(value: Any) -> np.ndarray | None:
    """A tensor as an array; the narrow floats as f32, which holds them. None for what is no
    tensor of numbers.
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
    """The graph of a function, by its name."""
    return function_def_to_graph(context.context().get_function_def(name))


class TensorFlowGraph:
    """A graph of the program, with those inside it."""

    def __init__(self, graph: Any, name: str, watch: Watch, parent: int, body: str) -> None:
        self.graph, self.name, self.watch = graph, name, watch
        self.numbers: dict[str, int] = {}
        """The region of each operation that is one."""
        self.inside: dict[str, list[TensorFlowGraph]] = {}
        """The graphs of each operation that has some."""
        self.carried: dict[str, Sequence[int]] = {}
        """Of each While the inputs that it changes."""
        operations = graph.get_operations()
        self.lowered: bool = any(one.type in LOWERED for one in operations)
        for one in operations:
            if one.type in WHILE:
                places = self.carried[one.name] = carried_places(one)
                names = [one.inputs[place].op.name for place in places]
                self._declare(
                    one, "while_loop", parent, body, {"cond": "condition", "body": "body"}, names
                )
            elif one.type in IF:
                self._declare(
                    one, "cond", parent, body, {"then_branch": "then", "else_branch": "else"}, []
                )
            elif one.type in WHOLE:
                watch.whole.append(one.name)
            elif one.type in CALL:
                called = one.get_attr("f").name
                self.inside[one.name] = [
                    TensorFlowGraph(library_graph(called), called, watch, parent, body)
                ]
        inner = [one for some in self.inside.values() for one in some]
        self.lowered |= any(one.lowered for one in inner)
        self.has_regions: bool = bool(self.numbers) or any(one.has_regions for one in inner)

    def _declare(
        self,
        one: Any,
        kind: str,
        parent: int,
        body: str,
        attributes: Mapping[str, str],
        carried: Sequence[str],
    ) -> None:
        number = self.numbers[one.name] = self.watch.declare(one.name, kind, parent, body, carried)
        names = {inner: one.get_attr(attribute).name for attribute, inner in attributes.items()}
        self.inside[one.name] = [
            TensorFlowGraph(library_graph(name), name, self.watch, number, inner)
            for inner, name in names.items()
        ]

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """What it gives for values of all that it takes."""
        if not self.has_regions and self.name:
            return list(_called(self.graph, self.name, arguments))
        values = {
            tensor.ref(): value for tensor, value in zip(self.graph.inputs, arguments, strict=True)
        }
        for one in self.graph.get_operations():
            if any(tensor.ref() in values for tensor in one.outputs) or one.type in (
                "NoOp",
                "Placeholder",
            ):
                continue
            given = self._given(one, [values[tensor.ref()] for tensor in one.inputs])
            values.update(
                {tensor.ref(): value for tensor, value in zip(one.outputs, given, strict=True)}
            )
        return [values[tensor.ref()] for tensor in self.graph.outputs]

    def _given(self, one: Any, arguments: Sequence[Any]) -> Sequence[Any]:
        graphs = self.inside.get(one.name, [])
        if one.type in CALL:
            return graphs[0].run(arguments)
        if one.type in IF:
            first = is_true(arguments[0])
            self.watch.took(self.numbers[one.name], first)
            return graphs[0 if first else 1].run(arguments[1:])
        if one.type in WHILE:
            return self._while(one.name, graphs, list(arguments))
        return executed(one, arguments)

    def _while(self, name: str, graphs: Sequence[TensorFlowGraph], values: list[Any]) -> list[Any]:
        (asks, body), number, places = graphs, self.numbers[name], self.carried[name]
        self.watch.began(number, [as_array(values[place]) for place in places])
        while is_true(asks.run(values)[0]):
            values = body.run(values)
            self.watch.iterated(number, [as_array(values[place]) for place in places])
        return values


def carried_places(loop: Any) -> list[int]:
    """The inputs of a While that its body changes, but for the counter that TensorFlow itself
    adds.
    """
    body = library_graph(loop.get_attr("body").name)
    counter = loop.inputs[0].op.name.endswith("/loop_counter") if len(loop.inputs) else False
    return [
        place
        for place in range(int(counter), len(loop.inputs))
        if _plain(body.outputs[place]) is not body.inputs[place].op
    ]


def _plain(tensor: Any) -> Any:
    """The operation that computes a value."""
    one = tensor.op
    while one.type == "Identity":
        one = one.inputs[0].op
    return one


def is_true(value: Any) -> bool:
    """What While and If make of a condition: a scalar by its value, any other tensor by whether
    it has elements.
    """
    array = np.asarray(value.numpy())
    return bool(array) if array.ndim == 0 else array.size > 0


class NamedFunction:
    """A function for an operation that calls one."""

    def __init__(self, name: str) -> None:
        self.name = name


def _called(graph: Any, name: str, arguments: Sequence[Any]) -> Sequence[Any]:
    """A function of the library at once."""
    results = tf.raw_ops.StatefulPartitionedCall(
        args=list(arguments), Tout=[one.dtype for one in graph.outputs], f=NamedFunction(name)
    )
    return results if isinstance(results, (list, tuple)) else [results]


def executed(one: Any, arguments: Sequence[Any]) -> Sequence[Any]:
    """What one operation gives."""
    if one.type == "Const":
        return [tf.constant(tf.make_ndarray(one.get_attr("value")), one.outputs[0].dtype)]
    attributes: list[Any] = []
    for attribute in one.op_def.attr:
        attributes += [attribute.name, _attribute(attribute.type, one.get_attr(attribute.name))]
    return list(
        execute(
            one.type.encode(),
            len(one.outputs),
            list(arguments),
            tuple(attributes),
            context.context(),
        )
    )


def _attribute(kind: str, value: Any) -> Any:
    """As the runtime takes it: types by their numbers, a shape by its lengths, -1 for any, or
    None for any rank.
    """
    match kind:
        case "func":
            return NamedFunction(value.name)
        case "type":
            return value.as_datatype_enum
        case "list(type)":
            return [one.as_datatype_enum for one in value]
        case "shape":
            return _lengths(value)
        case "list(shape)":
            return [_lengths(one) for one in value]
        case _:
            return value


def _lengths(shape: Any) -> list[int] | None:
    known = tf.TensorShape(shape)
    return None if known.rank is None else [-1 if one is None else one for one in known.as_list()]
