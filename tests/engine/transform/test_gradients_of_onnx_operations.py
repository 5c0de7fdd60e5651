"""Gradients of native ONNX operations with attributes, groups, padding, gates and directions of
their own, against central differences.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import loopscope
from tests.draws import share

pytestmark = pytest.mark.slow
"""Long tables: together they take as long as all the other fast tests."""

FLAT = {
    "Clip": ("Clip(n, low, high)", 22),
    "Clip from below": ("Clip(n, low)", 22),
    "Clip from above": ("Clip(n, , high)", 22),
    "Clip whose bounds cross": ("Clip(n, high, low)", 22),
    "Clip by an input": ("Clip(n, w0, w1)", 22),
    "Clip by attributes": ("Clip<min = -0.2, max = 0.3>(n)", 10),
    "PRelu": ("PRelu(n, slope)", 22),
    "Selu": ("Selu(n)", 22),
    "Selu with attributes": ("Selu<alpha = 0.5, gamma = 2.0>(n)", 22),
    "Celu": ("Celu<alpha = 0.7>(n)", 22),
    "Gelu": ("Gelu(n)", 22),
    "Gelu by tanh": ('Gelu<approximate = "tanh">(n)', 22),
    "Swish": ("Swish<alpha = 0.8>(n)", 24),
    "HardSigmoid": ("HardSigmoid<alpha = 2.0>(n)", 22),
    "ThresholdedRelu": ("ThresholdedRelu<alpha = 0.1>(n)", 22),
    "Einsum": ('Einsum<equation = "ij,kj->ik">(x, w)', 22),
    "ReduceSumSquare": ("ReduceSumSquare<keepdims = 0>(x, one)", 22),
    "ReduceLogSum": ("ReduceLogSum(x, one)", 22),
    "ReduceLogSumExp": ("ReduceLogSumExp<keepdims = 0>(n)", 22),
    "ReduceLogSumExp by attributes": ("ReduceLogSumExp<axes = [0]>(n)", 13),
    "LpNormalization": ("LpNormalization(n)", 22),
    "LpNormalization of sizes": ("LpNormalization<axis = 0, p = 1>(n)", 22),
    "LayerNormalization": ("LayerNormalization(x, w0, w1)", 22),
    "LayerNormalization without bias": ("LayerNormalization<axis = 0>(x, w)", 22),
    "RMSNormalization": ("RMSNormalization(x, w0)", 23),
    "Tile": ("Tile(x, twice)", 22),
    "CumSum": ("CumSum(x, k)", 22),
    "CumSum from behind": ("CumSum<exclusive = 1, reverse = 1>(x, k)", 22),
    "CumProd": ("CumProd(n, k)", 26),
    "CumProd from behind": ("CumProd<reverse = 1>(n, zero)", 26),
    "CumProd of what stands before": ("CumProd<exclusive = 1>(n, k)", 26),
    "CumProd of what stands behind": ("CumProd<exclusive = 1, reverse = 1>(n, k)", 26),
    "CumProd of zeros": ("CumProd(sparse, k)", 26),
    "Det": ("Det(w)", 22),
    "Mod of floats": ("Mod<fmod = 1>(m, w)", 22),
    "OneHot": ("OneHot(columns, three, pair)", 22),
    "OneHot along the first axis": ("OneHot<axis = 0>(k, three, pair)", 22),
    "Compress": ("Compress(x, chosen)", 22),
    "Compress of rows": ("Compress<axis = 0>(x, chosen)", 22),
    "Round": ("Round(n)", 22),
    "Hardmax": ("Hardmax(n)", 22),
    "Trilu": ("Trilu(x)", 22),
    "Trilu below": ("Trilu<upper = 0>(x, k)", 22),
    "GatherND": ("GatherND(x, places)", 22),
    "ScatterND": ("ScatterND(x, places, w0)", 22),
    "ScatterND that adds": ('ScatterND<reduction = "add">(x, places, w0)', 22),
    "ScatterElements": ("ScatterElements<axis = 1>(x, columns, w)", 22),
    "ScatterElements that adds": (
        'ScatterElements<axis = 1, reduction = "add">(x, columns, w)',
        22,
    ),
    "ScatterElements that multiplies": (
        'ScatterElements<axis = 1, reduction = "mul">(x, columns, w)',
        22,
    ),
    "ScatterElements of the least": ('ScatterElements<reduction = "min">(x, columns, w)', 22),
    "ScatterElements of the greatest": (
        'ScatterElements<axis = -1, reduction = "max">(x, columns, w)',
        22,
    ),
    "ScatterElements that multiplies by zeros": (
        'ScatterElements<axis = 1, reduction = "mul">(x, columns, sparse)',
        22,
    ),
    "Scatter": ("Scatter<axis = 1>(x, columns, w)", 9),
    "ScatterND that multiplies": ('ScatterND<reduction = "mul">(x, places, w0)', 22),
    "ScatterND of the least": ('ScatterND<reduction = "min">(x, places, w0)', 22),
    "ScatterND of the greatest": ('ScatterND<reduction = "max">(x, places, w0)', 22),
    "Shrink": ("Shrink<lambd = 0.2, bias = 0.1>(n)", 22),
    "Shrink by default": ("Shrink(m)", 22),
    "Softmax of all that follows": ("Softmax(x)", 11),
    "Softmax from the first axis": ("Softmax<axis = 0>(x)", 11),
    "LogSoftmax from the last axis": ("LogSoftmax<axis = -1>(x)", 11),
    "LogSoftmax from the first axis": ("LogSoftmax<axis = 0>(x)", 11),
    "ReverseSequence": ("ReverseSequence(x, lengths)", 22),
    "ReverseSequence with the batch first": (
        "ReverseSequence<batch_axis = 0, time_axis = 1>(x, lengths)",
        22,
    ),
    "Resize of a matrix": ('Resize<mode = "linear">(x, , scales)', 22),
    "Pad": ("Pad(x, around)", 22),
    "Pad with a value": ("Pad(x, around, high)", 22),
    "Pad by reflection": ('Pad<mode = "reflect">(x, beside)', 22),
    "Pad with the edge": ('Pad<mode = "edge">(x, around)', 22),
    "Dropout": ("Dropout(x)", 22),
    "Dropout with a ratio": ("Dropout(x, high)", 22),
}
CONSTANTS = """
  low = Constant <value = float {-0.2}> () high = Constant <value = float {0.3}> () half = Constant <value = float {0.55}> ()
  one = Constant <value = int64[1] {1}> () k = Constant <value = int64 {1}> () twice = Constant <value = int64[2] {2, 1}> ()
  zero = Constant <value = int64 {0}> () first = Constant <value = int64 {1}> ()
  slope = Constant <value = float[3] {0.1, 0.2, 0.3}> () places = Constant <value = int64[3,2] {1, 0, 0, 2, 1, 1}> ()
  columns = Constant <value = int64[3,3] {0, 1, 2, 2, 0, 1, 1, 2, 0}> ()
  around = Constant <value = int64[4] {1, 0, 0, 2}> () beside = Constant <value = int64[4] {0, 1, 0, 2}> ()
  lengths = Constant <value = int64[3] {1, 3, 2}> () scales = Constant <value = float[2] {2.0, 0.7}> ()
  n = Sub(x, half) four = Constant <value = float {4.0}> () m = Mul(n, four) sparse = Relu(n)
  three = Constant <value = int64 {3}> () ends = Constant <value = int64[2] {0, 2}> ()
  chosen = Constant <value = bool[3] {1, 0, 1}> ()
  w0 = Gather<axis = 0>(w, zero) w1 = Gather<axis = 0>(w, first) pair = Gather(w0, ends)"""


def graph(opset: int, inputs: str, body: str) -> loopscope.Model:
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> g ({inputs}) => (float s) {{ {body} s = ReduceSum<keepdims = 0>(v) }}'
    return loopscope.read_model(parser.parse_model(text).SerializeToString())


@pytest.mark.parametrize("name", FLAT)
def test_an_operation_on_a_matrix(name: str) -> None:
    random = np.random.default_rng(5)
    call, opset = FLAT[name]
    model = graph(opset, "float[3,3] x, float[3,3] w", f"{CONSTANTS} y = {call} v = Mul(y, y)")
    values = [
        np.linspace(0.2, 0.95, 9, dtype=np.float32).reshape(3, 3)[:, ::-1].copy(),
        random.uniform(0.3, 0.9, (3, 3)).astype(np.float32),
    ]
    found = loopscope.check_gradient(model, values, "s", ["x", "w"])
    assert found.ok, found


WINDOWS = {
    "Conv": ("[2,4,6,5]", "[3,4,3,2]", "Conv(x, w, b)"),
    "Conv without bias": ("[1,2,7]", "[3,2,3]", "Conv<pads = [1, 2], strides = [2]>(x, w)"),
    "Conv in groups": (
        "[1,4,5,5]",
        "[6,2,3,3]",
        "Conv<group = 2, pads = [1, 0, 1, 0], dilations = [1, 2]>(x, w, b6)",
    ),
    "Conv with padding as needed": (
        "[1,2,5,6]",
        "[3,2,3,3]",
        'Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, w)',
    ),
    "ConvTranspose": (
        "[1,3,4,4]",
        "[3,2,3,3]",
        "ConvTranspose<strides = [2, 2], pads = [1, 1, 0, 0], output_padding = [1, 0]>(x, w, b2)",
    ),
    "ConvTranspose in groups": ("[1,4,5]", "[4,3,3]", "ConvTranspose<group = 2>(x, w, b6)"),
    "MaxPool": (
        "[1,2,5,5]",
        "[1]",
        "MaxPool<kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 0]>(x)",
    ),
    "MaxPool rounded up": (
        "[1,2,5,6]",
        "[1]",
        "MaxPool<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>(x)",
    ),
    "AveragePool": (
        "[1,2,5,5]",
        "[1]",
        "AveragePool<kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]>(x)",
    ),
    "AveragePool with its padding": (
        "[1,2,5]",
        "[1]",
        "AveragePool<kernel_shape = [3], pads = [1, 1], count_include_pad = 1>(x)",
    ),
    "GlobalAveragePool": ("[2,3,4,2]", "[1]", "GlobalAveragePool(x)"),
    "GlobalMaxPool": ("[2,3,4]", "[1]", "GlobalMaxPool(x)"),
    "BatchNormalization": ("[2,3,4]", "[3]", "BatchNormalization(x, w, b, b, w)"),
    "InstanceNormalization": ("[2,3,4]", "[3]", "InstanceNormalization(x, w, b)"),
    "GroupNormalization": (
        "[2,4,3]",
        "[4]",
        "GroupNormalization<num_groups = 2, stash_type = 11>(x, w, w)",
    ),
    "LpPool": (
        "[1,2,5,5]",
        "[1]",
        "LpPool<kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1], p = 3>(x)",
    ),
    "LpPool of sizes with gaps": (
        "[1,2,7]",
        "[1]",
        "LpPool<kernel_shape = [3], dilations = [2], p = 1>(x)",
    ),
    "LpPool with padding as needed": (
        "[1,2,5]",
        "[1]",
        'LpPool<kernel_shape = [2], auto_pad = "SAME_LOWER">(x)',
    ),
    "GlobalLpPool": ("[2,3,4,2]", "[1]", "GlobalLpPool<p = 3>(x)"),
    "LRN": ("[2,5,3]", "[1]", "LRN<size = 3, alpha = 0.9, beta = 0.6, bias = 1.5>(x)"),
    "LRN of an even number of channels": ("[1,5,2,2]", "[1]", "LRN<size = 4, alpha = 2.0>(x)"),
    "LRN of a matrix and more neighbours than channels": (
        "[2,3]",
        "[1]",
        "LRN<size = 9, alpha = 2.0>(x)",
    ),
    "MeanVarianceNormalization": ("[2,3,2,2]", "[1]", "MeanVarianceNormalization(x)"),
    "MeanVarianceNormalization of axes": (
        "[2,3,4]",
        "[1]",
        "MeanVarianceNormalization<axes = [-1]>(x)",
    ),
    "GridSample": ("[1,2,4,5]", "[1,2,3,2]", "GridSample(x, w)"),
    "GridSample by cubes": (
        "[1,2,4,5]",
        "[1,2,3,2]",
        'GridSample<mode = "cubic", align_corners = 1, padding_mode = "border">(x, w)',
    ),
    "Col2Im": ("[1,8,9]", "[1]", "Col2Im(x, four, two)"),
    "Col2Im with pads": (
        "[1,12,6]",
        "[1]",
        "Col2Im<strides = [1, 2], pads = [0, 1, 0, 1]>(x, four, block)",
    ),
    "Range": ("[1]", "[1]", "Range(start, b1, step)"),
    "DepthToSpace": ("[1,8,2,3]", "[1]", "DepthToSpace<blocksize = 2>(x)"),
    "DepthToSpace by columns": ("[1,8,2,3]", "[1]", 'DepthToSpace<blocksize = 2, mode = "CRD">(x)'),
    "SpaceToDepth": ("[1,2,4,6]", "[1]", "SpaceToDepth<blocksize = 2>(x)"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_an_operation_on_channels(name: str) -> None:
    random = np.random.default_rng(5)
    of_x, of_w, call = WINDOWS[name]
    constants = """b = Constant <value = float[3] {0.5, 0.7, 0.9}> () b2 = Constant <value = float[2] {0.5, 0.7}> ()
      four = Constant <value = int64[2] {4, 4}> () two = Constant <value = int64[2] {2, 2}> () block = Constant <value = int64[2] {2, 3}> ()
      start = Squeeze(x) step = Squeeze(w) b1 = Constant <value = float {3.93}> ()
      b6 = Constant <value = float[6] {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}> ()"""
    model = graph(22, f"float{of_x} x, float{of_w} w", f"{constants} y = {call} v = Mul(y, y)")
    shapes = [tuple(map(int, one.strip("[]").split(","))) for one in (of_x, of_w)]
    values = [
        random.permutation(np.prod(shape)).reshape(shape).astype(np.float32)
        / np.float32(np.prod(shape))
        + 0.1
        for shape in shapes
    ]
    found = loopscope.check_gradient(model, values, "s", ["x", "w"] if "(x, w" in call else ["x"])
    assert found.ok, found


ALIGNED = {
    "of version 10": ("", 10),
    "of version 16": ("", 16),
    "from the middles of pixels": ('coordinate_transformation_mode = "half_pixel", ', 22),
    "two samples a bin": ("sampling_ratio = 2, ", 22),
}


@pytest.mark.parametrize("name", ALIGNED)
def test_regions_that_are_aligned(name: str) -> None:
    options, opset = ALIGNED[name]
    call = f'RoiAlign<{options}mode = "avg", output_height = 2, output_width = 3, spatial_scale = 0.75>(x, w, images)'
    images = "images = Constant <value = int64[3] {0, 1, 0}> ()"
    model = graph(opset, "float[2,2,5,6] x, float[3,4] w", f"{images} y = {call} v = Mul(y, y)")
    # No sample is at a pixel, where a share bends.
    regions = np.array(
        [[0.37, 0.71, 4.13, 3.59], [-1.43, -0.77, 2.91, 6.38], [1.19, 0.53, 7.61, 2.41]], np.float32
    )
    values = [np.random.default_rng(5).uniform(0.2, 0.9, (2, 2, 5, 6)).astype(np.float32), regions]
    found = loopscope.check_gradient(model, values, "s", ["x", "w"])
    assert found.ok, found
    assert found.compared == 64 + regions.size


def test_regions_of_greatest_samples_are_refused() -> None:
    images = "images = Constant <value = int64[3] {0, 1, 0}> ()"
    model = graph(
        22, "float[2,2,5,6] x, float[3,4] w", f'{images} v = RoiAlign<mode = "max">(x, w, images)'
    )
    with pytest.raises(loopscope.BuildError, match="its mode is max: only avg has a derivative"):
        loopscope.gradients(model, "s", "x")


SPECTRA = {
    "DFT of real numbers": ("[2,5,1]", "DFT(x)", 20),
    "DFT of complex numbers": ("[2,5,2]", "DFT(x, , zero)", 20),
    "DFT back": ("[2,5,2]", "DFT<inverse = 1>(x)", 20),
    "DFT back of real numbers": ("[2,5,1]", "DFT<inverse = 1>(x)", 20),
    "DFT of one side": ("[2,6,1]", "DFT<onesided = 1>(x)", 20),
    "DFT of one side, cut": ("[2,6,1]", "DFT<onesided = 1>(x, four)", 20),
    "DFT of one side, filled up": ("[3,5,1]", "DFT<onesided = 1>(x, four, zero)", 20),
    "DFT of one side, back": ("[2,4,2]", "DFT<inverse = 1, onesided = 1>(x)", 20),
    "DFT along an attribute": ("[2,5,1]", "DFT<axis = 0>(x)", 17),
    "DFT along axis 1, which is not said": ("[3,2,5,2]", "DFT(x)", 17),
    "STFT": ("[1,9,1]", "STFT<onesided = 1>(x, two, w)", 17),
    "STFT of both sides": ("[2,8]", "STFT<onesided = 0>(x, two, w)", 17),
    "STFT without a window": ("[2,9,1]", "STFT<onesided = 1>(x, two, , four)", 17),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_a_spectrum(name: str) -> None:
    random = np.random.default_rng(5)
    of_x, call, opset = SPECTRA[name]
    constants = """zero = Constant <value = int64 {0}> () two = Constant <value = int64 {2}> () four = Constant <value = int64 {4}> ()"""
    model = graph(opset, f"float{of_x} x, float[4] w", f"{constants} y = {call} v = Mul(y, y)")
    shapes = [tuple(map(int, one.strip("[]").split(","))) for one in (of_x, "[4]")]
    values = [random.uniform(0.2, 0.9, shape).astype(np.float32) for shape in shapes]
    found = loopscope.check_gradient(model, values, "s", ["x", "w"] if ", w" in call else ["x"])
    assert found.ok, found
    assert found.compared == sum(value.size for value in values[: 2 if ", w" in call else 1])


RESIZED = {
    "the nearest": ("Resize(x, , scales)", 22),
    "the nearest, rounded up": (
        'Resize<nearest_mode = "ceil", coordinate_transformation_mode = "asymmetric">(x, , scales)',
        22,
    ),
    "the nearest, rounded down": (
        'Resize<nearest_mode = "floor", coordinate_transformation_mode = "align_corners">(x, , , sizes)',
        22,
    ),
    "the nearest, the upper of two": (
        'Resize<nearest_mode = "round_prefer_ceil">(x, , , sizes)',
        22,
    ),
    "the nearest as TensorFlow 1": (
        'Resize<coordinate_transformation_mode = "tf_half_pixel_for_nn">(x, none, scales)',
        11,
    ),
    "lines": ('Resize<mode = "linear">(x, , scales)', 22),
    "lines to sizes": ('Resize<mode = "linear">(x, none, none, sizes)', 11),
    "lines between corners": (
        'Resize<mode = "linear", coordinate_transformation_mode = "align_corners">(x, , , sizes)',
        22,
    ),
    "lines as PyTorch": (
        'Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">(x, , , sizes)',
        22,
    ),
    "lines along axes": ('Resize<mode = "linear", axes = [2, 3]>(x, , two)', 22),
    "cubes": ('Resize<mode = "cubic", cubic_coeff_a = -0.5>(x, , scales)', 22),
    "Resize of opset 10": ("Resize(x, scales)", 10),
    "Upsample": ("Upsample(x, scales)", 9),
    "Upsample by lines": ('Upsample<mode = "linear">(x, larger)', 9),
    "Upsample by an attribute": ("Upsample<scales = [1.0, 1.0, 2.0, 1.5]>(x)", 7),
}


@pytest.mark.parametrize("name", RESIZED)
@pytest.mark.parametrize("shape", ["1,2,4,5", "1,2,h,w"])
def test_an_image_that_is_resized(name: str, shape: str) -> None:
    random = np.random.default_rng(1)
    call, opset = RESIZED[name]
    constants = """scales = Constant <value = float[4] {1.0, 1.0, 2.0, 0.6}> () larger = Constant <value = float[4] {1.0, 1.0, 2.5, 1.5}> ()
      two = Constant <value = float[2] {1.7, 0.5}> () sizes = Constant <value = int64[4] {1, 2, 3, 8}> ()
      zero = Constant <value = int64[1] {0}> ()"""
    constants += "none = ConstantOfShape(zero)" if "none" in call else ""
    model = graph(opset, f"float[{shape}] x", f"{constants} y = {call} v = Mul(y, y)")
    found = loopscope.check_gradient(
        model, [random.uniform(0.1, 0.9, (1, 2, 4, 5)).astype(np.float32)], "s", ["x"]
    )
    assert found.ok, found
    # The onnx package's kernel computes the weights of cubes in f32, of a result of about 1,
    # whatever the image is.
    assert found.largest < (1e-6 if name == "cubes" else 1e-9)


GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
RECURRENT = [
    (kind, attributes, given)
    for kind in GATES
    for attributes, given in (
        ("", "x, w, r"),
        ("", "x, w, r, b"),
        ('direction = "reverse"', "x, w, r, b, lengths"),
        ("", "x, w, r, , , h"),
        ("layout = 1", "x, w, r, b"),
        ("clip = 5.0", "x, w, r"),
    )
]
RECURRENT += [
    ("GRU", "linear_before_reset = 1", "x, w, r, b"),
    ("LSTM", "", "x, w, r, b, , h, c"),
    ("RNN", 'direction = "bidirectional"', "x, w, r, b"),
    ("LSTM", 'direction = "bidirectional"', "x, w, r"),
    ("RNN", 'activations = ["Sigmoid"]', "x, w, r"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outputs", "kind", "attributes", "given"),
    share([(outputs, *row) for outputs in ("y, ", "y, last", ", y") for row in RECURRENT]),
)
def test_a_recurrent_network(outputs: str, kind: str, attributes: str, given: str) -> None:
    """Test each row of the odd number of rows with one or two of its outputs in every run."""
    random = np.random.default_rng(5)
    gates, directions = GATES[kind], 2 if "bidirectional" in attributes else 1
    time, batch, data, hidden = 3, 2, 2, 2
    rows = gates * hidden
    shapes = {
        "x": (time, batch, data),
        "w": (directions, rows, data),
        "r": (directions, rows, hidden),
        "b": (directions, 2 * rows),
    }
    states = {"h": (directions, batch, hidden), "c": (directions, batch, hidden)}
    used = {
        name: shape
        for name, shape in {**shapes, **states}.items()
        if name in given.replace(",", " ").split()
    }
    inputs = ", ".join(f"float[{','.join(map(str, shape))}] {name}" for name, shape in used.items())
    options = f"<{', '.join(filter(None, (f'hidden_size = {hidden}', attributes)))}>"
    more = (
        "m = Mul(last, last) n = ReduceSum<keepdims = 0>(m) v = Add(u, n)"
        if "last" in outputs
        else "v = Identity(u)"
    )
    lengths = "lengths = Constant <value = int32[2] {3, 2}> ()"
    model = graph(
        22, inputs, f"{lengths} {outputs} = {kind}{options}({given}) u = Mul(y, y) {more}"
    )
    values = [random.uniform(-0.8, 0.8, shape).astype(np.float32) for shape in used.values()]
    found = loopscope.check_gradient(model, values, "s", list(used))
    assert found.ok, found


REFUSED = {
    "a batch in training": (
        "BatchNormalization<training_mode = 1>(x, a, a, a, a)",
        "its training_mode computes mean and variance",
    ),
    "a pool that is rounded up": (
        "AveragePool<kernel_shape = [2], ceil_mode = 1>(x)",
        "with ceil_mode its last windows reach beyond",
    ),
    "a transposed convolution by its output": (
        "ConvTranspose<output_shape = [9]>(x, w)",
        "its padding follows from output_shape",
    ),
    "padding that goes round": ('Pad<mode = "wrap">(x, around)', "its mode is wrap"),
    "a resize that cuts out": (
        'Resize<coordinate_transformation_mode = "tf_crop_and_resize">(x, roi, scales)',
        "its mode is nearest and its coordinates are tf_crop_and_resize",
    ),
    "a resize without aliases": (
        'Resize<mode = "linear", antialias = 1>(x, , scales)',
        "its antialias is 1",
    ),
    "a resize that keeps proportions": (
        'Resize<keep_aspect_ratio_policy = "not_larger">(x, , , sizes)',
        "its keep_aspect_ratio_policy is not_larger",
    ),
    "a pool of roots that is rounded up": (
        "LpPool<kernel_shape = [2], ceil_mode = 1>(x)",
        "with ceil_mode its last windows reach",
    ),
    "distinct elements": (
        "Unique(x)",
        "Unique-11 'Unique_20' cannot be differentiated: its operation has no derivative here",
    ),
    "a spectrum along an axis that is computed": (
        "DFT(x, , computed)",
        "axis is not known before the model runs: make it a constant",
    ),
    "a spectrum whose shape ONNX infers wrongly": (
        "STFT(single, one, , three)",
        "for 2 frequencies: write its attribute onesided",
    ),
    "a spectrum of complex signals": (
        "STFT<onesided = 0>(pairs, one, , four)",
        "only real signals",
    ),
    "an activation with a corner of its own": (
        'RNN<hidden_size = 3, activations = ["Affine"]>(x, w, r)',
        "its activations are affine: only relu, sigmoid, tanh without alpha and beta have a derivative",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_derivative_here_is_named(name: str) -> None:
    call, sentence = REFUSED[name]
    constants = """a = Constant <value = float[3] {0.5, 0.7, 0.9}> () around = Constant <value = int64[6] {0, 0, 1, 0, 0, 1}> ()
      places = Constant <value = int64[1,3] {0, 1, 2}> () updates = Constant <value = float[1] {2.0}> ()
      roi = Constant <value = float[6] {0.0, 0.0, 0.0, 1.0, 1.0, 1.0}> () scales = Constant <value = float[3] {1.0, 2.0, 2.0}> ()
      sizes = Constant <value = int64[3] {2, 5, 5}> () axis = Constant <value = int64 {1}> ()
      count = Size(x) none = Constant <value = int64 {0}> () computed = Mul(count, none) one = Constant <value = int64 {1}> ()
      four = Constant <value = int64 {4}> () beside = Constant <value = int64[6] {0, 0, 0, 0, 3, -2}> () pairs = Pad(x, beside)
      three = Constant <value = int64 {3}> () last = Constant <value = int64[1] {2}> () single = ReduceSum(x, last)
      w = RandomNormal<shape = [3, 3, 4]>() r = RandomNormal<shape = [3, 3, 3]>()"""
    outputs = "y, m, n" if "BatchNormalization" in call else "y"
    model = graph(22, "float[2,3,4] x", f"{constants} {outputs} = {call} v = Mul(y, y)")
    with pytest.raises(loopscope.BuildError, match=sentence):
        loopscope.gradients(model, "s", "x")
