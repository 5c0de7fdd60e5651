"""DecoderMaskedMultiHeadAttention beside ONNX Runtime, and its packed form beside the separate one.

DecoderMaskedSelfAttention, which ONNX Runtime computes on GPUs only, beside its Attention.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case

_RANDOM = np.random.default_rng(12)
BATCH, HEADS, SIZE, PAST, ROOM = 4, 2, 4, 3, 6
WIDTH = HEADS * SIZE
USED = np.array([PAST], np.int32)


def reals(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def visible(length: int) -> np.ndarray:
    """Return a mask in which the last token takes part."""
    mask = _RANDOM.integers(0, 2, (BATCH, length)).astype(np.int32)
    mask[:, -1] = 1
    return mask


def with_cache(
    past: int = PAST,
    *,
    bias: bool = False,
    mask: bool = False,
    added: bool = False,
    beams: int = 0,
    scores: bool = False,
    **attributes: Any,
) -> Case:
    """Return self attention with a buffer for the past."""
    cache = [reals(BATCH, HEADS, ROOM, SIZE) for _ in range(2)]
    inputs: list[np.ndarray | None] = [
        *(reals(BATCH, 1, WIDTH) for _ in range(3)),
        visible(past + 1) if mask else None,
        reals(1, HEADS, 1, past + 1) if added else None,
        *cache,
        np.array([past], np.int32),
        np.array([beams], np.int32) if beams else None,
        _RANDOM.integers(0, beams, (BATCH // beams, beams, ROOM)).astype(np.int32)
        if beams
        else None,
        reals(3 * WIDTH) if bias else None,
    ]
    settings = {"num_heads": HEADS, "past_present_share_buffer": 1, **attributes}
    if scores:
        settings["output_qk"] = 1
    outputs = (True, True, True, scores)
    scored = (3,) if scores else ()
    return Case(
        "DecoderMaskedMultiHeadAttention", trimmed(inputs), settings, outputs, f32_outputs=scored
    )


def across(*, mask: bool = False, bias: bool = False) -> Case:
    """Return cross attention."""
    inputs: list[np.ndarray | None] = [
        reals(BATCH, 1, WIDTH),
        *(reals(BATCH, HEADS, 5, SIZE) for _ in range(2)),
        visible(5) if mask else None,
        *[None] * 6,
        reals(3 * WIDTH) if bias else None,
    ]
    return Case("DecoderMaskedMultiHeadAttention", trimmed(inputs), {"num_heads": HEADS})


def trimmed(inputs: list[np.ndarray | None]) -> list[np.ndarray | None]:
    while inputs[-1] is None:
        inputs.pop()
    return inputs


CASES = {
    "a cache": with_cache(),
    "an empty cache": with_cache(0),
    "a bias": with_cache(bias=True),
    "a mask": with_cache(mask=True, scale=0.3),
    "a summand of the scores": with_cache(added=True),
    "scores": with_cache(scores=True),
    "scores with a mask": with_cache(scores=True, mask=True, added=True),
    "two beams": with_cache(beams=2),
    "four beams and a mask": with_cache(beams=4, mask=True),
}
ACROSS = {"plain": across(), "a mask": across(mask=True), "a bias": across(bias=True)}


@pytest.mark.oracle
@pytest.mark.parametrize("case", ACROSS.values(), ids=ACROSS.keys())
def test_cross_attention_as_the_runtime(case: Case) -> None:
    case.agree()


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    """ONNX Runtime requires that past and present are one buffer."""
    session = onnxruntime.InferenceSession(case.model, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(array.copy())
        for name, array in case.feeds.items()
    }
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        buffer = {"y1": "x5", "y2": "x6"}.get(output.name)
        if buffer is None:
            binding.bind_output(output.name)
        else:
            binding.bind_ortvalue_output(output.name, values[buffer])
    session.run_with_iobinding(binding)
    peers = binding.copy_outputs_to_cpu()
    for own, peer in zip(case.here(), peers, strict=True):
        # Masked scores are -10,000, of which an f32 has three decimals.
        np.testing.assert_allclose(own, peer, rtol=2e-5, atol=2e-3 if own.ndim == 4 else 2e-6)


def test_packed_inputs_are_those_side_by_side_and_the_present_is_the_buffer() -> None:
    case = with_cache(bias=True)
    query, key, value, *further = case.inputs
    assert query is not None
    assert key is not None
    assert value is not None
    packed = np.concatenate([query, key, value], axis=2)
    separate = case.here()
    inputs = [packed, None, None, *further]
    together = Case(case.type, inputs, case.attributes, case.outputs).here()
    for left, right in zip(separate, together, strict=True):
        np.testing.assert_array_equal(left, right)
    past = case.inputs[5]
    assert past is not None
    assert separate[1].shape == past.shape
    np.testing.assert_array_equal(separate[1][:, :, :PAST], past[:, :, :PAST])
    np.testing.assert_array_equal(separate[1][:, :, PAST + 1 :], past[:, :, PAST + 1 :])


@pytest.mark.parametrize(
    ("number", "value", "message"),
    [
        (0, reals(BATCH, 2, WIDTH), "one token"),
        (9, np.full((BATCH // 2, 2, ROOM), 2, np.int32), "beams outside of 0 to 1"),
        (9, np.zeros((BATCH, 2, ROOM), np.int32), "2 beams"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(number: int, value: np.ndarray, message: str) -> None:
    case = with_cache(beams=2)
    inputs = list(case.inputs)
    inputs[number] = value
    with pytest.raises(EngineError, match=message):
        Case(case.type, inputs, case.attributes).here()


def self_attention(*, mask: bool = False, **attributes: Any) -> tuple[Case, Case]:
    """Return a node and the same as Attention, whose inputs are its first six."""
    inputs: list[np.ndarray | None] = [
        reals(BATCH, 1, 5),
        reals(5, 3 * WIDTH),
        reals(3 * WIDTH),
        visible(PAST + 1) if mask else None,
        reals(2, BATCH, HEADS, PAST, SIZE),
        None,
    ]
    settings = {"num_heads": HEADS, **attributes}
    outputs = (True, True)
    return (
        Case("DecoderMaskedSelfAttention", [*inputs, USED], settings, outputs),
        Case("Attention", trimmed(list(inputs)), settings, outputs),
    )


@pytest.mark.oracle
@pytest.mark.parametrize(
    "choices",
    [{}, {"mask": True, "scale": 0.3}, {"mask": True, "mask_filter_value": -5.0}],
)
def test_self_attention_is_that_of_the_runtimes_attention(choices: dict[str, Any]) -> None:
    case, peer = self_attention(**choices)
    case.check_promises(case.here())
    for own, expected in zip(case.here(), peer.there(), strict=True):
        np.testing.assert_allclose(own, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_keys_of_a_shared_buffer_lie_in_groups_of_16_bytes(dtype: type[np.floating[Any]]) -> None:
    """Each group of a head's numbers has all its tokens next to each other."""
    case, _ = self_attention()
    width, group = 16, 16 // np.dtype(dtype).itemsize
    data = case.inputs[0]
    assert data is not None
    past = reals(2, BATCH, HEADS, PAST, width).astype(dtype)
    room = np.zeros((2, BATCH, HEADS, ROOM, width), dtype)
    room[:, :, :, :PAST] = past
    grouped = room.copy()
    for token in range(ROOM):
        for number in range(width):
            grouped[0].reshape(BATCH, HEADS, -1)[
                :, :, (number // group * ROOM + token) * group + number % group
            ] = room[0, :, :, token, number]
    given = [data.astype(dtype), reals(5, 3 * HEADS * width).astype(dtype)]
    given.append(reals(3 * HEADS * width).astype(dtype))
    plain = Case(case.type, [*given, None, past, None, USED], {"num_heads": HEADS}, (True, True))
    settings = {"num_heads": HEADS, "past_present_share_buffer": 1}
    shared = Case(case.type, [*given, None, grouped, None, USED], settings, (True, True))
    result, present = plain.here()
    own_result, own_present = shared.here()
    np.testing.assert_array_equal(own_result, result)
    np.testing.assert_array_equal(own_present[1][:, :, : PAST + 1], present[1])
    keys = own_present[0].reshape(BATCH, HEADS, width // group, ROOM, group).swapaxes(2, 3)
    np.testing.assert_array_equal(
        keys.reshape(BATCH, HEADS, ROOM, width)[:, :, : PAST + 1], present[0]
    )


@pytest.mark.parametrize(
    ("number", "value", "attributes", "message"),
    [
        (4, reals(2, BATCH, HEADS, PAST), {}, r"expected \[2, batch, heads, length, width\]"),
        (4, reals(2, BATCH, HEADS, PAST, 6), {}, "a past has shape"),
        (0, reals(BATCH, 1, 5), {"do_rotary": 1}, "export RotaryEmbedding"),
    ],
)
def test_self_attention_that_does_not_fit_is_refused(
    number: int, value: np.ndarray, attributes: dict[str, Any], message: str
) -> None:
    case, _ = self_attention(**attributes)
    inputs = list(case.inputs)
    inputs[number] = value
    with pytest.raises(EngineError, match=message):
        Case(case.type, inputs, case.attributes, case.outputs).here()
