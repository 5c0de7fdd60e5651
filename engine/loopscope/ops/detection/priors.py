"""Prior boxes: PriorBox, PriorBoxClustered and ExperimentalDetectronPriorGridGenerator."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from loopscope.ir.element_type import INTEGERS, REAL_FLOATS, ElementType
from loopscope.ir.shape import UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.kernel_arithmetic import to_element_type, widened
from loopscope.ops.kernel_checks import check_elements, shape_of_rank, whole_numbers

_F32 = np.float32
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class _Box:
    """A box at every grid centre: offset of its own centre, and half its width and height, in
    pixels.
    """

    half_width: float
    half_height: float
    right: float = 0.0
    down: float = 0.0
    inside: bool = False
    """True if its outer sides are limited to the image."""


def prior_box(
    output_size: Array,
    image_size: Array,
    /,
    *,
    min_size: tuple[float, ...] = (),
    max_size: tuple[float, ...] = (),
    aspect_ratio: tuple[float, ...] = (),
    flip: bool = False,
    clip: bool = False,
    step: float = 0.0,
    offset: float = 0.0,
    variance: tuple[float, ...] = (),
    scale_all_sizes: bool = True,
    fixed_ratio: tuple[float, ...] = (),
    fixed_size: tuple[float, ...] = (),
    density: tuple[float, ...] = (),
    min_max_aspect_ratios_order: bool = True,
) -> Array:
    """Return prior boxes and their variances, as fractions of the image.

    The result is [2, 4 * height * width * boxes per point].
    """
    (height, width), (image_height, image_width) = _sizes(output_size), _sizes(image_size)
    if not scale_all_sizes:
        step = image_height / max(height, 1) if step == -1 else step * image_height
        min_size = tuple(size * image_height for size in min_size)
    ratios = tuple(_ratios(aspect_ratio, flip))
    boxes = [
        *_dense_boxes(fixed_size, fixed_ratio, density, ratios),
        *_sized_boxes(min_size, max_size, ratios, scale_all_sizes, min_max_aspect_ratios_order),
    ]
    check_elements(8 * height * width * len(boxes), "the prior boxes")
    if step == 0:
        xs = _centres(width, 0.5, image_width / max(width, 1))
        ys = _centres(height, 0.5, image_height / max(height, 1))
    else:
        xs, ys = _centres(width, offset, step), _centres(height, offset, step)
    placed = _place_boxes(boxes, xs, ys, image_width, image_height)
    return _with_variances(np.clip(placed, 0, 1) if clip else placed, variance)


def _sizes(array: Array) -> tuple[int, int]:
    numbers = whole_numbers(array)
    if len(numbers) != 2 or min(numbers) < 0:
        raise ValueError(f"a size of {numbers}: expected height and width")
    return numbers[0], numbers[1]


def _ratios(ratios: Sequence[float], flip: bool) -> Iterator[float]:
    """Yield 1 and the given ratios, each once; a flipped ratio follows its original."""
    seen = [1.0]
    yield 1.0
    for ratio in ratios:
        if not any(abs(ratio - other) < _TOLERANCE for other in seen):
            for value in (ratio, 1 / ratio) if flip else (ratio,):
                seen.append(value)
                yield value


def _dense_boxes(
    sizes: Sequence[float],
    fixed: Sequence[float],
    density: Sequence[float],
    ratios: Sequence[float],
) -> Iterator[_Box]:
    """Yield boxes of fixed sizes, ``density`` of them in each direction."""
    for number, size in enumerate(sizes):
        steps = int(density[number]) if number < len(density) else 1
        if steps < 1:
            raise ValueError(f"density {steps} of fixed size {size}: expected at least 1")
        check_elements(steps * steps, "the boxes of one size")
        shift = int(size / steps)
        places = [shift / 2 + index * shift - int(size) // 2 for index in range(steps)]
        for ratio in fixed or ratios:
            plain = not fixed and abs(ratio - 1) < _TOLERANCE
            half = int(size) / 2 if plain else size / 2
            root = math.sqrt(ratio)
            for down in places:
                for right in places:
                    yield _Box(half * root, half / root, right, down, inside=True)


def _sized_boxes(
    min_sizes: Sequence[float],
    max_sizes: Sequence[float],
    ratios: Sequence[float],
    every_size: bool,
    means_first: bool,
) -> Iterator[_Box]:
    """Yield boxes of the minimum sizes, of their geometric means with the maximum sizes, and of the
    aspect ratios.
    """
    for number, size in enumerate(min_sizes):
        yield _Box(size / 2, size / 2)
        means = (
            [_Box(half, half) for half in [math.sqrt(size * max_sizes[number]) / 2]]
            if number < len(max_sizes)
            else []
        )
        shaped: list[_Box] = []
        if every_size or number == len(min_sizes) - 1:
            half = (size if every_size else min_sizes[0]) / 2
            shaped = [
                _Box(half * math.sqrt(ratio), half / math.sqrt(ratio))
                for ratio in ratios
                if abs(ratio - 1) >= _TOLERANCE
            ]
        yield from (*means, *shaped) if means_first else (*shaped, *means)


def _centres(count: int, offset: float, step: float) -> np.ndarray:
    return (np.arange(count, dtype=_F32) + _F32(offset)) * _F32(step)


def _place_boxes(
    boxes: Sequence[_Box], xs: np.ndarray, ys: np.ndarray, image_width: int, image_height: int
) -> np.ndarray:
    """Return corners [height, width, boxes, 4] of all boxes at all centres."""
    right, down, half_width, half_height = (
        np.array([getattr(box, name) for box in boxes], _F32)
        for name in ("right", "down", "half_width", "half_height")
    )
    across = xs[None, :, None] + right + np.zeros((len(ys), 1, 1), _F32)
    along = ys[:, None, None] + down + np.zeros((1, len(xs), 1), _F32)
    wide, high = _F32(1) / _F32(max(image_width, 1)), _F32(1) / _F32(max(image_height, 1))
    sides = [
        (across - half_width) * wide,
        (along - half_height) * high,
        (across + half_width) * wide,
        (along + half_height) * high,
    ]
    inside = np.array([box.inside for box in boxes], bool)
    sides = [
        np.where(inside, np.maximum(side, 0) if low else np.minimum(side, 1), side)
        for side, low in zip(sides, (1, 1, 0, 0), strict=True)
    ]
    return np.stack(sides, -1).astype(_F32)


def _with_variances(boxes: np.ndarray, variance: Sequence[float]) -> np.ndarray:
    if len(variance) not in (0, 1, 4):
        raise ValueError(f"{len(variance)} variances: expected none, 1 or 4")
    variances = np.broadcast_to(np.array(variance or (0.1,), _F32), boxes.shape)
    return np.stack([boxes.reshape(-1), variances.reshape(-1)])


def prior_box_clustered(
    output_size: Array,
    image_size: Array,
    /,
    *,
    width: tuple[float, ...] = (1.0,),
    height: tuple[float, ...] = (1.0,),
    clip: bool = True,
    step: float = 0.0,
    step_w: float = 0.0,
    step_h: float = 0.0,
    offset: float = 0.0,
    variance: tuple[float, ...] = (),
) -> Array:
    """Return boxes of given widths and heights with their variances, as fractions of the image.

    The result is [2, 4 * height * width * boxes].
    """
    if len(width) != len(height):
        raise ValueError(f"{len(width)} widths and {len(height)} heights")
    (rows, columns), (image_height, image_width) = _sizes(output_size), _sizes(image_size)
    check_elements(8 * rows * columns * len(width), "the prior boxes")
    across, along = step_w or step, step_h or step
    if across == 0 and along == 0:
        across, along = image_width / max(columns, 1), image_height / max(rows, 1)
    boxes = [_Box(wide / 2, high / 2) for wide, high in zip(width, height, strict=True)]
    placed = _place_boxes(
        boxes,
        _centres(columns, offset, across),
        _centres(rows, offset, along),
        image_width,
        image_height,
    )
    return _with_variances(np.clip(placed, 0, 1) if clip else placed, variance)


def prior_grid(
    priors: Array,
    features: Array,
    image: Array,
    /,
    *,
    flatten: bool = True,
    h: int = 0,
    w: int = 0,
    stride_x: float = 0.0,
    stride_y: float = 0.0,
) -> Array:
    """Move priors [n, 4] to the centre of every cell of a feature map.

    The result is [height * width * n, 4] with ``flatten``, else [height, width, n, 4]. If ``h`` and
    ``w`` are fewer cells than the feature map has, the rest is zero (the page leaves it undefined).
    """
    if priors.ndim != 2 or priors.shape[1] != 4 or features.ndim != 4 or image.ndim != 4:
        raise ValueError(
            f"shapes {priors.shape}, {features.shape}, {image.shape}: expected [n, 4] "
            "and two of rank 4"
        )
    height, width = features.shape[2:]
    rows, columns = h or height, w or width
    if rows > height or columns > width:
        raise ValueError(
            f"a grid of {rows} by {columns} cells over a feature map of {height} by {width}"
        )
    check_elements(height * width * priors.size, "the grid of priors")
    xs = _centres(columns, 0.5, stride_x or image.shape[3] / max(columns, 1))
    ys = _centres(rows, 0.5, stride_y or image.shape[2] / max(rows, 1))
    centres = np.stack(np.broadcast_arrays(xs[None, :], ys[:, None]), -1)
    moved = widened(np.asarray(priors)) + np.concatenate([centres, centres], -1)[:, :, None]
    cells = np.zeros((height * width * len(priors), 4), moved.dtype)
    cells[: moved.size // 4] = moved.reshape(-1, 4)
    grid = to_element_type(cells, priors.dtype)
    return grid if flatten else grid.reshape(height, width, len(priors), 4)


def _infer_boxes(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /, *, clustered: bool
) -> tuple[Known, ...]:
    count = UNKNOWN
    value = inputs[0].value
    if value is not None:
        rows, columns = _sizes(value)
        per_point = len(attributes["width"]) if clustered else _boxes_per_point(attributes)
        count = static(4 * rows * columns * per_point)
    return (Known(ElementType.F32, PartialShape((static(2), count))),)


def _boxes_per_point(attributes: Mapping[str, Any]) -> int:
    ratios = tuple(_ratios(attributes["aspect_ratio"], attributes["flip"]))
    dense = _dense_boxes(
        attributes["fixed_size"], attributes["fixed_ratio"], attributes["density"], ratios
    )
    every = attributes["scale_all_sizes"]
    sized = _sized_boxes(
        attributes["min_size"],
        attributes["max_size"],
        ratios,
        every,
        attributes.get("min_max_aspect_ratios_order", True),
    )
    return sum(1 for _ in dense) + sum(1 for _ in sized)


def _infer_grid(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    priors = shape_of_rank(inputs[0], 2, "the table of priors")
    features = shape_of_rank(inputs[1], 4, "the feature map")
    height, width, count = features.at(2), features.at(3), priors.at(0)
    flat = (height * width * count, static(4))
    return (
        Known(
            inputs[0].element_type,
            PartialShape(flat if attributes["flatten"] else (height, width, count, static(4))),
        ),
    )


_PRIOR_BOX = (
    Attribute("min_size", "floats", (), least=0),
    Attribute("max_size", "floats", (), least=0),
    Attribute("aspect_ratio", "floats", (), least=1e-30),
    Attribute("flip", "bool", False),
    Attribute("clip", "bool", False),
    Attribute("step", "float", 0.0),
    Attribute("offset", "float"),
    Attribute("variance", "floats", ()),
    Attribute("scale_all_sizes", "bool", True),
    Attribute("fixed_ratio", "floats", (), least=1e-30),
    Attribute("fixed_size", "floats", (), least=0),
    Attribute("density", "floats", ()),
)


def _prior_box(
    version: int, opsets: tuple[int, int], attributes: tuple[Attribute, ...]
) -> Operation:
    return Operation(
        name="PriorBox",
        version=version,
        opsets=opsets,
        page=f"detection/prior-box-{version}",
        kernel=prior_box,
        infer=partial(_infer_boxes, clustered=False),
        inputs=(2, 2),
        types=(INTEGERS,),
        attributes=attributes,
    )


row = family("detection")

OPERATIONS: tuple[Operation, ...] = (
    _prior_box(1, (1, 7), _PRIOR_BOX),
    _prior_box(8, (8, 16), (*_PRIOR_BOX, Attribute("min_max_aspect_ratios_order", "bool", True))),
    row(
        "PriorBoxClustered",
        prior_box_clustered,
        infer=partial(_infer_boxes, clustered=True),
        inputs=(2, 2),
        types=(INTEGERS,),
        attributes=(
            Attribute("width", "floats", (1.0,)),
            Attribute("height", "floats", (1.0,)),
            Attribute("clip", "bool", True),
            Attribute("step", "float", 0.0),
            Attribute("step_w", "float", 0.0),
            Attribute("step_h", "float", 0.0),
            Attribute("offset", "float"),
            Attribute("variance", "floats", ()),
        ),
    ),
    row(
        "ExperimentalDetectronPriorGridGenerator",
        prior_grid,
        version=6,
        infer=_infer_grid,
        inputs=(3, 3),
        types=(REAL_FLOATS,),
        attributes=(
            Attribute("flatten", "bool", True),
            Attribute("h", "int", 0, least=0),
            Attribute("w", "int", 0, least=0),
            Attribute("stride_x", "float", 0.0),
            Attribute("stride_y", "float", 0.0),
        ),
    ),
)
