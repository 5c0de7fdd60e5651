"""Derivatives of ONNX's operations that move elements: pads, tiles, blocks, gathers, scatters,
running sums, the largest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.onnx.openvino_rules import by, through

_ONE = np.array([1])


def pad(at: Reverse, /) -> Mapping[int, Value | None]:
    data, pads, value, axes = (at.input_at(place) for place in range(4))
    assert data is not None
    assert pads is not None
    if axes is not None or data.rank is None:
        raise ValueError("which axes it pads is not known before it runs")
    if at.attributes["mode"] == "wrap":
        raise ValueError("its mode is wrap")
    rank = np.array([data.rank])
    begin, end = (
        at.ops.slice(pads, np.array([0]), rank, _ONE),
        at.ops.slice(pads, rank, 2 * rank, _ONE),
    )
    inputs = (data, begin, end) if value is None else (data, begin, end, at.reshaped_to(value, ()))
    found = through("Pad", at, inputs, {"pad_mode": at.attributes["mode"]})
    of_value = found[3] if value is not None and len(found) > 3 else None
    return {
        0: found[0],
        2: None if value is None or of_value is None else at.reshaped(of_value, value),
    }


def tile(at: Reverse, /) -> Adjoints:
    return by("Tile", at, at.inputs, {})


def depth_to_space(at: Reverse, /) -> Adjoints:
    mode = {"DCR": "blocks_first", "CRD": "depth_first"}[at.attributes["mode"]]
    return by(
        "DepthToSpace", at, at.inputs, {"mode": mode, "block_size": at.attributes["blocksize"]}
    )


def space_to_depth(at: Reverse, /) -> Adjoints:
    return by(
        "SpaceToDepth",
        at,
        at.inputs,
        {"mode": "blocks_first", "block_size": at.attributes["blocksize"]},
    )


def gather_nd(at: Reverse, /) -> Adjoints:
    return by("GatherND", at, at.inputs, {"batch_dims": at.attributes["batch_dims"]})


_REDUCTIONS = {"none": "none", "add": "sum", "mul": "prod", "min": "min", "max": "max"}


def _reduction(at: Reverse) -> str:
    return _REDUCTIONS[str(at.attributes.get("reduction") or "none")]


def scatter_elements(at: Reverse, /) -> Adjoints:
    axis = at.constant(np.array(at.attributes["axis"] or 0, np.int64))
    attributes = {"reduction": _reduction(at), "use_init_val": True}
    return by("ScatterElementsUpdate", at, (*at.inputs, axis), attributes)


def scatter_nd(at: Reverse, /) -> Adjoints:
    return by("ScatterNDUpdate", at, at.inputs, {"reduction": _reduction(at)})


def reverse_sequence(at: Reverse, /) -> Adjoints:
    attributes = {"batch_axis": at.attributes["batch_axis"], "seq_axis": at.attributes["time_axis"]}
    return by("ReverseSequence", at, at.inputs, attributes)


def cumulative_sum(at: Reverse, /) -> Adjoints:
    data, axis = at.inputs
    attributes = {name: bool(at.attributes[name]) for name in ("exclusive", "reverse")}
    return [through("CumSum", at, (data, at.reshaped_to(axis, ())), attributes)[0], None]


def top_k(at: Reverse, /) -> Adjoints:
    axis = -1 if at.attributes["axis"] is None else at.attributes["axis"]
    return [by("TopK", at, at.inputs, {"axis": axis})[0], *[None] * (len(at.inputs) - 1)]


def triangle(at: Reverse, /) -> Adjoints:
    """What was kept keeps its adjoint; the rest is 0."""
    data, *offset = at.inputs
    rank = data.rank
    if rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    lengths = at.shape_of(data)
    rows, columns = (_numbers(at, lengths, rank - 2 + number) for number in range(2))
    beyond = columns - at.ops.unsqueeze(rows, _ONE)
    diagonal = at.reshaped_to(offset[0], ()) if offset else at.constant(np.array(0, np.int64))
    kept = beyond >= diagonal if at.attributes["upper"] else beyond <= diagonal
    return [at.where(kept, at.adjoint), *[None] * len(offset)]


def _numbers(at: Reverse, lengths: Value, axis: int) -> Value:
    """``0, 1, ...`` as many as an axis is long."""
    length = at.ops.gather(lengths, np.array(axis), np.array(0), batch_dims=0)
    return at.ops.range(np.array(0), length, np.array(1), output_type="i64")


def dropout(at: Reverse, /) -> Mapping[int, Value | None]:
    """As inference has it, which hands its input on."""
    if at.input_at(2) is not None:
        raise ValueError("it has a training mode, which drops at random")
    return {0: at.adjoint}


_SAMPLED = {"linear": "bilinear", "cubic": "bicubic"}
"""What the modes were called before opset 20, and are by OpenVINO."""


def grid_sample(at: Reverse, /) -> Adjoints:
    """Of images."""
    if at.inputs[0].rank != 4:
        raise ValueError(
            f"the data has shape {at.inputs[0].shape}: only images [N, C, H, W] have a derivative here"
        )
    mode = str(at.attributes["mode"])
    attributes = {"mode": _SAMPLED.get(mode, mode), "padding_mode": at.attributes["padding_mode"]}
    return by(
        "GridSample",
        at,
        at.inputs,
        attributes | {"align_corners": bool(at.attributes["align_corners"])},
    )


def blocks_laid(at: Reverse, /) -> Adjoints:
    """Col2Im of images of two axes."""
    block = at.inputs[2]
    if not (block.shape.is_static and block.shape.lengths == (2,)):
        raise ValueError(
            f"its block_shape has shape {block.shape}: only blocks of two axes have a derivative here"
        )
    pads = tuple(at.attributes["pads"] or (0, 0, 0, 0))
    steps = {name: tuple(at.attributes[name] or (1, 1)) for name in ("strides", "dilations")}
    return by("Col2Im", at, at.inputs, steps | {"pads_begin": pads[:2], "pads_end": pads[2:]})


def numbers_between(at: Reverse, /) -> Adjoints:
    return by("Range", at, at.inputs, {})
