"""Category sequence against OpenVINO and the formulas of its pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import exp, log
from typing import Any

import ml_dtypes
import numpy as np
import openvino as ov
import pytest
from openvino import opset16

from tests.engine.ops.oracle import Value, agree, ours

RANDOM = np.random.default_rng(0)
BATCH, TIME, INPUT, HIDDEN = 3, 5, 4, 6
NO_PARAMETERS: dict[str, object] = {"activations_alpha": [], "activations_beta": []}
LSTM = {"activations": ["sigmoid", "tanh", "tanh"], **NO_PARAMETERS}
GRU = {"activations": ["sigmoid", "tanh"], **NO_PARAMETERS}
RNN = {"activations": ["tanh"], **NO_PARAMETERS}


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def close(
    name: str, version: int, inputs: Sequence[Value], attributes: Mapping[str, object], **more: Any
) -> None:
    agree(name, version, inputs, attributes, **{"rtol": 1e-4, "atol": 2e-5, **more})


def weights(gates: int, directions: int, biases: int = 0) -> list[np.ndarray]:
    size = gates * HIDDEN
    return [
        numbers(directions, size, INPUT),
        numbers(directions, size, HIDDEN),
        numbers(directions, (biases or gates) * HIDDEN),
    ]


@pytest.mark.parametrize("clip", [0.0, 0.3])
@pytest.mark.parametrize("lengths", [[5, 5, 5], [0, 2, 5], [1, 3, 2]], ids=str)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
class TestSequences:
    def test_lstm(self, direction: str, lengths: list[int], clip: float) -> None:
        both = 2 if direction == "bidirectional" else 1
        states = [numbers(BATCH, both, HIDDEN), numbers(BATCH, both, HIDDEN)]
        inputs = [
            numbers(BATCH, TIME, INPUT),
            *states,
            np.array(lengths, np.int32),
            *weights(4, both),
        ]
        close(
            "LSTMSequence",
            5,
            inputs,
            {"hidden_size": HIDDEN, "direction": direction, "clip": clip, **LSTM},
        )
        others = {**LSTM, "activations": ["relu", "sigmoid", "sigmoid"]}
        close(
            "LSTMSequence",
            5,
            inputs,
            {"hidden_size": HIDDEN, "direction": direction, "clip": clip, **others},
        )

    def test_gru(self, direction: str, lengths: list[int], clip: float) -> None:
        both = 2 if direction == "bidirectional" else 1
        for linear in (False, True):
            inputs = [
                numbers(BATCH, TIME, INPUT),
                numbers(BATCH, both, HIDDEN),
                np.array(lengths),
                *weights(3, both, 4 if linear else 3),
            ]
            attributes = {
                "hidden_size": HIDDEN,
                "direction": direction,
                "clip": clip,
                "linear_before_reset": linear,
                **GRU,
            }
            close("GRUSequence", 5, inputs, attributes)

    def test_rnn(self, direction: str, lengths: list[int], clip: float) -> None:
        both = 2 if direction == "bidirectional" else 1
        inputs = [
            numbers(BATCH, TIME, INPUT),
            numbers(BATCH, both, HIDDEN),
            np.array(lengths),
            *weights(1, both),
        ]
        close(
            "RNNSequence",
            5,
            inputs,
            {"hidden_size": HIDDEN, "direction": direction, "clip": clip, **RNN},
        )


@pytest.mark.parametrize("second", ["the same", "another"])
@pytest.mark.parametrize(
    ("operation", "gates", "names"),
    [
        ("LSTM", 4, ["sigmoid", "tanh", "tanh"]),
        ("GRU", 3, ["sigmoid", "tanh"]),
        ("RNN", 1, ["tanh"]),
    ],
)
def test_activations_that_are_named_for_each_direction(
    operation: str, gates: int, names: list[str], second: str
) -> None:
    states = [numbers(BATCH, 2, HIDDEN)] * (2 if operation == "LSTM" else 1)
    inputs = [numbers(BATCH, TIME, INPUT), *states, np.array([5, 2, 5]), *weights(gates, 2)]
    twice = names + (names if second == "the same" else ["relu"] * len(names))
    close(
        f"{operation}Sequence",
        5,
        inputs,
        {
            "hidden_size": HIDDEN,
            "direction": "bidirectional",
            "activations": twice,
            **NO_PARAMETERS,
        },
    )


@pytest.mark.parametrize("clip", [0.0, 0.3])
class TestCells:
    def test_lstm(self, clip: float) -> None:
        inputs = [
            numbers(BATCH, INPUT),
            numbers(BATCH, HIDDEN),
            numbers(BATCH, HIDDEN),
            *(one[0] for one in weights(4, 1)),
        ]
        for version in (1, 4):
            close("LSTMCell", version, inputs, {"hidden_size": HIDDEN, "clip": clip, **LSTM})

    def test_gru(self, clip: float) -> None:
        for linear in (False, True):
            inputs = [
                numbers(BATCH, INPUT),
                numbers(BATCH, HIDDEN),
                *(one[0] for one in weights(3, 1, 4 if linear else 3)),
            ]
            close(
                "GRUCell",
                3,
                inputs,
                {"hidden_size": HIDDEN, "clip": clip, "linear_before_reset": linear, **GRU},
            )

    def test_rnn(self, clip: float) -> None:
        for activation in ("tanh", "relu", "sigmoid"):
            inputs = [
                numbers(BATCH, INPUT),
                numbers(BATCH, HIDDEN),
                *(one[0] for one in weights(1, 1)),
            ]
            close(
                "RNNCell",
                1,
                inputs,
                {"hidden_size": HIDDEN, "clip": clip, **RNN, "activations": [activation]},
            )


def test_what_only_files_of_opset1_carry() -> None:
    """LSTMCell-1's peepholes and coupled gates: by its formula; OpenVINO's CPU ignores them."""
    data, hidden, cell = numbers(2, 3), numbers(2, 2), numbers(2, 2)
    kernel, recurrence, bias, peepholes = numbers(8, 3), numbers(8, 2), numbers(8), numbers(6)

    def sigmoid(values: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(-values)))

    f, i, c, o = np.split(data @ kernel.T + hidden @ recurrence.T + bias, 4, axis=1)
    forget = sigmoid(f + peepholes[:2] * cell)
    for coupled in (False, True):
        enter = 1 - forget if coupled else sigmoid(i + peepholes[2:4] * cell)
        state = forget * cell + enter * np.tanh(c)
        expected = sigmoid(o + peepholes[4:] * state) * np.tanh(state), state
        attributes = {"hidden_size": "2", "input_forget": str(coupled).lower()}
        got = ours(
            "LSTMCell", 1, [data, hidden, cell, kernel, recurrence, bias, peepholes], attributes, 2
        )
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


def test_a_hidden_state_of_one_number() -> None:
    inputs = [
        numbers(3, 4, 2),
        numbers(3, 1, 1),
        numbers(3, 1, 1),
        np.array([4, 1, 3], np.int32),
        numbers(1, 4, 2),
        numbers(1, 4, 1),
        numbers(1, 4),
    ]
    close(
        "LSTMSequence",
        5,
        inputs,
        {"hidden_size": 1, "direction": "forward", "activations": ["sigmoid", "relu", "tanh"]},
    )


@pytest.mark.parametrize("weights_format", ["fico", "ifco"])
def test_gates_of_opset1_are_in_the_order_of_the_page(weights_format: str) -> None:
    inputs = [numbers(2, 3), numbers(2, 2), numbers(2, 2), numbers(8, 3), numbers(8, 2), numbers(8)]
    close("LSTMCell", 1, inputs, {"hidden_size": 2, "weights_format": weights_format})


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_small_floats_are_rounded_once(dtype: type[np.generic]) -> None:
    inputs = [
        numbers(2, 7, 3),
        numbers(2, 1, 2),
        numbers(2, 1, 2),
        numbers(1, 8, 3),
        numbers(1, 8, 2),
        numbers(1, 8),
    ]
    small = [one.astype(dtype) for one in inputs]
    lengths = np.array([7, 4])
    attributes = {"hidden_size": "2", "direction": "reverse"}
    wide = ours(
        "LSTMSequence",
        5,
        [one.astype(np.float32) for one in small[:3]]
        + [lengths]
        + [one.astype(np.float32) for one in small[3:]],
        attributes,
    )
    got = ours("LSTMSequence", 5, [*small[:3], lengths, *small[3:]], attributes)
    for mine, theirs in zip(got, wide, strict=True):
        np.testing.assert_array_equal(mine, theirs.astype(dtype))


def test_no_steps_leave_the_state() -> None:
    state = numbers(2, 1, 2)
    got = ours(
        "RNNSequence",
        5,
        [
            numbers(2, 0, 3),
            state,
            np.array([0, 0]),
            *[numbers(1, 2, 3), numbers(1, 2, 2), numbers(1, 2)],
        ],
        {"hidden_size": "2", "direction": "forward"},
    )
    assert got[0].shape == (2, 1, 0, 2)
    np.testing.assert_array_equal(got[1], state)


@pytest.mark.parametrize(
    ("lengths", "attributes", "message"),
    [
        ([5, 5], {}, "one length"),
        ([5, 5, -1], {}, "at least 0"),
        ([5, 5, 5], {"hidden_size": "7"}, "do not fit"),
        ([5, 5, 5], {"activations": "softmax"}, "activations"),
        ([5, 5, 5], {"activations": "tanh,tanh"}, "expected 1"),
        ([5, 5, 5], {"direction": "bidirectional"}, "directions"),
        ([5, 5, 5], {"direction": "sideways"}, "direction"),
    ],
)
def test_sequences_refuse(lengths: list[int], attributes: dict[str, str], message: str) -> None:
    inputs = [
        numbers(BATCH, TIME, INPUT),
        numbers(BATCH, 1, HIDDEN),
        np.array(lengths),
        *weights(1, 1),
    ]
    with pytest.raises(ValueError, match=message):
        ours(
            "RNNSequence",
            5,
            inputs,
            {"hidden_size": str(HIDDEN), "direction": "forward", **attributes},
        )


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_one_hot(axis: int) -> None:
    indices = np.array([[0, 3, 1], [-1, 2, -4]])
    agree(
        "OneHot",
        1,
        [indices, np.int64(4), np.float32(2), np.float32(-1)],
        {"axis": axis},
        constant=[1],
    )
    for mode in ("ignore_negative", "normalize"):
        inputs: list[Value] = [indices.astype(np.int32), np.int32(3), np.int32(2), np.int32(-1)]
        agree("OneHot", 16, inputs, {"axis": axis, "negative_indices_mode": mode}, constant=[1])


def test_one_hot_of_anything() -> None:
    """Any type, strings too; a scalar index; the page's example of negative indices."""
    texts = [np.array("on", object), np.array("off", object)]
    np.testing.assert_array_equal(
        ours("OneHot", 1, [np.int64(1), np.int64(3), *texts], {"axis": "0"})[0],
        ["off", "on", "off"],
    )
    got = ours(
        "OneHot",
        16,
        [np.array([0, -5, -2, 2]), np.int64(3), np.uint8(1), np.uint8(2)],
        {"axis": "-1", "negative_indices_mode": "normalize"},
    )
    np.testing.assert_array_equal(got[0], [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 1]])
    with pytest.raises(ValueError, match="more than the limit"):
        ours("OneHot", 1, [np.array([0]), np.int64(2**40), np.uint8(1), np.uint8(2)], {"axis": "0"})


