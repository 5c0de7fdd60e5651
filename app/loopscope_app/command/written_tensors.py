"""Tensors that are written as lists on the command line: ``x=[[1,2],[3,4]]``."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from loopscope.errors import InputError, shorten
from loopscope.ir import ElementType, Model, Signature
from loopscope.sweeps import input_position
from loopscope_app.describe.input_text import parse_element


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
