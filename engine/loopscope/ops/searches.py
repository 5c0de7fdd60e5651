"""Operations of our own in the loops of ONNX Runtime's searches, for what ONNX has no operation:
keeping beams, and drawing tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, SCALAR, PartialShape
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.effects import own

_MODULUS, _FACTOR = 2**31 - 1, 16807
"""Of minstd_rand0, the default generator of the C++ library that ONNX Runtime is built with."""


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
    """The beams that go on, and the sequences that have ended so far.

    ``scores``, ``words``, ``beams``: ``[batch, 2 * beams]``, the best first, beams counted within
    the batch. ``sequences``: ``[batch * beams, tokens]``. ``ended``: ``[batch, beams, most]``, the
    best first, with scores ``[batch, beams]`` and how many there are ``[batch]``; ``done``:
    ``[batch]``. Gives the scores ``[batch, beams]``, words ``[batch * beams, 1]`` and rows ``[batch
    * beams]`` of the beams that go on, and ``ended``, ``ended_scores``, ``ended_count`` and
    ``done`` as they are then.
    """
    batch, count = _fitting(sequences, ended, ended_scores, ended_count, done, length_penalty)
    for name, given in (("scores", scores), ("words", words), ("beams", beams)):
        _expect(name, given, (batch, 2 * count))
    if beams.size and not 0 <= beams.min() <= beams.max() < count:
        raise ValueError(
            f"the candidates are of beams {beams.min()} to {beams.max()}, expected 0 to {count - 1}"
        )
    next_scores = np.zeros((batch, count), np.float32)
    next_words = np.full((batch, count), pad_token_id, np.int32)
    rows = np.repeat(np.arange(batch, dtype=np.int64)[:, None] * count, count, axis=1)
    kept = _Ended(ended, ended_scores, ended_count, length_penalty, pad_token_id)
    done = done.copy()
    for one in range(batch):
        if done[one]:
            continue
        found = 0
        for place, (score, word, beam) in enumerate(
            zip(scores[one], words[one], beams[one], strict=True)
        ):
            row = one * count + int(beam)
            if word == eos_token_id:
                if place < count:
                    kept.add(one, sequences[row], score)
                continue
            next_scores[one, found], next_words[one, found], rows[one, found] = score, word, row
            found += 1
            if found == count:
                break
        done[one] = kept.count[one] == count and (
            early_stopping == 1 or not kept.can_improve(one, _best(scores, one), sequences.shape[1])
        )
    return (
        next_scores,
        next_words.reshape(-1, 1),
        rows.reshape(-1),
        kept.tokens,
        kept.scores,
        kept.count,
        done,
    )


def _best(scores: Array, one: int) -> np.float32:
    """The best score of one of the batch, where ONNX Runtime looks for it, which decides when it
    ends: a mistake of its own, as the rows of one of the batch begin at twice this place.
    """
    count = scores.shape[1] // 2
    return np.float32(scores.reshape(-1)[one * count : one * count + 2 * count].max())


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
    """The best of the sequences that have ended and of those that go on, ``[batch, returned,
    most]``, and their scores.

    Inputs as of ``beam_scorer``; of one of the batch that is done, no beam goes on.
    """
    batch, count = _fitting(sequences, ended, ended_scores, ended_count, done, length_penalty)
    _expect("beam_scores", beam_scores, (batch, count))
    _expect("returned", returned, (1,))
    most = int(returned[0])
    if not 1 <= most <= count:
        raise ValueError(
            f"num_return_sequences is {most}, expected 1 to {count}, the number of beams"
        )
    kept = _Ended(ended, ended_scores, ended_count, length_penalty, pad_token_id)
    for one in range(batch):
        for beam in range(0 if done[one] else count):
            kept.add(one, sequences[one * count + beam], beam_scores[one, beam])
    return kept.tokens[:, :most], kept.scores[:, :most]


def _fitting(
    sequences: Array, ended: Array, scores: Array, counts: Array, done: Array, penalty: Array
) -> tuple[int, int]:
    """Of the batch and of the beams, how many there are; ``ValueError`` where shapes or numbers
    do not go together.
    """
    if scores.ndim != 2 or not scores.shape[1]:
        raise ValueError(
            f"the scores of what has ended have shape {list(scores.shape)}, expected [batch, beams] with a beam at least"
        )
    batch, beams = scores.shape
    if sequences.ndim != 2 or ended.ndim != 3 or sequences.shape[1] > ended.shape[2]:
        shapes = f"{list(sequences.shape)} and {list(ended.shape)}"
        raise ValueError(
            f"sequences and ended have shapes {shapes}, expected [batch * beams, tokens] and [batch, beams, as many or more]"
        )
    _expect("sequences", sequences, (batch * beams, sequences.shape[1]))
    _expect("ended", ended, (batch, beams, ended.shape[2]))
    _expect("ended_count", counts, (batch,))
    _expect("done", done, (batch,))
    _expect("length_penalty", penalty, ())
    if batch and not 0 <= counts.min() <= counts.max() <= beams:
        raise ValueError(
            f"{counts.min()} to {counts.max()} sequences have ended, expected 0 to {beams}, the number of beams"
        )
    return batch, beams


def _expect(name: str, given: Array, shape: tuple[int, ...]) -> None:
    if given.shape != shape:
        raise ValueError(f"{name} has shape {list(given.shape)}, expected {list(shape)}")


class _Ended:
    """The sequences that have ended, of each of a batch the best first."""

    def __init__(
        self, tokens: Array, scores: Array, count: Array, penalty: Array, pad: int
    ) -> None:
        self.tokens, self.scores, self.count = tokens.copy(), scores.copy(), count.copy()
        self._penalty, self._pad = np.float32(penalty), pad

    def add(self, one: int, sequence: Array, sum_of_logarithms: np.float32) -> None:
        """Where it is better than one of those, or there is room."""
        score = self._score(sum_of_logarithms, len(sequence))
        scores, tokens, used = self.scores[one], self.tokens[one], int(self.count[one])
        if used == len(scores) and not score > scores[-1]:
            return
        place = int(np.count_nonzero(scores[:used] >= score))
        last = min(used, len(scores) - 1)
        for held in (scores, tokens):
            held[place + 1 : last + 1] = held[place:last].copy()
        scores[place], tokens[place, len(sequence) :], tokens[place, : len(sequence)] = (
            score,
            self._pad,
            sequence,
        )
        self.count[one] = last + 1

    def can_improve(self, one: int, best: np.float32, length: int) -> bool:
        """Whether a sequence of this length whose logarithms have this sum is better than the
        worst.
        """
        return bool(self._score(best, length) > self.scores[one, -1])

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
    """A token for each row of scores ``[batch, words]`` as ``[batch, 1]``, and the next state of
    the generator.

    As ONNX Runtime draws: what is improbable is given the score ``filter_value``, then one number
    of the generator chooses.
    """
    if scores.ndim != 2 or not scores.shape[1] or state.size != 1:
        shapes = f"{list(scores.shape)} and {list(state.shape)}"
        raise ValueError(
            f"scores and state have shapes {shapes}, expected [batch, words] with a word at least, and one number"
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
        drawn, number = _drawn(number)
        token[0] = np.searchsorted(edges, drawn * edges[-1], side="right")
    return tokens, np.array(number, np.int64)


def _improbable(row: Array, top_p: np.float32, least: int, from_the_top: bool) -> Array:
    """The places of what is filtered: from the top, all after so much probability; from the
    bottom, what makes up the rest.
    """
    order = np.argsort(-row if from_the_top else row, kind="stable")
    weights = np.exp(row[order] - row.max())
    sums = np.cumsum(weights / weights.sum(), dtype=np.float32)
    if from_the_top:
        return order[1:][sums[:-1] > top_p]
    filtered = sums <= np.float32(1) - top_p
    filtered[max(len(row) - least, 1) :] = False
    return order[filtered]


def _drawn(state: int) -> tuple[float, int]:
    """A number from 0 to 1, of two numbers of the generator, and its next state."""
    total, scale = 0.0, 1.0
    for _ in range(2):
        state = state * _FACTOR % _MODULUS
        total += (state - 1) * scale
        scale *= _MODULUS - 1
    drawn = total / scale
    return (drawn if drawn < 1 else math.nextafter(1.0, 0.0)), state


def _infer_scorer(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    _, _, _, sequences, ended, scores, count, done, _ = inputs
    rows = sequences.shape.at(0)
    return (
        Known(ElementType.F32, scores.shape),
        Known(ElementType.I32, PartialShape.of((rows, 1))),
        Known(ElementType.I64, PartialShape.of((rows,))),
        *(Known(one.element_type, one.shape) for one in (ended, scores, count, done)),
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
    frozenset({one})
    for one in (ElementType.F32, ElementType.I32, ElementType.I64, ElementType.BOOLEAN)
)
_PAD = Attribute("pad_token_id", "int", least=-(2**31), doc="What fills a sequence behind its end.")
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
                doc="1: as many sequences as there are beams are enough.",
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
                "top_p", "float", doc="Words that have so much probability together may be drawn."
            ),
            Attribute("filter_value", "float", doc="The score that all others are given."),
            Attribute(
                "min_tokens_to_keep",
                "int",
                default=0,
                doc="So many of the best may be drawn in any case.",
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
