"""WhisperBeamSearch of ONNX Runtime, run as a loop over tokens: the sequences and scores of ONNX
Runtime.

ONNX Runtime 1.31 on the CPU refuses f16 caches, a single iteration or none, an encoder that only
returns hidden states and cross-attention caches, and output ``cross_qk``. It does not write output
``non_speech_probs``, and returns other sequences if the caches share a buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import GraphProto, TensorProto, helper

import loopscope
from loopscope.checks.check import check
from loopscope.ops.catalogue import CATALOGUE
from tests.engine.read.encoder_decoder import FEATURES, WORDS, whisper_graphs
from tests.engine.read.test_beams import Feeds, floats, ints
from tests.engine.read.test_searches import MICROSOFT

RANKS = {
    "input_ids": 3,
    **dict.fromkeys(("max_length", "min_length", "num_beams", "num_return_sequences"), 1),
    **dict.fromkeys(("length_penalty", "repetition_penalty", "vocab_mask"), 1),
    "prefix_vocab_mask": 2,
    "attention_mask": 3,
    "decoder_input_ids": 2,
    "logits_processor": 1,
    "cross_qk_layer_head": 2,
    "extra_decoding_ids": 2,
    "temperature": 1,
}
"""Ranks of the inputs, in their order."""
OUTPUTS = ("sequences", "sequences_scores", "scores", "cross_qk", "non_speech_probs")
SCORED = OUTPUTS[:3]
MANY = 80
"""Number of words of the models with timestamps, of which the last 60 are timestamps."""
PLAIN: Mapping[str, Any] = {"eos_token_id": 10, "pad_token_id": 0, "decoder_start_token_id": 1}
STAMPED: Mapping[str, Any] = {
    "eos_token_id": 13,
    "pad_token_id": 12,
    "decoder_start_token_id": 14,
    "translate_token_id": 15,
    "transcribe_token_id": 16,
    "start_of_lm_token_id": 17,
    "no_timestamps_token_id": 19,
    "beginning_timestamp_token_id": 20,
}


def model(
    feeds: Feeds,
    graphs: Mapping[str, GraphProto],
    *,
    outputs: Sequence[str] = SCORED,
    type: str = "WhisperBeamSearch",
    opset: int = 17,
    **attributes: Any,
) -> bytes:
    """Return a model of one search with these inputs and outputs."""
    inputs = [name if name in feeds else "" for name in RANKS]
    results = [name if name in outputs else "" for name in OUTPUTS]
    for names in (inputs, results):
        while not names[-1]:
            names.pop()
    node = helper.make_node(type, inputs, results, **attributes, **graphs, **MICROSOFT)
    given = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(feeds[name].dtype),
            [1] if feeds[name].shape == (1,) else [None] * RANKS[name],
        )
        for name in inputs
        if name
    ]
    made = [
        helper.make_tensor_value_info(
            name, TensorProto.INT32 if name == "sequences" else TensorProto.FLOAT, None
        )
        for name in results
        if name
    ]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    data: bytes = helper.make_model(
        helper.make_graph([node], "search", given, made), opset_imports=opsets, ir_version=8
    ).SerializeToString()
    return data


def feeds_of(
    dice: np.random.Generator, *, batch: int = 2, beams: int = 3, most: int = 9, **more: np.ndarray
) -> Feeds:
    frames = int(dice.integers(1, 5))
    return {
        "input_ids": dice.normal(size=(batch, FEATURES, frames)).astype(np.float32),
        "max_length": ints(most),
        "min_length": ints(0),
        "num_beams": ints(beams),
        "num_return_sequences": ints(beams),
        "length_penalty": floats(1),
        "repetition_penalty": floats(1),
        **more,
    }


def expect_equal(data: bytes, feeds: Feeds, note: str) -> np.ndarray:
    """Compare a run with ONNX Runtime's and return the scores of all iterations.

    The scores of batch entries that are done before the others are not defined.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    expected, expected_scores, all_expected = session.run(None, feeds)
    found, scores, every = loopscope.run(loopscope.read_model(data), feeds).outputs
    np.testing.assert_array_equal(found, expected, err_msg=note)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-4, atol=1e-5, err_msg=note)
    assert every.shape == all_expected.shape
    if len(found) == 1:
        needed = sum(bool(one.any()) for one in every)
        np.testing.assert_allclose(
            every[:needed], all_expected[:needed], rtol=1e-4, atol=1e-4, err_msg=note
        )
    return every


def forced(dice: np.random.Generator, batch: int, words: int) -> np.ndarray:
    """Return one to five first tokens of each batch entry."""
    return dice.integers(0, words, (batch, int(dice.integers(1, 6))), np.int32)


