"""Recurrent operations of com.microsoft, and those that ONNX took over, as ONNX Runtime computes
them.
"""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import loopscope
from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.recorded.make_recurrences import FILE, RECORDED
from tests.engine.ops.recurrence_nodes import (
    ATTENTION_LSTMS,
    CAUSAL_CONVOLUTIONS,
    LINEAR_ATTENTIONS,
    attention_lstm,
    causal_convolution,
    gated_delta_net,
    linear_attention,
    ragged_convolution,
)

CASES = {
    **{f"LinearAttention, {name}": case for name, case in LINEAR_ATTENTIONS.items()},
    **{f"CausalConvWithState, {name}": case for name, case in CAUSAL_CONVOLUTIONS.items()},
    **{f"AttnLSTM, {name}": case for name, case in ATTENTION_LSTMS.items()},
}


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    case.agree()


@pytest.mark.parametrize("name", RECORDED)
def test_as_recorded_from_the_runtime(name: str) -> None:
    with np.load(FILE, allow_pickle=False) as recorded:
        for number, output in enumerate(RECORDED[name].here()):
            expected = recorded[f"{name}:{number}"]
            assert (output.dtype, output.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(output, expected, rtol=2e-5, atol=2e-6)


STANDARD = {
    "LinearAttention": linear_attention(4, 2, 2, past=True),
    "CausalConvWithState": causal_convolution(parts="bs", activation="silu"),
}


@pytest.mark.parametrize("case", STANDARD.values(), ids=STANDARD.keys())
def test_onnx_has_the_same_operation(case: Case) -> None:
    for mine, theirs in zip(replace(case, domain="", opset=27).here(), case.here(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_types_are_rounded_once(dtype: np.dtype) -> None:
    case = linear_attention(2, 2, 2, past=True)
    narrow = [None if value is None else value.astype(dtype) for value in case.inputs]
    wide = [None if value is None else value.astype(np.float32) for value in narrow]
    expected = replace(case, inputs=wide).here()
    for mine, theirs in zip(replace(case, inputs=narrow).here(), expected, strict=True):
        assert mine.dtype == dtype
        np.testing.assert_array_equal(mine, theirs.astype(dtype))


def test_captured_updates_replay_to_the_state() -> None:
    """Two updates that GatedDeltaNet captures lead from the first state to that of two tokens."""
    case = gated_delta_net(ragged=False, capacity=2)
    _, _, update = replace(case, outputs=(True, True, True)).here()
    first = np.asarray(case.inputs[6])
    two_tokens = [
        value[:, :2] if number in (0, 1, 2, 4, 5) and value is not None else value
        for number, value in enumerate(case.inputs)
    ]
    _, expected, _ = replace(case, inputs=two_tokens, outputs=(True, True, True)).here()
    heads, value_size, key_size = first.shape[1:]
    size = heads * value_size * key_size
    keys_at = 2 * heads
    offsets = [0, 1, 0, keys_at, keys_at + 2 * 2 * key_size]
    metadata = np.array([*offsets, heads, value_size, key_size, 2, 2, 2])
    replayed = Case(
        "GatedDeltaNetStateReplay",
        [first[0].ravel(), update[0], np.zeros(size + 2, np.float32), metadata],
    )
    (state,) = replayed.here()
    np.testing.assert_allclose(state[1:-1], expected[0].ravel(), rtol=1e-6, atol=1e-6)
    assert state[0] == state[-1] == 0


REFUSED = {
    "a state of several tokens": (
        replace(
            linear_attention(2, 2, 2),
            attributes={"q_num_heads": 2, "kv_num_heads": 2, "state_window": 2},
        ),
        "state_window is 2, expected 0",
    ),
    "heads that do not divide": (linear_attention(3, 2, 2), "3 query heads, 2 key heads and 2"),
    "no decay": (
        replace(
            linear_attention(2, 2, 2, "linear"),
            attributes={"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "gated"},
        ),
        "'gated', which needs the input decay",
    ),
    "two spatial axes": (causal_convolution(ndim=2), "ndim is 2, expected 1"),
    "no dilation": (causal_convolution(dilation=0), "dilation is 0, expected at least 1"),
    "updates without counts": (
        replace(ragged_convolution(), attributes={"state_update_capacity": 2}),
        "capture_count is missing and state_update_capacity is 2",
    ),
    "sequences that do not cover the tokens": (
        replace(
            ragged_convolution(),
            inputs=[
                np.array([0, 2, 3, 6], np.int32) if number == 2 else value
                for number, value in enumerate(ragged_convolution().inputs)
            ],
        ),
        r"begin and end at \[0, 2, 3, 6\], expected increasing numbers from 0 to 7",
    ),
    "a memory without places": (
        replace(
            attention_lstm(parts="m"),
            inputs=[
                np.array([7, 0], np.int32) if number == 12 else value
                for number, value in enumerate(attention_lstm(parts="m").inputs)
            ],
        ),
        r"the lengths of the memory are \[7, 0\]",
    ),
    "no memory": (
        replace(attention_lstm(), inputs=attention_lstm().inputs[:3]),
        "QW, MW or M is missing",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_inputs_that_do_not_fit_are_refused(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        loopscope.run(loopscope.read_model(case.model), case.feeds)
