"""Binding of inputs to the model's Parameters: by tensor name, Parameter name, position, or as a
sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from loopscope.errors import InputError, MissingInput, listed, shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId, Model, OutputRef, Signature
from loopscope.ir.shape import PartialShape
from loopscope.ops.values import NO_VALUE, is_tensor

Inputs = Mapping[Any, object] | Sequence[object] | None
"""Input values by name, by position, or in the order of the model's inputs. A run also accepts
values of other tensors, by name, address or as tensors of ``loopscope.builder``.
"""


def bind(
    model: Model, inputs: Inputs, needed: Collection[LayerId] | None = None
) -> dict[LayerId, np.ndarray]:
    """Return one array of the right type and shape for every Parameter; ``InputError`` for
    unsuitable values, with a list of the inputs.

    ``needed`` are the Parameters that require a value; None means all.
    """
    values: dict[LayerId, tuple[object, np.ndarray]] = {}
    pairs = list(_key_value_pairs(model, inputs))
    for key, value in sorted(pairs, key=lambda pair: len(_inputs_named(model, pair[0])) > 1):
        if _repeats_bound_value(model, key, value, values):
            continue
        signature = _single_input(model, key)
        array = convert_input(value, signature)
        if signature.layer in values:
            first_key, first = values[signature.layer]
            if not _equal(first, array):
                raise InputError(
                    f"input {signature.name!r} is given twice with different values, "
                    f"as {first_key!r} and as {key!r}"
                )
        values[signature.layer] = key, array
    required = [
        signature for signature in model.inputs if needed is None or signature.layer in needed
    ]
    missing = [signature.name for signature in required if signature.layer not in values]
    if missing:
        raise MissingInput(f"no value is given for {listed(missing)}; {describe_inputs(model)}")
    return {layer: array for layer, (_, array) in values.items()}


def bind_by_name(model: Model, inputs: Inputs) -> dict[LayerId, Any] | None:
    """Return what ``bind`` returns for a dictionary with one unambiguous name for each input; None
    for other inputs.
    """
    if type(inputs) is not dict or len(inputs) != len(model.inputs):
        return None
    called = model.inputs_called
    arrays: dict[LayerId, Any] = {}
    for key, value in inputs.items():
        signatures = called.get(key, ()) if isinstance(key, str) else ()
        if len(signatures) != 1 or signatures[0].layer in arrays:
            return None
        arrays[signatures[0].layer] = convert_input(value, signatures[0])
    return arrays


def named_inputs(
    model: Model, inputs: Inputs, tensor_of: Callable[[object], OutputRef | None]
) -> tuple[Inputs, dict[OutputRef, tuple[object, object]]]:
    """Return the values of the model's inputs, and the keys and values of other tensors, which
    ``tensor_of`` finds by key.
    """
    if not isinstance(inputs, Mapping):
        return inputs, {}
    number = {signature.layer: position for position, signature in enumerate(model.inputs)}
    model_inputs: dict[str | int, object] = {}
    other_tensors: dict[OutputRef, tuple[object, object]] = {}
    for key, value in inputs.items():
        source = (
            None
            if isinstance(key, (str, int, np.integer)) and _inputs_named(model, key)
            else tensor_of(key)
        )
        if source is None:
            model_inputs[key] = value
        elif source.layer in number:
            model_inputs[number[source.layer]] = value
        else:
            other_tensors[source] = key, value
    return model_inputs, other_tensors


def _key_value_pairs(model: Model, inputs: Inputs) -> Iterable[tuple[object, Any]]:
    if inputs is None:
        return ()
    if isinstance(inputs, Mapping):
        return inputs.items()
    if (
        isinstance(inputs, (str, bytes))
        or not isinstance(inputs, Iterable)
        or getattr(inputs, "ndim", 1) == 0
    ):
        kind = "text" if isinstance(inputs, (str, bytes)) else type(inputs).__name__
        raise InputError(
            f"inputs: expected a mapping or a sequence of arrays, got {kind}; "
            f"{describe_inputs(model)}"
        )
    values = list(inputs)
    if len(values) > len(model.inputs):
        raise InputError(f"{len(values)} inputs are given; {describe_inputs(model)}")
    return enumerate(values)


def _inputs_named(model: Model, key: object) -> Sequence[Signature]:
    """Return the inputs that a key names; several if Parameters share a name."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return [model.inputs[int(key)]] if 0 <= key < len(model.inputs) else []
    return model.inputs_called.get(key, ()) if isinstance(key, str) else ()


