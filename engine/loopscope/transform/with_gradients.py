"""A model with the gradients of some of its tensors as further outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopscope.builder.gradient.adopt import adopt
from loopscope.builder.gradient.dead_ends import sentence
from loopscope.builder.gradient.gradients import with_reasons as built
from loopscope.builder.graph_builder import STOPPED, Graph
from loopscope.builder.tensor import Tensor
from loopscope.checks.check import check
from loopscope.checks.diagnostic import InvalidModel
from loopscope.checks.propagate import propagate
from loopscope.errors import AddressError, BuildError, shorten
from loopscope.ir.address import ROOT
from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.main_graph_names import tensor_named
from loopscope.ir.model import Edge, LayerId, Model, Node, OutputRef, Port, expect_model
from loopscope.ir.model import ModelGraph as FinishedGraph
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.dialect import to_build_beside

Names = str | Sequence[str]


def gradients(
    model: Model,
    of: Names,
    with_respect_to: Names,
    *,
    catalogue: Catalogue = CATALOGUE,
    going: Callable[[], bool] = lambda: True,
) -> Model:
    """The model with one more output for each of ``with_respect_to``: how the sum of all elements
    of ``of`` changes with it.

    Both are tensor names, node names (``Split:1``) or addresses (``main/Add_3``) of tensors outside
    of bodies: inputs, constants, variables, or anything that is computed; of several ``of`` the
    sums are added. The outputs are the old ones, then ``gradient of <of> with respect to <x>`` for
    each ``x`` in order, of its type and shape; zeros where nothing depends on it. A gradient is a
    graph like any other: it runs, is explored, written as IR, and has gradients of its own. The
    model's ``notes`` say which gradient is zero everywhere because whole numbers, steps or
    conditions cut all ways to it, and where. ``going`` is asked again and again: once it says False
    the work ends with a ``BuildError``, for who has stopped waiting for it.

    ``AddressError`` for a name that means no such tensor, ``BuildError`` for a tensor of whole
    numbers and for an operation without a derivative on a path between them, ``InvalidModel`` for a
    model that cannot run.
    """
    expect_model(model, "loopscope.gradients")
    known_here = to_build_beside(model.dialect, catalogue)
    targets, sources = _names("of", of), _names("with_respect_to", with_respect_to)
    report = check(model, catalogue)
    if not report.ok:
        raise InvalidModel(report)
    if not going():
        raise BuildError(STOPPED)
    graph, became = _under_construction(model, known_here)
    graph.going = going
    found = built(
        [_real(became[outside(model, name)], f"of names {name!r}") for name in targets],
        [
            _real(became[outside(model, name)], f"with_respect_to names {name!r}")
            for name in sources
        ],
    )
    if not going():
        raise BuildError(STOPPED)
    of = " + ".join(targets)
    named = [f"gradient of {of} with respect to {name}" for name in sources]
    cut = [
        sentence(of, name, ends)
        for name, (_, ends) in zip(sources, found, strict=True)
        if ends is not None
    ]
    noted = replace(model, notes=(*model.notes, *cut))
    return _with_outputs(
        noted,
        graph,
        became,
        [(name, tensor) for name, (tensor, _) in zip(named, found, strict=True)],
    )


def _names(what: str, given: object) -> list[str]:
    names = (
        [given]
        if isinstance(given, str)
        else list(given)
        if isinstance(given, (list, tuple))
        else []
    )
    if not names or any(not isinstance(name, str) for name in names):
        raise AddressError(
            f"{what} is {shorten(repr(given), 60)}, expected the name or address of a tensor, or several"
        )
    return names


def _real(tensor: Tensor, what: str) -> Tensor:
    """The tensor, which has to be of a type that has derivatives; ``what`` says what the user
    wrote.
    """
    if tensor.element_type is not None and tensor.element_type not in REAL_FLOATS:
        found = f"{tensor.element_type}{tensor.shape}"
        raise BuildError(
            f"{shorten(what)}, which is {found}: only f64, f32, f16 and bf16 have derivatives"
        )
    return tensor


def outside(model: Model, name: str) -> OutputRef:
    """The tensor that a name means; an address may also have the slashes of a node's name as
    they are.
    """
    plain = name.removeprefix(f"{ROOT}/")
    exact = [node for node in model.graph.nodes if node.name == plain and node.type != "Result"]
    found = (
        OutputRef(exact[0].id, 0)
        if plain != name and len(exact) == 1
        else tensor_named(model.graph, name)
    )
    if found is None:
        raise AddressError(
            f"{shorten(name)!r} is in a body: a gradient is of a tensor outside, and with respect to one outside"
        )
    return found


def _under_construction(
    model: Model, catalogue: Catalogue
) -> tuple[Graph, dict[OutputRef, Tensor]]:
    propagated = propagate(model, catalogue)
    graph = Graph(model.name, catalogue=catalogue)
    return graph, adopt(
        graph.frame, model.graph, lambda layer, output: propagated.output(ROOT, layer, output)
    )


def _with_outputs(
    model: Model, graph: Graph, became: dict[OutputRef, Tensor], added: Sequence[tuple[str, Tensor]]
) -> Model:
    """The old Results in their order, then one for each gradient."""
    nodes, edges = list(graph.frame.nodes), list(graph.frame.edges)
    taken = {node.name for node in nodes}
    results: list[tuple[Node, Tensor]] = []
    for node in model.graph.results:
        source = model.graph.sources[node.id][0]
        if source is None:
            raise BuildError(f"nothing feeds output {node.name!r}")
        results.append((node, became[source]))
    opset = next((node.opset for node in model.graph.results), "opset1")
    for name, tensor in added:
        port = Port(0, tensor.element_type, tensor.shape)
        results.append(
            (Node(LayerId(0), name, "Result", opset, inputs=(port,), output_names=(name,)), tensor)
        )
    for node, tensor in results:
        layer, name = LayerId(len(nodes)), node.name
        while name in taken:
            name += "_"
        taken.add(name)
        nodes.append(replace(node, id=layer, name=name))
        edges.append(
            Edge(
                tensor.source.layer,
                nodes[tensor.source.layer].outputs[tensor.source.output].id,
                layer,
                node.inputs[0].id,
            )
        )
    made = replace(
        model,
        graph=FinishedGraph(tuple(nodes), tuple(edges), model.graph.name, model.graph.rt_info),
    )
    report = check(made, graph.catalogue)
    if not report.ok:
        raise BuildError(
            f"the gradients of {model.name!r} are not a valid model. {report.summary()}"
        )
    return made
