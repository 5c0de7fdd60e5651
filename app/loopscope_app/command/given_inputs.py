"""The inputs that a command runs a model on: from a file, written in words, or made up."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.errors import InputError, elided, neutral, shorten
from loopscope.ir import Model, Signature
from loopscope.ops.stored import entry_name, stored_arrays, unpacked
from loopscope.read import what_is_at
from loopscope.sweeps import one_sample, seed_said
from loopscope_app.describe.random_inputs import (
    has_open_lengths,
    lengths_by_rules,
    lengths_by_trials,
    random_inputs,
)
from loopscope_app.describe.signatures import signatures

_HELP = "an .npz file with an array per input, by name or position; values in words (NUMBER=27); or: random seed=3"
_SEED = "seed="
_RANDOM = "random"


@dataclass(frozen=True, slots=True)
class MadeUp:
    """Inputs that nobody gave."""

    seed: int
    told: Mapping[int, str]
    """What each is, by position."""

    def in_words(self, given: Collection[int] = ()) -> str:
        """All but those that were given after all."""
        told = [words for position, words in self.told.items() if position not in given]
        return f"made up with seed {self.seed}: {'; '.join(told) or 'no inputs, for the model has none'}"


def add_inputs(parser: argparse.ArgumentParser, of: str = "") -> None:
    """The option ``--inputs``, as all commands have it that run a model once."""
    parser.add_argument("--inputs", default="", metavar="INPUTS", help=_HELP + of)


def read_inputs(given: str, model: Model) -> Mapping[str | int, object]:
    """The values by input name or by position; ``InputError`` for what says none.

    ``given``: the path of an .npz file, in which a key such as ``0`` is a position where it is no
    name of the model; or words such as ``number=27 x[2,3]=0``; or ``random`` with a seed and words
    for inputs of which one wants to say more. What is made up is said on standard error. Empty:
    nothing is given.
    """
    if not given.split():
        return {}
    if what_is_at(given) is None and are_words(given):
        values, made_up = inputs_in_words(given, model)
        if made_up is not None:
            told = made_up.in_words()
            print(neutral(told, len(told)), file=sys.stderr)
        return values
    return _stored(given, model)


def are_words(given: str) -> bool:
    """Whether inputs are said in words, where there is no file of that name."""
    words = given.split()
    return bool(words) and (
        words[0] == _RANDOM or all("=" in word for word in words if word != _RANDOM)
    )


def inputs_in_words(given: str, model: Model) -> tuple[Mapping[str | int, object], MadeUp | None]:
    """The same of words, which name no file; and what was made up."""
    words = given.split()
    others = [word for word in words if word != _RANDOM]
    return _made_up(model, others) if len(others) < len(words) else (_exactly(model, words), None)


def _exactly(model: Model, words: Sequence[str]) -> dict[str | int, object]:
    for word in words:
        name, _, values = word.partition("=")
        if any(mark in values for mark in (",", "..", "(")):
            raise InputError(
                f"{shorten(name, 60)} is given as {shorten(values, 60)!r}, expected one number for one run: "
                f"'random {shorten(word, 60)}' draws one, and `loopscope sweep` runs them all"
            )
    return dict(one_sample(model, words).items())


def _made_up(model: Model, words: Sequence[str]) -> tuple[dict[str | int, object], MadeUp]:
    """The same values as the app makes up, and what they are; of open lengths the first with
    which the run does not fail at once.
    """
    seed = seed_said(words)
    keys = list(signatures(model))
    said = one_sample(model, [word for word in words if not word.startswith(_SEED)], seed)
    given = {keys[position]: value for position, value in said.items()}
    lengths = lengths_by_rules(model)
    if has_open_lengths(model):
        lengths = lengths_by_trials(model, seed, given=given)
    made = {**random_inputs(model, seed, lengths), **given}
    told = {
        position: _described(one, made[key])
        for position, (key, one) in enumerate(signatures(model).items())
    }
    return {position: made[key] for position, key in enumerate(keys)}, MadeUp(seed, told)


def _described(one: Signature, value: Any) -> str:
    if not isinstance(value, np.ndarray | np.generic):
        return f"{elided(one.name)} as {type(value).__name__}"
    shape = ",".join(map(str, value.shape))
    return f"{elided(one.name)} = {value}" if value.ndim == 0 else f"{elided(one.name)} [{shape}]"


def _stored(path: str, model: Model) -> Mapping[str | int, object]:
    """The values of an .npz file by input name, or by position where a key such as ``0`` is not
    a name of the model.
    """
    names = {entry_name(name): name for one in model.inputs for name in (one.name, *one.names)}
    positions = set(map(str, range(len(model.inputs))))
    try:
        values = unpacked(stored_arrays(path))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    return {
        int(key) if key in positions and key not in names else names.get(key, key): value
        for key, value in values.items()
    }
