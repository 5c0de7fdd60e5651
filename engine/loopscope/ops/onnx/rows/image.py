"""Rows of ONNX's operations on images and boxes."""

from __future__ import annotations

from loopscope.ops.declare import Attribute
from loopscope.ops.derivative import WithGaps
from loopscope.ops.onnx import derivatives_of_movement as movement_rules
from loopscope.ops.onnx import derivatives_of_resizing as resizing_rules
from loopscope.ops.onnx import images, resizing
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
    row("AffineGrid", images.affine_grid, since=20, convert=True),
    row(
        "Crop",
        images.crop,
        until=9,
        attributes=(Attribute("border", "ints"), Attribute("scale", "ints", None)),
        infer=images.cropped_shape,
    ),
    row("GridSample", prepare_part=images.images_sampled, gradient=movement_rules.grid_sample),
    row("ImageDecoder", images.image_decoder, since=20, convert=True),
    row(
        "ImageScaler",
        images.image_scaler,
        until=9,
        attributes=(Attribute("bias", "floats"), Attribute("scale", "float", 1.0)),
    ),
    row("NonMaxSuppression", images.non_max_suppression, since=10, convert=True),
    row("Resize", resizing.upsample, until=10, convert=True, gradient=resizing_rules.upsample),
    row(
        "Resize", resizing.resize, since=11, convert=True, gradient=WithGaps(resizing_rules.resize)
    ),
    row("Upsample", resizing.upsample, until=10, convert=True, gradient=resizing_rules.upsample),
)
