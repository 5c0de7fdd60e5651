"""Rules about the structure of graphs: ids, ports, edges, order, names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.order import ASSIGN, READ_VALUE, order
from loopscope.checks.rule import ONNXRUNTIME, Finding, Rule, Subject
from loopscope.errors import Where, listed, shorten
from loopscope.ir.address import PlacedGraph
from loopscope.ir.model import Edge, Node
from loopscope.ops.declare import Operation, Role


def duplicate_layer_id(subject: Subject) -> Iterator[Finding]:
    """Two layers of one graph have the same id.

    What it does:
        Looks for a layer id that occurs more than once in one graph. Bodies may repeat the ids of
        outer graphs.
    Why it matters:
        Edges, port maps and back edges refer to layers by id. A shared id makes them ambiguous.
    Example that fails:
        <layer id="4" name="a" .../> <layer id="4" name="b" .../>
    Example that passes:
        <layer id="4" name="a" .../> <layer id="5" name="b" .../>
    """
    for place in subject.places:
        if len(place.graph.by_id) == len(place.graph.nodes):
            continue
        seen: dict[int, Node] = {}
        for node in place.graph.nodes:
            first = seen.setdefault(node.id, node)
            if first is not node:
                yield Finding(
                    subject.where(place, node),
                    f"Layer id {node.id} is already used by {shorten(first.name)!r}.",
                    found=f"two layers with id {node.id}",
                    expected="an id that is unique in this graph",
                    advice="Give one of them another id, and correct the edges that refer to it.",
                )


def duplicate_port_id(subject: Subject) -> Iterator[Finding]:
    """Two input ports, or two output ports, of one layer have the same id.

    What it does:
        Looks for a port id that repeats among the inputs, or among the outputs, of one layer.
    Why it matters:
        An edge that names this id could mean either port.
    Example that fails:
        <input> <port id="0"/> <port id="0"/> </input>
    Example that passes:
        <input> <port id="0"/> <port id="1"/> </input>
    """
    for place, node in subject.nodes():
        for kind, ports in (("input", node.inputs), ("output", node.outputs)):
            if len(ports) < 2 or len({port.id for port in ports}) == len(ports):
                continue
            repeated = [
                str(number)
                for number, uses in Counter(port.id for port in ports).items()
                if uses > 1
            ]
            yield Finding(
                subject.where(place, node, f"{kind} port {repeated[0]}"),
                f"Several {kind} ports have the id {repeated[0]}.",
                found=f"repeated {kind} port ids {', '.join(repeated[:8])}",
                expected="a unique id for each port",
                advice="Number the ports 0, 1, 2, ..., outputs after inputs.",
            )


def edge_to_nowhere(subject: Subject) -> Iterator[Finding]:
    """An edge names a layer or a port that does not exist.

    What it does:
        Looks up both ends of every edge among the layers and ports of its own graph.
    Why it matters:
        The value has no source or no destination. Bodies are closed: an edge cannot leave its
        graph.
    Example that fails:
        <edge from-layer="99" from-port="0" to-layer="5" to-port="2"/> without a layer 99
    Example that passes:
        <edge from-layer="0" from-port="0" to-layer="5" to-port="2"/>
    """
    for place in subject.places:
        nodes = place.graph.by_id
        outputs = {node.id: {port.id for port in node.outputs} for node in place.graph.nodes}
        inputs = {node.id: {port.id for port in node.inputs} for node in place.graph.nodes}
        for edge in place.graph.edges:
            if edge.from_port in outputs.get(edge.from_layer, ()) and edge.to_port in inputs.get(
                edge.to_layer, ()
            ):
                continue
            end, layer, port = ("to", edge.to_layer, edge.to_port)
            if edge.from_layer not in nodes or edge.from_port not in outputs[edge.from_layer]:
                end, layer, port = ("from", edge.from_layer, edge.from_port)
            node = nodes.get(layer)
            other = nodes.get(edge.to_layer if end == "from" else edge.from_layer)
            missing = (
                f"layer {layer}"
                if node is None
                else f"{'output' if end == 'from' else 'input'} port {port} of "
                f"{shorten(node.name)!r}"
            )
            yield Finding(
                _edge_place(subject, place, node or other),
                f"An edge comes from {missing}, which does not exist."
                if end == "from"
                else f"An edge goes to {missing}, which does not exist.",
                found=_edge_xml(edge),
                expected="ids of layers and ports of the same graph",
                advice="Correct the edge, or remove it. A body receives values only through its "
                "port map.",
            )


def _edge_place(subject: Subject, place: PlacedGraph, node: Node | None) -> Where:
    return (
        subject.where(place, node)
        if node is not None
        else Where(subject.model.file, 0, place.address)
    )


def _edge_xml(edge: Edge) -> str:
    return (
        f'from-layer="{edge.from_layer}" from-port="{edge.from_port}" '
        f'to-layer="{edge.to_layer}" to-port="{edge.to_port}"'
    )


def _undefined_names(subject: Subject) -> Iterator[Finding]:
    for place in subject.places:
        for node in place.graph.nodes:
            required = _required_inputs(subject.operation(node))
            for index, source in enumerate(place.graph.sources[node.id]):
                names = node.inputs[index].names
                if source is None and names:
                    yield Finding(
                        subject.where(place, node, f"input {index}"),
                        f"Input {index} uses {shorten(names[0], 60)!r}, which nothing defines.",
                        found=f"the name {shorten(names[0], 60)!r}",
                        expected="an output of a node, an input of the graph, or an initializer, "
                        "here or in a graph around it",
                        advice="Correct the name, or leave it empty if the input is optional.",
                    )
                elif source is None and index in required:
                    yield Finding(
                        subject.where(place, node, f"input {index}"),
                        f"Input {index} is missing, but {node.type} requires it.",
                        found="an empty name",
                        expected="an output of a node, an input of the graph, or an initializer, "
                        "here or in a graph around it",
                        advice="Add the name of a tensor.",
                    )


def _required_inputs(operation: Operation | None) -> frozenset[int]:
    """Return the indices of the inputs that a node cannot omit."""
    if operation is None or operation.role is not Role.COMPUTE:
        return frozenset()
    return frozenset(range(operation.inputs[0])) - operation.optional_inputs


def input_without_edge(subject: Subject) -> Iterator[Finding]:
    """An input port of a layer has no source.

    What it does:
        Looks for input ports without an edge. In ONNX, looks for names that no node, input or
        initializer defines, and for empty names of required inputs.
    Why it matters:
        The operation has no value to compute with. (ONNX leaves optional inputs empty; the IR omits
        them.)
    Example that fails:
        an Add with two input ports and one edge
    Example that passes:
        an Add with two input ports and two edges
    """
    if not subject.is_openvino:
        yield from _undefined_names(subject)
        return
    for place in subject.places:
        reached = {(edge.to_layer, edge.to_port) for edge in place.graph.edges}
        for node in place.graph.nodes:
            for index, port in enumerate(node.inputs):
                if (node.id, port.id) not in reached:
                    yield Finding(
                        subject.where(place, node, f"input {index}"),
                        f"Input {index} has no source.",
                        found=f"no edge to port {port.id} of layer {node.id}",
                        expected="one edge",
                        advice="Add the edge, or remove the port if the operation does not need "
                        "it.",
                    )


def several_edges_into_one_input(subject: Subject) -> Iterator[Finding]:
    """Several edges lead to one input port.

    What it does:
        Counts the edges that lead to each input port.
    Why it matters:
        An input has exactly one value.
    Example that fails:
        two edges with to-layer="5" to-port="2"
    Example that passes:
        one edge with to-layer="5" to-port="2"
    """
    for place in subject.places:
        arrivals = Counter((edge.to_layer, edge.to_port) for edge in place.graph.edges)
        if len(arrivals) == len(place.graph.edges):
            continue
        for (layer, port), count in arrivals.items():
            node = place.graph.by_id.get(layer)
            if count > 1 and node is not None:
                yield Finding(
                    subject.where(place, node, f"input port {port}"),
                    f"{count} edges lead to one input.",
                    found=f"{count} edges to port {port} of layer {layer}",
                    expected="one edge",
                    advice="Remove all but one of them.",
                )


def cycle(subject: Subject) -> Iterator[Finding]:
    """Layers wait for each other.

    What it does:
        Sorts each graph topologically and lists the layers of every remaining cycle.
    Why it matters:
        None of these layers can run first. A value returns to the start of a body through a back
        edge, never through an edge.
    Example that fails:
        an edge from Add to Multiply, and one from Multiply to Add
    Example that passes:
        Add -> Multiply -> Result, and <back_edges> from the Result to a Parameter
    """
    for place in subject.places:
        for layers in order(place.graph).cycles:
            nodes = [place.graph.by_id[layer] for layer in layers]
            names = [node.name for node in nodes]
            yield Finding(
                subject.where(place, nodes[0]),
                f"{listed(names)} wait for each other."
                if len(nodes) > 1
                else f"{listed(names)} waits for itself.",
                found=f"a cycle of {len(nodes)} edge{'s' if len(nodes) > 1 else ''}",
                expected="edges that lead from inputs to outputs only",
                advice="To pass a value to the next iteration of a Loop, use a back edge from a "
                "Result to a Parameter.",
            )


def duplicate_name(subject: Subject) -> Iterator[Finding]:
    """Several layers of one graph have the same name.

    What it does:
        Looks for layer names that repeat within one graph. Outputs of an ONNX graph are excluded,
        because they have the names of their tensors.
    Why it matters:
        People, breakpoints and links refer to layers by name. OpenVINO and Loopscope both read such
        a file.
    Example that fails:
        <layer id="0" name="x" .../> <layer id="1" name="x" .../>
    Example that passes:
        <layer id="0" name="x" .../> <layer id="1" name="y" .../>
    """
    for place in subject.places:
        named = [node for node in place.graph.nodes if subject.is_openvino or node.type != "Result"]
        uses = Counter(node.name for node in named)
        if len(uses) == len(named):
            continue
        first = {node.name: node for node in reversed(named)}
        for name, count in uses.items():
            if count > 1:
                yield Finding(
                    subject.where(place, first[name]),
                    f"{count} layers are named {shorten(name)!r}.",
                    found=f"{count} layers with one name",
                    expected="a unique name for each layer",
                    advice="Harmless in Loopscope: addresses of these layers end in ~ and the "
                    "layer's id.",
                )


def node_name_twice(subject: Subject) -> Iterator[Finding]:
    """Two nodes of one graph have the same name.

    What it does:
        Looks for names shared by several nodes of an ONNX graph. Nodes without a name are excluded,
        and so are Constants, which ONNX Runtime treats as initializers.
    Why it matters:
        ONNX Runtime 1.31 does not open such a model. Tools that insert nodes, such as converters to
        float16, write such names.
    Example that fails:
        [a] h = Neg(x) [a] y = Neg(h)
    Example that passes:
        [a] h = Neg(x) [b] y = Neg(h)
    """
    for place in () if subject.is_openvino else subject.places:
        named = [
            node
            for node in place.graph.nodes
            if node.opset and node.constant is None and not node.name.startswith(f"{node.type}_")
        ]
        uses = Counter(node.name for node in named)
        for name in (name for name, count in uses.items() if count > 1):
            yield Finding(
                subject.where(place, next(node for node in named if node.name == name)),
                f"{uses[name]} nodes are named {shorten(name)!r}.",
                found=f"{uses[name]} nodes with one name",
                expected="a unique name for each node, or no name",
                advice="Loopscope opens the model, but ONNX Runtime does not: rename all but one "
                "of them.",
            )


def no_results(subject: Subject) -> Iterator[Finding]:
    """The model has no outputs.

    What it does:
        Checks that the outermost graph has a Result.
    Why it matters:
        A run returns nothing; its values are visible in the debugger only.
    Example that fails:
        a graph that ends in an Add
    Example that passes:
        a graph that ends in a Result
    """
    graph = subject.model.graph
    if not graph.results:
        yield Finding(
            Where(subject.model.file, 0, subject.places[0].address),
            "The model has no Result and therefore no outputs.",
            found=f"{len(graph.nodes)} layers, none of them a Result",
            expected="at least one Result",
            advice="The model can be run and debugged, but a run returns no outputs.",
        )


def remark_of_the_reader(subject: Subject) -> Iterator[Finding]:
    """The reader reports a remark about the file.

    What it does:
        Lists the reader's remarks: parts of the file that it skipped, and failed steps of other
        libraries.
    Why it matters:
        The displayed and executed model omits a part of the file, or differs from it.
    Example that fails:
        an ONNX model whose inputs have default values, which become constants
    Example that passes:
        an ONNX model whose inputs have no default values
    """
    for remark in subject.model.notes:
        yield Finding(Where(subject.model.file, 0, subject.places[0].address), remark)


def source_without_output(subject: Subject) -> Iterator[Finding]:
    """A Parameter or a Const has no output port.

    What it does:
        Looks for Parameter and Const layers without an <output>.
    Why it matters:
        Such a layer exists only to provide a value, and without a port nothing can read it.
    Example that fails:
        <layer id="0" name="x" type="Parameter" version="opset1"> <data .../> </layer>
    Example that passes:
        the same with <output> <port id="0" precision="FP32"/> </output>
    """
    for place, node in subject.nodes():
        if not node.outputs and node.type in ("Parameter", "Const"):
            yield Finding(
                subject.where(place, node),
                f"This {node.type} has no output port.",
                found="no <output>",
                expected="one output port",
                advice="Add <output> with one <port>, or remove the layer.",
            )


def variable_never_read(subject: Subject) -> Iterator[Finding]:
    """A variable is assigned, but no ReadValue declares it.

    What it does:
        Looks for a ReadValue with the variable_id of each Assign, in the whole model.
    Why it matters:
        The ReadValue defines the variable's initial value. OpenVINO refuses such a file.
    Example that fails:
        an Assign with variable_id="state" alone
    Example that passes:
        a ReadValue and an Assign, both with variable_id="state"
    """
    read = {
        node.attributes.get("variable_id")
        for _, node in subject.nodes()
        if node.type.lower() == READ_VALUE
    }
    for place, node in subject.nodes():
        variable = node.attributes.get("variable_id")
        if node.type.lower() == ASSIGN and variable not in read:
            yield Finding(
                subject.where(place, node),
                f"Variable {shorten(str(variable))!r} is assigned, but no ReadValue declares it.",
                found=f"variable_id {shorten(str(variable))!r} in no ReadValue",
                expected="a ReadValue with the same variable_id",
                advice="Correct the variable_id, or remove the Assign.",
            )


RULES = (
    Rule("LS101", "duplicate-layer-id", Severity.ERROR, duplicate_layer_id, before_running=True),
    Rule("LS102", "duplicate-port-id", Severity.ERROR, duplicate_port_id, before_running=True),
    Rule("LS103", "edge-to-nowhere", Severity.ERROR, edge_to_nowhere, before_running=True),
    Rule("LS104", "input-without-edge", Severity.ERROR, input_without_edge, before_running=True),
    Rule(
        "LS105",
        "several-edges-into-one-input",
        Severity.ERROR,
        several_edges_into_one_input,
        before_running=True,
    ),
    Rule("LS106", "cycle", Severity.ERROR, cycle, before_running=True),
    Rule(
        "LS107", "source-without-output", Severity.ERROR, source_without_output, before_running=True
    ),
    Rule("LS108", "variable-never-read", Severity.ERROR, variable_never_read, before_running=True),
    Rule("LS109", "duplicate-name", Severity.NOTE, duplicate_name),
    Rule("LS110", "no-results", Severity.WARNING, no_results),
    Rule("LS111", "remark-of-the-reader", Severity.NOTE, remark_of_the_reader),
    Rule("LS112", "node-name-twice", Severity.WARNING, node_name_twice, runtimes=ONNXRUNTIME),
)
