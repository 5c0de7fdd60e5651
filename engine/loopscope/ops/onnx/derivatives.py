"""Derivatives of ONNX operations by the rules of OpenVINO: operations that are the same functions,
and operations that move elements, such as pads, tiles, blocks, gathers, scatters and TopK.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import REQUIRED
from loopscope.ops.derivative import Adjoints, Gradient, Reverse, Value


def openvino_adjoints(
    openvino: str,
    node: Reverse,
    inputs: tuple[Value, ...],
    attributes: Mapping[str, Any],
    version: int | None = None,
) -> Adjoints:
    """Return the adjoints of these inputs by the rule of an OpenVINO operation of that name.

    ``version``: version of the operation; None for the newest.
    """
    operation = next(
        operation
        for operation in reversed(CATALOGUE.versions(openvino))
        if version in (None, operation.version)
    )
    assert operation.gradient is not None
    usual = {
        attribute.keyword: attribute.default
        for attribute in operation.attributes
        if attribute.default is not REQUIRED
    }
    return operation.gradient(
        replace(
            node,
            inputs=inputs,
            attributes={**usual, **attributes},
            places=tuple(range(len(inputs))),
        )
    )


def by_openvino_rule(
    openvino: str,
    node: Reverse,
    inputs: tuple[Value, ...],
    attributes: Mapping[str, Any],
    version: int | None = None,
) -> Adjoints:
    """Return the adjoints of the node's inputs. The first of them are ``inputs``; the adjoints of
    inputs beyond those are None.
    """
    adjoints = openvino_adjoints(openvino, node, inputs, attributes, version)
    return [*adjoints, *[None] * len(node.inputs)][: len(node.inputs)]


INDICES_INSIDE = 7
"""Version of Gather whose indices must be inside the data, as those of ONNX."""


def same_as(openvino: str) -> Gradient:
    """Return the derivative of an OpenVINO operation with the same inputs and attributes."""

    def gradient(node: Reverse, /) -> Adjoints:
        if openvino in ("Maximum", "Minimum") and len(node.inputs) != 2:
            raise ValueError(f"it has {len(node.inputs)} inputs, only two inputs have a derivative")
        return by_openvino_rule(
            openvino,
            node,
            node.inputs,
            {name: value for name, value in node.attributes.items() if value is not None},
        )

    return gradient


def total(node: Reverse, /) -> Adjoints:
    """Return the adjoint, summed to the shape of each term."""
    return [node.sum_to(node.adjoint, term) for term in node.inputs]


def mean(node: Reverse, /) -> Adjoints:
    return [node.sum_to(node.adjoint / float(len(node.inputs)), term) for term in node.inputs]


def leaky_relu(node: Reverse, /) -> Adjoints:
    data = node.inputs[0]
    return (node.ops.select(data < 0.0, node.adjoint * node.attributes["alpha"], node.adjoint),)


def power(node: Reverse, /) -> Adjoints:
    base, exponent = node.inputs
    if base.element_type is not exponent.element_type:
        exponent = node.ops.convert_like(exponent, base)
        return [*by_openvino_rule("Power", node, (base, exponent), {})[:1], None]
    return by_openvino_rule("Power", node, node.inputs, {})


def reciprocal(node: Reverse, /) -> Adjoints:
    return (-node.adjoint * node.outputs[0] * node.outputs[0],)


def matmul(node: Reverse, /) -> Adjoints:
    return by_openvino_rule(
        "MatMul", node, node.inputs, {"transpose_a": False, "transpose_b": False}
    )


def gemm(node: Reverse, /) -> Adjoints:
    """Return the adjoints of ``alpha A B + beta C``, where A and B may be transposed."""
    alpha, beta = node.attributes["alpha"], node.attributes["beta"]
    transposes = {
        "transpose_a": bool(node.attributes["transA"]),
        "transpose_b": bool(node.attributes["transB"]),
    }
    factors = by_openvino_rule(
        "MatMul", replace(node, adjoints=(node.adjoint * alpha,)), node.inputs[:2], transposes
    )[:2]
    return [*factors, *(node.sum_to(node.adjoint * beta, term) for term in node.inputs[2:])]


def same_elements(node: Reverse, /) -> Adjoints:
    return [node.reshaped(node.adjoint, node.inputs[0]), *[None] * (len(node.inputs) - 1)]


def identity(node: Reverse, /) -> Adjoints:
    return (node.adjoint,)


def cast(node: Reverse, /) -> Adjoints:
    return [node.ops.convert_like(node.adjoint, node.inputs[0]), *[None] * (len(node.inputs) - 1)]


def transpose(node: Reverse, /) -> Adjoints:
    order = node.constant(np.array(node.attributes["perm"] or (), np.int64))
    return by_openvino_rule("Transpose", node, (*node.inputs, order), {})


def concat(node: Reverse, /) -> Adjoints:
    return by_openvino_rule("Concat", node, node.inputs, {"axis": node.attributes["axis"]})


def split(node: Reverse, /) -> Adjoints:
    parts = [node.adjoint_of(number) for number in range(len(node.outputs))]
    return [
        node.ops.concat(*parts, axis=node.attributes["axis"] or 0),
        *[None] * (len(node.inputs) - 1),
    ]


def gather(node: Reverse, /) -> Adjoints:
    return by_openvino_rule(
        "Gather",
        node,
        (*node.inputs, node.constant(np.array(node.attributes["axis"] or 0, np.int64))),
        {"batch_dims": 0},
        INDICES_INSIDE,
    )


def gather_elements(node: Reverse, /) -> Adjoints:
    return by_openvino_rule(
        "GatherElements", node, node.inputs, {"axis": node.attributes["axis"] or 0}
    )


def slice_(node: Reverse, /) -> Adjoints:
    data, starts, ends, *rest = node.inputs
    if not starts.shape.is_static:
        raise ValueError("it is not known how many axes it slices")
    count = starts.shape.lengths[0]
    axes = rest[0] if rest else node.constant(np.arange(count))
    steps = rest[1] if len(rest) > 1 else node.constant(np.ones(count, np.int64))
    return [
        by_openvino_rule("Slice", node, (data, starts, ends, steps, axes), {})[0],
        *[None] * (len(node.inputs) - 1),
    ]


def where(node: Reverse, /) -> Adjoints:
    return by_openvino_rule("Select", node, node.inputs, {})


def expand(node: Reverse, /) -> Adjoints:
    return [node.sum_to(node.adjoint, node.inputs[0]), None]


def along_an_axis(openvino: str) -> Gradient:
    """Return the derivative of an OpenVINO operation along the node's axis (default: the last)."""
    return lambda node: by_openvino_rule(
        openvino,
        node,
        node.inputs,
        {"axis": -1 if node.attributes["axis"] is None else node.attributes["axis"]},
    )


