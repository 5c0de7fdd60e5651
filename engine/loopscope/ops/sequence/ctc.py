"""Connectionist temporal classification: greedy decoding, and the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import UNKNOWN, PartialShape, static
from loopscope.ops.declare import Array, Known
from loopscope.ops.kernel_arithmetic import computable, rounded


def ctc_greedy_decoder(data: Array, mask: Array, /, *, ctc_merge_repeated: bool) -> Array:
    """Return the likeliest classes without blanks (the last class).

    ``ctc_merge_repeated`` removes repetitions. -1 follows the end. ``[T, N, C], [T, N] -> [N, T, 1,
    1]``; a sequence ends where its mask is first 0. Spec: sequence/ctc-greedy-decoder-1.
    """
    if data.ndim != 3 or mask.shape != data.shape[:2]:
        raise ValueError(
            f"data of shape {list(data.shape)} and a mask of shape {list(mask.shape)} do not fit"
        )
    lengths = np.logical_and.accumulate(np.asarray(mask).T != 0, axis=1).sum(axis=1)
    classes, _ = _decode(data.swapaxes(0, 1), lengths, data.shape[2] - 1, ctc_merge_repeated)
    return classes.astype(data.dtype)[:, :, None, None]


def ctc_greedy_decoder_with_lengths(
    data: Array,
    lengths: Array,
    blank_index: Array | None = None,
    /,
    *,
    merge_repeated: bool,
    classes_index_type: ElementType,
    sequence_length_type: ElementType,
) -> tuple[Array, Array]:
    """Return the likeliest classes without blanks, with their number.

    ``merge_repeated`` removes repetitions. -1 follows the end. ``[N, T, C], [N] -> [N, T], [N]``;
    the blank is the last class by default. Spec: sequence/ctc-greedy-decoder-seq-len-6.
    """
    if data.ndim != 3 or np.asarray(lengths).shape != data.shape[:1]:
        raise ValueError(
            f"data of shape {list(data.shape)} and lengths of shape "
            f"{list(np.asarray(lengths).shape)} do not fit"
        )
    if np.asarray(lengths).max(initial=0) > data.shape[1]:
        raise ValueError(
            f"a sequence of length {np.asarray(lengths).max()} is longer than the "
            f"data, {data.shape[1]}"
        )
    blank = (
        data.shape[2] - 1 if blank_index is None else int(np.asarray(blank_index).reshape(-1)[0])
    )
    classes, counts = _decode(data, np.asarray(lengths), blank, merge_repeated)
    return classes.astype(classes_index_type.dtype), counts.astype(sequence_length_type.dtype)


def _decode(data: Array, lengths: Array, blank: int, merge: bool) -> tuple[Array, Array]:
    """Return ``[N, T, C] -> [N, T]`` classes packed to the front, and their number."""
    batch, steps, classes = data.shape
    packed = np.full((batch, steps), -1, np.int64)
    if not classes or not data.size:
        return packed, np.zeros(batch, np.int64)
    best = computable(data).argmax(axis=2)
    remains = (np.arange(steps) < lengths[:, None]) & (best != blank)
    if merge:
        remains[:, 1:] &= best[:, 1:] != best[:, :-1]
    position = np.cumsum(remains, axis=1) - 1
    rows, columns = np.nonzero(remains)
    packed[rows, position[rows, columns]] = best[rows, columns]
    return packed, remains.sum(axis=1)


def ctc_loss(
    logits: Array,
    logit_length: Array,
    labels: Array,
    label_length: Array,
    blank_index: Array | None = None,
    /,
    *,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    unique: bool,
) -> Array:
    """Return the negative logarithm of the probability of all paths that decode to the labels.

    The loss is infinite if no path does. ``[N, T, C], [N], [N, T], [N] -> [N]``; the blank is the
    last class by default. Spec: sequence/ctc-loss-4.
    """
    _, steps, classes = logits.shape
    times, counts = np.asarray(logit_length).reshape(-1), np.asarray(label_length).reshape(-1)
    if (
        (times > steps).any()
        or (counts > times).any()
        or (counts > np.asarray(labels).shape[1]).any()
        or (counts < 0).any()
    ):
        raise ValueError(
            f"label lengths {counts[:8].tolist()} and logit lengths "
            f"{times[:8].tolist()} do not fit {steps} time steps"
        )
    blank = classes - 1 if blank_index is None else int(np.asarray(blank_index).reshape(-1)[0])
    targets = [
        _target(row[:count].tolist(), preprocess_collapse_repeated, unique)
        for row, count in zip(np.asarray(labels), counts, strict=True)
    ]
    if (
        any(not 0 <= label < classes for target in targets for label in target)
        or not 0 <= blank < classes
    ):
        raise ValueError(f"a label or the blank {blank} is not one of {classes} classes")
    wide = computable(logits).astype(np.float64)
    wide = wide - wide.max(axis=2, keepdims=True, initial=-np.inf)
    likely = wide - np.log(np.exp(wide).sum(axis=2, keepdims=True))
    return rounded(
        -_log_probability(likely, times, targets, blank, ctc_merge_repeated), logits.dtype
    )


def _target(labels: Sequence[int], collapse: bool, unique: bool) -> list[int]:
    if unique:
        return list(dict.fromkeys(labels))
    if collapse:
        return [
            label for index, label in enumerate(labels) if not index or label != labels[index - 1]
        ]
    return list(labels)


def _log_probability(
    likely: Array, times: Array, targets: Sequence[Sequence[int]], blank: int, merge: bool
) -> Array:
    """Run the forward algorithm over blank, label, blank, label, ..., blank for the whole batch at
    once.
    """
    batch = len(targets)
    ends = np.array([2 * len(target) for target in targets], np.int64)
    states = int(ends.max(initial=0)) + 1
    path = np.full((batch, states), blank)
    for row, target in zip(path, targets, strict=True):
        row[1 : 2 * len(target) : 2] = target
    is_label = np.arange(states) % 2 == 1
    may_skip = np.broadcast_to(is_label, path.shape).copy()
    if merge:
        may_skip[:, 2:] &= path[:, 2:] != path[:, :-2]
    reached = np.full((batch, states), -np.inf)
    # Two columns precede the first state, so that the predecessors of all states are slices.
    before = np.full((batch, states + 2), -np.inf)
    rows = np.arange(batch)
    start = np.where(times == 0, np.where(ends == 0, 0.0, -np.inf), -np.inf)
    with np.errstate(invalid="ignore"):
        for time in range(int(times.max(initial=0))):
            before[:, 2:] = reached
            stay = before[:, 2:] if merge else np.where(is_label, -np.inf, before[:, 2:])
            total = np.logaddexp(stay, before[:, 1:-1])
            total = np.logaddexp(total, np.where(may_skip, before[:, :-2], -np.inf))
            # The first step reaches only the first blank or the first label.
            if time == 0:
                total = np.where(np.arange(states) < 2, 0.0, -np.inf)
            total = total + np.take_along_axis(likely[:, time], path, axis=1)
            reached = np.where((time < times)[:, None], total, reached)
        last_label = np.where(ends > 0, reached[rows, np.maximum(ends - 1, 0)], -np.inf)
        return np.where(times == 0, start, np.logaddexp(reached[rows, ends], last_label))


def infer_ctc_greedy_decoder(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer ``[T, N, C] -> [N, T, 1, 1]``."""
    data, mask = inputs[0].shape, inputs[1].shape
    time = (
        data.at(0).intersect(mask.at(0))
        if data.rank in (None, 3) and mask.rank in (None, 2)
        else None
    )
    batch = None if time is None else data.at(1).intersect(mask.at(1))
    if time is None or batch is None:
        raise ValueError(f"data of shape {data} and a mask of shape {mask} do not fit")
    return (Known(inputs[0].element_type, PartialShape((batch, time, static(1), static(1)))),)


def infer_ctc_greedy_decoder_with_lengths(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer ``[N, T, C] -> [N, T], [N]``."""
    data = inputs[0].shape
    if data.rank not in (None, 3):
        raise ValueError(f"the data has shape {data}, expected [batch, time, classes]")
    batch = data.at(0).intersect(inputs[1].shape.at(0)) or UNKNOWN
    return (
        Known(attributes["classes_index_type"], PartialShape((batch, data.at(1)))),
        Known(attributes["sequence_length_type"], PartialShape((batch,))),
    )


def infer_ctc_loss(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer one loss for each element of the batch."""
    logits = inputs[0].shape
    if logits.rank not in (None, 3):
        raise ValueError(f"the logits have shape {logits}, expected [batch, time, classes]")
    return (Known(inputs[0].element_type, PartialShape((logits.at(0),))),)