def _repeats_bound_value(
    model: Model, key: object, value: Any, values: dict[LayerId, tuple[object, np.ndarray]]
) -> bool:
    """Return True if a name of several inputs only repeats a value that another key has bound."""
    signatures = _inputs_named(model, key)
    if len(signatures) < 2 or any(signature.layer not in values for signature in signatures):
        return False
    return any(
        np.shape(value) == values[signature.layer][1].shape
        and _equal(convert_input(value, signature), values[signature.layer][1])
        for signature in signatures
    )


def _single_input(model: Model, key: object) -> Signature:
    signatures = _inputs_named(model, key)
    if len(signatures) == 1:
        return signatures[0]
    if signatures:
        raise InputError(
            f"the name {shorten(str(key))!r} means {len(signatures)} inputs: "
            "give them by position; "
            f"{describe_inputs(model)}"
        )
    raise InputError(f"there is no input {shorten(repr(key))}; {describe_inputs(model)}")


def describe_inputs(model: Model) -> str:
    """Describe the inputs of a model for an error message."""
    if not model.inputs:
        return "the model has no inputs"
    texts = [
        f"{number}: {shorten(signature.name)!r} {signature.element_type or '?'}{signature.shape}"
        for number, signature in enumerate(model.inputs[:12])
    ]
    more = f" and {len(model.inputs) - 12} more" if len(model.inputs) > 12 else ""
    return f"the model's inputs are {', '.join(texts)}{more}"


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if not is_tensor(left) or not is_tensor(right):
        return left is right
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    return bool(
        left.reshape(-1).tolist() == right.reshape(-1).tolist()
        if left.dtype == object
        else left.tobytes() == right.tobytes()
    )


def convert_input(value: Any, signature: Signature) -> Any:
    """Return a value as an array of an input's element type; ``InputError`` for a lossy cast or an
    unsuitable shape.

    ONNX only: a list or tuple for a sequence; None for an optional without a value.
    """
    if (
        type(value) is np.ndarray
        and signature.element_type not in (None, ElementType.STRING)
        and signature.form == "tensor"
        and value.dtype == signature.element_type.dtype
        and signature.shape.contains(value.shape)
    ):
        return value  # most values of repeated runs
    if signature.form != "tensor":
        return _convert_container(value, signature)
    if not is_tensor(value) and not isinstance(value, tuple):
        kind = "a map" if isinstance(value, Mapping) else "nothing"
        raise InputError(f"input {signature.name!r}: expected a tensor, got {kind}")
    return convert_to(value, signature.element_type, signature.shape, f"input {signature.name!r}")


def convert_to(
    value: Any, element_type: ElementType | None, shape: PartialShape, name: str
) -> np.ndarray:
    """Return a value as an array of an element type and shape; ``InputError`` that begins with
    ``name`` if it does not fit.
    """
    try:
        array = _cast(value, element_type)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{name} takes {element_type}: {error}") from error
    if not shape.contains(array.shape):
        raise InputError(f"{name}: expected shape {shape}, got {list(array.shape)}")
    return array


def _convert_container(value: Any, signature: Signature) -> Any:
    if (value is None or value is NO_VALUE) and signature.form.startswith("optional"):
        return NO_VALUE
    if signature.form == "map" and isinstance(value, Mapping):
        return value
    tensor = replace(signature, form="tensor")
    if "sequence" not in signature.form:
        return convert_input(value, tensor)
    if not isinstance(value, (list, tuple)):
        kind = "nothing" if value is NO_VALUE else type(value).__name__
        raise InputError(
            f"input {signature.name!r}: expected a list or tuple of arrays, got {kind}"
        )
    return tuple(convert_input(item, tensor) for item in value)


