"""Loopscope's own operations in the loops of ONNX Runtime's searches, which ONNX lacks: beam
scoring and token sampling.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, SCALAR, PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.own_operations import own

_MODULUS, _FACTOR = 2**31 - 1, 16807
"""Constants of minstd_rand0, the default generator of the C++ library that ONNX Runtime is built
with.
"""


def beam_scorer(
    scores: Array,
    words: Array,
    beams: Array,
    sequences: Array,
    ended: Array,
    ended_scores: Array,
    ended_count: Array,
    done: Array,
    length_penalty: Array,
    /,
    *,
    eos_token_id: int,
    pad_token_id: int,
    early_stopping: int,
) -> tuple[Array, ...]:
    """Return the beams that continue, and the sequences that have ended so far.

    ``scores``, ``words``, ``beams``: ``[batch, 2 * beams]``, the best first, beams counted within
    the batch. ``sequences``: ``[batch * beams, tokens]``. ``ended``: ``[batch, beams, length]``,
    the best first, with scores ``[batch, beams]`` and counts ``[batch]``; ``done``: ``[batch]``.
    Return the scores ``[batch, beams]``, words ``[batch * beams, 1]`` and rows ``[batch * beams]``
    of the beams that continue, and the updated ``ended``, ``ended_scores``, ``ended_count`` and
    ``done``.
    """
    batch, count = _check_shapes(sequences, ended, ended_scores, ended_count, done, length_penalty)
    for name, array in (("scores", scores), ("words", words), ("beams", beams)):
        _expect(name, array, (batch, 2 * count))
    if beams.size and not 0 <= beams.min() <= beams.max() < count:
        raise ValueError(
            f"the candidates are of beams {beams.min()} to {beams.max()}, expected 0 to {count - 1}"
        )
    next_scores = np.zeros((batch, count), np.float32)
    next_words = np.full((batch, count), pad_token_id, np.int32)
    rows = np.repeat(np.arange(batch, dtype=np.int64)[:, None] * count, count, axis=1)
    finished = _Ended(ended, ended_scores, ended_count, length_penalty, pad_token_id)
    done = done.copy()
    for item in range(batch):
        if done[item]:
            continue
        sources = item * count + beams[item].astype(np.int64)
        ends = words[item] == eos_token_id
        for place in np.flatnonzero(ends[:count]):
            finished.add(item, sequences[sources[place]], scores[item, place])
        continuing = np.flatnonzero(~ends)[:count]
        next_scores[item, : len(continuing)] = scores[item, continuing]
        next_words[item, : len(continuing)] = words[item, continuing]
        rows[item, : len(continuing)] = sources[continuing]
        done[item] = finished.count[item] == count and (
            early_stopping == 1
            or not finished.can_improve(item, _best(scores, item), sequences.shape[1])
        )
    return (
        next_scores,
        next_words.reshape(-1, 1),
        rows.reshape(-1),
        finished.tokens,
        finished.scores,
        finished.count,
        done,
    )


def _best(scores: Array, item: int) -> np.float32:
    """Return the best score of a batch item as ONNX Runtime reads it, which decides when the search
    ends.

    ONNX Runtime starts at half the correct offset (rows are ``2 * count`` long), so this does too.
    """
    count = scores.shape[1] // 2
    return np.float32(scores.reshape(-1)[item * count : item * count + 2 * count].max())


def best_beams(
    sequences: Array,
    beam_scores: Array,
    ended: Array,
    ended_scores: Array,
    ended_count: Array,
    done: Array,
    length_penalty: Array,
    returned: Array,
    /,
    *,
    pad_token_id: int,
) -> tuple[Array, Array]:
    """Return the best ended and continuing sequences, and their scores.

    Sequences are ``[batch, returned, length]``. Inputs as of ``beam_scorer``; the beams of a batch
    item that is done do not continue.
    """
    batch, count = _check_shapes(sequences, ended, ended_scores, ended_count, done, length_penalty)
    _expect("beam_scores", beam_scores, (batch, count))
    _expect("returned", returned, (1,))
    limit = int(returned[0])
    if not 1 <= limit <= count:
        raise ValueError(
            f"num_return_sequences is {limit}, expected 1 to {count}, the number of beams"
        )
    finished = _Ended(ended, ended_scores, ended_count, length_penalty, pad_token_id)
    for item in range(batch):
        for beam in range(0 if done[item] else count):
            finished.add(item, sequences[item * count + beam], beam_scores[item, beam])
    return finished.tokens[:, :limit], finished.scores[:, :limit]


def _check_shapes(
    sequences: Array, ended: Array, scores: Array, counts: Array, done: Array, penalty: Array
) -> tuple[int, int]:
    """Return the batch size and the number of beams; raise ``ValueError`` if shapes or counts
    contradict each other.
    """
    if scores.ndim != 2 or not scores.shape[1]:
        raise ValueError(
            f"the scores of what has ended have shape {list(scores.shape)}, expected "
            "[batch, beams] with a beam at least"
        )
    batch, beams = scores.shape
    if sequences.ndim != 2 or ended.ndim != 3 or sequences.shape[1] > ended.shape[2]:
        shapes = f"{list(sequences.shape)} and {list(ended.shape)}"
        raise ValueError(
            f"sequences and ended have shapes {shapes}, expected [batch * beams, "
            "tokens] and [batch, beams, length] with length >= tokens"
        )
    _expect("sequences", sequences, (batch * beams, sequences.shape[1]))
    _expect("ended", ended, (batch, beams, ended.shape[2]))
    _expect("ended_count", counts, (batch,))
    _expect("done", done, (batch,))
    _expect("length_penalty", penalty, ())
    if batch and not 0 <= counts.min() <= counts.max() <= beams:
        raise ValueError(
            f"{counts.min()} to {counts.max()} sequences have ended, expected 0 to "
            f"{beams}, the number of beams"
        )
    return batch, beams


def _expect(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"{name} has shape {list(array.shape)}, expected {list(shape)}")


class _Ended:
    """The ended sequences of each batch item, best first."""

    def __init__(
        self, tokens: Array, scores: Array, count: Array, penalty: Array, pad: int
    ) -> None:
        self.tokens, self.scores, self.count = tokens.copy(), scores.copy(), count.copy()
        self._penalty, self._pad = np.float32(penalty), pad

    def add(self, item: int, sequence: Array, sum_of_logarithms: np.float32) -> None:
        """Insert a sequence if a slot is free or the sequence is better than the worst one."""
        score = self._score(sum_of_logarithms, len(sequence))
        scores, tokens, used = self.scores[item], self.tokens[item], int(self.count[item])
        if used == len(scores) and not score > scores[-1]:
            return
        rank = int(np.count_nonzero(scores[:used] >= score))
        last = min(used, len(scores) - 1)
        for array in (scores, tokens):
            array[rank + 1 : last + 1] = array[rank:last].copy()
        scores[rank], tokens[rank, len(sequence) :], tokens[rank, : len(sequence)] = (
            score,
            self._pad,
            sequence,
        )
        self.count[item] = last + 1

    def can_improve(self, item: int, best: np.float32, length: int) -> bool:
        """Return True if a sequence of this length with this sum of logarithms would be better than
        the worst one.
        """
        return bool(self._score(best, length) > self.scores[item, -1])

    def _score(self, sum_of_logarithms: np.float32, length: int) -> np.float32:
        return np.float32(sum_of_logarithms / np.power(np.float32(length), self._penalty))


def sampled_token(
    scores: Array,
    state: Array,
    /,
    *,
    top_p: float,
    filter_value: float,
    min_tokens_to_keep: int,
    from_the_top: int,
) -> tuple[Array, Array]:
    """Draw a token for each row of scores ``[batch, words]``.

    Return the tokens ``[batch, 1]`` and the next state of the generator. As in ONNX Runtime,
    improbable words get the score ``filter_value``; then one random number selects the word.
    """
    if scores.ndim != 2 or not scores.shape[1] or state.size != 1:
        shapes = f"{list(scores.shape)} and {list(state.shape)}"
        raise ValueError(
            f"scores and state have shapes {shapes}, expected [batch, words] with a "
            "word at least, and one number"
        )
    scores, number = scores.copy(), int(state.reshape(())) % _MODULUS
    tokens = np.empty((len(scores), 1), np.int32)
    for row, token in zip(scores, tokens, strict=True):
        if not np.isfinite(row).any():
            raise ValueError("no word of a row has a score that is a number, so none can be drawn")
        row[_improbable(row, np.float32(top_p), min_tokens_to_keep, from_the_top == 1)] = (
            np.float32(filter_value)
        )
        known = np.isfinite(row)
        weights = np.where(
            known,
            np.exp(
                row.astype(np.float64) - float(row[known].max(initial=np.finfo(np.float32).min))
            ),
            0,
        )
        edges = np.cumsum(weights)
        drawn, number = _draw(number)
        token[0] = np.searchsorted(edges, drawn * edges[-1], side="right")
    return tokens, np.array(number, np.int64)


def _improbable(row: Array, top_p: np.float32, min_kept: int, from_the_top: bool) -> Array:
    """Return the indices of the words to filter out.

    From the top: all words after the cumulative probability ``top_p``. From the bottom: the words
    that together have at most the remaining probability, but at least ``min_kept`` words stay.
    """
    order = np.argsort(-row if from_the_top else row, kind="stable")
    weights = np.exp(row[order] - row.max())
    sums = np.cumsum(weights / weights.sum(), dtype=np.float32)
    if from_the_top:
        return order[1:][sums[:-1] > top_p]
    filtered = sums <= np.float32(1) - top_p
    filtered[max(len(row) - min_kept, 1) :] = False
    return order[filtered]


def _draw(state: int) -> tuple[float, int]:
    """Return a number in [0, 1) from two numbers of the generator, and its next state."""
    total, scale = 0.0, 1.0
    for _ in range(2):
        state = state * _FACTOR % _MODULUS
        total += (state - 1) * scale
        scale *= _MODULUS - 1
    number = total / scale
    return (number if number < 1 else math.nextafter(1.0, 0.0)), state


def _infer_scorer(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    _, _, _, sequences, ended, scores, count, done, _ = inputs
    rows = sequences.shape.at(0)
    return (
        Known(ElementType.F32, scores.shape),
        Known(ElementType.I32, PartialShape.of((rows, 1))),
        Known(ElementType.I64, PartialShape.of((rows,))),
        *(Known(known.element_type, known.shape) for known in (ended, scores, count, done)),
    )


def _infer_best(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    ended = inputs[2].shape
    lengths = (ended.at(0), None, ended.at(2)) if ended.rank == 3 else (None,) * 3
    return Known(ElementType.I32, PartialShape.of(lengths)), Known(
        ElementType.F32, PartialShape.of(lengths[:2])
    )


def _infer_token(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    scores = inputs[0].shape
    rows = PartialShape.of((scores.at(0), 1)) if scores.rank == 2 else DYNAMIC
    return Known(ElementType.I32, rows), Known(ElementType.I64, SCALAR)


_FLOAT, _INT, _LONG, _FLAG = (
    frozenset({item})
    for item in (ElementType.F32, ElementType.I32, ElementType.I64, ElementType.BOOLEAN)
)
_PAD = Attribute(
    "pad_token_id", "int", least=-(2**31), doc="The token that fills a sequence after its end."
)
OPERATIONS: tuple[Operation, ...] = (
    own(
        name="BeamScorer",
        kernel=beam_scorer,
        infer=_infer_scorer,
        inputs=(9, 9),
        outputs=7,
        types=(_FLOAT, _INT, _INT, _INT, _INT, _FLOAT, _INT, _FLAG, _FLOAT),
        attributes=(
            Attribute("eos_token_id", "int", doc="The word that ends a sequence."),
            _PAD,
            Attribute(
                "early_stopping",
                "int",
                default=0,
                doc="1: the search ends when as many sequences as beams have ended.",
            ),
        ),
    ),
    own(
        name="BestBeams",
        kernel=best_beams,
        infer=_infer_best,
        inputs=(8, 8),
        outputs=2,
        types=(_INT, _FLOAT, _INT, _FLOAT, _INT, _FLAG, _FLOAT, _LONG),
        attributes=(_PAD,),
    ),
    own(
        name="SampledToken",
        kernel=sampled_token,
        infer=_infer_token,
        inputs=(2, 2),
        outputs=2,
        types=(_FLOAT, _LONG),
        attributes=(
            Attribute(
                "top_p", "float", doc="Cumulative probability of the words that may be drawn."
            ),
            Attribute("filter_value", "float", doc="The score of all other words."),
            Attribute(
                "min_tokens_to_keep",
                "int",
                default=0,
                doc="Minimum number of the best words that may be drawn.",
            ),
            Attribute(
                "from_the_top",
                "int",
                default=0,
                doc="1: probabilities are summed from the best word down, not from the worst up.",
            ),
        ),
    ),
)
