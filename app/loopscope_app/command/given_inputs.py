"""Inputs of a command: read from a file, written as values such as ``x=[[1,2]]``, or generated."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.errors import InputError, elided, neutral, shorten
from loopscope.ir import ElementType, Model, Signature
from loopscope.ops.stored import entry_name, stored_arrays, unpacked
from loopscope.read import what_is_at
from loopscope.sweeps import input_position, one_sample, seed_said
from loopscope_app.describe.input_parsing import parse_element, position_keys
from loopscope_app.describe.random_inputs import (
    has_open_lengths,
    lengths_by_rules,
    lengths_by_trials,
    random_inputs,
)
from loopscope_app.describe.signatures import signatures

_HELP = (
    "an .npz file with an array per input, by name or position; or values such as "
    "NUMBER=27 or X=[[1,2],[3,4]]; or generated values: random seed=3"
)
_SEED = "seed="
_RANDOM = "random"


@dataclass(frozen=True, slots=True)
class GeneratedInputs:
    """Generated inputs."""

    seed: int
    descriptions: Mapping[int, str]
    """Description of each generated input, by position."""

    def in_words(self, replaced: Collection[int] = ()) -> str:
        """Describe the generated inputs, except those whose positions are in ``replaced``."""
        descriptions = [
            description
            for position, description in self.descriptions.items()
            if position not in replaced
        ]
        text = "; ".join(descriptions) or "no inputs, because the model has none"
        return f"generated with seed {self.seed}: {text}"


def add_inputs(parser: argparse.ArgumentParser, suffix: str = "") -> None:
    """Add the option ``--inputs`` of the commands that run a model once."""
    parser.add_argument("--inputs", default="", metavar="INPUTS", help=_HELP + suffix)


def read_inputs(source: str, model: Model) -> Mapping[str | int, object]:
    """Return the input values by input name or by position; nothing for an empty text.

    ``source`` is the path of an .npz file, values such as ``number=27 x[2,3]=0 y=[[1,2],[3,4]]``,
    or ``random`` with an optional seed and descriptions of single inputs. A key such as ``0`` or
    ``arr_0`` in the file is a position if the model has no input of that name. Generated inputs are
    reported on standard error. Raise ``InputError`` for any other text.
    """
    if not source.split():
        return {}
    if what_is_at(source) is None and are_words(source):
        values, generated = inputs_in_words(source, model)
        if generated is not None:
            description = generated.in_words()
            print(neutral(description, len(description)), file=sys.stderr)
        return values
    return _stored(source, model)


def are_words(source: str) -> bool:
    """Return True if the text is written values rather than a path."""
    words = split_words(source)
    return bool(words) and (
        words[0] == _RANDOM or all("=" in word for word in words if word != _RANDOM)
    )


def inputs_in_words(
    source: str, model: Model
) -> tuple[Mapping[str | int, object], GeneratedInputs | None]:
    """Return the input values that a text describes, and the generated inputs if there are any."""
    words = split_words(source)
    descriptions = [word for word in words if word != _RANDOM]
    return (
        _generate(model, descriptions)
        if len(descriptions) < len(words)
        else (_exactly(model, words), None)
    )


def _exactly(model: Model, words: Sequence[str]) -> dict[str | int, object]:
    for word in words:
        name, _, values = word.partition("=")
        if not is_list(word) and any(mark in values for mark in (",", "..", "(")):
            raise InputError(
                f"{shorten(name, 60)} is given as {shorten(values, 60)!r}, "
                f"expected one number for one run, or a list in brackets: "
                f"'random {shorten(word, 60)}' draws one, and `loopscope sweep` runs them all"
            )
    return dict(_described_values(model, words).items())


def _described_values(model: Model, words: Sequence[str], seed: int = 0) -> dict[int, np.ndarray]:
    """Return the value of each input that a word names, by position."""
    tensors = tensors_in_words(model, [word for word in words if is_list(word)])
    others = one_sample(model, [word for word in words if not is_list(word)], seed)
    if both := tensors.keys() & others.keys():
        name = shorten(model.inputs[min(both)].name, 60)
        raise InputError(f"{name} is given twice: expected one word per input")
    return tensors | others


def _generate(
    model: Model, words: Sequence[str]
) -> tuple[dict[str | int, object], GeneratedInputs]:
    """Return the same values as the app generates, and their descriptions.

    Open lengths are the first ones with which the run does not fail at once.
    """
    seed = seed_said(words)
    keys = list(signatures(model))
    described = _described_values(
        model, [word for word in words if not word.startswith(_SEED)], seed
    )
    chosen = {keys[position]: value for position, value in described.items()}
    lengths = lengths_by_rules(model)
    if has_open_lengths(model):
        lengths = lengths_by_trials(model, seed, fixed=chosen)
    inputs = {**random_inputs(model, seed, lengths), **chosen}
    descriptions = {
        position: _described(signature, inputs[key])
        for position, (key, signature) in enumerate(signatures(model).items())
    }
    return {position: inputs[key] for position, key in enumerate(keys)}, GeneratedInputs(
        seed, descriptions
    )


def _described(signature: Signature, value: Any) -> str:
    if not isinstance(value, np.ndarray | np.generic):
        return f"{elided(signature.name)} as {type(value).__name__}"
    shape = ",".join(map(str, value.shape))
    return (
        f"{elided(signature.name)} = {value}"
        if value.ndim == 0
        else f"{elided(signature.name)} [{shape}]"
    )


def _stored(path: str, model: Model) -> Mapping[str | int, object]:
    """Return the values of an .npz file by input name, or by position for a key such as ``0`` or
    ``arr_0`` that is not an input name.
    """
    names = {
        entry_name(name): name
        for signature in model.inputs
        for name in (signature.name, *signature.names)
    }
    positions = {
        key: position for position in range(len(model.inputs)) for key in position_keys(position)
    }
    try:
        values = unpacked(stored_arrays(path))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    return {
        positions[key] if key in positions and key not in names else names.get(key, key): value
        for key, value in values.items()
    }


def split_words(text: str) -> list[str]:
    """Split a text at white space outside of lists.

    >>> split_words("n=3  x=[1, 2] random")
    ['n=3', 'x=[1, 2]', 'random']
    """
    words, word, depth, quoted, escaped = [], "", 0, False, False
    for character in text:
        if character.isspace() and not depth:
            words.append(word)
            word = ""
            continue
        word += character
        if quoted:
            quoted, escaped = character != '"' or escaped, character == "\\" and not escaped
        else:
            quoted = depth > 0 and character == '"'
            depth = max(depth + (character == "[") - (character == "]"), 0)
    return [word for word in (*words, word) if word]


def is_list(word: str) -> bool:
    """Return True if a word such as ``x=[1,2]`` gives a list."""
    return word.partition("=")[2].startswith("[")


def tensors_in_words(model: Model, words: Sequence[str]) -> dict[int, np.ndarray]:
    """Return the tensors that words such as ``x=[1,2]`` give, by position of the input.

    Raise ``InputError`` for a text that is not a list of equally long lists of elements.
    """
    tensors: dict[int, np.ndarray] = {}
    for word in words:
        name, _, text = word.partition("=")
        key = input_position(model, name)
        if key in tensors:
            raise InputError(f"{shorten(name, 60)} is given twice: expected one word per input")
        tensors[key] = _tensor(model.inputs[key], text)
    return tensors


def _tensor(signature: Signature, text: str) -> np.ndarray:
    described = f"{shorten(signature.name, 60)} is given as {shorten(text, 60)!r}"
    try:
        elements = np.array(json.loads(text), dtype=object)
    except (ValueError, RecursionError):
        raise InputError(f"{described}, expected a list such as [[1,2],[3,4]]") from None
    element_type = signature.element_type or ElementType.F32
    parsed = np.empty(elements.shape, element_type.dtype)
    for index, element in np.ndenumerate(elements):
        if isinstance(element, list | dict):
            raise InputError(f"{described}, expected lists of one length on each level")
        parsed[index] = parse_element(element, element_type, f"input '{signature.name}'")
    return parsed
