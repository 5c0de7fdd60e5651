"""Derivatives of ONNX's operations that move elements: pads, tiles, blocks, gathers, scatters,
running sums, TopK.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.onnx.derivatives import by_openvino_rule, openvino_adjoints

_ONE = np.array([1])


def pad(node: Reverse, /) -> Mapping[int, Value | None]:
    data, pads, value, axes = (node.input_at(place) for place in range(4))
    assert data is not None
    assert pads is not None
    if axes is not None:
        raise ValueError(
            "its input axes selects some axes: only a pad of all axes has a derivative"
        )
    if data.rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    if node.attributes["mode"] == "wrap":
        raise ValueError("its mode is wrap, which has no derivative")
    rank = np.array([data.rank])
    begin = node.ops.slice(pads, np.array([0]), rank, _ONE)
    end = node.ops.slice(pads, rank, 2 * rank, _ONE)
    inputs = (
        (data, begin, end) if value is None else (data, begin, end, node.reshaped_to(value, ()))
    )
    adjoints = openvino_adjoints("Pad", node, inputs, {"pad_mode": node.attributes["mode"]})
    of_value = adjoints[3] if value is not None and len(adjoints) > 3 else None
    return {
        0: adjoints[0],
        2: None if value is None or of_value is None else node.reshaped(of_value, value),
    }


def tile(node: Reverse, /) -> Adjoints:
    return by_openvino_rule("Tile", node, node.inputs, {})


def depth_to_space(node: Reverse, /) -> Adjoints:
    mode = {"DCR": "blocks_first", "CRD": "depth_first"}[node.attributes["mode"]]
    return by_openvino_rule(
        "DepthToSpace",
        node,
        node.inputs,
        {"mode": mode, "block_size": node.attributes["blocksize"]},
    )


def space_to_depth(node: Reverse, /) -> Adjoints:
    return by_openvino_rule(
        "SpaceToDepth",
        node,
        node.inputs,
        {"mode": "blocks_first", "block_size": node.attributes["blocksize"]},
    )


def gather_nd(node: Reverse, /) -> Adjoints:
    return by_openvino_rule(
        "GatherND", node, node.inputs, {"batch_dims": node.attributes["batch_dims"]}
    )


_REDUCTIONS = {"none": "none", "add": "sum", "mul": "prod", "min": "min", "max": "max"}


def _reduction(node: Reverse) -> str:
    return _REDUCTIONS[str(node.attributes.get("reduction") or "none")]


def scatter_elements(node: Reverse, /) -> Adjoints:
    axis = node.constant(np.array(node.attributes["axis"] or 0, np.int64))
    attributes = {"reduction": _reduction(node), "use_init_val": True}
    return by_openvino_rule("ScatterElementsUpdate", node, (*node.inputs, axis), attributes)


def scatter_nd(node: Reverse, /) -> Adjoints:
    return by_openvino_rule("ScatterNDUpdate", node, node.inputs, {"reduction": _reduction(node)})


def reverse_sequence(node: Reverse, /) -> Adjoints:
    attributes = {
        "batch_axis": node.attributes["batch_axis"],
        "seq_axis": node.attributes["time_axis"],
    }
    return by_openvino_rule("ReverseSequence", node, node.inputs, attributes)


def cumulative_sum(node: Reverse, /) -> Adjoints:
    data, axis = node.inputs
    attributes = {name: bool(node.attributes[name]) for name in ("exclusive", "reverse")}
    return [
        openvino_adjoints("CumSum", node, (data, node.reshaped_to(axis, ())), attributes)[0],
        None,
    ]


def top_k(node: Reverse, /) -> Adjoints:
    axis = -1 if node.attributes["axis"] is None else node.attributes["axis"]
    return [
        by_openvino_rule("TopK", node, node.inputs, {"axis": axis})[0],
        *[None] * (len(node.inputs) - 1),
    ]


def triangle(node: Reverse, /) -> Adjoints:
    """Return the adjoint of the elements that the triangle contains, and 0 for the rest."""
    data, *offset = node.inputs
    rank = data.rank
    if rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    lengths = node.shape_of(data)
    rows, columns = (_positions(node, lengths, rank - 2 + number) for number in range(2))
    offsets = columns - node.ops.unsqueeze(rows, _ONE)
    diagonal = node.reshaped_to(offset[0], ()) if offset else node.constant(np.array(0, np.int64))
    inside = offsets >= diagonal if node.attributes["upper"] else offsets <= diagonal
    return [node.where(inside, node.adjoint), *[None] * len(offset)]


def _positions(node: Reverse, lengths: Value, axis: int) -> Value:
    """Return the positions 0, 1, ... along an axis."""
    length = node.ops.gather(lengths, np.array(axis), np.array(0), batch_dims=0)
    return node.ops.range(np.array(0), length, np.array(1), output_type="i64")


def dropout(node: Reverse, /) -> Mapping[int, Value | None]:
    """Return the adjoint: inference passes the input on unchanged."""
    if node.input_at(2) is not None:
        raise ValueError("it has a training mode, which drops at random")
    return {0: node.adjoint}


_SAMPLED = {"linear": "bilinear", "cubic": "bicubic"}
"""OpenVINO's name, which is also the name before opset 20, for each mode."""


def grid_sample(node: Reverse, /) -> Adjoints:
    """Return the adjoints for images [N, C, H, W]."""
    if node.inputs[0].rank != 4:
        raise ValueError(
            f"the data has shape {node.inputs[0].shape}: only images [N, C, H, W] have a derivative"
        )
    mode = str(node.attributes["mode"])
    attributes = {"mode": _SAMPLED.get(mode, mode), "padding_mode": node.attributes["padding_mode"]}
    return by_openvino_rule(
        "GridSample",
        node,
        node.inputs,
        attributes | {"align_corners": bool(node.attributes["align_corners"])},
    )


def col_to_im(node: Reverse, /) -> Adjoints:
    """Return the adjoints for Col2Im of images with two axes."""
    block = node.inputs[2]
    if not (block.shape.is_static and block.shape.lengths == (2,)):
        raise ValueError(
            f"its block_shape has shape {block.shape}: only blocks of two axes have a derivative"
        )
    pads = tuple(node.attributes["pads"] or (0, 0, 0, 0))
    steps = {name: tuple(node.attributes[name] or (1, 1)) for name in ("strides", "dilations")}
    return by_openvino_rule(
        "Col2Im", node, node.inputs, steps | {"pads_begin": pads[:2], "pads_end": pads[2:]}
    )


def number_range(node: Reverse, /) -> Adjoints:
    return by_openvino_rule("Range", node, node.inputs, {})
