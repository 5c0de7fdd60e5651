"""Samples exported from PyTorch: functions with real Python ``while`` and ``if``, scripted and
converted by OpenVINO.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import openvino as ov
import torch
from openvino._offline_transformations import apply_moc_transformations
from torch import Tensor

from loopscope_samples.recipes.names import name_ports, readable
from loopscope_samples.recipes.recipe import Recipe

Signature = Mapping[str, tuple[str, list[int]]]
INTEGER: tuple[str, list[int]] = ("i64", [])
NUMBER: tuple[str, list[int]] = ("f32", [])


def newton_square_root(number: Tensor, tolerance: Tensor):
    guess = number
    steps = torch.zeros([], dtype=torch.int64)
    while bool(torch.abs(guess * guess - number) > tolerance):
        guess = 0.5 * (guess + number / guess)
        steps = steps + 1
    return guess, steps


def collatz(number: Tensor):
    steps = torch.zeros([], dtype=torch.int64)
    highest = number
    while bool(number != 1):
        if bool(number % 2 == 0):
            number = number // 2
        else:
            number = 3 * number + 1
        highest = torch.maximum(highest, number)
        steps = steps + 1
    return steps, highest


def count_primes(limit: Tensor):
    found = torch.zeros([], dtype=torch.int64)
    candidate = torch.zeros([], dtype=torch.int64) + 2
    while bool(candidate <= limit):
        divisor = torch.zeros([], dtype=torch.int64) + 2
        is_prime = torch.ones([], dtype=torch.bool)
        while bool(is_prime & (divisor * divisor <= candidate)):
            if bool(candidate % divisor == 0):
                is_prime = torch.zeros([], dtype=torch.bool)
            else:
                divisor = divisor + 1
        found = found + is_prime.to(torch.int64)
        candidate = candidate + 1
    return found


def growing_sequence(sequence: Tensor, limit: Tensor):
    while bool(sequence[-1] < limit):
        following = sequence[-1] + sequence[-2]
        sequence = torch.cat([sequence, following.unsqueeze(0)])
    return sequence


def beam_search(scores: Tensor, first: Tensor, longest: Tensor):
    """Two sentences at a time: ``scores[a, b]`` is the log-probability of word b after word a;
    word 0 ends.
    """
    words = first.reshape(1, 1).repeat(2, 1)
    totals = torch.zeros([2, 1]) + torch.tensor([[0.0], [-1000.0]])
    steps = torch.zeros([], dtype=torch.int64)
    while bool((steps < longest) & (words[0, -1] != 0)):
        extended = totals + scores[words[:, -1]]
        best, place = torch.topk(extended.reshape(-1), 2)
        parent = place // scores.shape[1]
        word = place % scores.shape[1]
        words = torch.cat([words[parent], word.unsqueeze(1)], dim=1)
        totals = best.unsqueeze(1)
        steps = steps + 1
    return words, totals, steps


SENTENCES = np.log(
    np.array(
        [
            [0.96, 0.01, 0.01, 0.01, 0.01],
            [0.01, 0.01, 0.55, 0.41, 0.02],
            [0.26, 0.01, 0.23, 0.26, 0.24],
            [0.04, 0.01, 0.03, 0.02, 0.90],
            [0.95, 0.01, 0.01, 0.01, 0.02],
        ],
        np.float32,
    )
)


def recipes() -> list[Recipe]:
    return [
        _recipe(
            newton_square_root,
            {"number": NUMBER, "tolerance": NUMBER},
            ("root", "steps"),
            {
                "nine": {"number": np.float32(9), "tolerance": np.float32(1e-3)},
                "two": {"number": np.float32(2), "tolerance": np.float32(1e-3)},
                "a_million": {"number": np.float32(1e6), "tolerance": np.float32(1)},
                "one": {"number": np.float32(1), "tolerance": np.float32(1e-3)},
            },
            {"prim::Loop/Loop": "while_not_close"},
        ),
        _recipe(
            collatz,
            {"number": INTEGER},
            ("steps", "highest"),
            {
                "three": {"number": np.int64(3)},
                "seventeen": {"number": np.int64(17)},
                "twenty_seven": {"number": np.int64(27)},
                "one": {"number": np.int64(1)},
            },
            {"prim::Loop/Loop": "while_not_one", "prim::If/If": "if_even"},
        ),
        _recipe(
            count_primes,
            {"limit": INTEGER},
            ("primes",),
            {
                "up_to_10": {"limit": np.int64(10)},
                "up_to_30": {"limit": np.int64(30)},
                "up_to_1": {"limit": np.int64(1)},
            },
            {
                "prim::Loop/Loop": "for_each_candidate",
                "prim::Loop/Loop_1": "try_each_divisor",
                "prim::If/If": "if_divides",
            },
        ),
        _recipe(
            growing_sequence,
            {"sequence": ("i64", [-1]), "limit": INTEGER},
            ("grown",),
            {
                "fibonacci_to_50": {"sequence": np.array([1, 1]), "limit": np.int64(50)},
                "lucas_to_20": {"sequence": np.array([2, 1]), "limit": np.int64(20)},
                "long_enough": {"sequence": np.array([1, 4]), "limit": np.int64(3)},
            },
            {"prim::Loop/Loop": "while_below_limit"},
        ),
        _recipe(
            beam_search,
            {"scores": ("f32", [-1, -1]), "first": INTEGER, "longest": INTEGER},
            ("words", "totals", "steps"),
            {
                "two_words": {"scores": SENTENCES, "first": np.int64(1), "longest": np.int64(2)},
                "to_the_end": {"scores": SENTENCES, "first": np.int64(1), "longest": np.int64(9)},
                "from_word_4": {"scores": SENTENCES, "first": np.int64(4), "longest": np.int64(9)},
            },
            {"prim::Loop/Loop": "while_not_ended"},
        ),
    ]


def _recipe(
    function: Callable[..., object],
    signature: Signature,
    outputs: tuple[str, ...],
    sets: dict,
    names: Mapping[str, str],
) -> Recipe:
    inputs = [
        (ov.PartialShape(shape), getattr(ov.Type, kind)) for kind, shape in signature.values()
    ]
    model = ov.convert_model(torch.jit.script(function), input=inputs)
    apply_moc_transformations(model, cf=True)
    return Recipe(function.__name__, readable(name_ports(model, outputs), names), sets)
