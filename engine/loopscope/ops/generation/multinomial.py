"""Sampling of class numbers by their probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.elements import COMPUTED_FLOATS
from loopscope.ops.generation.random_uniform import Stream, random_uniform

_SHAPE_TYPE = np.int64


def multinomial(
    probabilities: Array,
    samples: Array,
    /,
    *,
    convert_type: ElementType,
    with_replacement: bool,
    log_probs: bool,
    global_seed: int = 0,
    op_seed: int = 0,
    state: int | Stream,
) -> tuple[Array, Stream]:
    """Draw class numbers, shape (batch, samples), by probabilities of shape (batch, classes).

    Page generation/multinomial-13. The specification names no generator: the uniform numbers are
    those of RandomUniform-8 in f64 for the same seeds.
    """
    count = int(samples.item()) if samples.size == 1 else -1
    if probabilities.ndim != 2 or count < 0:
        raise ValueError(
            f"probs has shape {probabilities.shape}, num_samples is {samples}: "
            "expected rank 2 and one count"
        )
    batch, classes = probabilities.shape
    if not with_replacement and count > classes:
        raise ValueError(
            f"num_samples is {count} without replacement, expected at most {classes} (classes)"
        )
    check_elements(batch * count, "the samples")
    shape = np.array((batch, count), _SHAPE_TYPE)
    drawn, following = random_uniform(
        shape,
        np.array(0.0),
        np.array(1.0),
        output_type=ElementType.F64,
        global_seed=global_seed,
        op_seed=op_seed,
        state=state,
    )
    weights = probabilities.astype(np.float64)
    weights = np.exp(weights) if log_probs else weights
    if not (
        np.isfinite(weights).all() and (weights >= 0).all() and (weights.sum(axis=1) > 0).all()
    ):
        raise ValueError(
            "probabilities must be finite and not negative, and at least one of each row positive"
        )
    choose = _draw_with_replacement if with_replacement else _draw_without_replacement
    return choose(weights, drawn).astype(convert_type.dtype), following


def _draw_with_replacement(weights: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    chosen = [
        np.searchsorted(_cumulative(row), numbers, "left")
        for row, numbers in zip(weights, drawn, strict=True)
    ]
    return np.array(chosen).reshape(drawn.shape)


def _draw_without_replacement(weights: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Draw classes; each drawn class gets weight 0 in the later draws of its row."""
    remaining, rows = weights.copy(), np.arange(len(weights))
    chosen = np.zeros(drawn.shape, np.int64)
    for draw in range(drawn.shape[1]):
        chosen[:, draw] = (_cumulative(remaining) < drawn[:, draw, None]).sum(axis=1)
        remaining[rows, chosen[:, draw]] = 0
    return chosen


def _cumulative(weights: np.ndarray) -> np.ndarray:
    """Return cumulative probabilities along the last axis, from weights of any sum."""
    sums = np.cumsum(weights, axis=-1)
    return sums / sums[..., -1:]


def _rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    shape, samples = inputs[0].shape, inputs[1].value
    batch = shape.at(0) if shape.rank == 2 else UNKNOWN
    count: Dimension = (
        UNKNOWN if samples is None or samples.size != 1 else static(max(int(samples.item()), 0))
    )
    return (Known(attributes["convert_type"], PartialShape((batch, count))),)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="Multinomial",
        version=13,
        opsets=(13, 16),
        page="generation/multinomial-13",
        kernel=multinomial,
        infer=_rule,
        inputs=(2, 2),
        attributes=(
            Attribute("convert_type", "type", allowed=(ElementType.I32, ElementType.I64)),
            Attribute("with_replacement", "bool"),
            Attribute("log_probs", "bool"),
            Attribute("global_seed", "int", 0, least=0),
            Attribute("op_seed", "int", 0, least=0),
        ),
        types=(COMPUTED_FLOATS, INDEX_TYPES),
        stateful=True,
    ),
)
