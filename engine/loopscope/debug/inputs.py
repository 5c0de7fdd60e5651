"""What a caller gives as inputs, bound to the model's Parameters: by tensor name, Parameter
name, position, or as a sequence.
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
"""Values of inputs by name, by position, or in the order of the model's inputs; a run takes those
of other tensors too, by name, address or as tensors of ``loopscope.builder``.
"""


def bind(
    model: Model, inputs: Inputs, needed: Collection[LayerId] | None = None
) -> dict[LayerId, np.ndarray]:
    """One array of the right type and shape for every Parameter; ``InputError`` says what does not
    fit and lists the inputs.

    ``needed``: only these must be given a value; None: all.
    """
    given: dict[LayerId, tuple[object, np.ndarray]] = {}
    pairs = list(_pairs(model, inputs))
    for key, value in sorted(pairs, key=lambda pair: len(_called(model, pair[0])) > 1):
        if _bound_already(model, key, value, given):
            continue
        signature = _signature(model, key)
        array = convert_input(value, signature)
        if signature.layer in given:
            first_key, first = given[signature.layer]
            if not _equal(first, array):
                raise InputError(
                    f"input {signature.name!r} is given twice with different values, as {first_key!r} and as {key!r}"
                )
        given[signature.layer] = key, array
    required = [
        signature for signature in model.inputs if needed is None or signature.layer in needed
    ]
    missing = [signature.name for signature in required if signature.layer not in given]
    if missing:
        raise MissingInput(f"no value is given for {listed(missing)}; {inputs_said(model)}")
    return {layer: array for layer, (_, array) in given.items()}


def named_inputs(
    model: Model, inputs: Inputs, tensor_of: Callable[[object], OutputRef | None]
) -> tuple[Inputs, dict[OutputRef, tuple[object, object]]]:
    """What is given for the model's inputs, and what for other tensors: those that ``tensor_of``
    finds for a key, with key and value.
    """
    if not isinstance(inputs, Mapping):
        return inputs, {}
    number = {signature.layer: position for position, signature in enumerate(model.inputs)}
    own: dict[str | int, object] = {}
    others: dict[OutputRef, tuple[object, object]] = {}
    for key, value in inputs.items():
        source = (
            None
            if isinstance(key, (str, int, np.integer)) and _called(model, key)
            else tensor_of(key)
        )
        if source is None:
            own[key] = value
        elif source.layer in number:
            own[number[source.layer]] = value
        else:
            others[source] = key, value
    return own, others


def _pairs(model: Model, inputs: Inputs) -> Iterable[tuple[object, Any]]:
    if inputs is None:
        return ()
    if isinstance(inputs, Mapping):
        return inputs.items()
    if (
        isinstance(inputs, (str, bytes))
        or not isinstance(inputs, Iterable)
        or getattr(inputs, "ndim", 1) == 0
    ):
        found = "text" if isinstance(inputs, (str, bytes)) else type(inputs).__name__
        raise InputError(
            f"inputs are a mapping or a sequence of arrays, not {found}; {inputs_said(model)}"
        )
    values = list(inputs)
    if len(values) > len(model.inputs):
        raise InputError(f"{len(values)} inputs are given; {inputs_said(model)}")
    return enumerate(values)


def _called(model: Model, key: object) -> Sequence[Signature]:
    """The inputs that a key means; several when Parameters share a name."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return [model.inputs[int(key)]] if 0 <= key < len(model.inputs) else []
    return model.inputs_called.get(key, ()) if isinstance(key, str) else ()


def _bound_already(
    model: Model, key: object, value: Any, given: dict[LayerId, tuple[object, np.ndarray]]
) -> bool:
    """Whether a name that means several inputs only repeats what other keys have said of one of
    them.
    """
    found = _called(model, key)
    if len(found) < 2 or any(signature.layer not in given for signature in found):
        return False
    return any(
        np.shape(value) == given[one.layer][1].shape
        and _equal(convert_input(value, one), given[one.layer][1])
        for one in found
    )


def _signature(model: Model, key: object) -> Signature:
    found = _called(model, key)
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(
            f"the name {shorten(str(key))!r} means {len(found)} inputs: give them by position; {inputs_said(model)}"
        )
    raise InputError(f"there is no input {shorten(repr(key))}; {inputs_said(model)}")


def inputs_said(model: Model) -> str:
    """The inputs of a model in words, for a sentence that refuses something."""
    if not model.inputs:
        return "the model has no inputs"
    texts = [
        f"{number}: {shorten(one.name)!r} {one.element_type or '?'}{one.shape}"
        for number, one in enumerate(model.inputs[:12])
    ]
    more = f" and {len(model.inputs) - 12} more" if len(model.inputs) > 12 else ""
    return f"the model's inputs are {', '.join(texts)}{more}"


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if not is_tensor(one) or not is_tensor(other):
        return one is other
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(
        one.reshape(-1).tolist() == other.reshape(-1).tolist()
        if one.dtype == object
        else one.tobytes() == other.tobytes()
    )


