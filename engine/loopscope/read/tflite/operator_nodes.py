"""Translation of one TensorFlow Lite operator into nodes, with quantized values as real numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.read.tflite.drafts import Declared, Draft, DraftValue
from loopscope.read.tflite.schema import OperatorInfo, Quantization, TensorInfo

NUMPY = {"auto_broadcast": "numpy"}
_ACTIVATIONS: Mapping[int, tuple[str, Mapping[str, str]]] = {
    1: ("Relu", {}),
    2: ("Clamp", {"min": "-1", "max": "1"}),
    3: ("Clamp", {"min": "0", "max": "6"}),
    4: ("Tanh", {}),
}
_MOVING_OPERATORS = frozenset(
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
"""Operators that move elements without arithmetic, so quantized elements stay integers."""


class Operator:
    """An operator under translation: input values, output tensors, and the graph that receives its
    nodes.
    """

    def __init__(
        self,
        draft: Draft,
        info: OperatorInfo,
        inputs: Sequence[DraftValue | None],
        tensors: tuple[list[TensorInfo | None], list[TensorInfo]],
    ) -> None:
        self.draft = draft
        self.info = info
        self._tensors, self.outputs = tensors
        self._inputs = inputs
        self.name = self.outputs[0].name if self.outputs else info.name

    @property
    def values(self) -> tuple[DraftValue, ...]:
        """The inputs that are present; quantized integers are dequantized."""
        return tuple(
            self.value(index) for index, value in enumerate(self._inputs) if value is not None
        )

    def has(self, index: int) -> bool:
        """Return True if the operator has this input."""
        return index < len(self._inputs) and self._inputs[index] is not None

    def stored(self, index: int) -> DraftValue:
        """Return an input as stored in the file. ``ValueError`` if it is missing."""
        value = self._inputs[index] if index < len(self._inputs) else None
        if value is None:
            raise ValueError(f"{self.info.name} {shorten(self.name, 60)!r} has no input {index}")
        return value

    def tensor(self, index: int) -> TensorInfo:
        """Return the tensor of an input. ``ValueError`` if it is missing."""
        tensor = self._tensors[index] if index < len(self._tensors) else None
        if tensor is None:
            raise ValueError(f"{self.info.name} {shorten(self.name, 60)!r} has no input {index}")
        return tensor

    def value(self, index: int) -> DraftValue:
        """Return an input, dequantized."""
        value, quantization = self.stored(index), self.tensor(index).quantization
        if quantization is None or self.info.name in _MOVING_OPERATORS or not _is_quantized(value):
            return value
        return self.dequantized(value, quantization)

    def array(self, index: int) -> np.ndarray | None:
        """Return the array of a constant input; None for any other input."""
        return self.draft.constant_of(self.stored(index))

    def add(
        self,
        operation: str,
        opset: str,
        inputs: Sequence[DraftValue],
        attributes: Mapping[str, str] = MappingProxyType({}),
        outputs: int = 1,
    ) -> DraftValue:
        """Add an auxiliary operation, and return its first output."""
        return self.many(operation, opset, inputs, attributes, outputs)[0]

    def many(
        self,
        operation: str,
        opset: str,
        inputs: Sequence[DraftValue],
        attributes: Mapping[str, str] = MappingProxyType({}),
        outputs: int = 1,
    ) -> tuple[DraftValue, ...]:
        """Add an auxiliary operation, and return all its outputs."""
        return self.draft.add(
            operation,
            opset,
            f"{self.name}/{operation}",
            inputs,
            (Declared(),) * outputs,
            dict(attributes),
        )

    def constant(self, content: object, form: str = "i8") -> DraftValue:
        """Add a constant."""
        return self.draft.constant(f"{self.name}/constant", np.asarray(content, form))

    def number_like(self, value: DraftValue, number: int) -> DraftValue:
        """Add a constant scalar of the element type of ``value``."""
        kind = value.element_type or ElementType.F32
        if kind is ElementType.STRING:
            raise ValueError(
                f"{self.info.name} {shorten(self.name, 60)!r} takes texts, expected numbers"
            )
        return self.draft.constant(f"{self.name}/constant", np.asarray(number, kind.dtype))

    def length_of(self, index: int) -> int:
        """Return the length of a vector input. ``ValueError`` if the file does not declare it."""
        array = self.array(index)
        if array is not None:
            return int(array.size)
        shape = self.tensor(index).shape
        if not shape.is_static or shape.rank != 1:
            raise ValueError(
                f"{self.info.name} {shorten(self.name, 60)!r} has an input {index}"
                " of unknown length"
            )
        return shape.lengths[0]

    def only_number(self, index: int) -> int:
        """Return the number in a constant input of one element, such as an axis."""
        array = self.array(index)
        if array is None or array.size != 1:
            raise ValueError(
                f"{self.info.name} {shorten(self.name, 60)!r} has an input {index} that is not"
                " one constant number"
            )
        return int(array.reshape(-1)[0])

    def give(
        self,
        operation: str,
        opset: str,
        inputs: Sequence[DraftValue],
        attributes: Mapping[str, str] = MappingProxyType({}),
        activation: int = 0,
    ) -> list[DraftValue]:
        """Add the operation that computes the operator's outputs, named like it, and return the
        outputs.
        """
        first = self.outputs[0] if self.outputs else None
        quantization = (
            first.quantization
            if first is not None and self.info.name not in _MOVING_OPERATORS | {"QUANTIZE"}
            else None
        )
        if activation:
            value = self.add(operation, opset, inputs, attributes)
            operation, extra = _ACTIVATIONS.get(activation, ("", {}))
            if not operation:
                raise ValueError(
                    f"{self.info.name} {shorten(self.name, 60)!r} has activation {activation},"
                    " expected 0 to 4"
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

    def give_like(self, value: DraftValue) -> list[DraftValue]:
        """Return the outputs of an operator whose last step only changes the element type or
        shape.
        """
        return self.give(
            "Convert",
            "opset1",
            (value,),
            {"destination_type": str(self.outputs[0].element_type or ElementType.F32)},
        )

    def dequantized(
        self, value: DraftValue, quantization: Quantization, name: str = ""
    ) -> DraftValue:
        """Add the operations that turn quantized integers into real numbers."""
        scale, zero = (
            _broadcast_along_axis(numbers, quantization, value.shape)
            for numbers in (quantization.scale, quantization.zero_point)
        )
        shifted = self.add("Convert", "opset1", (value,), {"destination_type": "f32"})
        if np.any(zero):
            shifted = self.add("Subtract", "opset1", (shifted, self.constant(zero, "f4")), NUMPY)
        inputs = (shifted, self.constant(scale, "f4"))
        if name:
            return self.draft.add(
                "Multiply", "opset1", name, inputs, [declared(self.outputs[0])], NUMPY
            )[0]
        return self.add("Multiply", "opset1", inputs, NUMPY)

    def quantized(
        self, value: DraftValue, tensor: TensorInfo, quantization: Quantization
    ) -> DraftValue:
        """Add the operations that quantize real numbers for the operator's output."""
        kind = tensor.element_type
        if kind not in _INTEGERS:
            raise ValueError(
                f"{self.info.name} {shorten(self.name, 60)!r} has scales for {kind},"
                " expected integers of 8, 16 or 32 bits"
            )
        scale, zero = (
            _broadcast_along_axis(numbers, quantization, tensor.shape)
            for numbers in (quantization.scale, quantization.zero_point)
        )
        scaled = self.add(
            "Divide",
            "opset1",
            (value, self.constant(scale, "f4")),
            {"m_pythondiv": "false", **NUMPY},
        )
        rounded = self.add("Round", "opset5", (scaled,), {"mode": "half_away_from_zero"})
        if np.any(zero):
            rounded = self.add("Add", "opset1", (rounded, self.constant(zero, "f4")), NUMPY)
        bounds = np.iinfo(kind.dtype)
        clamped = self.add(
            "Clamp", "opset1", (rounded,), {"min": str(bounds.min), "max": str(bounds.max)}
        )
        return self.draft.add(
            "Convert",
            "opset1",
            self.name,
            (clamped,),
            [declared(tensor)],
            {"destination_type": str(kind)},
        )[0]


_INTEGERS = frozenset({ElementType.I8, ElementType.U8, ElementType.I16, ElementType.I32})


def declared(tensor: TensorInfo) -> Declared:
    """Return the declared type and name of a computed tensor.

    The shape is omitted, because a length of 1 may stand for an unknown one.
    """
    return Declared(tensor.element_type, names=(tensor.name,))


def _is_quantized(value: DraftValue) -> bool:
    return value.element_type in _INTEGERS


def _broadcast_along_axis(
    numbers: np.ndarray, quantization: Quantization, shape: PartialShape
) -> np.ndarray:
    if numbers.size == 1:
        return numbers.reshape(())
    rank = shape.rank
    if rank is None or not 0 <= quantization.axis < rank:
        raise ValueError(
            f"a tensor has {numbers.size} scales along axis {quantization.axis},"
            f" which its shape {shape} does not have"
        )
    return numbers.reshape([-1 if axis == quantization.axis else 1 for axis in range(rank)])