QUERY, KEY, VALUE = numbers(2, 3, 4, 8), numbers(2, 3, 5, 8), numbers(2, 3, 5, 6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        [],
        [numbers(2, 1, 4, 5)],
        [numbers(2, 1, 4, 5) > 0],
        [numbers(1, 1, 1, 5), np.array([0.3], np.float32)],
        [np.float32(0), np.array(0.3, np.float32)],
    ],
    ids=["plain", "added", "boolean", "scaled", "scaled without mask"],
)
def test_attention(more: list[np.ndarray], causal: bool) -> None:
    close("ScaledDotProductAttention", 13, [QUERY, KEY, VALUE, *more], {"causal": causal})


LOWEST = np.finfo(np.float32).min


@pytest.mark.parametrize("sink", [[], [np.zeros((1, 1, 1, 1), np.float32)]], ids=["", "sink"])
@pytest.mark.parametrize(
    "blind",
    [np.array(False), np.array(-np.inf, np.float32), np.array(LOWEST)],
    ids=["boolean", "minus infinity", "lowest number"],
)
def test_query_that_sees_no_key(blind: np.ndarray, sink: list[np.ndarray]) -> None:
    """Minus infinity gives 0; a finite bias, and false as the lowest number, give the mean of the
    values.

    So does OpenVINO's CPU where it keeps the operation (with a cache); where it takes it apart, it
    gives NaN.
    """
    mask = np.full((4, 5), True if blind.dtype == np.bool_ else 0, blind.dtype)
    mask[1] = blind
    scale = [np.array([0.5], np.float32)] if sink else []
    got = ours(
        "ScaledDotProductAttention",
        13,
        [QUERY, KEY, VALUE, mask, *scale, *sink],
        {"causal": "false"},
    )[0]
    plain = ours(
        "ScaledDotProductAttention",
        13,
        [QUERY, KEY, VALUE, mask[0], *scale, *sink],
        {"causal": "false"},
    )[0]
    expected = 0 if blind == -np.inf or sink else VALUE.mean(2)
    np.testing.assert_allclose(
        got[:, :, 1], np.broadcast_to(expected, got[:, :, 1].shape), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(np.delete(got, 1, 2), np.delete(plain, 1, 2))


@pytest.mark.parametrize(
    "blind", [np.array(False), np.array(-np.inf, np.float32), np.array(LOWEST)], ids=str
)
def test_query_that_sees_no_key_beside_a_cache(blind: np.ndarray) -> None:
    """OpenVINO's CPU computes attention in one kernel where keys and values come from variables."""
    mask = np.full((1, 1, 3, 3), True if blind.dtype == np.bool_ else 0, blind.dtype)
    mask[..., 1, :] = blind
    query, key, value = (numbers(2, 2, 3, 16) for _ in range(3))
    expected = _beside_a_cache(query, key, value, mask)
    got = ours("ScaledDotProductAttention", 13, [query, key, value, mask], {"causal": "false"})[0]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def _beside_a_cache(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """Return what OpenVINO's CPU gives for attention whose keys and values are appended to empty
    variables.
    """
    heads, width = key.shape[1], key.shape[3]
    sides = [opset16.parameter([-1, heads, -1, width], np.float32) for _ in range(3)]
    hidden, rows = opset16.parameter([-1] * 4, mask.dtype.type), opset16.parameter([-1], np.int32)

    def cached(new: ov.Node, name: str) -> ov.Node:
        batch = opset16.gather(opset16.shape_of(new), np.array([0]), np.array(0))
        empty = opset16.broadcast(
            np.float32(0), opset16.concat([batch, opset16.constant(np.array([heads, 0, width]))], 0)
        )
        past = opset16.gather(
            opset16.read_value(empty, name, np.float32, [-1, heads, -1, width]), rows, np.array(0)
        )
        return opset16.concat([past, new], 2)

    keys, values = cached(sides[1], "keys"), cached(sides[2], "values")
    mixed = opset16.scaled_dot_product_attention(sides[0], keys, values, hidden)
    sinks = [opset16.assign(keys, "keys"), opset16.assign(values, "values")]
    model = ov.Model([opset16.result(mixed)], sinks, [*sides, hidden, rows])
    compiled = ov.Core().compile_model(
        model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
    )
    return np.array(compiled([query, key, value, mask, np.arange(len(query), dtype=np.int32)])[0])


def test_scores_below_all_numbers_give_0() -> None:
    """A query whose scores overflow to minus infinity sees no key either; NaN in a query stays
    NaN.
    """
    query, key = -np.ones((2, 1, 8), np.float32), np.full((2, 3, 8), np.inf, np.float32)
    got = ours(
        "ScaledDotProductAttention", 13, [query, key, numbers(2, 3, 2)], {"causal": "false"}
    )[0]
    np.testing.assert_array_equal(got, np.zeros((2, 1, 2)))
    got = ours(
        "ScaledDotProductAttention",
        13,
        [query * np.nan, key, numbers(2, 3, 2)],
        {"causal": "false"},
    )[0]
    assert np.isnan(got).all()


def test_attention_of_rank_three() -> None:
    close(
        "ScaledDotProductAttention",
        13,
        [numbers(2, 4, 8), numbers(2, 5, 8), numbers(2, 5, 8)],
        {"causal": False},
    )


@pytest.mark.parametrize("merge", [True, False])
def test_ctc_greedy_decoders(merge: bool) -> None:
    mask = np.array([[1] * 7, [1] * 4 + [0] * 3, [0] * 7], np.float32).T.copy()
    agree("CTCGreedyDecoder", 1, [numbers(7, 3, 4), mask], {"ctc_merge_repeated": merge})
    for blank in (0, 3):
        inputs = [numbers(3, 7, 4), np.array([7, 4, 0], np.int32), np.array([blank], np.int32)]
        attributes = {
            "merge_repeated": merge,
            "classes_index_type": "i32",
            "sequence_length_type": "i64",
        }
        agree("CTCGreedyDecoderSeqLen", 6, inputs, attributes)


@pytest.mark.parametrize(("merge", "unique", "collapse"), list(product([True, False], repeat=3)))
def test_ctc_loss(merge: bool, unique: bool, collapse: bool) -> None:
    labels = RANDOM.integers(0, 3, (6, 7))
    attributes = {
        "preprocess_collapse_repeated": collapse,
        "ctc_merge_repeated": merge,
        "unique": unique,
    }
    lengths = [np.array([7, 6, 7, 5, 4, 7]), np.array([3, 4, 1, 2, 1, 2])]
    close("CTCLoss", 4, [numbers(6, 7, 4), lengths[0], labels, lengths[1]], attributes)
    close(
        "CTCLoss",
        4,
        [numbers(6, 7, 4), lengths[0], labels + 1, lengths[1], np.int64(0)],
        attributes,
    )


def test_ctc_loss_counts_all_paths() -> None:
    """Two steps, one label: label-label, label-blank and blank-label; without merging,
    label-label says two labels.
    """
    logits, labels = np.log(np.array([[[0.3, 0.7], [0.4, 0.6]]], np.float32)), np.array([[0, 0]])
    for merge, probability in (
        (True, 0.3 * 0.4 + 0.3 * 0.6 + 0.7 * 0.4),
        (False, 0.3 * 0.6 + 0.7 * 0.4),
    ):
        attributes = {"ctc_merge_repeated": str(merge).lower()}
        loss = ours("CTCLoss", 4, [logits, np.array([2]), labels, np.array([1])], attributes)[0]
        assert exp(-float(loss[0])) == pytest.approx(probability, rel=1e-5)
    nothing = ours("CTCLoss", 4, [logits, np.array([2]), labels, np.array([0])])[0]
    assert float(nothing[0]) == pytest.approx(-log(0.7 * 0.6), rel=1e-5)
    impossible = ours("CTCLoss", 4, [logits, np.array([2]), labels, np.array([2])])[0]
    assert impossible[0] == np.inf  # two equal labels need a blank between them


@pytest.mark.parametrize(
    ("lengths", "labels", "message"),
    [
        (([8], [1]), [[0] * 7], "do not fit"),
        (([3], [4]), [[0] * 7], "do not fit"),
        (([7], [1]), [[9] * 7], "classes"),
    ],
)
def test_ctc_loss_refuses(
    lengths: tuple[list[int], list[int]], labels: list[list[int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ours(
            "CTCLoss",
            4,
            [numbers(1, 7, 4), np.array(lengths[0]), np.array(labels), np.array(lengths[1])],
        )