def _cast(value: Any, element_type: ElementType | None) -> np.ndarray:
    from_python = not isinstance(value, (np.ndarray, np.generic))
    array = np.asarray(value)
    if from_python and array.dtype.kind == "f" and element_type is ElementType.U64:
        # numpy turns a list of integers into floats if one is negative or small and another needs
        # all 64 bits.
        exact = np.asarray(value, object)
        array = (
            exact.astype(np.uint64)
            if all(type(item) is int for item in exact.reshape(-1).tolist())
            else array
        )
    if element_type is None:
        return array
    dtype = element_type.dtype
    if array.dtype == dtype and element_type is not ElementType.STRING:
        return array
    if element_type is ElementType.STRING:
        return _convert_strings(array)
    if array.dtype == np.dtype((np.void, dtype.itemsize)) and dtype.isbuiltin == 2:
        return array.view(dtype)  # numpy files store the narrow types that numpy lacks as raw bytes
    if array.dtype.kind not in "biufV" or _is_record(array.dtype):
        raise ValueError(_describe_non_number(array))
    if array.size == 0:
        return np.zeros(array.shape, dtype)
    if dtype.names:
        return _convert_codes(array, element_type)
    with np.errstate(all="ignore"):
        cast = array.astype(np.float32).astype(dtype) if dtype.kind == "V" else array.astype(dtype)
    rounds = from_python and element_type.is_float and array.dtype.kind == "f"
    if not rounds and not _same_values(array, cast):
        raise ValueError(f"the cast from {array.dtype} would lose values")
    return cast


def _is_record(dtype: np.dtype) -> bool:
    """Return True for numpy's records or raw bytes, which are not one of our packed types (also
    records).
    """
    return dtype.type is np.void and not any(
        dtype == element_type.dtype for element_type in ElementType
    )


def _describe_non_number(array: np.ndarray) -> str:
    """Describe what an array contains instead of numbers."""
    if array.dtype.kind != "O":
        return f"{'text' if array.dtype.kind in 'US' else array.dtype} is not a number"
    type_names = [
        type(item).__name__ for item in array.reshape(-1).tolist() if not isinstance(item, int)
    ]
    return (
        f"{type_names[0]} is not a number"
        if type_names
        else "a whole number needs more than 64 bits"
    )


def _same_values(left: np.ndarray, right: np.ndarray) -> bool:
    if left.dtype.kind in "iu" and right.dtype.kind in "iub":
        return (
            bool(np.all(left.astype(object) == right.astype(object)))
            if left.dtype.kind != right.dtype.kind
            else bool(np.all(left == right))
        )
    # A signalling NaN, which a file may contain, compares like any NaN.
    with np.errstate(invalid="ignore"):
        wide_left, wide_right = left.astype(np.float64), right.astype(np.float64)
    return bool(np.all((wide_left == wide_right) | (np.isnan(wide_left) & np.isnan(wide_right))))


def _convert_codes(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Return the uint8 codes of a type that numpy and ml_dtypes lack as an array of that type; nf4
    is rejected.
    """
    if element_type is ElementType.NF4:
        raise ValueError("nf4 is a type of constants only")
    codes = array.astype(np.uint8)
    if not _same_values(array, codes) or (codes >> element_type.bits).any():
        raise ValueError(f"values lie outside 0..{2**element_type.bits - 1}")
    return np.ascontiguousarray(codes).view(element_type.dtype).reshape(array.shape)


def _convert_strings(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "USO":
        raise ValueError(f"{array.dtype} is not text")
    texts = np.empty(array.shape, dtype=object)
    texts.reshape(-1)[:] = [
        item.decode("utf-8") if isinstance(item, bytes) else item
        for item in array.reshape(-1).tolist()
    ]
    wrong = next((item for item in texts.reshape(-1).tolist() if not isinstance(item, str)), None)
    if wrong is not None:
        raise ValueError(f"{type(wrong).__name__} is not text")
    return texts
