"""Patterns of recurrent cells in the bodies of loops, as exporters write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from loopscope.checks.order import backwards
from loopscope.checks.rule import CheckedRegion, Subject
from loopscope.ir.model import LayerId, ModelGraph, Node, OutputRef

COPIES = frozenset({"Cast", "Convert", "Identity", "Reshape", "Result", "Squeeze", "Unsqueeze"})
"""Operations that pass a value on, perhaps in another type or with other axes of length 1."""
CONCAT = frozenset({"Concat"})
_PRODUCTS = frozenset({"Gemm", "MatMul"})
_MULTIPLY, _SUM = frozenset({"Mul", "Multiply"}), frozenset({"Add", "Sum"})


@dataclass(frozen=True, slots=True)
class CellPattern:
    """A recurrence, and the operators that compute all its steps."""

    title: str
    onnx: str
    """Operator in ONNX, or in a domain of ONNX Runtime."""
    openvino: str
    """Operation of OpenVINO; empty if OpenVINO fuses such a loop itself."""


LSTM = CellPattern("an LSTM", "LSTM", "LSTMSequence")
GRU = CellPattern("a GRU", "GRU", "GRUSequence")
RNN = CellPattern("a simple RNN", "RNN", "RNNSequence")
LINEAR_ATTENTION = CellPattern(
    "linear attention", "LinearAttention (ONNX opset 27, com.microsoft)", ""
)
_GATES: Mapping[tuple[int, int], CellPattern] = {(3, 2): LSTM, (2, 1): GRU, (0, 1): RNN}
"""Cells by their numbers of Sigmoid and of Tanh."""
_MAX_SIMPLE = 8
"""Largest number of operations, except copies, in the body of a simple RNN."""


def recurrence_of(subject: Subject, region: CheckedRegion) -> CellPattern | None:
    """Return the recurrence that a body computes with one slice per iteration, or None.

    A body qualifies if it carries a state, reads a slice (also with Gather, as converters from
    TensorFlow write it), and if its operations are those of one cell.
    """
    graph, edges = region.body_place.graph, region.body.back_edges
    nodes = [node for node in graph.nodes if node.type not in COPIES]
    if any(node.bodies for node in nodes):
        return None
    slices = {entry.internal for entry in region.body.inputs if entry.axis is not None}
    reads_steps = bool(slices) or any(node.type == "Gather" for node in nodes)
    if not edges or not reads_steps:
        return None
    counts = Counter(node.type for node in nodes)
    if any(product in counts for product in _PRODUCTS):
        cell = _GATES.get((counts["Sigmoid"], counts["Tanh"]))
        size = sum(node.type not in ("Const", "Constant", "Parameter") for node in nodes)
        if cell is not None and (cell is not RNN or size <= _MAX_SIMPLE):
            return cell
    if slices and any(
        _is_linear_update(subject, region, edge.from_layer, edge.to_layer) for edge in edges
    ):
        return LINEAR_ATTENTION
    return None


def last_operation(graph: ModelGraph, layer: LayerId) -> Node | None:
    """Return the node that computes a value, skipping copies; None if there are only copies."""
    walk = backwards(graph, OutputRef(layer, 0))
    return next((node for _, node in walk if node.type not in COPIES), None)


def _is_linear_update(
    subject: Subject, region: CheckedRegion, result: LayerId, state: LayerId
) -> bool:
    """Return True if a state of rank 3 or more is updated as ``state * decay + outer product``."""
    graph = region.body_place.graph
    rank = subject.parameter(region, state).shape.rank
    update = last_operation(graph, result)
    if update is None or update.type not in _SUM or rank is None or rank < 3:
        return False
    terms = _operands(graph, update)
    if len(terms) != 2 or terms[0] is None or terms[1] is None:
        return False
    decayed = [term for term in terms if term is not None and _is_decayed(graph, term, state)]
    products = _MULTIPLY | _PRODUCTS | {"Einsum"}
    added = [term for term in terms if term is not None and term.type in products]
    return len(decayed) == 1 and any(term is not decayed[0] for term in added)


def _is_decayed(graph: ModelGraph, term: Node, state: LayerId) -> bool:
    """Return True for the state itself, or its product with a factor."""
    if term.id == state:
        return True
    return term.type in _MULTIPLY and any(
        operand is not None and operand.id == state for operand in _operands(graph, term)
    )


def _operands(graph: ModelGraph, node: Node) -> list[Node | None]:
    return [
        last_operation(graph, source.layer)
        for source in graph.sources[node.id]
        if source is not None
    ]
