"""Extension of a model by the gradients of some of its tensors as outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopscope.builder.gradient.gradients import dead_ends_sentence
from loopscope.builder.gradient.gradients import with_reasons as built
from loopscope.builder.gradient.node_edits import adopt
from loopscope.builder.gradient.reverse import NoWayBack
from loopscope.builder.graph_builder import STOPPED, Graph
from loopscope.builder.tensor import Tensor
from loopscope.checks.check import check, checked
from loopscope.checks.diagnostic import InvalidModel
from loopscope.checks.propagate import propagate
from loopscope.checks.rules.value_kinds import KINDS, kind_of_output
from loopscope.errors import AddressError, BuildError, shorten
from loopscope.ir.address import ROOT
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.model import Edge, LayerId, Model, Node, OutputRef, Port, expect_model
from loopscope.ir.model import ModelGraph as FinishedGraph
from loopscope.ir.named_tensors import tensor_named
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.dialect import to_build_beside
from loopscope.transform.recurrences import recurrence_of

Names = str | Sequence[str]


def gradients(
    model: Model,
    of: Names,
    with_respect_to: Names,
    *,
    catalogue: Catalogue = CATALOGUE,
    going: Callable[[], bool] = lambda: True,
) -> Model:
    """Return the model with an additional output for each tensor of ``with_respect_to``.

    The output is the derivative of the sum of all elements of ``of``; for several ``of``, of the
    total of their sums. Both are tensor names, node names (``Split:1``) or addresses
    (``main/Add_3``) of tensors outside of bodies: inputs, constants, variables or computed values.

    The outputs are the old ones, then ``gradient of <of> with respect to <x>`` for each ``x`` in
    order, with its type and shape. A gradient is zero where nothing depends on ``x``. The gradients
    are ordinary graphs: they run, can be explored and written as IR, and have gradients themselves.
    The model's ``notes`` list gradients that are zero everywhere because integers, steps or
    conditions block every path, and the places.

    ``going`` is called repeatedly. Once it returns False, the work ends with a ``BuildError``, for
    callers that no longer wait.

    ``AddressError`` for a name without such a tensor, ``BuildError`` for an integer tensor and for
    an operation without a derivative on a path, ``InvalidModel`` for a model that cannot run.
    """
    expect_model(model, "loopscope.gradients")
    known_operations = to_build_beside(model.dialect, catalogue)
    targets, sources = _names("of", of), _names("with_respect_to", with_respect_to)
    report = check(model, catalogue)
    if not report.ok:
        raise InvalidModel(report)
    if not going():
        raise BuildError(STOPPED)
    for what, names in (("of", targets), ("with_respect_to", sources)):
        for name in names:
            _refuse_container(model, outside(model, name), f"{what} names {name!r}")
    graph, tensors = _adopt_graph(model, known_operations)
    graph.going = going
    try:
        results = built(
            [_real(tensors[outside(model, name)], f"of names {name!r}") for name in targets],
            [
                _real(tensors[outside(model, name)], f"with_respect_to names {name!r}")
                for name in sources
            ],
        )
    except NoWayBack as problem:
        raise _advise_opening(problem, model) from problem
    if not going():
        raise BuildError(STOPPED)
    of = " + ".join(targets)
    output_names = [f"gradient of {of} with respect to {name}" for name in sources]
    blocked = [
        dead_ends_sentence(of, name, ends)
        for name, (_, ends) in zip(sources, results, strict=True)
        if ends is not None
    ]
    annotated = replace(model, notes=(*model.notes, *blocked))
    return _with_outputs(
        annotated,
        graph,
        tensors,
        [(name, tensor) for name, (tensor, _) in zip(output_names, results, strict=True)],
    )


def _advise_opening(problem: NoWayBack, model: Model) -> BuildError:
    """Return the error; for an operator that opens as a loop, with the advice to open it."""
    if recurrence_of(problem.node, model.dialect) is None:
        return problem
    return BuildError(
        f"{problem}. Open it as a loop, which has gradients: "
        f"--open {shorten(problem.node.name)}, or loopscope.open_as_loop in Python"
    )


def _names(what: str, value: object) -> list[str]:
    names = (
        [value]
        if isinstance(value, str)
        else list(value)
        if isinstance(value, (list, tuple))
        else []
    )
    if not names or any(not isinstance(name, str) for name in names):
        raise AddressError(
            f"{what} is {shorten(repr(value), 60)}, "
            "expected the name or address of a tensor, or several"
        )
    return names


def _refuse_container(model: Model, output: OutputRef, what: str) -> None:
    """Raise ``BuildError`` for a sequence, an optional or a map."""
    kind = kind_of_output(model.graph.by_id[output.layer], output.output)
    if kind not in ("", "tensor"):
        raise BuildError(f"{shorten(what)}, which is {KINDS[kind]}: only tensors have derivatives")


def _real(tensor: Tensor, what: str) -> Tensor:
    """Return the tensor; raise ``BuildError`` if its type has no derivatives.

    ``what`` describes it in the user's words.
    """
    if tensor.element_type is not None and tensor.element_type not in REAL_FLOATS:
        declared = f"{tensor.element_type}{tensor.shape}"
        raise BuildError(
            f"{shorten(what)}, which is {declared}: only f64, f32, f16 and bf16 have derivatives"
        )
    return tensor


def outside(model: Model, name: str) -> OutputRef:
    """Return the tensor of a name; an address may contain a node's name with unencoded slashes.

    ``AddressError`` for a tensor inside a body.
    """
    node_name = name.removeprefix(f"{ROOT}/")
    matches = [
        node for node in model.graph.nodes if node.name == node_name and node.type != "Result"
    ]
    tensor = (
        OutputRef(matches[0].id, 0)
        if node_name != name and len(matches) == 1
        else tensor_named(model.graph, name)
    )
    if tensor is None:
        raise AddressError(
            f"{shorten(name)!r} is in a body: "
            "a gradient is of a tensor outside, and with respect to one outside"
        )
    return tensor


def _adopt_graph(model: Model, catalogue: Catalogue) -> tuple[Graph, dict[OutputRef, Tensor]]:
    propagated = propagate(model, catalogue)
    graph = Graph(model.name, catalogue=catalogue)
    return graph, adopt(
        graph.frame, model.graph, lambda layer, output: propagated.output(ROOT, layer, output)
    )


def _with_outputs(
    model: Model,
    graph: Graph,
    tensors: dict[OutputRef, Tensor],
    new_outputs: Sequence[tuple[str, Tensor]],
) -> Model:
    """Return the model with its Results in their order, then a Result for each gradient."""
    nodes, edges = list(graph.frame.nodes), list(graph.frame.edges)
    names = {node.name for node in nodes}
    results: list[tuple[Node, Tensor]] = []
    for node in model.graph.results:
        source = model.graph.sources[node.id][0]
        if source is None:
            raise BuildError(f"nothing feeds output {node.name!r}")
        results.append((node, tensors[source]))
    opset = next((node.opset for node in model.graph.results), "opset1")
    for name, tensor in new_outputs:
        port = Port(0, tensor.element_type, tensor.shape)
        results.append(
            (Node(LayerId(0), name, "Result", opset, inputs=(port,), output_names=(name,)), tensor)
        )
    for node, tensor in results:
        layer, name = LayerId(len(nodes)), node.name
        while name in names:
            name += "_"
        names.add(name)
        nodes.append(replace(node, id=layer, name=name))
        edges.append(
            Edge(
                tensor.source.layer,
                nodes[tensor.source.layer].outputs[tensor.source.output].id,
                layer,
                node.inputs[0].id,
            )
        )
    extended = replace(
        model,
        graph=FinishedGraph(tuple(nodes), tuple(edges), model.graph.name, model.graph.rt_info),
    )
    try:
        checked(extended, graph.catalogue)
    except InvalidModel as error:
        raise BuildError(
            f"the gradients of {model.name!r} are not a valid model. {error.report.summary()}"
        ) from error
    return extended
