"""The TensorFlow Lite schema: typed access to the tables and fields of a model file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.read.file_limits import ReadLimits
from loopscope.read.tflite.flatbuffer import Table

_OPERATOR_NAMES = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
    EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
    LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1
    RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS
    SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER
    BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE
    UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT
    LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG
    PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE
    EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD
    REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV
    REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU
    SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE
    RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
    NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
    BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D
    IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
    CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS
    RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE
    RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
    UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD
    STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP
    STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE
    STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE
    STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE
    STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT
    STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT
    STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA
    STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE
    STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW
    STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT
"""
OPERATORS = tuple(_OPERATOR_NAMES.split())
"""Names of the built-in operators, in the order of their codes."""
CUSTOM = OPERATORS.index("CUSTOM")
STRING = 5
_ELEMENT_TYPES = {
    0: ElementType.F32,
    1: ElementType.F16,
    2: ElementType.I32,
    3: ElementType.U8,
    4: ElementType.I64,
    STRING: ElementType.STRING,
    6: ElementType.BOOLEAN,
    7: ElementType.I16,
    9: ElementType.I8,
    10: ElementType.F64,
    12: ElementType.U64,
    15: ElementType.U32,
    16: ElementType.U16,
    17: ElementType.I4,
    18: ElementType.BF16,
}
_MAX_DIMENSIONS = 64
_MAX_TEXTS = 1 << 20
_MAX_PORTS = 16
"""Average number of inputs and outputs per node that a file may have, at the limit of nodes."""


def element_type(number: int) -> ElementType | None:
    """Return the element type for a number of the schema; None without an equivalent."""
    return _ELEMENT_TYPES.get(number)


@dataclass(frozen=True, slots=True)
class Quantization:
    """Scales and zero points of an integer tensor, along ``axis`` if there are several."""

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor of a subgraph, as declared in the file."""

    name: str
    kind: int
    shape: PartialShape
    buffer: int
    quantization: Quantization | None

    @property
    def element_type(self) -> ElementType | None:
        return element_type(self.kind)


@dataclass(frozen=True, slots=True)
class OperatorInfo:
    """An operator of a subgraph: name, input and output tensor numbers (-1: none), and options."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None

    def option(self, number: int, form: str = "<i", default: int | float = 0) -> int | float:
        """Return a numeric option."""
        return self.options.number(number, form, default) if self.options is not None else default

    def whole(self, number: int, form: str = "<i") -> int:
        """Return an integer option; 0 if it is absent."""
        return int(self.option(number, form))

    def flag(self, number: int) -> bool:
        """Return a boolean option; False if it is absent."""
        return bool(self.option(number, "<B"))

    def subgraph(self, number: int) -> int:
        """Return the number of the subgraph that an option names."""
        return self.whole(number, "<i" if self.name != "CALL" else "<I")


@dataclass(eq=False)
class Subgraph:
    """A subgraph: its tensors, read on first access, and its operators."""

    table: Table
    names: tuple[str, ...]
    """Names of the operators in the model's table of operator codes."""
    limits: ReadLimits
    ports: list[int]
    """Number of inputs and outputs that were read, shared by all subgraphs."""
    _tensors: dict[int, TensorInfo] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        return self.table.text(4, self.limits.name)

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        return _indices(self.table, 1, self.limits.nodes)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        return _indices(self.table, 2, self.limits.nodes)

    @cached_property
    def operators(self) -> tuple[OperatorInfo, ...]:
        return tuple(self._operator(table) for table in self.table.elements(3, self.limits.nodes))

    def tensor(self, index: int) -> TensorInfo:
        """Return the tensor with this number."""
        known = self._tensors.get(index)
        if known is None:
            known = self._tensors[index] = self._tensor(index)
        return known

    def _operator(self, table: Table) -> OperatorInfo:
        code = table.number(0, "<I")
        if code >= len(self.names):
            raise ValueError(f"an operator has code {code}, expected one of {len(self.names)}")
        inputs, outputs = (_indices(table, field, self.limits.nodes) for field in (1, 2))
        self.ports[0] += 1 + len(inputs) + len(outputs)
        if self.ports[0] > _MAX_PORTS * self.limits.nodes:
            raise ValueError(
                f"its operators have more than {_MAX_PORTS} inputs and outputs for each of"
                f" {self.limits.nodes:,} nodes, the limit 'nodes'"
            )
        return OperatorInfo(self.names[code], inputs, outputs, table.table(4))

    def _tensor(self, index: int) -> TensorInfo:
        table = self.table.element(0, index)
        shape, signature = (table.array(field, "<i4", _MAX_DIMENSIONS).tolist() for field in (0, 7))
        name = table.text(3, self.limits.name) or f"tensor_{index}"
        kind = table.number(1, "<b")
        lengths = signature if len(signature) == len(shape) and signature else shape
        try:
            declared = PartialShape.of(None if length < 0 else length for length in lengths)
        except ValueError:
            declared = DYNAMIC
        return TensorInfo(
            name, kind, declared, table.number(2, "<I"), _quantization(table.table(4))
        )