def reduction(openvino: str) -> Gradient:
    """Return the derivative of a reduction whose axes are an input, an attribute or all axes."""

    def gradient(node: Reverse, /) -> Adjoints:
        data = node.inputs[0]
        if len(node.inputs) > 1:
            axes = node.inputs[1]
        elif node.attributes.get("axes"):
            axes = node.constant(np.array(node.attributes["axes"], np.int64))
        elif node.attributes.get("noop_with_empty_axes"):
            raise ValueError("it reduces no axis, because noop_with_empty_axes is set")
        elif data.rank is None:
            rank = node.ops.reshape(
                node.ops.shape_of(node.shape_of(data)), np.zeros(0, np.int64), special_zero=False
            )
            axes = node.ops.range(np.array(0), rank, np.array(1), output_type="i64")
        else:
            axes = node.constant(np.arange(data.rank))
        adjoints = by_openvino_rule(
            openvino, node, (data, axes), {"keep_dims": bool(node.attributes["keepdims"])}
        )
        return [adjoints[0], *[None] * (len(node.inputs) - 1)]

    return gradient


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


def _scatter_reduction(node: Reverse) -> str:
    return _REDUCTIONS[str(node.attributes.get("reduction") or "none")]


def scatter_elements(node: Reverse, /) -> Adjoints:
    axis = node.constant(np.array(node.attributes["axis"] or 0, np.int64))
    attributes = {"reduction": _scatter_reduction(node), "use_init_val": True}
    return by_openvino_rule("ScatterElementsUpdate", node, (*node.inputs, axis), attributes)


def scatter_nd(node: Reverse, /) -> Adjoints:
    return by_openvino_rule(
        "ScatterNDUpdate", node, node.inputs, {"reduction": _scatter_reduction(node)}
    )


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
    rows, columns = (positions(node, lengths, rank - 2 + number) for number in range(2))
    offsets = columns - node.ops.unsqueeze(rows, _ONE)
    diagonal = node.reshaped_to(offset[0], ()) if offset else node.constant(np.array(0, np.int64))
    inside = offsets >= diagonal if node.attributes["upper"] else offsets <= diagonal
    return [node.where(inside, node.adjoint), *[None] * len(offset)]


def positions(node: Reverse, lengths: Value, axis: int) -> Value:
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
