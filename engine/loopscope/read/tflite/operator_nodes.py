"""An operator of TensorFlow Lite that becomes nodes: its inputs as the numbers that they mean,
its outputs under their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.read.tflite.drafts import Declared, Draft, Value
from loopscope.read.tflite.schema import OperatorInfo, Quantization, TensorInfo

NUMPY = {"auto_broadcast": "numpy"}
_ACTIVATIONS: Mapping[int, tuple[str, Mapping[str, str]]] = {
    1: ("Relu", {}),
    2: ("Clamp", {"min": "-1", "max": "1"}),
    3: ("Clamp", {"min": "0", "max": "6"}),
    4: ("Tanh", {}),
}
_MOVES = frozenset(
    {
        "BROADCAST_TO",
        "CONCATENATION",
        "DEQUANTIZE",
        "EXPAND_DIMS",
        "FILL",
        "GATHER",
        "GATHER_ND",
        "PACK",
        "RANK",
        "RESHAPE",
        "REVERSE_V2",
    }
    | {
        "SELECT",
        "SELECT_V2",
        "SHAPE",
        "SLICE",
        "SPLIT",
        "SPLIT_V",
        "SQUEEZE",
        "STRIDED_SLICE",
        "TILE",
        "TOPK_V2",
        "TRANSPOSE",
        "UNPACK",
    }
    | {"ZEROS_LIKE"}
)
"""Operators that move elements without computing with them, quantized ones as they are."""


class Operator:
    """An operator that is being translated: its inputs as values, its outputs as tensors, and
    the graph that it goes into.
    """

    def __init__(
        self,
        draft: Draft,
        info: OperatorInfo,
        inputs: Sequence[Value | None],
        around: tuple[list[TensorInfo | None], list[TensorInfo]],
    ) -> None:
        self.draft = draft
        self.info = info
        self._tensors, self.outputs = around
        self._inputs = inputs
        self.name = self.outputs[0].name if self.outputs else info.name

    @property
    def values(self) -> tuple[Value, ...]:
        """The inputs that are there; whole numbers that stand for others (quantized ones) as
        those.
        """
        return tuple(
            self.value(index) for index, value in enumerate(self._inputs) if value is not None
        )

    def has(self, index: int) -> bool:
        """True if there is an input of that number."""
        return index < len(self._inputs) and self._inputs[index] is not None

    def stored(self, index: int) -> Value:
        """Return an input as the file stores it; ``ValueError`` where it is missing."""
        value = self._inputs[index] if index < len(self._inputs) else None
        if value is None:
            raise ValueError(f"{self.info.name} {shorten(self.name, 60)!r} has no input {index}")
        return value

    def tensor(self, index: int) -> TensorInfo:
        """Return the tensor of an input; ``ValueError`` where it is missing."""
        tensor = self._tensors[index] if index < len(self._tensors) else None
        if tensor is None:
            raise ValueError(f"{self.info.name} {shorten(self.name, 60)!r} has no input {index}")
        return tensor

    def value(self, index: int) -> Value:
        """Return an input as the numbers that it means."""
        value, quantization = self.stored(index), self.tensor(index).quantization
        if quantization is None or self.info.name in _MOVES or not _is_quantized(value):
            return value
        return self.dequantized(value, quantization)

    def array(self, index: int) -> np.ndarray | None:
        """Return an input that is a constant; None for any other."""
        return self.draft.constant_of(self.stored(index))

    def add(
        self,
        operation: str,
        opset: str,
        inputs: Sequence[Value],
        attributes: Mapping[str, str] = MappingProxyType({}),
        outputs: int = 1,
    ) -> Value:
        """Add an operation that helps, and return its first output."""
        return self.many(operation, opset, inputs, attributes, outputs)[0]

    def many(
        self,
        operation: str,
        opset: str,
        inputs: Sequence[Value],
        attributes: Mapping[str, str] = MappingProxyType({}),
        outputs: int = 1,
    ) -> tuple[Value, ...]:
        """Add an operation that helps, and return all its outputs."""
        return self.draft.add(
            operation,
            opset,
            f"{self.name}/{operation}",
            inputs,
            (Declared(),) * outputs,
            dict(attributes),
        )

    def constant(self, content: object, form: str = "i8") -> Value:
        """Add a constant."""
        return self.draft.constant(f"{self.name}/constant", np.asarray(content, form))

    def number_like(self, value: Value, number: int) -> Value:
        """Add a constant number of a value's element type."""
        kind = value.element_type or ElementType.F32
        if kind is ElementType.STRING:
            raise ValueError(
                f"{self.info.name} {shorten(self.name, 60)!r} takes texts, expected numbers"
            )
        return self.draft.constant(f"{self.name}/constant", np.asarray(number, kind.dtype))

    def length_of(self, index: int) -> int:
        """Return the number of elements of an input that is a vector; ``ValueError`` where the
        file does not say it.
        """
        array = self.array(index)
        if array is not None:
            return int(array.size)
        shape = self.tensor(index).shape
        if not shape.is_static or shape.rank != 1:
            raise ValueError(
                f"{self.info.name} {shorten(self.name, 60)!r} has an input {index} of unknown length"
            )
        return shape.lengths[0]

    def only_number(self, index: int) -> int:
        """Return the only number of an input that is a constant, such as an axis."""
        array = self.array(index)
        if array is None or array.size != 1:
            raise ValueError(
                f"{self.info.name} {shorten(self.name, 60)!r} has an input {index} that is not one constant number"
            )
        return int(array.reshape(-1)[0])

    def give(
        self,
        operation: str,
        opset: str,
        inputs: Sequence[Value],
        attributes: Mapping[str, str] = MappingProxyType({}),
        activation: int = 0,
    ) -> list[Value]:
        """Add the operation that makes the operator's outputs, under its name, and return them."""
        first = self.outputs[0] if self.outputs else None
        quantization = (
            first.quantization
            if first is not None and self.info.name not in _MOVES | {"QUANTIZE"}
            else None
        )
        if activation:
            value = self.add(operation, opset, inputs, attributes)
            operation, extra = _ACTIVATIONS.get(activation, ("", {}))
            if not operation:
                raise ValueError(
                    f"{self.info.name} {shorten(self.name, 60)!r} has activation {activation}, expected 0 to 4"
                )
            inputs, attributes, opset = (value,), extra, "opset1"
        if quantization is not None and first is not None and first.element_type in _INTEGERS:
            return [
                self.quantized(self.add(operation, opset, inputs, attributes), first, quantization)
            ]
        return list(
            self.draft.add(
                operation,
                opset,
                self.name,
                inputs,
                [declared(tensor) for tensor in self.outputs],
                dict(attributes),
            )
        )

    def give_like(self, value: Value) -> list[Value]:
        """Return the outputs where the last operation only gives another element type or shape,
        under the operator's name.
        """
        return self.give(
            "Convert",
            "opset1",
            (value,),
            {"destination_type": str(self.outputs[0].element_type or ElementType.F32)},
        )

    def dequantized(self, value: Value, quantization: Quantization, name: str = "") -> Value:
        """Add what turns quantized integers into the numbers that they mean."""
        scale, zero = (
            _along(numbers, quantization, value.shape)
            for numbers in (quantization.scale, quantization.zero_point)
        )
        moved = self.add("Convert", "opset1", (value,), {"destination_type": "f32"})
        if np.any(zero):
            moved = self.add("Subtract", "opset1", (moved, self.constant(zero, "f4")), NUMPY)
        inputs = (moved, self.constant(scale, "f4"))
        if name:
            return self.draft.add(
                "Multiply", "opset1", name, inputs, [declared(self.outputs[0])], NUMPY
            )[0]
        return self.add("Multiply", "opset1", inputs, NUMPY)

    def quantized(self, value: Value, tensor: TensorInfo, quantization: Quantization) -> Value:
        """Add what turns numbers into the quantized integers of the operator's output."""
        kind = tensor.element_type
        if kind not in _INTEGERS:
            raise ValueError(
                f"{self.info.name} {shorten(self.name, 60)!r} has scales for {kind}, expected integers of 8, 16 or 32 bits"
            )
        scale, zero = (
            _along(numbers, quantization, tensor.shape)
            for numbers in (quantization.scale, quantization.zero_point)
        )
        scaled = self.add(
            "Divide",
            "opset1",
            (value, self.constant(scale, "f4")),
            {"m_pythondiv": "false", **NUMPY},
        )
        moved = self.add("Round", "opset5", (scaled,), {"mode": "half_away_from_zero"})
        if np.any(zero):
            moved = self.add("Add", "opset1", (moved, self.constant(zero, "f4")), NUMPY)
        bounds = np.iinfo(kind.dtype)
        held = self.add(
            "Clamp", "opset1", (moved,), {"min": str(bounds.min), "max": str(bounds.max)}
        )
        return self.draft.add(
            "Convert",
            "opset1",
            self.name,
            (held,),
            [declared(tensor)],
            {"destination_type": str(kind)},
        )[0]


_INTEGERS = frozenset({ElementType.I8, ElementType.U8, ElementType.I16, ElementType.I32})


def declared(tensor: TensorInfo) -> Declared:
    """Return what a file declares for a tensor that is computed: lengths of 1 may stand for
    unknown ones, so only its type.
    """
    return Declared(tensor.element_type, names=(tensor.name,))


def _is_quantized(value: Value) -> bool:
    return value.element_type in _INTEGERS


def _along(numbers: np.ndarray, quantization: Quantization, shape: PartialShape) -> np.ndarray:
    if numbers.size == 1:
        return numbers.reshape(())
    rank = shape.rank
    if rank is None or not 0 <= quantization.axis < rank:
        raise ValueError(
            f"a tensor has {numbers.size} scales along axis {quantization.axis}, which its shape {shape} does not have"
        )
    return numbers.reshape([-1 if axis == quantization.axis else 1 for axis in range(rank)])
