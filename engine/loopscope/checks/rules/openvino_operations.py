"""Rules about operations that OpenVINO 2026.4's CPU computes differently or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loopscope.checks.diagnostic import Severity
from loopscope.checks.order import backwards
from loopscope.checks.rule import OPENVINO, CheckedRegion, Finding, Rule, Subject
from loopscope.ir.address import PlacedGraph
from loopscope.ir.constant import Constant
from loopscope.ir.model import LayerId, Node, OutputRef
from loopscope.ir.shape import static

_RESHAPING = frozenset({"Squeeze", "Unsqueeze", "Reshape"})
_SKIPPED_TYPES = _RESHAPING | {"Tanh", "SoftMax", "Softmax"}
_IN_PLACE_TYPES = frozenset({"Add", "Subtract", "Multiply"})


def state_in_a_slice(subject: Subject) -> Iterator[Finding]:
    """A carried value is computed in the memory of a slice, which the next slice overwrites.

    What it does:
        Looks for back edges whose Result is a sum, difference or product, or the Tanh or SoftMax of
        one. The first operand is a reshaped slice that nothing else reads. The second operand is a
        Parameter or a MatMul.
    Why it matters:
        OpenVINO's CPU writes the result over its first operand if nothing else reads that operand.
        It loads the next slices before it copies along the back edges. The carried value is then
        the next slice, wrong from the second iteration on.
    Example that fails:
        x + state goes back to state, where x is a row of a sliced matrix, without its first axis
    Example that passes:
        state + x
    """
    for region in subject.iterating:
        if subject.trips(region) == static(1):
            continue
        for edge in region.body.back_edges:
            operation = _operation_over_slice(subject, region, edge.from_layer)
            if operation is not None:
                yield Finding(
                    subject.where(region.body_place, operation),
                    "OpenVINO's CPU stores this result in the memory of the slice and overwrites "
                    "it with the next slice before carrying it: wrong from iteration 1 on.",
                    found="a slice as the first operand",
                    expected="the slice as the second operand",
                    advice="Loopscope carries the computed value; for OpenVINO exchange the "
                    "operands.",
                )


def _operation_over_slice(subject: Subject, region: CheckedRegion, result: LayerId) -> Node | None:
    """Return the operation that computes a carried Result from a slice that nothing else reads, or
    None.
    """
    operation = _single_reader_origin(region, _result_source(region, result), _SKIPPED_TYPES)
    if operation is None or operation.type not in _IN_PLACE_TYPES:
        return None
    first, second = (*region.body.graph.sources.get(operation.id, ()), None, None)[:2]
    slice_node = _single_reader_origin(region, first, _RESHAPING)
    other = None if second is None else region.body.graph.by_id.get(second.layer)
    if (
        slice_node is None
        or slice_node.type != "Parameter"
        or (first is not None and first.layer == slice_node.id)
    ):
        return None
    if (
        other is None
        or other.type not in ("Parameter", "MatMul")
        or not subject.parameter(region, slice_node.id).shape.is_static
    ):
        return None
    return (
        operation
        if any(
            entry.internal == slice_node.id and entry.axis is not None
            for entry in region.body.inputs
        )
        else None
    )


def _single_reader_origin(
    region: CheckedRegion, source: OutputRef | None, types: frozenset[str]
) -> Node | None:
    """Return the producer of a tensor, skipping operations of these types.

    The result is None if a tensor on the way has several readers.
    """
    graph = region.body.graph
    for tensor, node in backwards(graph, source):
        if len(graph.consumers.get(tensor, ())) != 1:
            return None
        if node.type not in types:
            return node
    return None


def _result_source(region: CheckedRegion, layer: LayerId) -> OutputRef | None:
    return (region.body.graph.sources.get(layer) or (None,))[0]


IN_PLACE_RULES = (
    Rule("LS920", "state-in-a-slice", Severity.WARNING, state_in_a_slice, runtimes=OPENVINO),
)


_MATMUL, _TRUE = "MatMul", ("true", "1")


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    place: PlacedGraph
    node: Node
    weights: Constant

    @property
    def is_turned(self) -> bool:
        return str(self.node.attributes.get("transpose_b", "false")).lower() in _TRUE


def square_weights_turned(subject: Subject) -> Iterator[Finding]:
    """A square constant is multiplied both as it is and transposed.

    What it does:
        Looks for MatMul layers whose second operand is the same square matrix, or one with the same
        elements, with different transpose_b. Weights that are passed into bodies are included.
    Why it matters:
        OpenVINO's CPU packs equal weights once for all products, and confuses a square matrix with
        its transpose. One of the products is silently wrong; this always happens in f32.
    Example that fails:
        x times w, and the result times w transposed, with a constant w of 4 by 4
    Example that passes:
        the same with a Transpose and w as the first operand of one of the products
    """
    by_shape: dict[tuple[object, tuple[int, ...]], list[_Product]] = {}
    for product in _with_square_weights(subject):
        by_shape.setdefault((product.weights.element_type, product.weights.shape), []).append(
            product
        )
    for products in by_shape.values():
        yield from _wrong_products(subject, products)


def _wrong_products(subject: Subject, products: Sequence[_Product]) -> Iterator[Finding]:
    plain, transposed = (
        [product for product in products if product.is_turned is flag] for flag in (False, True)
    )
    for product in transposed:
        untransposed = next(
            (candidate for candidate in plain if candidate.weights.data == product.weights.data),
            None,
        )
        if untransposed is not None:
            yield Finding(
                subject.where(product.place, product.node),
                f"It multiplies by the transposed square weights of {untransposed.node.name!r}: "
                "OpenVINO's CPU packs them once, and one product is wrong.",
                found="transpose_b is true in this product and false in the other",
                expected="the same transpose_b, or the weights as the first operand of one product",
                advice="Loopscope computes both correctly; for OpenVINO write one product as the "
                "Transpose of the transposed product.",
            )


def _with_square_weights(subject: Subject) -> Iterator[_Product]:
    for place, node in subject.nodes():
        if node.type != _MATMUL:
            continue
        second = next(iter(place.graph.sources.get(node.id, ())[1:2]), None)
        weights = subject.constant(place, second)
        if (
            weights is not None
            and len(weights.shape) == 2
            and weights.shape[0] == weights.shape[1] > 1
        ):
            yield _Product(place, node, weights)


PACKED_WEIGHTS_RULES = (
    Rule(
        "LS919", "square-weights-turned", Severity.WARNING, square_weights_turned, runtimes=OPENVINO
    ),
)


_BOUNDS = (1, 2)
"""Input indices of begin and end of a StridedSlice."""


def slice_at_a_computed_index(subject: Subject) -> Iterator[Finding]:
    """A tensor of static shape is indexed at a computed position.

    What it does:
        Looks for StridedSlice with a bit in shrink_axis_mask and data of static shape. Its begin or
        end is unknown before the run, as in TensorFlow's x[i] in a while_loop.
    Why it matters:
        OpenVINO's CPU fails on several threads ("doesn't have compiled executor"). On one thread it
        returns the contents of memory.
    Example that fails:
        x[i] of a tensor [4], with shrink_axis_mask="1" and a carried i
    Example that passes:
        Gather (x, i), or the same slice with shrink_axis_mask="0" and a Squeeze
    """
    for place, node in subject.nodes() if subject.is_openvino else ():
        if node.type != "StridedSlice" or "1" not in str(
            node.attributes.get("shrink_axis_mask", "")
        ):
            continue
        data, *bounds = subject.inputs(place, node)[: _BOUNDS[-1] + 1]
        if data.shape.is_static and any(bound.value is None for bound in bounds):
            yield Finding(
                subject.where(place, node),
                "OpenVINO's CPU does not compute this slice at one index: it fails, or on one "
                "thread returns the contents of memory.",
                found=f"shrink_axis_mask, data of shape {data.shape}, and a computed index",
                expected="Gather, or a slice without shrink_axis_mask and a Squeeze",
                advice="Loopscope follows the specification; for OpenVINO write it as a Gather.",
            )


SCALAR_SLICE_RULES = (
    Rule(
        "LS925",
        "slice-at-a-computed-index",
        Severity.WARNING,
        slice_at_a_computed_index,
        runtimes=OPENVINO,
    ),
)
