"""One helper that makes each kernel test one line: our kernel against OpenVINO on the same
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import openvino as ov
from openvino.utils.node_factory import NodeFactory

from loopscope.ir.constant import decode, encode
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import MOST_ELEMENTS, Dimension, PartialShape, PartialValue
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import NOTHING_KNOWN, Known, Operation, typed

_TYPES = {"boolean": ov.Type.boolean, "string": ov.Type.string}
_CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
_FACTORY_NAMES = {"Const": "Constant", "ReLU": "Relu", "PReLU": "PRelu", "SoftMax": "Softmax"}

Value = np.ndarray | np.generic
"""What a test hands to a kernel: an array, or the scalar that numpy makes of an element."""


def ours(
    name: str,
    version: int,
    inputs: Sequence[Value],
    attributes: Mapping[str, str] | None = None,
    outputs: int = 1,
) -> list[np.ndarray]:
    """Our kernel's outputs; checks that what shape inference promises is what comes."""
    operation = next(one for one in CATALOGUE.versions(name) if one.version == version)
    keywords = typed(operation, attributes or {})
    assert operation.kernel is not None
    counted = {"outputs": outputs} if operation.counts_outputs else {}
    arrays = [np.asarray(array) for array in inputs]
    for array in arrays:
        array.flags.writeable = False
    with np.errstate(all="ignore"):
        got = operation.kernel(
            *[
                array[()] if array.ndim == 0 and array.dtype.kind in "fiub" else array
                for array in arrays
            ],
            **keywords,
            **counted,
        )
    results = [np.asarray(one) for one in got] if isinstance(got, tuple) else [np.asarray(got)]
    check_promises(operation, arrays, keywords, results)
    return results


def check_promises(
    operation: Operation,
    arrays: Sequence[np.ndarray | None],
    keywords: Mapping[str, Any],
    results: Sequence[np.ndarray],
) -> None:
    """``AssertionError`` where what an operation says of its outputs does not hold, whether much
    or little is known of its inputs.
    """
    if operation.infer is not None:
        for known_of in (Known.of, _lengths_unknown, _nearly_known, _type_alone):
            inputs = [NOTHING_KNOWN if array is None else known_of(array) for array in arrays]
            _check_inference(operation.infer(inputs, keywords), results)


def _type_alone(array: np.ndarray) -> Known:
    return Known(ElementType.of(array))


def _lengths_unknown(array: np.ndarray) -> Known:
    return Known(ElementType.of(array), PartialShape.unknown(array.ndim))


def _nearly_known(array: np.ndarray) -> Known:
    """Each length, and each element of a small tensor of whole numbers, may be one less or two
    more.
    """
    lengths = PartialShape.of([Dimension(max(length - 1, 0), length + 2) for length in array.shape])
    if array.dtype.kind not in "iu" or array.size > MOST_ELEMENTS:
        return Known(ElementType.of(array), lengths)
    exact = array.astype(np.float64)
    return Known(
        ElementType.of(array),
        PartialShape.of(array.shape),
        partial=PartialValue(exact - 1, exact + 2),
    )


def _check_inference(promised: Sequence[Known], results: Sequence[np.ndarray]) -> None:
    for known, result in zip(promised, results, strict=False):
        assert known.element_type in (None, ElementType.of(result)), (
            f"inferred {known.element_type}, computed {result.dtype}"
        )
        assert known.shape.contains(result.shape), (
            f"inferred {known.shape}, computed {result.shape}"
        )


def openvinos(
    name: str,
    version: int,
    inputs: Sequence[Value],
    attributes: Mapping[str, object] | None = None,
    constant: Sequence[int] = (),
    opset: int = 0,
) -> list[np.ndarray]:
    """OpenVINO's outputs on its CPU; inputs numbered in ``constant`` become constants of the
    model.
    """
    parameters, sources = _sources(inputs, constant)
    model = ov.Model(
        _created(name, opset or version, sources, attributes).outputs(), parameters, "one"
    )
    compiled = ov.Core().compile_model(model, "CPU", _CONFIG)
    request = compiled.create_infer_request()
    feeds = [array for index, array in enumerate(inputs) if index not in constant]
    request.infer({index: _tensor(array) for index, array in enumerate(feeds)})
    return [_array(request.get_output_tensor(index)) for index in range(len(compiled.outputs))]


