"""BeamSearch and Sampling of ONNX Runtime, run as the loops that they are: the sequences, scores
and draws of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, TensorProto, helper

import loopscope
from loopscope.checks.check import check
from loopscope.ops.catalogue import CATALOGUE
from tests.engine.read import encoder_decoder
from tests.engine.read.test_searches import EOS, MICROSOFT, PAD, WORDS, decoder

BEAM_INPUTS = (
    "input_ids",
    "max_length",
    "min_length",
    "num_beams",
    "num_return_sequences",
    "length_penalty",
    "repetition_penalty",
    "vocab_mask",
    "prefix_vocab_mask",
    "attention_mask",
)
SAMPLING_INPUTS = (
    *("input_ids", "max_length", "min_length", "repetition_penalty"),
    *["none"] * 4,
    "seed",
)
TABLES = ("input_ids", "prefix_vocab_mask", "attention_mask")
Feeds = dict[str, np.ndarray]


def model(
    type: str, feeds: Feeds, outputs: int, graphs: Mapping[str, GraphProto], **attributes: Any
) -> bytes:
    """One search that takes these inputs."""
    names = [
        name if name in feeds else ""
        for name in (BEAM_INPUTS if type == "BeamSearch" else SAMPLING_INPUTS)
    ]
    while not names[-1]:
        names.pop()
    given = ["sequences", "sequences_scores", "scores"][:outputs]
    unnamed = attributes.pop("unnamed", 0)
    node = helper.make_node(
        type,
        names,
        [*given, *[""] * unnamed],
        pad_token_id=PAD,
        **attributes,
        **graphs,
        **MICROSOFT,
    )
    kinds = {name: helper.np_dtype_to_tensor_dtype(feeds[name].dtype) for name in names if name}
    inputs = [
        helper.make_tensor_value_info(name, kind, [None] * (1 + (name in TABLES)))
        for name, kind in kinds.items()
    ]
    made = [
        helper.make_tensor_value_info(
            one, TensorProto.INT32 if one == "sequences" else TensorProto.FLOAT, None
        )
        for one in given
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    data: bytes = helper.make_model(
        helper.make_graph([node], "search", inputs, made), opset_imports=opsets, ir_version=8
    ).SerializeToString()
    return data


def both(data: bytes, feeds: Feeds) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return loopscope.run(loopscope.read_model(data), feeds).outputs, session.run(None, feeds)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


SAMPLED: Feeds = {
    "input_ids": np.array([[1, 2]], np.int32),
    "max_length": ints(12),
    "min_length": ints(0),
    "repetition_penalty": floats(1),
    "seed": ints(5),
}


def drawn_beams(seed: int) -> tuple[bytes, Feeds]:
    """Batches of one to three prompts, some padded, one to four beams, all that the operation
    lets one choose.
    """
    dice = np.random.default_rng(seed)
    batch, length, beams = (int(one) for one in dice.integers(1, (4, 4, 5)))
    feeds = {
        "input_ids": dice.integers(1, WORDS, (batch, length), np.int32),
        "max_length": ints(length + int(dice.integers(2, 10))),
        "min_length": ints(int(dice.choice((0, length + 1)))),
        "num_beams": ints(beams),
        "num_return_sequences": ints(int(dice.integers(1, beams + 1))),
        "length_penalty": floats(dice.choice((0, 0.5, 1, 2, -1))),
        "repetition_penalty": floats(dice.choice((1, 1, 1.3))),
    }
    some = ints(*[1] * 6, *[0] * 5)
    if dice.random() < 0.3:
        feeds["vocab_mask"] = dice.integers(0, 2, WORDS, np.int32) | some
    if dice.random() < 0.3:
        feeds["prefix_vocab_mask"] = dice.integers(0, 2, (batch, WORDS), np.int32) | some
    if dice.random() < 0.3:
        feeds["attention_mask"] = np.ones((batch, length), np.int32)
    if dice.random() < 0.3:
        feeds["input_ids"][0, 0] = PAD
    graphs = {"decoder": decoder("decoder", seed, layers=1 + seed % 2)}
    if dice.random() < 0.2:
        graphs["init_decoder"] = decoder("first", seed + 1, layers=1 + seed % 2)
    chosen = {"early_stopping": int(dice.integers(2)), "eos_token_id": int(dice.integers(1, WORDS))}
    return model(
        "BeamSearch",
        feeds,
        3,
        graphs,
        no_repeat_ngram_size=int(dice.choice((0, 0, 1, 2))),
        **chosen,
    ), feeds


def test_drawn_beam_searches_are_those_of_the_runtime() -> None:
    """Scores go through a softmax in f32 and sums of as many logarithms as tokens: the last
    places may differ.
    """
    for seed in range(60):
        data, feeds = drawn_beams(seed)
        (mine, scores, every), (theirs, expected, all_expected) = both(data, feeds)
        np.testing.assert_array_equal(mine, theirs, err_msg=f"seed {seed}")
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
        assert every.shape == all_expected.shape
        if len(mine) == 1:  # of prompts that are done before the others, scores mean nothing
            needed = sum(bool(one.any()) for one in every)
            np.testing.assert_allclose(every[:needed], all_expected[:needed], rtol=1e-4, atol=1e-4)


KINDS = {
    "with the first logits and hidden states": {"gives_logits": True, "hidden": True},
    "with the first logits": {"gives_logits": True},
    "of the newer form": {"gives_logits": False},
    "with all tokens each time": {"gives_logits": True, "hidden": True, "whole": True},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_drawn_searches_over_an_encoder_and_a_decoder_are_those_of_the_runtime(
    kind: dict[str, bool],
) -> None:
    for seed in range(12):
        dice = np.random.default_rng(seed)
        batch, length, beams = (int(one) for one in dice.integers(1, (4, 4, 5)))
        most = int(dice.integers(4, 10))
        feeds = {
            "input_ids": dice.integers(1, WORDS, (batch, length), np.int32),
            "max_length": ints(most),
            "min_length": ints(int(dice.choice((0, 3)))),
            "num_beams": ints(beams),
            "num_return_sequences": ints(int(dice.integers(1, beams + 1))),
            "length_penalty": floats(dice.choice((0, 1, 2))),
            "repetition_penalty": floats(dice.choice((1, 1.3))),
        }
        if dice.random() < 0.4:
            feeds["input_ids"][0, 0] = PAD
        if dice.random() < 0.3:
            feeds["attention_mask"] = np.ones((batch, length), np.int32)
        graphs = encoder_decoder.graphs(seed, layers=1 + seed % 2, **kind)
        chosen = {
            "early_stopping": int(dice.integers(2)),
            "eos_token_id": int(dice.integers(1, WORDS)),
        }
        start = int(dice.integers(WORDS))
        data = model(
            "BeamSearch", feeds, 2, graphs, model_type=1, decoder_start_token_id=start, **chosen
        )
        (mine, scores), (theirs, expected) = both(data, feeds)
        np.testing.assert_array_equal(mine, theirs, err_msg=f"seed {seed}")
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)


def one_search(outputs: int = 1, **more: np.ndarray) -> tuple[bytes, Feeds]:
    feeds = {
        "input_ids": np.array([[1, 2, 3], [0, 4, 5]], np.int32),
        "max_length": ints(9),
        "min_length": ints(0),
        "num_beams": ints(3),
        "num_return_sequences": ints(2),
        "length_penalty": floats(1),
        **more,
    }
    return model(
        "BeamSearch", feeds, outputs, {"decoder": decoder("decoder")}, eos_token_id=EOS
    ), feeds


def searches() -> Mapping[str, tuple[bytes, Feeds]]:
    """One of each kind."""
    beams = one_search()[1]
    sampling = model(
        "Sampling", SAMPLED, 1, {"decoder": decoder("decoder")}, eos_token_id=EOS, top_p=0.9
    )
    found = {"beams": one_search(3), "sampling": (sampling, SAMPLED)}
    for gives_logits in (True, False):
        graphs = encoder_decoder.graphs(1, gives_logits=gives_logits, hidden=gives_logits)
        data = model(
            "BeamSearch", beams, 2, graphs, model_type=1, decoder_start_token_id=1, eos_token_id=EOS
        )
        found["encoder with logits" if gives_logits else "encoder"] = data, beams
    return found


@pytest.mark.parametrize("name", ["beams", "sampling", "encoder with logits", "encoder"])
def test_a_healthy_search_brings_no_error(name: str) -> None:
    data, feeds = searches()[name]
    read = loopscope.read_model(data)
    assert check(read, CATALOGUE).ok
    assert loopscope.run(read, feeds).outputs[0].dtype == np.int32


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_outputs_that_are_not_asked_for_are_left_out(outputs: int) -> None:
    mine, theirs = both(*one_search(outputs))
    assert [one.shape for one in mine] == [one.shape for one in theirs]
    np.testing.assert_array_equal(mine[0], theirs[0])


@pytest.mark.parametrize("type", ["BeamSearch", "Sampling"])
def test_outputs_without_a_name_are_left_out_too(type: str) -> None:
    feeds = one_search()[1] if type == "BeamSearch" else SAMPLED
    data = model(type, feeds, 1, {"decoder": decoder("decoder")}, eos_token_id=EOS, unnamed=1)
    (mine,), (theirs,) = both(data, feeds)
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("temperature", [0, -2, 0.5])
def test_a_temperature_counts_where_it_is_above_zero(temperature: float) -> None:
    data = model(
        "Sampling",
        SAMPLED,
        1,
        {"decoder": decoder("decoder")},
        eos_token_id=EOS,
        top_p=0.9,
        temperature=float(temperature),
    )
    (mine,), (theirs,) = both(data, SAMPLED)
    np.testing.assert_array_equal(mine, theirs)


def test_a_file_that_has_a_domain_of_our_name_changes_nothing() -> None:
    data, feeds = one_search()
    other = onnx.ModelProto.FromString(data)
    other.opset_import.append(helper.make_opsetid("loopscope", 1))
    (mine,), (theirs,) = both(other.SerializeToString(), feeds)
    np.testing.assert_array_equal(mine, theirs)


def test_a_first_token_that_is_none_is_not_run() -> None:
    feeds = one_search()[1]
    graphs = encoder_decoder.graphs(0, gives_logits=True)
    data = model(
        "BeamSearch", feeds, 1, graphs, model_type=1, decoder_start_token_id=2**31, eos_token_id=EOS
    )
    assert "LS301" in {one.code for one in check(loopscope.read_model(data), CATALOGUE).errors}


def test_what_is_kept_of_beams_can_be_looked_at() -> None:
    data, feeds = one_search()
    read = loopscope.read_model(data)
    assert check(read, CATALOGUE).ok
    debugger = loopscope.Debugger(read, feeds)
    debugger.run()
    (loop,) = (one for one in debugger.control_flow if one.kind == "Loop")
    assert (loop.address, loop.iterations) == ("main/BeamSearch_0/body/tokens", 6)
    (scorer,) = (
        node
        for node in read.graph.nodes[-2].bodies[0].graph.by_id.values()
        if node.type == "BestBeams"
    )
    assert debugger.value(f"main/BeamSearch_0/body/{scorer.name}").shape == (2, 2, 9)


def test_more_sequences_than_beams_are_refused() -> None:
    data, feeds = one_search(num_return_sequences=ints(4))
    with pytest.raises(loopscope.EngineError, match="num_return_sequences is 4, expected 1 to 3"):
        loopscope.run(loopscope.read_model(data), feeds)


def test_drawn_tokens_are_those_of_the_runtime() -> None:
    """To the last bit of its generator; where all have ended, ONNX Runtime leaves what comes
    after unwritten.
    """
    whole = 0
    for seed in range(40):
        dice = np.random.default_rng(seed)
        batch, length = (int(one) for one in dice.integers(1, 4, 2))
        feeds = {
            "input_ids": dice.integers(1, WORDS, (batch, length), np.int32),
            "max_length": ints(length + int(dice.integers(2, 10))),
            "min_length": ints(0),
            "repetition_penalty": floats(dice.choice((1, 1.3))),
            "seed": ints(int(dice.choice((0, 1, 5, 2**31 - 1, 2**30)))),
        }
        if dice.random() < 0.2:
            del feeds["seed"]
        attributes: dict[str, Any] = {
            "top_p": float(dice.choice((0, 0.3, 0.5, 0.9, 1))),
            "temperature": float(dice.choice((1, 0.7, 2))),
            "filter_value": float(dice.choice((-1e20, -50))),
            "custom": int(dice.integers(2)),
            "min_tokens_to_keep": int(dice.integers(4)),
            "eos_token_id": int(dice.integers(1, WORDS)),
        }
        data = model("Sampling", feeds, 1, {"decoder": decoder("decoder", seed)}, **attributes)
        (mine,), (theirs,) = both(data, feeds)
        debugger = loopscope.Debugger(loopscope.read_model(data), feeds)
        debugger.run()
        (loop,) = (one for one in debugger.control_flow if one.kind == "Loop")
        assert loop.iterations is not None
        written = length + loop.iterations
        np.testing.assert_array_equal(
            mine[:, :written], theirs[:, :written], err_msg=f"seed {seed}"
        )
        assert (mine[:, written:] == PAD).all()
        whole += written == mine.shape[1]
    assert whole > 20