def convert_input(value: Any, signature: Signature) -> Any:
    """A value as an array of an input's element type; ``InputError`` when that would lose values or
    the shape does not fit.

    ONNX only: a list or tuple for a sequence; None for an optional without a value.
    """
    if signature.form != "tensor":
        return _container(value, signature)
    if not is_tensor(value) and not isinstance(value, tuple):
        raise InputError(
            f"input {signature.name!r} is a tensor, and has got {'a map' if isinstance(value, Mapping) else 'nothing'}"
        )
    return fitted(value, signature.element_type, signature.shape, f"input {signature.name!r}")


def fitted(
    value: Any, element_type: ElementType | None, shape: PartialShape, name: str
) -> np.ndarray:
    """A value as an array of an element type and shape; ``InputError`` says what of the place so
    named it does not fit.
    """
    try:
        array = _cast(value, element_type)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{name} takes {element_type}: {error}") from error
    if not shape.contains(array.shape):
        raise InputError(f"{name} takes shape {shape}, and has got {list(array.shape)}")
    return array


def _container(value: Any, signature: Signature) -> Any:
    if (value is None or value is NO_VALUE) and signature.form.startswith("optional"):
        return NO_VALUE
    if signature.form == "map" and isinstance(value, Mapping):
        return value
    tensor = replace(signature, form="tensor")
    if "sequence" not in signature.form:
        return convert_input(value, tensor)
    if not isinstance(value, (list, tuple)):
        found = "nothing" if value is NO_VALUE else type(value).__name__
        raise InputError(
            f"input {signature.name!r} is a sequence: a list or tuple of arrays is expected, not {found}"
        )
    return tuple(convert_input(one, tensor) for one in value)


def _cast(value: Any, element_type: ElementType | None) -> np.ndarray:
    from_python = not isinstance(value, (np.ndarray, np.generic))
    array = np.asarray(value)
    if from_python and array.dtype.kind == "f" and element_type is ElementType.U64:
        # numpy turns a list of integers into floats when one is negative or small and another needs
        # all 64 bits.
        exact = np.asarray(value, object)
        array = (
            exact.astype(np.uint64)
            if all(type(one) is int for one in exact.reshape(-1).tolist())
            else array
        )
    if element_type is None:
        return array
    dtype = element_type.dtype
    if array.dtype == dtype and element_type is not ElementType.STRING:
        return array
    if element_type is ElementType.STRING:
        return _strings(array)
    if array.dtype == np.dtype((np.void, dtype.itemsize)) and dtype.isbuiltin == 2:
        return array.view(
            dtype
        )  # what files of numpy make of the narrow types that numpy itself lacks
    if array.dtype.kind not in "biufV" or _is_record(array.dtype):
        raise ValueError(_no_numbers(array))
    if array.size == 0:
        return np.zeros(array.shape, dtype)
    if dtype.names:
        return _codes(array, element_type)
    with np.errstate(all="ignore"):
        cast = array.astype(np.float32).astype(dtype) if dtype.kind == "V" else array.astype(dtype)
    rounds = from_python and element_type.is_float and array.dtype.kind == "f"
    if not rounds and not _same_values(array, cast):
        raise ValueError(f"the cast from {array.dtype} would lose values")
    return cast


def _is_record(dtype: np.dtype) -> bool:
    """Whether an array holds numpy's records or raw bytes, and not one of our packed types,
    which are records too.
    """
    return dtype.type is np.void and not any(dtype == one.dtype for one in ElementType)


def _no_numbers(array: np.ndarray) -> str:
    """What an array holds instead of numbers, in words."""
    if array.dtype.kind != "O":
        return f"{'text' if array.dtype.kind in 'US' else array.dtype} is not a number"
    odd = [type(one).__name__ for one in array.reshape(-1).tolist() if not isinstance(one, int)]
    return f"{odd[0]} is not a number" if odd else "a whole number needs more than 64 bits"


def _same_values(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.kind in "iu" and other.dtype.kind in "iub":
        return (
            bool(np.all(one.astype(object) == other.astype(object)))
            if one.dtype.kind != other.dtype.kind
            else bool(np.all(one == other))
        )
    with np.errstate(
        invalid="ignore"
    ):  # a signalling NaN, which a file may hold, is a NaN like others
        wide_one, wide_other = one.astype(np.float64), other.astype(np.float64)
    return bool(np.all((wide_one == wide_other) | (np.isnan(wide_one) & np.isnan(wide_other))))


def _codes(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Types that numpy and ml_dtypes lack travel as uint8 codes (nf4: as its float values)."""
    if element_type is ElementType.NF4:
        raise ValueError("nf4 is a type of constants only")
    codes = array.astype(np.uint8)
    if not _same_values(array, codes) or (codes >> element_type.bits).any():
        raise ValueError(f"values lie outside 0..{2**element_type.bits - 1}")
    return np.ascontiguousarray(codes).view(element_type.dtype).reshape(array.shape)


def _strings(array: np.ndarray) -> np.ndarray:
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