def references(
    name: str,
    version: int,
    inputs: Sequence[Value],
    attributes: Mapping[str, object] | None = None,
    constant: Sequence[int] = (),
    opset: int = 0,
) -> list[np.ndarray]:
    """The outputs that OpenVINO's core computes, without the CPU plugin: the second opinion
    where the plugin differs from the spec.
    """
    parameters, sources = _sources(inputs, constant)
    node = _created(name, opset or version, sources, attributes)
    shapes = [
        one.get_shape() if one.get_partial_shape().is_static else ov.Shape([0])
        for one in node.outputs()
    ]
    outputs = [
        ov.Tensor(one.get_element_type(), shape)
        for one, shape in zip(node.outputs(), shapes, strict=True)
    ]
    feeds = [_tensor(array) for index, array in enumerate(inputs) if index not in constant]
    assert ov.Model(node.outputs(), parameters, "one").evaluate(outputs, feeds)
    return [_array(output) for output in outputs]


def _created(
    name: str, opset: int, sources: list[ov.Output], attributes: Mapping[str, object] | None
) -> ov.Node:
    return NodeFactory(f"opset{opset}").create(
        _FACTORY_NAMES.get(name, name), sources, dict(attributes or {})
    )


def _sources(
    inputs: Sequence[Value], constant: Sequence[int]
) -> tuple[list[ov.Node], list[ov.Output]]:
    parameters, sources = [], []
    for index, array in enumerate(inputs):
        if index in constant:
            constant_node = (
                ov.opset16.constant(array)
                if array.dtype.isbuiltin == 1
                else ov.op.Constant(_tensor(array))
            )
            sources.append(constant_node.output(0))
        else:
            parameters.append(ov.opset16.parameter(list(array.shape), _type(array)))
            sources.append(parameters[-1].output(0))
    return parameters, sources


def _type(array: Value) -> ov.Type:
    element_type = ElementType.of(array).value
    return _TYPES.get(element_type) or getattr(ov.Type, element_type)


def _tensor(array: Value) -> ov.Tensor:
    """Byte for byte, because OpenVINO's Python API takes few of the types that numpy lacks."""
    if array.dtype.hasobject:
        return ov.Tensor(array.astype(np.str_))
    if array.dtype.isbuiltin == 1:
        return ov.Tensor(np.array(array, order="C"))
    tensor = ov.Tensor(_type(array), list(array.shape))
    raw = np.frombuffer(encode(np.asarray(array)), np.uint8)
    tensor.data.reshape(-1).view(np.uint8)[: raw.size] = raw
    return tensor


def _array(tensor: ov.Tensor) -> np.ndarray:
    element_type = ElementType(tensor.get_element_type().get_type_name())
    if element_type is ElementType.STRING:
        return np.array(tensor.str_data, dtype=object)
    if element_type.dtype.isbuiltin == 1:
        return np.array(tensor.data)
    return decode(tensor.data.tobytes(), element_type, tensor.get_size()).reshape(
        tuple(tensor.get_shape())
    )


def agree(
    name: str,
    version: int,
    inputs: Sequence[Value],
    attributes: Mapping[str, object] | None = None,
    *,
    constant: Sequence[int] = (),
    opset: int = 0,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    oracle: Callable[..., list[np.ndarray]] = openvinos,
) -> None:
    """Our outputs equal OpenVINO's: count, shape, element type, values. ``oracle`` may be
    ``references`` instead.
    """
    theirs = oracle(name, version, inputs, attributes, constant, opset)
    texts = {key: _text(value) for key, value in (attributes or {}).items()}
    mine = ours(name, version, inputs, texts, len(theirs))
    assert len(mine) == len(theirs)
    for got, expected in zip(mine, theirs, strict=True):
        assert got.dtype == expected.dtype, f"{got.dtype}, expected {expected.dtype}"
        assert got.shape == expected.shape, f"{got.shape}, expected {expected.shape}"
        if got.dtype.kind in "fV":
            np.testing.assert_allclose(
                got.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol
            )
        else:
            np.testing.assert_array_equal(got, expected)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, np.ndarray)):
        return ",".join(_text(item) for item in value)
    return str(value)