class SchemaFile:
    """A TensorFlow Lite file: subgraphs, tensor data, and signature names."""

    def __init__(self, document: memoryview, limits: ReadLimits) -> None:
        self.document = document
        self.root = Table.root(document)
        self._limits = limits
        names = tuple(map(self._operator_name, self.root.elements(1, limits.nodes)))
        self._texts: dict[tuple[int, tuple[int, ...]], Constant] = {}
        ports = [0]
        self.subgraphs = tuple(
            Subgraph(table, names, limits, ports) for table in self.root.elements(2, limits.nodes)
        )
        if not self.subgraphs:
            raise ValueError("it has no subgraph")

    @property
    def description(self) -> str:
        return self.root.text(3, self._limits.name)

    def subgraph(self, index: int) -> Subgraph:
        """Return the subgraph with this number."""
        if not 0 <= index < len(self.subgraphs):
            raise ValueError(
                f"an operator names subgraph {index}, expected one of {len(self.subgraphs)}"
            )
        return self.subgraphs[index]

    def constant(self, tensor: TensorInfo) -> Constant | None:
        """Return the constant in a tensor's buffer; None if the buffer is empty."""
        if not tensor.buffer:
            return None
        data = self._data(tensor.buffer)
        if not len(data) and not (tensor.shape.is_static and 0 in tensor.shape.lengths):
            return None
        if tensor.element_type is None or not tensor.shape.is_static:
            raise ValueError(
                f"tensor {tensor.name!r} has data, but neither a type nor a shape that data can"
                " have"
            )
        lengths = tensor.shape.lengths
        if tensor.kind == STRING:
            key = (tensor.buffer, lengths)
            if key not in self._texts:
                self._texts[key] = Constant.of(_text_array(data, lengths))
            return self._texts[key]
        return Constant(tensor.element_type, lengths, data)

    def signature_names(self) -> tuple[dict[int, str], dict[int, str]]:
        """Return the names of inputs and outputs in the first subgraph's first signature, by tensor
        number.
        """
        for signature in self.root.elements(7, self._limits.nodes):
            if signature.number(4, "<I") == 0:
                inputs, outputs = (self._names(signature, field) for field in (0, 1))
                return inputs, outputs
        return {}, {}

    def _names(self, signature: Table, field: int) -> dict[int, str]:
        return {
            entry.number(1, "<I"): entry.text(0, self._limits.name)
            for entry in signature.elements(field, self._limits.nodes)
        }

    def _operator_name(self, table: Table) -> str:
        number = max(table.number(3), table.number(0, "<b"))
        if number == CUSTOM:
            return table.text(1, self._limits.name) or "CUSTOM"
        return OPERATORS[number] if 0 <= number < len(OPERATORS) else f"OPERATOR_{number}"

    def _data(self, index: int) -> memoryview:
        buffer = self.root.element(4, index)
        offset, size = buffer.number(1, "<Q"), buffer.number(2, "<Q")
        if offset > 1:  # in models above 2 GB, the data is after the tables
            if offset + size > len(self.document):
                raise ValueError(
                    f"buffer {index} is declared as bytes {offset} to {offset + size},"
                    " more than the file has"
                )
            return self.document[offset : offset + size]
        return buffer.bytes_of(0)


def _indices(table: Table, field: int, maximum: int) -> tuple[int, ...]:
    return tuple(table.array(field, "<i4", maximum).tolist())


def _quantization(table: Table | None) -> Quantization | None:
    if table is None or not table.length(2):
        return None
    scale, zero_point = table.array(2, "<f4"), table.array(3, "<i8")
    if zero_point.size not in (0, scale.size):
        raise ValueError(
            f"a tensor has {scale.size} scales and {zero_point.size} zero points, expected as many"
        )
    return Quantization(
        scale, zero_point if zero_point.size else np.zeros(scale.size, np.int64), table.number(6)
    )


def _text_array(data: memoryview, lengths: tuple[int, ...]) -> np.ndarray:
    """Return the texts of a buffer: a count, the offsets of their bounds, and their bytes."""
    count = int(np.frombuffer(data, "<i4", 1)[0]) if len(data) >= 4 else -1
    if (
        not 0 <= count <= _MAX_TEXTS
        or len(data) < 4 * (count + 2)
        or count != np.prod(lengths, dtype=np.int64)
    ):
        raise ValueError(f"a buffer of texts does not hold {shorten(str(lengths), 40)} texts")
    bounds = np.frombuffer(data, "<i4", count + 1, 4).tolist()
    if bounds != sorted(bounds) or bounds[0] < 0 or bounds[-1] > len(data):
        raise ValueError("a buffer of texts has texts that do not follow each other")
    texts = [bytes(data[begin:end]).decode("utf-8", "replace") for begin, end in pairwise(bounds)]
    return np.array(texts, object).reshape(lengths)
