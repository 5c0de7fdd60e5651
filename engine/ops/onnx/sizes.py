"""How large the outputs of ONNX operations get whose size comes from a value: asked before the reference kernel allocates them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.ops.bounds import check_elements

Arguments = Sequence[Any]
Attributes = Mapping[str, Any]


def check_size(type: str, arguments: Arguments, attributes: Attributes) -> None:
    """``ValueError`` when the output would have more elements than a run allows; arguments as reference kernels take them."""
    rule = _RULES.get(type)
    if rule is not None:
        check_elements(rule(arguments, attributes), f"the output of {type}")


def _tile(arguments: Arguments, attributes: Attributes) -> int:
    return int(arguments[0].size) * _product(arguments[1])


def _range(arguments: Arguments, attributes: Attributes) -> int:
    start, limit, delta = (one.reshape(-1)[0].item() for one in arguments[:3])
    if not delta or not all(math.isfinite(one) for one in (start, limit, delta)):
        raise ValueError(f"a range from {start} to {limit} in steps of {delta} has no end")
    return max(0, math.ceil((limit - start) / delta))


def _pad(arguments: Arguments, attributes: Attributes) -> int:
    tensor = arguments[0]
    pads = attributes.get("pads") or attributes.get("paddings") or (arguments[1] if len(arguments) > 1 else ())
    added = [max(int(one), 0) for one in np.ravel(pads)]
    if len(added) == 2 * tensor.ndim:
        return math.prod(length + before + after for length, before, after in zip(tensor.shape, added, added[tensor.ndim :], strict=False))
    return int(tensor.size + 1) * math.prod(1 + one for one in added)


def _resize(arguments: Arguments, attributes: Attributes) -> int:
    tensor = arguments[0]
    sizes = arguments[3] if len(arguments) > 3 else None
    if sizes is not None and sizes.size:
        return _product(sizes) * (1 if sizes.size == tensor.ndim else int(tensor.size))
    given = arguments[2] if len(arguments) > 2 else arguments[1] if len(arguments) > 1 else attributes.get("scales")
    scales = np.ravel(given) if given is not None else np.ones(1)
    return _finite(float(tensor.size) * float(np.prod(np.maximum(scales.astype(np.float64), 0))))


def _random(arguments: Arguments, attributes: Attributes) -> int:
    return _product(attributes.get("shape") or ())


def _window(arguments: Arguments, attributes: Attributes) -> int:
    return int(np.ravel(arguments[0])[0])


def _crop(arguments: Arguments, attributes: Attributes) -> int:
    return _product(arguments[1]) * max(int(arguments[0].size), 1)


def _mel(arguments: Arguments, attributes: Attributes) -> int:
    bins, length = (int(np.ravel(one)[0]) for one in arguments[:2])
    return bins * (length // 2 + 1)


def _product(lengths: Any) -> int:
    return math.prod(max(int(length), 0) for length in np.ravel(lengths))


def _finite(elements: float) -> int:
    return int(elements) if math.isfinite(elements) else 2**62


_RULES: Mapping[str, Callable[[Arguments, Attributes], int]] = {
    "Tile": _tile,
    "Range": _range,
    "Pad": _pad,
    "Resize": _resize,
    "Upsample": _resize,
    "RandomNormal": _random,
    "RandomUniform": _random,
    "HannWindow": _window,
    "HammingWindow": _window,
    "BlackmanWindow": _window,
    "CenterCropPad": _crop,
    "MelWeightMatrix": _mel,
}
