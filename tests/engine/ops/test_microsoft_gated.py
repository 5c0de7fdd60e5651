"""Gates, experts and operations that com.microsoft shares with ONNX, beside ONNX Runtime; those that
it computes on GPUs only, beside their definitions.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case

_RANDOM = np.random.default_rng(35)
EXPERTS, WIDTH, INNER = 4, 8, 6
ROWS, COLUMNS, BLOCK = 6, 32, 16


def reals(*shape: int) -> np.ndarray:
    return _RANDOM.normal(size=shape).astype(np.float32)


def experts(*, tokens: int = 5, fused: int = 1, bias: bool = True, **attributes: object) -> Case:
    """Return a mixture of experts; ``fused`` is 2 for a gate and its values in one product."""
    inputs = [
        reals(tokens, WIDTH),
        reals(tokens, EXPERTS),
        reals(EXPERTS, fused * INNER, WIDTH),
        reals(EXPERTS, fused * INNER) if bias else None,
        reals(EXPERTS, WIDTH, INNER),
        *([reals(EXPERTS, WIDTH)] if bias else []),
    ]
    return Case("MoE", inputs, attributes)


def quantized_product(kind: int, *shape: int) -> Case:
    packed = _RANDOM.integers(0, 256, ROWS * COLUMNS // 2).astype(np.uint8)
    largest = np.abs(reals(ROWS * COLUMNS // BLOCK)) + np.float32(0.1)
    attributes = {"K": COLUMNS, "N": ROWS, "block_size": BLOCK, "quant_type": kind}
    return Case(
        "MatMulBnb4", [reals(*shape, COLUMNS), packed, largest], attributes, constant=(1, 2)
    )


def quantized_experts(
    bits: int = 4,
    *,
    block: int = 0,
    zeros: bool = False,
    weights: bool = False,
    fused: int = 1,
    **attributes: object,
) -> Case:
    """Return a mixture of experts with packed weights; ``fused`` as in ``experts``."""
    width, inner, tokens = 32, 32, 5

    def layer(outputs: int, inputs: int) -> list[np.ndarray | None]:
        shape = (EXPERTS, outputs, inputs // block) if block else (EXPERTS, outputs)
        packed = _RANDOM.integers(0, 256, (EXPERTS, outputs, inputs * bits // 8))
        return [packed.astype(np.uint8), np.abs(reals(*shape)) / 500, reals(EXPERTS, outputs)]

    def zero(outputs: int, inputs: int) -> np.ndarray | None:
        count = -(-(inputs // block if block else outputs) * bits // 8)
        shape = (EXPERTS, outputs, count) if block else (EXPERTS, count)
        return _RANDOM.integers(0, 256, shape).astype(np.uint8) if zeros else None

    sizes = [(fused * inner, width), (width, inner)]
    inputs = [reals(tokens, width), reals(tokens, EXPERTS), *layer(*sizes[0]), *layer(*sizes[1])]
    inputs += [None] * 3
    inputs += [*(zero(*size) for size in sizes), None]
    inputs += [np.abs(reals(tokens, EXPERTS))] if weights else []
    while inputs[-1] is None:
        inputs.pop()
    constant = tuple(number for number in range(2, min(14, len(inputs))))
    settings = {"expert_weight_bits": bits, **({"block_size": block} if block else {})}
    # Experts of 8 bits in blocks have quantized data in ONNX Runtime.
    case = Case("QMoE", inputs, {**settings, **attributes}, constant=constant, atol=2e-5)
    return replace(case, rtol=2e-2, atol=5e-2) if bits == 8 and block else case


GRID = _RANDOM.uniform(-1.2, 1.2, (1, 3, 3, 2)).astype(np.float32)
SEQUENCES = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4], [0, 1, 2, 3, 4]])
CASES = {
    "norm of groups": Case("GatedRMSNorm", [reals(2, 3, 8), reals(4), reals(2, 3, 8)]),
    "norm with a sigmoid": Case(
        "GatedRMSNorm",
        [reals(2, 8), reals(8), reals(2, 8)],
        {"activation": "sigmoid", "epsilon": 1e-3},
    ),
    "norm of nothing": Case("GatedRMSNorm", [reals(0, 8), reals(8), reals(0, 8)]),
    "slices": Case("GatherND", [reals(3, 4, 5), np.array([[0, 1], [2, 3]])]),
    "slices by i32": Case("GatherND", [reals(3, 4), np.array([[2]], np.int32)]),
    "points": Case("GridSample", [reals(1, 2, 4, 5), GRID]),
    "points of a curve": Case(
        "GridSample",
        [reals(1, 2, 4, 5), GRID],
        {"mode": "bicubic", "padding_mode": "reflection", "align_corners": 1},
    ),
    "n-grams": Case("NGramRepeatBlock", [SEQUENCES, reals(3, 6)], {"ngram_size": 3}),
    "n-grams of one": Case("NGramRepeatBlock", [SEQUENCES, reals(3, 6)], {"ngram_size": 1}),
    "n-grams longer than all": Case(
        "NGramRepeatBlock", [SEQUENCES, reals(3, 6)], {"ngram_size": 9}
    ),
    "echo": Case("SampleOp", [reals(2, 3)]),
    "fp4": quantized_product(0, 3),
    "nf4": quantized_product(1, 2, 3),
    **{
        f"{count} experts with {name}, normalized {normalized}": experts(
            k=count, activation_type=name, normalize_routing_weights=normalized
        )
        for name in ("relu", "gelu", "silu", "identity")
        for count in (1, 2)
        for normalized in (0, 1)
    },
    "experts with SwiGLU": experts(
        fused=2,
        k=2,
        activation_type="swiglu",
        swiglu_fusion=1,
        swiglu_limit=1.0,
        activation_alpha=1.702,
        activation_beta=1.0,
    ),
    "experts without bias": experts(bias=False, k=1),
    **{
        f"experts of {bits} bits, blocks of {block}, zero points {zeros}": quantized_experts(
            bits, block=block, zeros=zeros, k=2
        )
        for bits in (2, 4, 8)
        for block in (0, 16)
        for zeros in (False, True)
    },
    **{
        f"experts of 4 bits with {name}": quantized_experts(activation_type=name, k=1)
        for name in ("gelu", "silu", "identity")
    },
    **{
        f"experts of 4 bits with their own weights, normalized {normalized}": quantized_experts(
            weights=True, k=3, normalize_routing_weights=normalized
        )
        for normalized in (0, 1)
    },
    "experts of 4 bits with SwiGLU": quantized_experts(
        fused=2,
        k=2,
        activation_type="swiglu",
        swiglu_fusion=1,
        swiglu_limit=1.0,
        activation_alpha=1.702,
        activation_beta=1.0,
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    case.agree()


def sigmoid(data: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-data)))


SWIGLU = {
    "one input": ([reals(3, 8)], {}),
    "two inputs": ([reals(3, 4), reals(3, 4)], {"activation_alpha": 1.702}),
    "clamped": (
        [3 * reals(3, 4), 3 * reals(3, 4)],
        {"limit": 1.5, "activation_alpha": 1.702, "activation_beta": 1.0},
    ),
    "far below": ([np.array([[-90, -100, 3, 1]], np.float32)], {}),
}


@pytest.mark.parametrize("name", SWIGLU)
def test_swiglu_as_defined(name: str) -> None:
    inputs, attributes = SWIGLU[name]
    gate, up = (
        array.astype(np.float64) for array in (inputs if inputs[1:] else np.split(inputs[0], 2, -1))
    )
    limit = attributes.get("limit", np.inf)
    gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    alpha, beta = attributes.get("activation_alpha", 1.0), attributes.get("activation_beta", 0.0)
    (output,) = Case("SwiGLU", inputs, attributes).here()
    np.testing.assert_allclose(output, gate * sigmoid(alpha * gate) * (up + beta), 1e-5, 1e-37)


def test_groups_are_normalized_with_channels_last_and_second() -> None:
    data, gamma, beta = reals(2, 3, 5, 6), reals(6), reals(6)
    grouped = data.reshape(2, 15, 3, 2)
    mean, deviation = grouped.mean((1, 3), keepdims=True), grouped.std((1, 3), keepdims=True)
    expected = ((grouped - mean) / deviation).reshape(data.shape) * gamma + beta
    attributes = {"groups": 3, "epsilon": 0.0, "activation": 0}
    (last,) = Case("GroupNorm", [data, gamma, beta], attributes).here()
    np.testing.assert_allclose(last, expected, rtol=1e-4, atol=1e-5)
    second = [np.asarray(np.moveaxis(data, -1, 1)), gamma, beta]
    (output,) = Case("GroupNorm", second, {**attributes, "channels_last": 0}).here()
    np.testing.assert_allclose(np.moveaxis(output, 1, -1), last, rtol=1e-6)
    (activated,) = Case("GroupNorm", [data, gamma, beta], {**attributes, "activation": 1}).here()
    np.testing.assert_allclose(activated, last * sigmoid(last), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (2, 1, 1, 6), (2, 6)])
def test_a_skip_is_added_before_groups_are_normalized(shape: tuple[int, ...]) -> None:
    data, gamma, beta, skip, bias = reals(2, 3, 5, 6), reals(6), reals(6), reals(*shape), reals(6)
    attributes = {"groups": 2, "activation": 0}
    case = Case("SkipGroupNorm", [data, gamma, beta, skip, bias], attributes, (True, True))
    output, total = case.here()
    spread = skip if skip.ndim == 4 else skip[:, None, None]
    np.testing.assert_allclose(total, data + spread + bias, rtol=1e-6)
    (expected,) = Case("GroupNorm", [total, gamma, beta], attributes).here()
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_a_convolution_with_channels_last_is_one_with_channels_second() -> None:
    data, filters, bias = reals(2, 7, 6, 4), reals(6, 3, 3, 2), reals(6)
    window = {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 2]}
    (output,) = Case("NhwcConv", [data, filters, bias], window).here()
    moved = [np.ascontiguousarray(np.moveaxis(array, -1, 1)) for array in (data, filters)]
    (expected,) = Case("Conv", [*moved, bias], window, domain="").there()
    np.testing.assert_allclose(np.moveaxis(output, -1, 1), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axes", [1, 2])
def test_a_signal_and_its_spectrum(axes: int) -> None:
    data = reals(3, 4, 8)
    (spectrum,) = Case("Rfft", [data], {"signal_ndim": axes}).here()
    expected = np.fft.rfftn(data.astype(np.float64), axes=range(3 - axes, 3))
    np.testing.assert_allclose(spectrum[..., 0] + 1j * spectrum[..., 1], expected, atol=1e-5)
    (signal,) = Case("Irfft", [spectrum], {"signal_ndim": axes}).here()
    np.testing.assert_allclose(signal, data, atol=1e-5)


@pytest.mark.parametrize(("axes", "keepdims"), [([1], 1), ([0, -1], 0)])
def test_a_mean_of_quanta(axes: list[int], keepdims: int) -> None:
    data = _RANDOM.integers(0, 256, (2, 3, 4)).astype(np.uint8)
    scales: list[np.ndarray] = [np.array(0.1, np.float32), np.array(128, np.uint8)]
    inputs: list[np.ndarray] = [data, *scales, np.array(0.05, np.float32), np.array(100, np.uint8)]
    (output,) = Case("QLinearReduceMean", inputs, {"axes": axes, "keepdims": keepdims}).here()
    values = 0.1 * (data.astype(np.float64) - 128)
    mean = values.mean(tuple(axes), keepdims=bool(keepdims))
    expected = np.clip(np.rint(mean / 0.05) + 100, 0, 255)
    assert output.dtype == np.uint8
    assert np.abs(output.astype(float) - expected).max() <= 1  # f32 rounds a half either way


@pytest.mark.parametrize("is_bidirectional", [0, 1])
def test_distances_fall_into_buckets(is_bidirectional: int) -> None:
    """The definition is the one of Mesh TensorFlow, distance by distance."""
    count, heads, limit = 8, 2, 20
    table = reals(count, heads)
    attributes = {"max_distance": limit, "is_bidirectional": is_bidirectional}
    (output,) = Case("RelativePositionBias", [table, np.array(30), np.array(30)], attributes).here()
    columns = table.reshape(heads, count)  # stored column by column
    for query in range(0, 30, 7):
        for key in range(30):
            place, half, distance = 0, count, query - key
            if is_bidirectional:
                half = count // 2
                place, distance = (half if distance < 0 else 0), abs(distance)
            distance = max(distance, 0)
            exact = half // 2
            if distance < exact:
                place += distance
            else:
                ratio = math.log(distance / exact) / math.log(limit / exact)
                place += min(exact + int(ratio * (half - exact)), half - 1)
            assert output[0, :, query, key].tolist() == columns[:, place].tolist()


def test_a_bias_of_positions_is_gated_by_the_query() -> None:
    heads, length, width = 2, 3, 4
    inputs = [
        reals(2, length, heads * width),
        reals(heads * width),
        reals(1, heads, length, length),
        reals(width, 6),
        reals(6),
        reals(1, heads, 1, 1),
    ]
    (output,) = Case("GatedRelativePositionBias", inputs, {"num_heads": heads}).here()
    query, query_bias, relative, weight, bias, factor = inputs
    layer = (query + query_bias).reshape(2, length, heads, width).transpose(0, 2, 1, 3)
    halves = (layer @ weight + bias).reshape(2, heads, length, 2, 3).sum(-1)
    gate, reset = sigmoid(halves[..., :1]), sigmoid(halves[..., 1:])
    expected = (gate * (reset * factor - 1) + 2) * relative
    np.testing.assert_allclose(output, expected, rtol=1e-5)


COUNTS = np.array([1, 2, 4], np.int32)


def test_padding_is_removed_and_restored() -> None:
    data = reals(3, 4, 5)
    data[np.arange(4) >= COUNTS[:, None]] = 0
    rows, offsets, cumulated, largest = Case(
        "RemovePadding", [data, COUNTS], {}, (True,) * 4
    ).here()
    assert offsets.reshape(-1).tolist() == [0, 4, 5, 8, 9, 10, 11, 1, 2, 3, 6, 7]
    assert cumulated.tolist() == [0, 1, 3, 7]
    assert largest.tolist() == [4]
    (restored,) = Case("RestorePadding", [rows, offsets]).here()
    np.testing.assert_array_equal(restored, data)


@pytest.mark.oracle
def test_attention_of_packed_rows_is_attention_of_each_sequence() -> None:
    heads, width = 2, 6
    data, weights, bias = reals(3, 4, 5), reals(5, 3 * width), reals(3 * width)
    rows, offsets, cumulated, _ = Case("RemovePadding", [data, COUNTS], {}, (True,) * 4).here()
    inputs = [rows, weights, bias, offsets, cumulated]
    (output,) = Case("PackedAttention", inputs, {"num_heads": heads}).here()
    projected = rows @ weights + bias
    parts = list(np.split(projected, 3, axis=-1))
    packed = [*parts, None, offsets, cumulated]
    (same,) = Case("PackedMultiHeadAttention", packed, {"num_heads": heads}).here()
    np.testing.assert_allclose(same, output, rtol=1e-5, atol=1e-6)
    for first, end in pairwise(cumulated):
        sequence = [part[None, first:end] for part in parts]
        (expected,) = Case("MultiHeadAttention", sequence, {"num_heads": heads}).there()
        np.testing.assert_allclose(output[first:end], expected[0], rtol=1e-4, atol=1e-5)


REFUSED = {
    "an odd gate": (Case("SwiGLU", [reals(2, 3)]), "expected an even last length"),
    "a scale that does not divide": (
        Case("GatedRMSNorm", [reals(2, 8), reals(3), reals(2, 8)]),
        "expected a divisor of the last length 8",
    ),
    "more experts than there are": (experts(k=5), "expected [5, 4] and 1 to 4"),
    "experts for GPUs": (experts(k=1, use_sparse_mixer=1), "are for GPUs only"),
    "groups that do not divide": (
        Case("GroupNorm", [reals(1, 2, 2, 6), reals(6), reals(6)], {"groups": 4, "activation": 0}),
        "channels (axis 3) that the groups divide",
    ),
    "too few bytes": (
        Case(
            "MatMulBnb4",
            [reals(2, 32), np.zeros(3, np.uint8), reals(2)],
            {"K": 32, "N": 1, "block_size": 16, "quant_type": 1},
        ),
        "expected 16 and 2",
    ),
    "counts beyond the length": (
        Case("RemovePadding", [reals(1, 2, 3), np.array([3], np.int32)], {}, (True,) * 4),
        "expected 0 to 2",
    ),
    "offsets beyond the batch": (
        Case("RestorePadding", [reals(1, 3), np.array([[9]], np.int32)]),
        "expected 0 to 0",
    ),
    "a spectrum of one part": (
        Case("Irfft", [reals(2, 3, 1)], {"signal_ndim": 1}),
        "expected [..., n / 2 + 1, 2]",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_inputs_that_do_not_fit_are_refused(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=re.escape(problem)):
        case.here()
