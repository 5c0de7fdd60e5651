"""GreedySearch of ONNX Runtime, run as the loop that it is: the sequences that ONNX Runtime
finds with tiny decoders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, TensorProto, helper, numpy_helper

import loopscope
from loopscope.checks.check import check
from loopscope.ops.catalogue import CATALOGUE

WORDS, EOS, PAD = 11, 10, 0
MICROSOFT = {"domain": "com.microsoft"}


def decoder(
    name: str, seed: int = 0, *, layers: int = 1, heads: int = 2, width: int = 8, most: int = 48
) -> GraphProto:
    """Of random weights, with the inputs and outputs that the searches want: tokens, positions,
    mask, caches; logits, caches.
    """
    dice, each = np.random.default_rng(seed), width // heads
    held: dict[str, np.ndarray] = {
        name: dice.normal(size=shape)
        for name, shape in (("we", (WORDS, width)), ("pe", (most, width)), ("out", (width, WORDS)))
    }
    nodes = [
        helper.make_node("Gather", ["we", "input_ids"], ["word"]),
        helper.make_node("Gather", ["pe", "position_ids"], ["place"]),
        helper.make_node("Add", ["word", "place"], ["x0"]),
    ]
    caches = [2, None, heads, None, each]
    inputs = [
        helper.make_tensor_value_info(one, TensorProto.INT32, [None, None])
        for one in ("input_ids", "position_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [None, None, WORDS])]
    for layer in range(layers):
        held |= {
            f"w{layer}": dice.normal(size=(width, 3 * width)) / 2,
            f"b{layer}": dice.normal(size=3 * width),
            f"g{layer}": np.ones(width),
        }
        inputs.append(helper.make_tensor_value_info(f"past_{layer}", TensorProto.FLOAT, caches))
        outputs.append(helper.make_tensor_value_info(f"present_{layer}", TensorProto.FLOAT, caches))
        attended = [f"x{layer}", f"w{layer}", f"b{layer}", "attention_mask", f"past_{layer}"]
        nodes += [
            helper.make_node(
                "Attention",
                attended,
                [f"a{layer}", f"present_{layer}"],
                num_heads=heads,
                unidirectional=1,
                **MICROSOFT,
            ),
            helper.make_node(
                "SkipLayerNormalization",
                [f"x{layer}", f"a{layer}", f"g{layer}"],
                [f"x{layer + 1}"],
                **MICROSOFT,
            ),
        ]
    nodes.append(helper.make_node("MatMul", [f"x{layers}", "out"], ["logits"]))
    weights = [numpy_helper.from_array(one.astype(np.float32), name) for name, one in held.items()]
    return helper.make_graph(nodes, name, inputs, outputs, weights)


FEEDS: Mapping[str, np.ndarray] = {
    "input_ids": np.array([[1, 2, 3], [0, 4, 5]], np.int32),
    "max_length": np.array([12], np.int32),
    "min_length": np.array([9], np.int32),
    "repetition_penalty": np.array([1.5], np.float32),
    "vocab_mask": np.array([1] * 5 + [0] * 3 + [1] * 3, np.int32),
    "prefix_vocab_mask": np.array([[1] * 4 + [0] * 7, [0] * 4 + [1] * 7], np.int32),
    "attention_mask": np.array([[1, 1, 1], [0, 0, 1]], np.int32),
}


def search(
    *more: str,
    type: str = "GreedySearch",
    graphs: Mapping[str, GraphProto] | None = None,
    opset: int = 17,
    **attributes: Any,
) -> bytes:
    """A model of one search; ``more`` inputs beside tokens and the greatest length."""
    names = [name if name in ("input_ids", "max_length", *more) else "" for name in FEEDS]
    while not names[-1]:
        names.pop()
    given = {
        "eos_token_id": EOS,
        "pad_token_id": PAD,
        **attributes,
        **(graphs or {"decoder": decoder("decoder")}),
    }
    node = helper.make_node(type, names, ["sequences"], **given, **MICROSOFT)
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(FEEDS[name].dtype), None
        )
        for name in names
        if name
    ]
    graph = helper.make_graph(
        [node],
        "search",
        inputs,
        [helper.make_tensor_value_info("sequences", TensorProto.INT32, None)],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    data: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return data


def both(data: bytes, feeds: Mapping[str, np.ndarray] = FEEDS) -> tuple[np.ndarray, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    given = {one.name: feeds[one.name] for one in session.get_inputs()}
    (mine,) = loopscope.run(loopscope.read_model(data), given).outputs
    return mine, session.run(None, given)[0]


SEARCHES: Mapping[str, bytes] = {
    "a decoder": search(),
    "of the first opset": search(opset=11),
    "of opset 13": search(opset=13),
    "three layers": search(graphs={"decoder": decoder("deep", 5, layers=3, heads=4, width=16)}),
    "another decoder for the first token": search(
        graphs={"init_decoder": decoder("first", 1), "decoder": decoder("later", 2)}
    ),
    "an end for one of two": search(eos_token_id=9),
    "a penalty of repetition": search("repetition_penalty"),
    "a least length": search("min_length", eos_token_id=5),
    "a mask of words": search("vocab_mask"),
    "a mask of first words": search("prefix_vocab_mask"),
    "a mask of tokens": search("attention_mask"),
    "no 40 words twice": search(no_repeat_ngram_size=40),
    "everything": search(*FEEDS, no_repeat_ngram_size=2, eos_token_id=9),
    **{
        f"no {size} words twice": search(
            no_repeat_ngram_size=size, eos_token_id=3 if size == 1 else 8
        )
        for size in (1, 2, 3, 5, 20)
    },
}


@pytest.mark.parametrize("data", SEARCHES.values(), ids=SEARCHES.keys())
def test_the_sequences_are_those_of_the_runtime(data: bytes) -> None:
    mine, theirs = both(data)
    assert mine.dtype == theirs.dtype
    np.testing.assert_array_equal(mine, theirs)


def test_many_random_decoders() -> None:
    """Forty, each with prompts of other lengths; where all of a batch have ended, ONNX Runtime
    leaves what comes after unwritten.
    """
    dice = np.random.default_rng(3)
    ended = 0
    for seed in range(40):
        data = search(
            graphs={"decoder": decoder("one", seed, layers=1 + seed % 2)}, eos_token_id=seed % WORDS
        )
        batch, length = (int(one) for one in dice.integers(1, 5, 2))
        feeds = {
            "input_ids": dice.integers(1, WORDS, (batch, length), np.int32),
            "max_length": np.array([length + 9], np.int32),
        }
        mine, theirs = both(data, feeds)
        written = length + _tokens(data, feeds)
        np.testing.assert_array_equal(mine[:, :written], theirs[:, :written])
        assert (mine[:, written:] == PAD).all()
        ended += written < mine.shape[1]
    assert 5 < ended < 35


def _tokens(data: bytes, feeds: Mapping[str, np.ndarray]) -> int:
    """How many tokens were made."""
    debugger = loopscope.Debugger(loopscope.read_model(data), feeds)
    debugger.run()
    (loop,) = (one for one in debugger.control_flow if one.kind == "Loop")
    assert loop.iterations is not None
    return loop.iterations


def test_all_that_comes_after_the_last_end_is_padding() -> None:
    """7 ends both: the one after two tokens, the other after one."""
    mine, theirs = both(search(eos_token_id=7))
    assert mine.tolist() == [[1, 2, 3, 5, 6, *[0] * 7], [0, 4, 5, 6, *[0] * 8]]
    np.testing.assert_array_equal(mine[:, :6], theirs[:, :6])


def test_it_is_a_loop_that_can_be_stepped() -> None:
    model = loopscope.read_model(
        search(graphs={"init_decoder": decoder("first", 1), "decoder": decoder("later", 2)})
    )
    debugger = loopscope.Debugger(
        model, {name: FEEDS[name] for name in ("input_ids", "max_length")}
    )
    debugger.run()
    (loop,) = (one for one in debugger.control_flow if one.kind == "Loop")
    assert (loop.address, loop.iterations) == ("main/GreedySearch_0/body/tokens", 9)
    assert [
        one.address.rpartition("/")[2] for one in debugger.control_flow if one.kind == "Function"
    ][1:4] == [
        "init_decoder",
        "decoder",
        "decoder",
    ]


def test_a_name_of_the_graph_around_means_what_it_means_there() -> None:
    """The decoder takes a matrix from the model around it, by a name such as those that are made
    for the loop.
    """
    graph = decoder("decoder")
    (shared,) = (one for one in graph.initializer if one.name == "out")
    graph.initializer.remove(shared)
    shared.name = "search/tokens"
    graph.node[-1].input[1] = shared.name
    model = onnx.ModelProto.FromString(search(graphs={"decoder": graph}))
    model.graph.initializer.append(shared)
    mine, theirs = both(model.SerializeToString())
    np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(mine, both(search())[0])


def test_a_name_that_is_no_text_is_refused() -> None:
    data = search().replace(b"position_ids", b"position_id\xff")
    with pytest.raises(loopscope.EngineError, match="is not text in UTF-8"):
        loopscope.read_model(data)


NOT_RUN: Mapping[str, bytes] = {
    "an encoder": search(model_type=1),
    "beams of what is no decoder": search(type="BeamSearch", model_type=1),
    "endless runs of words": search(no_repeat_ngram_size=10**12),
    "an end that is no word": search(eos_token_id=2**40),
    "an old opset": search(opset=10),
    "logits that are filtered": search(type="Sampling", presence_penalty=0.5),
    "a search of nothing": search(type="BeamSearch"),
}


@pytest.mark.parametrize("data", NOT_RUN.values(), ids=NOT_RUN.keys())
def test_what_is_not_run_says_so(data: bytes) -> None:
    (found,) = (
        one for one in check(loopscope.read_model(data), CATALOGUE).errors if one.code == "LS301"
    )
    assert any(name in found.message for name in ("GreedySearch", "Sampling", "BeamSearch"))
    assert "can be drawn but not run" in found.message
    assert found.advice.startswith("Loopscope runs ONNX Runtime's searches over a single decoder")