def drawn(seed: int) -> tuple[bytes, Feeds]:
    """Return a random search without timestamps."""
    dice = np.random.default_rng(seed)
    batch, beams = (int(one) for one in dice.integers(1, (4, 5)))
    feeds = feeds_of(dice, batch=batch, beams=beams, most=int(dice.integers(8, 15)))
    feeds["num_return_sequences"] = ints(int(dice.integers(1, beams + 1)))
    feeds["min_length"] = ints(int(dice.choice((0, 7))))
    feeds["length_penalty"] = floats(dice.choice((0, 0.5, 1, 2, -1)))
    feeds["repetition_penalty"] = floats(dice.choice((1, 1, 1.3)))
    some = ints(*[1] * 6, *[0] * 5)
    optional = {
        "vocab_mask": dice.integers(0, 2, WORDS, np.int32) | some,
        "prefix_vocab_mask": dice.integers(0, 2, (batch, WORDS), np.int32) | some,
        "attention_mask": np.ones(feeds["input_ids"].shape, np.int32),
        "extra_decoding_ids": dice.integers(-1, WORDS, (batch, 2), np.int32),
        "temperature": floats(dice.choice((0.5, 1, 1.7, 0, -1))),
    }
    feeds |= {name: value for name, value in optional.items() if dice.random() < 0.3}
    if dice.random() < 0.8:
        feeds["decoder_input_ids"] = forced(dice, batch, WORDS)
    graphs = whisper_graphs(
        seed, layers=1 + seed % 2, hidden=dice.random() < 0.7, whole=dice.random() < 0.2
    )
    chosen = {
        "early_stopping": int(dice.integers(2)),
        "no_repeat_ngram_size": int(dice.choice((0, 0, 1, 2))),
        **PLAIN,
        "eos_token_id": int(dice.integers(1, WORDS)),
    }
    return model(feeds, graphs, **chosen), feeds


def test_drawn_searches_are_those_of_the_runtime() -> None:
    for seed in range(60):
        expect_equal(*drawn(seed), f"seed {seed}")


def test_timestamps_are_those_of_the_runtime() -> None:
    """Excluded words have the lowest score in both, so equal scores are equal rules."""
    excluded = set[int]()
    for seed in range(60):
        dice = np.random.default_rng(seed)
        batch, beams = (1, 4) if seed % 2 else (2, 1 + seed % 4)
        first = forced(dice, batch, MANY)
        last = dice.integers(20, MANY, 2)
        first[:, -2:] = last[-first.shape[1] :] if dice.random() < 0.3 else first[:, -2:]
        feeds = feeds_of(dice, batch=batch, beams=beams, most=16, decoder_input_ids=first)
        feeds["logits_processor"] = ints(1 if dice.random() < 0.9 else int(dice.choice((0, 2))))
        feeds["min_length"] = ints(int(dice.choice((0, 8))))
        if dice.random() < 0.3:
            feeds["temperature"] = floats(dice.choice((0.5, 3)))
        graphs = whisper_graphs(seed, words=MANY, layers=1 + seed % 2)
        every = expect_equal(model(feeds, graphs, **STAMPED), feeds, f"seed {seed}")
        excluded.update(int((row < -1e30).sum()) for row in every.reshape(-1, MANY))
    assert len(excluded) > 20


def test_a_search_of_speech_by_beam_search_is_that_of_the_runtime() -> None:
    """BeamSearch with model_type 2 is the operation's older name."""
    feeds = feeds_of(np.random.default_rng(0), decoder_input_ids=ints(1, 2, 3, 4).reshape(2, 2))
    data = model(feeds, whisper_graphs(0), type="BeamSearch", model_type=2, **PLAIN)
    expect_equal(data, feeds, "BeamSearch")


@pytest.mark.parametrize("opset", [11, 13, 17])
def test_rules_have_the_same_meaning_in_each_opset(opset: int) -> None:
    feeds = feeds_of(np.random.default_rng(0), most=14, logits_processor=ints(1))
    data = model(feeds, whisper_graphs(0, words=MANY), opset=opset, **STAMPED)
    expect_equal(data, feeds, f"opset {opset}")


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_outputs_that_are_not_requested_are_left_out(outputs: int) -> None:
    feeds = feeds_of(np.random.default_rng(0))
    read = loopscope.read_model(model(feeds, whisper_graphs(0), outputs=OUTPUTS[:outputs], **PLAIN))
    shapes = [(2, 3, 9), (2, 3), (8, 2, 3, WORDS)]
    assert [one.shape for one in loopscope.run(read, feeds).outputs] == shapes[:outputs]


def test_it_is_a_loop_that_can_be_stepped() -> None:
    feeds = feeds_of(
        np.random.default_rng(0), decoder_input_ids=ints(14, 15, 16, 14, 15, 20).reshape(2, 3)
    )
    feeds["logits_processor"] = ints(1)
    read = loopscope.read_model(model(feeds, whisper_graphs(0, words=MANY), **STAMPED))
    assert check(read, CATALOGUE).ok
    debugger = loopscope.Debugger(read, feeds)
    debugger.run()
    (loop,) = (one for one in debugger.control_flow if one.kind == "Loop")
    assert (loop.address, loop.iterations) == ("main/WhisperBeamSearch_0/body/tokens", 6)
    kinds = [one.address.rpartition("/")[2] for one in debugger.control_flow]
    assert kinds.count("encoder") == 1
    assert kinds.count("decoder") == 5
    assert kinds.count("timestamp rules") == 6


