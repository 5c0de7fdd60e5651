"""Translation of Interpolate-1 into the attributes of Interpolate-11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def as_version_11(
    rank: int,
    *,
    axes: Sequence[int],
    mode: str,
    align_corners: bool,
    antialias: bool,
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
) -> Mapping[str, Any]:
    """Return the attributes of version 11, where ``axes`` is an input.

    The page does not define coordinates; these are the runtimes'. Linear interpolation without pads
    uses pixel centres, unless it resizes axes 2 and 3 of four. Everything else scales from the
    corner.
    """
    coordinates = "align_corners" if align_corners else "asymmetric"
    centred = (
        mode in ("linear", "linear_onnx")
        and not any((*pads_begin, *pads_end))
        and not (rank == 4 and set(axes) == {2, 3})
    )
    if centred and not align_corners:
        coordinates = "half_pixel"
    return {
        "mode": "linear_onnx" if mode == "linear" and rank < 5 else mode,
        "shape_calculation_mode": "sizes",
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": "simple",
        "antialias": antialias,
        "pads_begin": pads_begin,
        "pads_end": pads_end,
    }
