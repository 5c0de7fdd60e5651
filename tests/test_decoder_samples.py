"""The two decoders against plain numpy, f64: no caches, every step computed anew from all that
was written before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from scipy.special import erf

import loopscope
import loopscope_samples
from loopscope.ir.address import nodes
from loopscope_samples import InputSet, Sample
from loopscope_samples.recipes.words import LETTERS, WORDS

Array = np.ndarray
HEADS = 2
NO_DIGIT, FIRST = 10, 11


class Weights:
    """A sample's weights by the names that its program gave them, and the layers made of them;
    data is [places, width].
    """

    def __init__(self, sample: Sample) -> None:
        found = (
            (node.name, node.constant) for _, node in nodes(loopscope.read_model(sample.model))
        )
        self.named = {
            name: np.asarray(one.array(), np.float64)
            for name, one in found
            if one is not None and "." in name
        }

    def __getitem__(self, name: str) -> Array:
        return self.named[name]

    def norm(self, data: Array, name: str) -> Array:
        return np.asarray(
            data
            / np.sqrt((data**2).mean(-1, keepdims=True) + 1e-5)
            * self[f"{name}.weight"].ravel()
        )

    def attention(self, name: str, data: Array, seen: Array, *, causal: bool) -> Array:
        query, key, value = (
            (one @ self[f"{name}.{part}.weight"].T).reshape(len(one), HEADS, -1)
            for part, one in (("query", data), ("key", seen), ("value", seen))
        )
        scores = np.einsum("shd,thd->hst", query, key) / np.sqrt(query.shape[-1])
        chances = _softmax(
            np.where(np.tri(len(data), len(seen), dtype=bool), scores, -np.inf)
            if causal
            else scores
        )
        return np.asarray(
            np.einsum("hst,thd->shd", chances, value).reshape(len(data), -1)
            @ self[f"{name}.out.weight"].T
        )

    def mlp(self, name: str, data: Array) -> Array:
        up = data @ self[f"{name}.up.weight"].T
        return np.asarray(up / (1 + np.exp(-up)) @ self[f"{name}.down.weight"].T)

    def convolved(self, name: str, data: Array, stride: int) -> Array:
        """A convolution of three frames with one frame of padding, then GELU; [frames, channels]
        in and out.
        """
        padded = np.pad(data, ((1, 1), (0, 0)))
        frames = [padded[at : at + 3] for at in range(0, len(data), stride)]
        mixed = (
            np.stack([np.einsum("fc,ocf->o", one, self[f"{name}.weight"]) for one in frames])
            + self[f"{name}.bias"].ravel()
        )
        return np.asarray(mixed * (1 + erf(mixed / np.sqrt(2))) / 2)


def _softmax(data: Array) -> Array:
    powers = np.exp(data - data.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _decoded(
    begin: list[int], most: int, end: int, logits: Callable[[list[int]], Array]
) -> tuple[list[int], list[float]]:
    """Greedy decoding: all that is written, and how certain the model was of each step."""
    written = list(begin)
    certainty: list[float] = []
    while len(certainty) < most and written[-1] != end:
        chances = _softmax(logits(written)[-1])
        written.append(int(chances.argmax()))
        certainty.append(float(chances.max()))
    return written, certainty


def finished_word(weights: Weights, inputs: Mapping[str, Array]) -> tuple[list[int], list[float]]:
    def logits(letters: list[int]) -> Array:
        data = weights["embed.weight"][letters] + weights["places.weight"][: len(letters)]
        for layer in (0, 1):
            normed = weights.norm(data, f"norm_{2 * layer}")
            data = data + weights.attention(f"attention_{layer}", normed, normed, causal=True)
            data = data + weights.mlp(f"mlp_{layer}", weights.norm(data, f"norm_{2 * layer + 1}"))
        return np.asarray(weights.norm(data, "norm_4") @ weights["embed.weight"].T)

    return _decoded(inputs["prompt"][0].tolist(), int(inputs["most_letters"]), 0, logits)


def heard_digits(weights: Weights, inputs: Mapping[str, Array]) -> tuple[list[int], list[float]]:
    sound = weights.convolved(
        "conv_1", weights.convolved("conv_0", inputs["sound"][0].astype(np.float64), 1), 2
    )
    sound = sound + weights["heard_places.weight"][: len(sound)]
    normed = weights.norm(sound, "norm_0")
    sound = sound + weights.attention("attention_0", normed, normed, causal=False)
    heard = weights.norm(sound + weights.mlp("mlp_0", weights.norm(sound, "norm_1")), "norm_2")

    def logits(digits: list[int]) -> Array:
        data = weights["embed.weight"][digits] + weights["places.weight"][: len(digits)]
        normed = weights.norm(data, "norm_3")
        data = data + weights.attention("attention_1", normed, normed, causal=True)
        data = data + weights.attention(
            "crossing", weights.norm(data, "norm_4"), heard, causal=False
        )
        data = data + weights.mlp("mlp_1", weights.norm(data, "norm_5"))
        return np.asarray(weights.norm(data, "norm_6") @ weights["embed.weight"].T)

    written, certainty = _decoded([FIRST], int(inputs["most_digits"]), NO_DIGIT, logits)
    return written[1:], certainty


def _samples() -> dict[str, Sample]:
    return {one.name: one for one in loopscope_samples.samples()}


SETS = [
    pytest.param(name, output, reference, chosen, id=f"{name}-{chosen.name}")
    for name, output, reference in (
        ("language_decoder", "word", finished_word),
        ("speech_decoder", "digits", heard_digits),
    )
    for chosen in _samples()[name].sets
]


@pytest.mark.parametrize(("name", "output", "reference", "chosen"), SETS)
def test_a_decoder_writes_what_plain_numpy_does(
    name: str,
    output: str,
    reference: Callable[[Weights, Mapping[str, Array]], tuple[list[int], list[float]]],
    chosen: InputSet,
) -> None:
    sample, inputs = _samples()[name], chosen.arrays()
    result = loopscope.run(loopscope.read_model(sample.model), inputs).named
    written, certainty = reference(Weights(sample), inputs)
    assert result[output].tolist() == written
    assert int(result["steps"]) == len(certainty)
    np.testing.assert_allclose(result["certainty"], certainty, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("word", WORDS)
def test_the_language_decoder_knows_its_words(word: str) -> None:
    model = loopscope.read_model(_samples()["language_decoder"].model)
    prompt = np.array([[LETTERS.index(word[0])]])
    told = loopscope.run(model, {"prompt": prompt, "most_letters": np.int64(15)}).named["word"]
    assert "".join(LETTERS[letter] for letter in told.tolist()) == f"{word}."


@pytest.mark.parametrize(
    ("chosen", "digits"),
    [
        ("three_digits", [3, 1, 4, 10]),
        ("five_digits", [2, 7, 1, 8, 2, 10]),
        ("silence", [10]),
        ("cut_short", [1, 6]),
    ],
)
def test_the_speech_decoder_writes_what_was_said(chosen: str, digits: list[int]) -> None:
    sample = _samples()["speech_decoder"]
    inputs = next(one for one in sample.sets if one.name == chosen).arrays()
    assert (
        loopscope.run(loopscope.read_model(sample.model), inputs).named["digits"].tolist() == digits
    )
