"""String operations of com.microsoft: Tokenizer, MurmurHash3, WordConvEmbedding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import re2

from loopscope.errors import shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_checks import check_elements
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
    """Split texts into tokens: ``[...] -> [..., longest count]``, padded with ``pad_value``.

    Tokens lie between separators (patterns of RE2, applied one after another) or match
    ``tokenexp``. A separator "" or the ``tokenexp`` ``.`` yields characters. With ``mark``, tokens
    are enclosed in U+0002 and U+0003.
    """
    if texts.ndim not in (1, 2):
        raise ValueError(f"the texts have shape {list(texts.shape)}, expected one axis or two")
    if not texts.size:
        return (
            np.empty((*texts.shape[:-1], 0), object) if texts.ndim > 1 or not len(texts) else texts
        )
    split = _splitter(separators, tokenexp, mincharnum)
    tokens = [split(str(text)) for text in texts.reshape(-1)]
    longest = max(map(len, tokens))
    if not longest:
        return np.empty((*texts.shape, 0), object)
    if mark:
        tokens = [[_START, *parts, _END] for parts in tokens]
        longest += 2
    check_elements(len(tokens) * longest, "the tokens")
    padded = np.full((len(tokens), longest), pad_value, object)
    for number, parts in enumerate(tokens):
        padded[number, : len(parts)] = parts
    return padded.reshape(*texts.shape, longest)


def _splitter(
    separators: Sequence[str] | None, pattern: str | None, minimum: int
) -> Callable[[str], list[str]]:
    if minimum < 1 or not (separators or pattern):
        raise ValueError(
            f"mincharnum is {minimum}, expected 1 or more, with separators or a tokenexp"
        )
    if separators == ("",) or (not separators and pattern == "."):
        if minimum > 1:
            raise ValueError(f"mincharnum is {minimum}, expected 1 for single characters")
        return list
    if separators:
        compiled = [_compile(separator) for separator in separators]
        return lambda text: [part for part in _split_all(text, compiled) if len(part) >= minimum]
    matching = _compile(pattern or "")
    return lambda text: [match[0] for match in matching.finditer(text) if len(match[0]) >= minimum]


def _split_all(text: str, separators: Sequence[Any]) -> list[str]:
    parts = [text]
    for separator in separators:
        parts = [part for piece in parts for part in _split(piece, separator)]
    return parts


def _split(text: str, separator: Any) -> list[str]:
    parts, begin = [], 0
    for match in separator.finditer(text):
        if match.end() > match.start():
            parts.append(text[begin : match.start()])
            begin = match.end()
    return [*parts, text[begin:]]


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.longest_match = True
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise ValueError(f"the pattern {shorten(repr(pattern))} is not valid in RE2") from None


def murmur_hash(data: Array, /, *, positive: int, seed: int) -> Array:
    """Return the 32-bit MurmurHash3 of each number's bytes, or of each text's UTF-8 bytes."""
    if data.dtype == object:
        hashes = np.array(
            [_hash_bytes(str(text).encode(), seed) for text in data.reshape(-1)], np.uint32
        ).reshape(data.shape)
    else:
        words = np.ascontiguousarray(data).reshape(-1, 1).view(np.uint32)
        hashes = _hash_of_words(words, seed).reshape(data.shape)
    return hashes if positive else hashes.view(np.int32)


_FIRST, _SECOND = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)


def _hash_bytes(data: bytes, seed: int) -> int:
    """Hash any number of bytes: full words first, then the remaining bytes."""
    word_end = len(data) // 4 * 4
    state = _mix(np.frombuffer(data[:word_end], np.uint32).reshape(1, -1), seed)
    if len(data) > word_end:
        state ^= _scramble(np.array([int.from_bytes(data[word_end:], "little")], np.uint32))
    return int(_finish(state, len(data))[0])


def _hash_of_words(words: Array, seed: int) -> Array:
    """Hash rows of words: ``[N, words] -> [N]``."""
    return _finish(_mix(words, seed), 4 * words.shape[1])


def _mix(words: Array, seed: int) -> Array:
    state = np.full(len(words), seed & 0xFFFFFFFF, np.uint32)
    for word in words.T:
        state ^= _scramble(word)
        state = _rotate(state, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    return state


def _scramble(word: Array) -> Array:
    return _rotate(word * _FIRST, 15) * _SECOND


def _rotate(word: Array, bits: int) -> Array:
    return np.asarray(word << np.uint32(bits) | word >> np.uint32(32 - bits))


def _finish(state: Array, length: int) -> Array:
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
    """Return for each word the maximum of each filter over windows of characters, after tanh.

    ``[N, L] -> [N, F]``. ``words`` has row indices of ``characters [V, E]``; the length of a word
    is its number of non-zero characters. ``filters [F, 1, window, E]``, ``bias [F]``. A word that
    is shorter than the window uses one full window, and a word without characters gives 0.
    """
    if (
        filters.ndim != 4
        or characters.ndim != 2
        or words.ndim != 2
        or filters.shape[3] != characters.shape[1]
        or filters.shape[1] != 1
    ):
        shapes = [list(array.shape) for array in (words, filters, characters)]
        raise ValueError(f"the shapes are {shapes}, expected [N, L], [F, 1, window, E] and [V, E]")
    count, _, window, width = filters.shape
    declared = (embedding_size, conv_window_size, char_embedding_size)
    if any(
        size is not None and size != expected
        for size, expected in zip(declared, (count, window, width), strict=True)
    ):
        raise ValueError(
            f"embedding, window and character sizes are {declared}, "
            f"and the filters have {(count, window, width)}"
        )
    length = words.shape[1]
    if length < window or (words.size and not 0 <= words.min() <= words.max() < len(characters)):
        raise ValueError(
            f"words of {length} characters of {len(characters)} kinds, "
            f"expected at least {window}, and known ones"
        )
    positions = length - window + 1
    check_elements(words.size * window * width, "the windows")
    windows = (
        np.lib.stride_tricks.sliding_window_view(characters[words], window, 1)
        .swapaxes(2, 3)
        .reshape(-1, window * width)
    )
    scores = np.tanh(
        (windows @ filters.reshape(count, -1).T + bias).reshape(len(words), positions, count)
    )
    ends = (words != 0).sum(1)
    is_visible = np.arange(positions) < np.maximum(ends - window + 1, 1)[:, None]
    maxima = np.where(is_visible[..., None], scores, -np.inf).max(1)
    return np.where((ends > 0)[:, None], maxima, 0).astype(filters.dtype)


def infer_tokens(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer an additional axis of unknown length.

    Everything is unknown if there may be zero texts.
    """
    lengths = inputs[0].shape.dimensions
    if lengths is None or any(length.contains(0) for length in lengths):
        return (Known(ElementType.STRING, DYNAMIC),)
    return (Known(ElementType.STRING, PartialShape((*lengths, UNKNOWN))),)


def infer_hash(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape of the input, in 32 bits."""
    return (Known(ElementType.U32 if attributes["positive"] else ElementType.I32, inputs[0].shape),)


def infer_word_conv_embedding(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the number of words and of filters."""
    lengths = [value.shape.at(0) if value.shape.rank else UNKNOWN for value in inputs[:2]]
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
