"""Operations of the domain com.microsoft on strings: Tokenizer, MurmurHash3, WordConvEmbedding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import re2

from loopscope.errors import shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.microsoft.row import row

_START, _END = "\x02", "\x03"


def tokenizer(
    texts: Array,
    /,
    *,
    mark: int,
    pad_value: str,
    mincharnum: int,
    separators: tuple[str, ...] | None,
    tokenexp: str | None,
) -> Array:
    """The parts of each text, as many for all: ``[...] -> [..., most parts]``, filled up with
    ``pad_value``.

    Parts lie between separators, each a pattern of RE2, which are looked for one after the other;
    or they match ``tokenexp``; or they are the characters, for a separator "" and for a
    ``tokenexp`` of ``.``. With ``mark`` they begin with U+0002 and end with U+0003.
    """
    if texts.ndim not in (1, 2):
        raise ValueError(f"the texts have shape {list(texts.shape)}, expected one axis or two")
    if not texts.size:
        return (
            np.empty((*texts.shape[:-1], 0), object) if texts.ndim > 1 or not len(texts) else texts
        )
    parts_of = _parts_of(separators, tokenexp, mincharnum)
    parts = [parts_of(str(text)) for text in texts.reshape(-1)]
    most = max(map(len, parts))
    if not most:
        return np.empty((*texts.shape, 0), object)
    if mark:
        parts = [[_START, *one, _END] for one in parts]
        most += 2
    check_elements(len(parts) * most, "the tokens")
    made = np.full((len(parts), most), pad_value, object)
    for number, one in enumerate(parts):
        made[number, : len(one)] = one
    return made.reshape(*texts.shape, most)


def _parts_of(
    separators: Sequence[str] | None, pattern: str | None, least: int
) -> Callable[[str], list[str]]:
    if least < 1 or not (separators or pattern):
        raise ValueError(
            f"mincharnum is {least}, expected 1 or more, with separators or a tokenexp"
        )
    if separators == ("",) or (not separators and pattern == "."):
        if least > 1:
            raise ValueError(f"mincharnum is {least}, and single characters are asked for")
        return list
    if separators:
        compiled = [_compiled(one) for one in separators]
        return lambda text: [part for part in _between(text, compiled) if len(part) >= least]
    matching = _compiled(pattern or "")
    return lambda text: [found[0] for found in matching.finditer(text) if len(found[0]) >= least]


def _between(text: str, separators: Sequence[Any]) -> list[str]:
    parts = [text]
    for separator in separators:
        parts = [part for whole in parts for part in _split(whole, separator)]
    return parts


def _split(text: str, separator: Any) -> list[str]:
    made, begin = [], 0
    for found in separator.finditer(text):
        if found.end() > found.start():
            made.append(text[begin : found.start()])
            begin = found.end()
    return [*made, text[begin:]]


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.longest_match = True
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise ValueError(f"the pattern {shorten(repr(pattern))} is none of RE2") from None


def murmur_hash(data: Array, /, *, positive: int, seed: int) -> Array:
    """MurmurHash3 of 32 bits of each number's bytes, or of each text's in UTF-8."""
    if data.dtype == object:
        made = np.array(
            [_hash_of(str(one).encode(), seed) for one in data.reshape(-1)], np.uint32
        ).reshape(data.shape)
    else:
        words = np.ascontiguousarray(data).reshape(-1, 1).view(np.uint32)
        made = _hash_of_words(words, seed).reshape(data.shape)
    return made if positive else made.view(np.int32)


_FIRST, _SECOND = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)


def _hash_of(data: bytes, seed: int) -> int:
    """Of any number of bytes: whole words, then what is left."""
    whole = len(data) // 4 * 4
    state = _mixed(np.frombuffer(data[:whole], np.uint32).reshape(1, -1), seed)
    if len(data) > whole:
        state ^= _scrambled(np.array([int.from_bytes(data[whole:], "little")], np.uint32))
    return int(_finished(state, len(data))[0])


def _hash_of_words(words: Array, seed: int) -> Array:
    """``[N, words] -> [N]``."""
    return _finished(_mixed(words, seed), 4 * words.shape[1])


def _mixed(words: Array, seed: int) -> Array:
    state = np.full(len(words), seed & 0xFFFFFFFF, np.uint32)
    for word in words.T:
        state ^= _scrambled(word)
        state = _turned(state, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    return state


def _scrambled(word: Array) -> Array:
    return _turned(word * _FIRST, 15) * _SECOND


def _turned(word: Array, bits: int) -> Array:
    return np.asarray(word << np.uint32(bits) | word >> np.uint32(32 - bits))


def _finished(state: Array, length: int) -> Array:
    state = state ^ np.uint32(length)
    for bits, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ (state >> np.uint32(bits))) * np.uint32(factor)
    return np.asarray(state ^ (state >> np.uint32(16)))


def word_conv_embedding(
    words: Array,
    filters: Array,
    bias: Array,
    characters: Array,
    /,
    *,
    embedding_size: int | None,
    conv_window_size: int | None,
    char_embedding_size: int | None,
) -> Array:
    """For each word the greatest value of each filter over the windows of its characters, after
    tanh: ``[N, L] -> [N, F]``.

    ``words`` holds rows of ``characters [V, E]``; a word is as long as it has characters that are
    not 0. ``filters [F, 1, window, E]``, ``bias [F]``. A word that is shorter than the window is
    looked at as far as the window goes, and one without characters gives 0.
    """
    if (
        filters.ndim != 4
        or characters.ndim != 2
        or words.ndim != 2
        or filters.shape[3] != characters.shape[1]
        or filters.shape[1] != 1
    ):
        shapes = [list(one.shape) for one in (words, filters, characters)]
        raise ValueError(f"the shapes are {shapes}, expected [N, L], [F, 1, window, E] and [V, E]")
    count, _, window, width = filters.shape
    given = (embedding_size, conv_window_size, char_embedding_size)
    if any(
        one is not None and one != expected
        for one, expected in zip(given, (count, window, width), strict=True)
    ):
        raise ValueError(
            f"embedding, window and character sizes are {given}, and the filters have {(count, window, width)}"
        )
    length = words.shape[1]
    if length < window or (words.size and not 0 <= words.min() <= words.max() < len(characters)):
        raise ValueError(
            f"words of {length} characters of {len(characters)} kinds, expected at least {window}, and known ones"
        )
    places = length - window + 1
    check_elements(words.size * window * width, "the windows")
    windows = (
        np.lib.stride_tricks.sliding_window_view(characters[words], window, 1)
        .swapaxes(2, 3)
        .reshape(-1, window * width)
    )
    scores = np.tanh(
        (windows @ filters.reshape(count, -1).T + bias).reshape(len(words), places, count)
    )
    ends = (words != 0).sum(1)
    seen = np.arange(places) < np.maximum(ends - window + 1, 1)[:, None]
    made = np.where(seen[..., None], scores, -np.inf).max(1)
    return np.where((ends > 0)[:, None], made, 0).astype(filters.dtype)


def infer_tokens(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """One axis more, of unknown length; none where there are no texts."""
    lengths = inputs[0].shape.dimensions
    if lengths is None or any(one.contains(0) for one in lengths):
        return (Known(ElementType.STRING, DYNAMIC),)
    return (Known(ElementType.STRING, PartialShape((*lengths, UNKNOWN))),)


def infer_hash(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """As the input, in 32 bits."""
    return (Known(ElementType.U32 if attributes["positive"] else ElementType.I32, inputs[0].shape),)


def infer_word_conv_embedding(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """The number of filters in place of the characters."""
    lengths = [one.shape.at(0) if one.shape.rank else UNKNOWN for one in inputs[:2]]
    return (Known(inputs[1].element_type, PartialShape.of(lengths)),)


_F32, _TEXT = frozenset({ElementType.F32}), frozenset({ElementType.STRING})
_HASHED = (
    frozenset(
        {
            ElementType.U32,
            ElementType.I32,
            ElementType.U64,
            ElementType.I64,
            ElementType.F32,
            ElementType.F64,
        }
    )
    | _TEXT
)
OPERATIONS: tuple[Operation, ...] = (
    row(
        "Tokenizer",
        tokenizer,
        infer=infer_tokens,
        attributes=(
            Attribute("mark", "int"),
            Attribute("pad_value", "str"),
            Attribute("mincharnum", "int"),
            Attribute("separators", "strs", None),
            Attribute("tokenexp", "str", None),
        ),
        types=(_TEXT,),
    ),
    row(
        "MurmurHash3",
        murmur_hash,
        infer=infer_hash,
        attributes=(Attribute("positive", "int", 1), Attribute("seed", "int", 0)),
        types=(_HASHED,),
    ),
    row(
        "WordConvEmbedding",
        word_conv_embedding,
        infer=infer_word_conv_embedding,
        inputs=(4, 4),
        attributes=tuple(
            Attribute(name, "int", None)
            for name in ("embedding_size", "conv_window_size", "char_embedding_size")
        ),
        types=(frozenset({ElementType.I32}), _F32, _F32, _F32),
    ),
)
