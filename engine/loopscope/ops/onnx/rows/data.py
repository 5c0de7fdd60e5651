"""Rows of ONNX's data operations: movement, images, random numbers, spectra, strings.

Movement operations move, join, cut or count elements. Images include boxes, and spectra include
window functions.
"""

from __future__ import annotations

from loopscope.ops import shape
from loopscope.ops.declare import Attribute
from loopscope.ops.derivative import WithGaps, flat
from loopscope.ops.movement import joining
from loopscope.ops.onnx import derivatives as rules
from loopscope.ops.onnx import derivatives_of_formulas as formula_rules
from loopscope.ops.onnx import derivatives_of_images as resizing_rules
from loopscope.ops.onnx import derivatives_of_movement as movement_rules
from loopscope.ops.onnx import (
    element_movement,
    images,
    machine_values,
    multinomial,
    placement,
    resizing,
    spectra,
    texts,
)
from loopscope.ops.onnx.row import OnnxRow, row

MOVEMENT: tuple[OnnxRow, ...] = (
    row("Col2Im", placement.col2im, since=18, gradient=movement_rules.col_to_im),
    row("Compress", since=9, gradient=formula_rules.compress),
    row("Concat", element_movement.old_concat, until=3, convert=True),
    row("Concat", joining.concat, since=4, gradient=rules.concat),
    row("ConstantOfShape", element_movement.constant_of_shape, since=9),
    row("DepthToSpace", since=11, gradient=movement_rules.depth_to_space),
    row("Expand", element_movement.expanded, since=8, gradient=rules.expand),
    row("EyeLike", gradient=flat),
    row("Flatten", element_movement.flattened, gradient=rules.same_elements),
    row("Gather", element_movement.gathered, gradient=rules.gather),
    row(
        "GatherElements",
        element_movement.gather_elements,
        since=11,
        convert=True,
        gradient=rules.gather_elements,
    ),
    row("GatherND", element_movement.gather_nd, since=11, until=11, convert=True),
    row(
        "GatherND",
        element_movement.gather_nd,
        since=12,
        convert=True,
        gradient=movement_rules.gather_nd,
    ),
    row("Identity", machine_values.identity, symbol="{0}", identity=True, gradient=rules.identity),
    row("OneHot", element_movement.one_hot, since=9, until=10, convert=True),
    row("OneHot", element_movement.one_hot, since=11, convert=True, gradient=formula_rules.one_hot),
    row("Optional", machine_values.optional, since=15, tensor_result=False),
    row("OptionalGetElement", machine_values.optional_get_element, since=15, tensor_result=False),
    row("OptionalHasElement", machine_values.optional_has_element, since=15),
    row("Pad", placement.old_pad, until=10, convert=True),
    row("Pad", placement.pad, since=11, convert=True, gradient=WithGaps(movement_rules.pad)),
    row(
        "Range",
        element_movement.numbers_between,
        since=11,
        until=26,
        gradient=movement_rules.number_range,
    ),
    row("Range", since=27, gradient=movement_rules.number_range),
    row("Reshape", element_movement.old_reshape, until=4, convert=True),
    row("Reshape", element_movement.reshaped, since=5, gradient=rules.same_elements),
    row("ReverseSequence", gradient=movement_rules.reverse_sequence),
    row("Scatter", placement.scatter_elements, since=9, gradient=movement_rules.scatter_elements),
    row(
        "ScatterElements",
        placement.scatter_elements,
        since=11,
        gradient=movement_rules.scatter_elements,
    ),
    row("ScatterND", placement.scatter_nd, since=11, gradient=movement_rules.scatter_nd),
    row("Shape", element_movement.shape_of),
    row("Size", element_movement.size_of),
    row("Slice", element_movement.sliced, since=10, gradient=rules.slice_),
    row("SpaceToDepth", gradient=movement_rules.space_to_depth),
    row("Split", element_movement.old_split, until=1, convert=True, counts_outputs=True),
    row("Split", element_movement.split, since=2, counts_outputs=True, gradient=rules.split),
    row(
        "Squeeze",
        element_movement.old_squeeze,
        until=12,
        convert=True,
        gradient=rules.same_elements,
    ),
    row("Squeeze", element_movement.squeezed, since=13, gradient=rules.same_elements),
    row("Tile", element_movement.old_tile, until=5, convert=True),
    row("Tile", since=6, gradient=movement_rules.tile),
    row("TopK", element_movement.best_elements, since=10, gradient=movement_rules.top_k),
    row("Transpose", element_movement.transposed, gradient=rules.transpose),
    row("Trilu", gradient=movement_rules.triangle),
    row("Unique", element_movement.distinct, since=11, convert=True),
    row(
        "Unsqueeze",
        element_movement.old_unsqueeze,
        until=12,
        convert=True,
        gradient=rules.same_elements,
    ),
    row("Unsqueeze", shape.unsqueeze, since=13, gradient=rules.same_elements),
)


IMAGE: tuple[OnnxRow, ...] = (
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


GENERATION: tuple[OnnxRow, ...] = (
    row("Bernoulli", gradient=flat),
    row("Multinomial", multinomial.multinomial, stateful=True),
    row("RandomNormalLike", gradient=flat),
    row("RandomUniformLike", gradient=flat),
)


SIGNALS: tuple[OnnxRow, ...] = (
    row("BlackmanWindow", spectra.blackman_window, convert=True),
    row("DFT", spectra.dft, convert=True, gradient=WithGaps(spectra.dft_gradient)),
    row("HammingWindow", spectra.hamming_window, convert=True),
    row("HannWindow", spectra.hann_window, convert=True),
    row("MelWeightMatrix", gradient=flat),
    row("STFT", spectra.stft, convert=True, gradient=WithGaps(spectra.stft_gradient)),
)


STRING: tuple[OnnxRow, ...] = (
    row("RegexFullMatch", texts.regex_full_match, since=20),
    row("StringNormalizer", texts.string_normalizer, convert=True),
    row("StringSplit", texts.string_split, convert=True),
)
