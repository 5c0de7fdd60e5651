"""The rule about operations that OpenVINO's ONNX frontend does not convert, each tested with
OpenVINO 2026.4.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.order import dependencies
from loopscope.checks.rule import OPENVINO, CheckedRegion, Finding, Rule, Subject
from loopscope.errors import shorten
from loopscope.ir.address import PlacedGraph
from loopscope.ir.model import LOOP, LayerId, Node, OutputRef

CODE = "LS950"

_ONNX = "ai.onnx"
_TENSORS = frozenset(
    {
        "BitCast",
        "CausalConvWithState",
        "CumProd",
        "DeformConv",
        "Det",
        "LinearAttention",
        "MaxUnpool",
        "SwiGLU",
    }
)
_TEXTS_AND_SIGNALS = frozenset(
    {
        "ImageDecoder",
        "MelWeightMatrix",
        "RegexFullMatch",
        "StringConcat",
        "StringNormalizer",
        "StringSplit",
    }
)
_CONTAINERS = frozenset(
    {
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "SequenceMap",
        "TensorScatter",
        "TfIdfVectorizer",
    }
)
NOT_CONVERTED = _TENSORS | _TEXTS_AND_SIGNALS | _CONTAINERS
"""Operations of ONNX itself without a conversion rule."""
_FUSED_OF_MICROSOFT = frozenset(
    {
        "BiasAdd",
        "BiasGelu",
        "FastGelu",
        "FusedConv",
        "FusedGemm",
        "FusedMatMul",
        "Gelu",
        "QuickGelu",
        "Trilu",
    }
)
_ATTENTION_OF_MICROSOFT = frozenset(
    {"Attention", "GroupQueryAttention", "MultiHeadAttention", "RotaryEmbedding"}
)
_NORMALIZED_OF_MICROSOFT = frozenset(
    {
        "EmbedLayerNormalization",
        "GroupNorm",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    }
)
_QUANTIZED_OF_MICROSOFT = frozenset(
    {
        "DequantizeLinear",
        "DynamicQuantizeLSTM",
        "DynamicQuantizeMatMul",
        "GatherBlockQuantized",
        "MatMulIntegerToFloat",
        "MatMulNBits",
    }
    | {
        f"QLinear{kind}"
        for kind in (
            "Add",
            "AveragePool",
            "Concat",
            "LeakyRelu",
            "Mul",
            "ReduceMean",
            "Sigmoid",
            "Softmax",
            "Where",
        )
    }
    | {"QuantizeLinear"}
)
_OTHERS_OF_MICROSOFT = frozenset({"BifurcationDetector", "GatherND", "Pad", "Range"})
CONVERTED_OF_MICROSOFT = (
    _FUSED_OF_MICROSOFT
    | _ATTENTION_OF_MICROSOFT
    | _NORMALIZED_OF_MICROSOFT
    | _QUANTIZED_OF_MICROSOFT
    | _OTHERS_OF_MICROSOFT
)
"""Operations of com.microsoft with a conversion rule; ai.onnx.ml and other domains have none."""
_OWN_DOMAIN = "loopscope"
_FIRST_SCAN = 9
_TYPELESS = frozenset({"Add", "Div", "Mul", "Result", "SequenceInsert", "Sub"})
"""Operations that convert although the element type of their operand is unknown, as for sequence
elements in a body.
"""


def not_converted(subject: Subject) -> Iterator[Finding]:
    """OpenVINO's ONNX frontend does not convert an operation, or not in this place.

    What it does:
        Looks for operations that OpenVINO 2026.4 has no conversion rule for, in any domain, and for
        calls of functions that the file defines. It also looks for sequences that enter or leave
        the model or an If, or go through an Identity. A Loop may carry a sequence only if it
        appends to an empty one that is concatenated afterwards.
    Why it matters:
        OpenVINO refuses to read the file. If a Loop carries a sequence that starts with elements or
        grows by several per iteration, OpenVINO reads the file and returns other numbers.
    Example that fails:
        y = Det (x)
    Example that passes:
        s = SequenceEmpty () outside, and t = SequenceInsert (s, x) in the body of a Loop, followed
        by ConcatFromSequence
    """
    if subject.is_openvino:
        return
    inside_functions: set[str] = set()
    for place in subject.places:
        if any(place.address.startswith(f"{address}/") for address in inside_functions):
            continue
        needed = _needed_layers(place)
        for node in place.graph.nodes:
            if node.id not in needed:
                continue
            if node.is_function:
                inside_functions.add(f"{place.address}/{place.labels[node.id]}")
            problem = _problem(subject, place, node)
            if problem:
                yield Finding(
                    subject.where(place, node),
                    f"OpenVINO's ONNX frontend does not convert {problem}.",
                    found=f"{node.type} of {node.opset}" if node.opset else node.type,
                    expected="operations that OpenVINO converts",
                    advice="Loopscope runs it; for OpenVINO export the model without it.",
                )


def _needed_layers(place: PlacedGraph) -> frozenset[LayerId]:
    """Return the layers that a Result depends on; the frontend converts only these."""
    results = [node.id for node in place.graph.results]
    return dependencies(place.graph, *results) | frozenset(results)


def _problem(subject: Subject, place: PlacedGraph, node: Node) -> str:
    """Return the name of the operation or value that is not converted, or "" if the node is."""
    if node.type in ("Parameter", "Result"):
        return _border_problem(place, node)
    domain, _, version = node.opset.removeprefix("function ").partition(" ")
    type_name = shorten(node.type, 60)
    if not domain or domain == _OWN_DOMAIN:
        return ""
    if domain == _ONNX:
        if node.type in NOT_CONVERTED:
            return type_name
        if node.type == "Scan" and version.isdigit() and int(version) < _FIRST_SCAN:
            # The reader expands it to a Scan over the batch around the Scan over the sequence.
            is_written_out = place.owner is not None and (place.owner.type, place.owner.opset) == (
                node.type,
                node.opset,
            )
            return "" if is_written_out else f"Scan of opset {version}"
        return _sequence_problem(subject, place, node)
    if domain == "com.microsoft" and node.type in CONVERTED_OF_MICROSOFT:
        return ""
    return (
        f"the function {shorten(domain, 60)}.{type_name}"
        if node.is_function
        else f"{shorten(domain, 60)}.{type_name}"
    )


def _border_problem(place: PlacedGraph, node: Node) -> str:
    ports = node.outputs if node.type == "Parameter" else node.inputs
    if place.owner is not None or not ports or ports[0].form == "tensor":
        return ""
    kind = "an optional" if ports[0].form.startswith("optional") else f"a {ports[0].form}"
    side = "input" if node.outputs else "output"
    return f"{kind} as {side} of the model, {shorten(node.name, 60)!r}"


def _sequence_problem(subject: Subject, place: PlacedGraph, node: Node) -> str:
    is_sequence = [port.form == "sequence" for port in node.outputs]
    if node.type == "Identity" and any(is_sequence):
        return "an Identity of a sequence"
    if node.type == "If" and any(is_sequence):
        return "an If with a sequence as output"
    if node.type == LOOP and any(is_sequence):
        for region in subject.regions_of(node):
            if not all(
                _is_appended_only(region, index)
                for index, sequence in enumerate(is_sequence)
                if sequence
            ):
                return (
                    "a Loop that carries a sequence, unless it only appends to an empty one "
                    "that is concatenated afterwards"
                )
    if node.type in ("SequenceAt", "ConcatFromSequence") and place.owner is not None:
        used = [
            place.graph.by_id[layer].type
            for layer, _ in place.graph.consumers.get(OutputRef(node.id, 0), ())
        ]
        if not _TYPELESS.issuperset(used):
            return f"the {', '.join(sorted({*used} - _TYPELESS))} of sequence elements in a body"
    return ""


def _is_appended_only(region: CheckedRegion, output: int) -> bool:
    """Return True if a carried sequence starts empty, grows by one element per iteration, is not
    read in the body, and is concatenated afterwards.
    """
    outer, inner = region.place.graph, region.body.graph
    entry = region.body.outer_outputs[output] if output < len(region.body.outer_outputs) else None
    edge = next(
        (
            edge
            for edge in region.body.back_edges
            if entry is not None and edge.from_layer == entry.internal
        ),
        None,
    )
    if edge is None:
        return False
    fed = region.entry_of.get(edge.to_layer)
    sources = outer.sources[region.node.id]
    initial = (
        sources[fed.external] if fed is not None and 0 <= fed.external < len(sources) else None
    )
    last = inner.sources[edge.from_layer][0]
    if initial is None or last is None or outer.by_id[initial.layer].type != "SequenceEmpty":
        return False
    insert = inner.by_id[last.layer]
    insert_inputs = inner.sources[insert.id]
    is_insert = (
        insert.type == "SequenceInsert"
        and insert_inputs[0] == OutputRef(edge.to_layer, 0)
        and not any(insert_inputs[2:])
    )
    reads = inner.consumers.get(OutputRef(edge.to_layer, 0), ())
    uses = outer.consumers.get(OutputRef(region.node.id, output), ())
    return (
        is_insert
        and len(reads) == 1
        and all(outer.by_id[layer].type == "ConcatFromSequence" for layer, _ in uses)
    )


RULES = (Rule(CODE, "not-converted", Severity.WARNING, not_converted, runtimes=OPENVINO),)