def test_zero_iterations_return_the_first_tokens() -> None:
    first = ints(1, 2, 3, 4, 5, 6).reshape(2, 3)
    feeds = feeds_of(np.random.default_rng(0), most=3, decoder_input_ids=first)
    read = loopscope.read_model(model(feeds, whisper_graphs(0), **PLAIN))
    found, scores, every = loopscope.run(read, feeds).outputs
    np.testing.assert_array_equal(found, np.repeat(first[:, None], 3, axis=1))
    assert (scores[:, 0] == 0).all()
    assert every.shape == (0, 2, 3, WORDS)


def test_caches_in_half_precision_give_the_same_sequences() -> None:
    feeds = feeds_of(np.random.default_rng(0), decoder_input_ids=ints(1, 2).reshape(2, 1))
    found, expected = (
        loopscope.run(loopscope.read_model(model(feeds, graphs, **PLAIN)), feeds).outputs[0]
        for graphs in (in_half_precision(whisper_graphs(0)), whisper_graphs(0))
    )
    np.testing.assert_array_equal(found, expected)


def in_half_precision(graphs: Mapping[str, GraphProto]) -> Mapping[str, GraphProto]:
    """Return the graphs with logits, hidden states, and caches in f16, computed in f32."""
    for graph in graphs.values():
        halves = [item for item in graph.input if item.name.startswith(("past", "encoder_hidden"))]
        names = {item.name: f"{item.name} in f32" for item in (*halves, *graph.output)}
        for item in (*halves, *graph.output):
            item.type.tensor_type.elem_type = TensorProto.FLOAT16
        for node in graph.node:
            for values in (node.input, node.output):
                values[:] = [names.get(name, name) for name in values]
        before = [
            helper.make_node("Cast", [item.name], [names[item.name]], to=TensorProto.FLOAT)
            for item in halves
        ]
        after = [
            helper.make_node("Cast", [names[item.name]], [item.name], to=TensorProto.FLOAT16)
            for item in graph.output
        ]
        nodes = [*before, *graph.node, *after]
        del graph.node[:]
        graph.node.extend(nodes)
    return graphs


def without_first_logits() -> Mapping[str, GraphProto]:
    """Return the form whose encoder returns hidden states and cross-attention caches only."""
    graphs = whisper_graphs(0)
    outputs = graphs["encoder"].output
    for item in [*outputs]:
        if item.name == "logits" or "self" in item.name:
            outputs.remove(item)
    return graphs


def with_shared_caches() -> Mapping[str, GraphProto]:
    """Return the form whose decoder writes into caches of the maximum length."""
    graphs = whisper_graphs(0)
    length = helper.make_tensor_value_info("past_sequence_length", TensorProto.INT32, [1])
    graphs["decoder"].input.append(length)
    return graphs


FEEDS = feeds_of(np.random.default_rng(0))
STARTLESS: Mapping[str, Any] = {
    name: value for name, value in PLAIN.items() if name != "decoder_start_token_id"
}
NOT_RUN: Mapping[str, bytes] = {
    "the newer form of the encoder": model(FEEDS, without_first_logits(), **PLAIN),
    "caches that share a buffer": model(FEEDS, with_shared_caches(), **PLAIN),
    "scores of cross-attention": model(
        FEEDS, whisper_graphs(0), outputs=("sequences", "cross_qk"), **PLAIN
    ),
    "probabilities of silence": model(
        FEEDS, whisper_graphs(0), outputs=("sequences", "non_speech_probs"), **PLAIN
    ),
    "no first token": model(FEEDS, whisper_graphs(0), **STARTLESS),
    "less words than logits": model(FEEDS, whisper_graphs(0), vocab_size=5, **PLAIN),
    "rules without a timestamp": model(
        {**FEEDS, "logits_processor": ints(1)}, whisper_graphs(0), **PLAIN
    ),
    "rules for timestamps that are not words": model(
        {**FEEDS, "logits_processor": ints(1)},
        whisper_graphs(0),
        beginning_timestamp_token_id=WORDS,
        **PLAIN,
    ),
    "another type of model": model(FEEDS, whisper_graphs(0), model_type=1, **PLAIN),
    "a beam search of no declared type": model(
        FEEDS, whisper_graphs(0), type="BeamSearch", **PLAIN
    ),
    "no encoder": model(FEEDS, {"decoder": whisper_graphs(0)["decoder"]}, **PLAIN),
}


@pytest.mark.parametrize("data", NOT_RUN.values(), ids=NOT_RUN.keys())
def test_a_search_that_is_not_supported_is_an_unknown_operation(data: bytes) -> None:
    read = loopscope.read_model(data)
    (found,) = (one for one in check(read, CATALOGUE).errors if one.code == "LS301")
    assert "can be drawn but not run" in found.message
    assert "WhisperBeamSearch without outputs cross_qk and non_speech_probs" in found.advice
