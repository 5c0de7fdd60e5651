"""Multiply-accumulate operations (MACs) of one node, by operation type, from its shapes.

A MAC is one product that is added to a sum. Elementwise operations, pooling and reductions have
none. Bias and activation are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopscope.ir.model import Node
from loopscope.ops.einsum import subscripts

Lengths = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes and attributes of one node."""

    inputs: Sequence[Lengths | None]
    """Shape of each input; None for an unknown shape or an omitted input."""
    output: Lengths | None
    attributes: Mapping[str, Any]

    def input(self, index: int) -> Lengths:
        """Return the shape of an input. Raise ``LookupError`` if it is unknown."""
        shape = self.inputs[index]
        if shape is None:
            raise LookupError(f"the shape of input {index} is unknown")
        return shape

    @property
    def out(self) -> Lengths:
        """Shape of the output. Raise ``LookupError`` if it is unknown."""
        if self.output is None:
            raise LookupError("the shape of the output is unknown")
        return self.output

    def is_set(self, attribute: str) -> bool:
        """Return True for a flag that is 1 or ``true``."""
        return str(self.attributes.get(attribute, 0)).lower() in ("1", "true")


Formula = Callable[[Shapes], int]


def macs(type: str, shapes: Shapes) -> int | None:
    """Return the MACs of one execution; 0 for an operation without products.

    Return None if a shape is unknown, or for an operation whose products are not counted.

    >>> macs("MatMul", Shapes([(2, 3, 4), (4, 5)], (2, 3, 5), {}))
    120
    >>> macs("Conv", Shapes([(1, 3, 8, 8), (16, 3, 3, 3)], (1, 16, 6, 6), {}))
    15552
    >>> macs("Relu", Shapes([(2, 3)], (2, 3), {})), macs("MatMul", Shapes([None, None], None, {}))
    (0, None)
    """
    if type in UNCOUNTED:
        return None
    formula = COUNTED.get(type)
    if formula is None:
        return 0
    try:
        return formula(shapes)
    except (LookupError, ValueError):
        return None


def macs_of_node(
    node: Node, inputs: Sequence[Lengths | None], output: Lengths | None
) -> int | None:
    """Return the MACs of one execution of a node without bodies, from the shapes of a run."""
    return macs(node.type, Shapes(inputs, output, node.attributes))


def _per_output(weights: int, free: int = 1) -> Formula:
    """Return the formula of a convolution: each output element sums over the kernel.

    ``weights`` is the number of the input of weights. Their first ``free`` axes are not summed.
    """
    return lambda shapes: math.prod(shapes.out) * math.prod(shapes.input(weights)[free:])


def _per_input(weights: int, free: int = 1) -> Formula:
    """Return the formula of a transposed convolution: every input element meets the kernel."""
    return lambda shapes: math.prod(shapes.input(0)) * math.prod(shapes.input(weights)[free:])


def _product(transposed: str) -> Formula:
    """Return the formula of a matrix product whose left operand a flag may transpose."""

    def formula(shapes: Shapes) -> int:
        left = shapes.input(0)
        is_transposed = len(left) > 1 and shapes.is_set(transposed)
        return math.prod(shapes.out) * left[-2 if is_transposed else -1]

    return formula


def _recurrent(weights: int, steps: int) -> Formula:
    """Return the formula of a recurrent operation: every step multiplies both matrices of weights.

    ``steps`` is the number of leading axes of the input: sequence and batch, or batch.
    """

    def formula(shapes: Shapes) -> int:
        both = math.prod(shapes.input(weights)) + math.prod(shapes.input(weights + 1))
        return math.prod(shapes.input(0)[:steps]) * both

    return formula


def _attention(shapes: Shapes) -> int:
    """Return the products of queries with keys, and of weights with values."""
    length = shapes.input(1)[-2]
    return (math.prod(shapes.input(0)) + math.prod(shapes.out)) * length


def _einsum(shapes: Shapes) -> int:
    """Return the number of products of a sum over all labels at once."""
    operands = [shapes.input(index) for index in range(len(shapes.inputs))]
    if len(operands) < 2:
        return 0
    labels, _ = subscripts(str(shapes.attributes["equation"]), [len(shape) for shape in operands])
    sizes: dict[str, int] = {}
    for names, shape in zip(labels, operands, strict=True):
        for name, length in zip(names, shape, strict=True):
            sizes[name] = max(sizes.get(name, 1), length)
    return math.prod(sizes.values())


COUNTED: Mapping[str, Formula] = {
    # convolutions of ONNX
    "Conv": _per_output(1),
    "ConvInteger": _per_output(1),
    "QLinearConv": _per_output(3),
    "DeformConv": _per_output(1),
    "FusedConv": _per_output(1),
    "ConvTranspose": _per_input(1),
    # convolutions of OpenVINO, whose groups are an axis of the weights
    "Convolution": _per_output(1),
    "BinaryConvolution": _per_output(1),
    "GroupConvolution": _per_output(1, free=2),
    "DeformableConvolution": _per_output(2),
    "ConvolutionBackpropData": _per_input(1),
    "GroupConvolutionBackpropData": _per_input(1, free=2),
    # products of matrices
    "MatMul": _product("transpose_a"),
    "MatMulInteger": _product(""),
    "QLinearMatMul": _product(""),
    **dict.fromkeys(("MatMulInteger16", "MatMulIntegerToFloat"), _product("")),
    **dict.fromkeys(("Gemm", "FusedGemm", "QGemm", "FusedMatMul"), _product("transA")),
    "MatMulNBits": _product(""),
    "Einsum": _einsum,
    # recurrent operations of ONNX: X, W, R
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent(1, 2)),
    # recurrent operations of OpenVINO: X, states, perhaps lengths, W, R
    "LSTMSequence": _recurrent(4, 2),
    "GRUSequence": _recurrent(3, 2),
    "RNNSequence": _recurrent(3, 2),
    "LSTMCell": _recurrent(3, 1),
    "GRUCell": _recurrent(2, 1),
    "RNNCell": _recurrent(2, 1),
    # attention: queries, keys, values
    "ScaledDotProductAttention": _attention,
}

UNCOUNTED = frozenset(
    {
        "Attention",
        "DFT",
        "DynamicQuantizeLSTM",
        "DynamicQuantizeMatMul",
        "GroupQueryAttention",
        "GroupedMatMul",
        "IDFT",
        "IRDFT",
        "LinearClassifier",
        "LinearRegressor",
        "MultiHeadAttention",
        "QAttention",
        "RDFT",
        "STFT",
    }
)
"""Operations that multiply, but whose products are not counted here."""
