"""Resize by the coordinates that TensorFlow 1 had for the nearest pixel, which only Resize 11 and 12 know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from engine.ops.onnx.bilinear import resized_linearly
from engine.ops.onnx.output_sizes import check_size

MODE = "tf_half_pixel_for_nn"
_ROUNDED: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda places: np.ceil(places - 0.5),
    "round_prefer_ceil": lambda places: np.floor(places + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def resized(slow: Any, attributes: Mapping[str, Any], outputs: int) -> Any:
    """The kernel of a node; ``slow`` prepares the onnx package's, which knows the other coordinates."""
    if attributes.get("coordinate_transformation_mode") != MODE:
        return resized_linearly(slow, attributes, outputs)
    mode, rounding = attributes.get("mode") or "nearest", attributes.get("nearest_mode") or "round_prefer_floor"

    def compute(data: Any, roi: Any = None, scales: Any = None, sizes: Any = None, /) -> tuple[np.ndarray]:
        if mode != "nearest" or rounding not in _ROUNDED:
            raise ValueError(f"mode is {mode[:40]!r} and nearest_mode {rounding[:40]!r}: {MODE} is computed for the nearest pixel")
        data = np.asarray(data)
        scales, sizes = (None if one is None or not np.size(one) else np.ravel(one) for one in (scales, sizes))
        check_size("Resize", (data, None, scales, sizes), {})
        for axis, length in enumerate(data.shape):
            scale = np.float32(scales[axis]) if sizes is None else np.float32(sizes[axis]) / np.float32(length)
            made = int(np.floor(np.float32(length) * scale)) if sizes is None else int(sizes[axis])
            if scale != 1:
                # Half a pixel is added and, unlike in half_pixel, not taken away again.
                places = (np.arange(made, dtype=np.float32) + np.float32(0.5)) / scale
                data = data.take(np.clip(_ROUNDED[rounding](places), 0, length - 1).astype(np.int64), axis)
        return (data,)

    return compute
