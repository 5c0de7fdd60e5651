"""The derivatives of ONNX's Attention and RotaryEmbedding; scores and weights are computed again
from queries and keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from loopscope.ops.derivative import Reverse, Value
from loopscope.ops.gradients.attention_weights import (
    minus_infinity,
    product,
    scale_of,
    weights_of_seen,
)
from loopscope.ops.onnx.openvino_rules import through

_QUERY, _KEY, _VALUE, _MASK, _PAST_KEY, _PAST_VALUE, _FILLED = range(7)
_RESULT, _KEYS, _VALUES, _SCORES = range(4)
_RAW, _CAPPED, _BIASED, _WEIGHTS = range(4)
"""What ``qk_matmul_output_mode`` asks for."""
_WHOLE = (None, 1, 11)
"""Values of softmax_precision that round no scores of f32: left out, f32 and f64."""
_ONE, _LAST, _SWAPPED = np.array([1]), np.array([-1]), np.array([0, 2, 1, 3])


def attention(at: Reverse, /) -> Mapping[int, Value | None]:
    """Of queries, keys, values, what they have of the past, and a mask of floats."""
    if at.attributes.get("softmax_precision") not in _WHOLE:
        raise ValueError(
            f"its softmax_precision is {at.attributes['softmax_precision']}, which rounds the scores"
        )
    form = _Form.of(at)
    weights, slope = form.weights()
    given = _heads(at, at.adjoint_of(_RESULT), "q_num_heads")
    of_weights = form.asked(
        form.flat(product(at, form.grouped(given), form.shared(form.values), False, True)), _WEIGHTS
    )
    pulled = at.ops.reduce_sum(of_weights * weights, _LAST, keep_dims=True)
    of_biased = form.asked(weights * (of_weights - pulled), _BIASED)
    of_capped = form.asked(of_biased, _CAPPED)
    of_raw = form.asked(of_capped if slope is None else of_capped * slope, _RAW)
    scores = form.grouped(of_raw * form.scale)
    of_query = form.flat(product(at, scores, form.shared(form.keys), False, False))
    of_keys = form.summed(product(at, scores, form.grouped(form.query), True, False))
    of_values = form.summed(product(at, form.grouped(weights), form.grouped(given), True, False))
    found: dict[int, Value | None] = {
        _QUERY: _side_by_side(at, of_query, _QUERY),
        _MASK: form.of_mask(of_biased),
    }
    found |= form.of_present(of_keys, _KEYS, _KEY, _PAST_KEY) | form.of_present(
        of_values, _VALUES, _VALUE, _PAST_VALUE
    )
    return found


@dataclass(frozen=True, slots=True)
class _Form:
    """Queries [N, heads, L, E], keys [N, kv heads, S, E] and values [N, kv heads, S, V] with
    those of the past, and scores of them.
    """

    at: Reverse
    query: Value
    keys: Value
    values: Value
    scale: Value | float

    @staticmethod
    def of(at: Reverse) -> _Form:
        query = _heads(at, _input(at, _QUERY), "q_num_heads")
        keys, values = (
            _with_past(at, _heads(at, _input(at, own), "kv_num_heads"), at.input_at(past))
            for own, past in ((_KEY, _PAST_KEY), (_VALUE, _PAST_VALUE))
        )
        scale = at.attributes["scale"]
        return _Form(
            at, query, keys, values, scale_of(at, query, None) if scale is None else float(scale)
        )

    @property
    def _one_each(self) -> bool:
        """Whether every head of the queries surely has keys of its own."""
        lengths = self.query.shape.at(1), self.keys.shape.at(1)
        return all(one.is_static for one in lengths) and lengths[0] == lengths[1]

    def grouped(self, value: Value) -> Value:
        """``[N, heads, L, X] -> [N, kv heads, heads of a group, L, X]``: the queries of a group
        share their keys.
        """
        if self._one_each:
            return value
        at, shape = self.at, self.at.shape_of(value)
        lengths = at.ops.concat(
            _some(at, shape, 0, 1),
            _some(at, at.shape_of(self.keys), 1, 2),
            _LAST,
            _some(at, shape, 2, 4),
            axis=0,
        )
        return at.ops.reshape(value, lengths, special_zero=False)

    def flat(self, value: Value) -> Value:
        """The way back from ``grouped``."""
        if self._one_each:
            return value
        at, shape = self.at, self.at.shape_of(value)
        lengths = at.ops.concat(
            _some(at, shape, 0, 1),
            _some(at, at.shape_of(self.query), 1, 2),
            _some(at, shape, 3, 5),
            axis=0,
        )
        return at.ops.reshape(value, lengths, special_zero=False)

    def shared(self, value: Value) -> Value:
        """Keys or values beside a group of queries."""
        return value if self._one_each else self.at.ops.unsqueeze(value, np.array([2]))

    def summed(self, value: Value) -> Value:
        """The adjoint of what a group shares."""
        return (
            value
            if self._one_each
            else self.at.ops.reduce_sum(value, np.array([2]), keep_dims=False)
        )

    def weights(self) -> tuple[Value, Value | None]:
        """``[N, heads, L, S]``, and the slope of the cap where there is one; a query that sees
        no key has weights of 0.
        """
        at, cap = self.at, float(self.at.attributes["softcap"])
        scores = (
            self.flat(product(at, self.grouped(self.query), self.shared(self.keys), False, True))
            * self.scale
        )
        slope = None
        if cap > 0:
            bent = at.ops.tanh(scores / cap)
            scores, slope = bent * cap, 1.0 - bent * bent
        biased, hidden = self._masked(scores), self._hidden(scores)
        if hidden is not None:
            biased = at.ops.select(hidden, minus_infinity(biased), biased)
        if hidden is None and at.input_at(_MASK) is None:
            return at.ops.softmax(biased, axis=-1), slope
        return weights_of_seen(at, biased), slope

    def _masked(self, scores: Value) -> Value:
        at, mask = self.at, self.at.input_at(_MASK)
        if mask is None:
            return scores
        if mask.rank is None or mask.element_type is None:
            raise ValueError(
                "the rank or type of its mask is not known: give the model's inputs theirs"
            )
        none = np.array(False) if not mask.element_type.is_float else minus_infinity(mask)
        length, reach = scores.shape.at(-1), mask.shape.at(-1)
        if not (length.is_static and reach.is_static and length == reach):
            # What lies behind a mask that is shorter than the keys is hidden.
            missing = _some(at, at.shape_of(scores), 3, 4) - _some(
                at, at.shape_of(mask), mask.rank - 1, mask.rank
            )
            before = np.zeros(mask.rank, np.int64)
            mask = at.ops.pad(
                mask, before, at.ops.concat(before[1:], missing, axis=0), none, pad_mode="constant"
            )
        return (
            scores + mask
            if none.dtype != np.bool_
            else at.ops.select(mask, scores, minus_infinity(scores))
        )

    def of_mask(self, of_biased: Value) -> Value | None:
        at, mask = self.at, self.at.input_at(_MASK)
        if (
            mask is None
            or mask.element_type is None
            or not mask.element_type.is_float
            or mask.rank is None
        ):
            return None
        reach = _some(at, at.shape_of(mask), mask.rank - 1, mask.rank)
        return at.sum_to(at.ops.slice(of_biased, np.array([0]), reach, _ONE, _LAST), mask)

    def _hidden(self, scores: Value) -> Value | None:
        """Which keys each query may not see whatever the mask says, [1 or N, 1, L, S]; None: all
        are seen.
        """
        at, filled = self.at, self.at.input_at(_FILLED)
        shape = at.shape_of(scores)
        rows, columns = (_numbers(at, shape, axis) for axis in (2, 3))
        past = at.input_at(_PAST_KEY)
        before: Value | np.ndarray = (
            np.array(0) if past is None else _some(at, at.shape_of(past), 2, 3)
        )
        count = None if filled is None else at.reshaped_to(filled, (-1, 1, 1, 1))
        if count is not None:
            before = count - _some(at, shape, 2, 3)
        beyond = columns - (at.ops.unsqueeze(rows, _ONE) + before)
        left, right = (
            int(at.attributes.get(f"{side}_window_size", -1)) for side in ("left", "right")
        )
        rules = [beyond > 0] if at.attributes["is_causal"] else []
        rules += [beyond > right] if right >= 0 else []
        rules += [beyond < -left] if left >= 0 else []
        rules += [columns >= count] if count is not None else []
        if not rules:
            return None
        whole = rules[0]
        for rule in rules[1:]:
            whole = at.ops.logical_or(whole, rule)
        return whole

    def asked(self, adjoint: Value, state: int) -> Value:
        """With the adjoint of the scores that the node shows, where it shows them in that state."""
        shown = self.at.adjoints[_SCORES] if len(self.at.adjoints) > _SCORES else None
        return (
            adjoint
            if shown is None or self.at.attributes["qk_matmul_output_mode"] != state
            else adjoint + shown
        )

    def of_present(
        self, adjoint: Value, output: int, own: int, past: int
    ) -> dict[int, Value | None]:
        """Keys or values fall apart into those of the past and those that came; the node may
        show them.
        """
        at, earlier = self.at, self.at.input_at(past)
        shown = at.adjoints[output] if len(at.adjoints) > output else None
        whole = adjoint if shown is None else adjoint + shown
        if earlier is None:
            return {own: _side_by_side(at, whole, own)}
        lengths = at.ops.concat(_some(at, at.shape_of(earlier), 2, 3), _LAST, axis=0)
        of_past, of_own = at.several("VariadicSplit", whole, np.array(2), lengths)
        return {past: of_past, own: _side_by_side(at, of_own, own)}


_TOKENS, _COSINES, _SINES, _POSITIONS = range(4)


def rotary_embedding(at: Reverse, /) -> Mapping[int, Value | None]:
    """Pairs of elements are turned by an angle, so that their adjoints are turned back."""
    tokens, given = (_heads(at, one, "num_heads") for one in (_input(at, _TOKENS), at.adjoint))
    turned, rest = _parts(at, given)
    first, second = _pairs(at, turned)
    cosines, sines = (_of_tokens(at, place) for place in (_COSINES, _SINES))
    back = _together(at, first * cosines + second * sines, second * cosines - first * sines)
    whole = back if rest is None else at.ops.concat(back, rest, axis=-1)
    before, after = _pairs(at, _parts(at, tokens)[0])
    return {
        _TOKENS: _side_by_side(at, whole, _TOKENS),
        _COSINES: _of_cache(at, before * first + after * second, _COSINES),
        _SINES: _of_cache(at, before * second - after * first, _SINES),
    }


def _parts(at: Reverse, value: Value) -> tuple[Value, Value | None]:
    """What is turned of each head, and the rest where only so many elements are turned."""
    count = int(at.attributes["rotary_embedding_dim"] or 0)
    if not count:
        return value, None
    turned, rest = at.several("VariadicSplit", value, np.array(-1), np.array([count, -1]))
    return turned, rest


def _pairs(at: Reverse, value: Value) -> tuple[Value, Value]:
    """``[N, heads, L, 2 X]`` as two tensors ``[N, heads, L, X]``."""
    if not at.attributes["interleaved"]:
        first, second = at.several("Split", value, np.array(-1), num_splits=2)
        return first, second
    apart = at.ops.reshape(value, np.array([0, 0, 0, -1, 2]), special_zero=True)
    first, second = (
        at.ops.gather(apart, np.array(place), np.array(-1), batch_dims=0) for place in range(2)
    )
    return first, second


def _together(at: Reverse, first: Value, second: Value) -> Value:
    if not at.attributes["interleaved"]:
        return at.ops.concat(first, second, axis=-1)
    pairs = at.ops.concat(at.ops.unsqueeze(first, _LAST), at.ops.unsqueeze(second, _LAST), axis=-1)
    return at.ops.reshape(pairs, np.array([0, 0, 0, -1]), special_zero=True)


def _of_tokens(at: Reverse, place: int) -> Value:
    """The cosines or sines of each token, [N, 1, L, X]."""
    cache, positions = _input(at, place), at.input_at(_POSITIONS)
    rows = (
        cache if positions is None else at.ops.gather(cache, positions, np.array(0), batch_dims=0)
    )
    return at.ops.unsqueeze(rows, _ONE)


def _of_cache(at: Reverse, adjoint: Value, place: int) -> Value | None:
    cache, positions = _input(at, place), at.input_at(_POSITIONS)
    rows = at.ops.reduce_sum(adjoint, _ONE, keep_dims=False)
    if positions is None:
        return at.sum_to(rows, cache)
    inner = replace(at, outputs=(), adjoints=(rows,))
    return through(
        "Gather", inner, (cache, positions, at.constant(np.array(0, np.int64))), {"batch_dims": 0}
    )[0]


def _input(at: Reverse, place: int) -> Value:
    found = at.input_at(place)
    assert found is not None
    return found


def _heads(at: Reverse, value: Value, count: str) -> Value:
    """``[N, L, heads X] -> [N, heads, L, X]``; of rank 4 it is so already."""
    if _input(at, 0).rank is None:
        raise ValueError(
            "the rank of its first input is not known: give the model's inputs their ranks"
        )
    if _input(at, 0).rank == 4:
        return value
    apart = at.ops.reshape(
        value, np.array([0, 0, int(at.attributes[count] or 1), -1]), special_zero=True
    )
    return at.ops.transpose(apart, _SWAPPED)


def _side_by_side(at: Reverse, value: Value, place: int) -> Value:
    """The way back from ``_heads`` into the shape of an input."""
    if _input(at, 0).rank == 4:
        return value
    return at.reshaped(at.ops.transpose(value, _SWAPPED), _input(at, place))


def _with_past(at: Reverse, own: Value, past: Value | None) -> Value:
    return own if past is None else at.ops.concat(past, own, axis=2)


def _some(at: Reverse, shape: Value, start: int, end: int) -> Value:
    return at.ops.slice(shape, np.array([start]), np.array([end]), _ONE)


def _numbers(at: Reverse, shape: Value, axis: int) -> Value:
    """``0, 1, ...`` as many as an axis is long."""
    length = at.ops.gather(shape, np.array(axis), np.array(0), batch_dims=0)
    return at.ops.range(np.array(0), length, np.array(1), output_type="i64")
