"""Derivatives of ONNX's Attention and RotaryEmbedding. Scores and weights are computed again from
queries and keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from loopscope.ops.derivative import Reverse, Value
from loopscope.ops.gradients.matrix import (
    minus_infinity,
    product,
    scale_of,
    weights_of_seen,
)
from loopscope.ops.onnx.derivatives import INDICES_INSIDE, openvino_adjoints, positions

_QUERY, _KEY, _VALUE, _MASK, _PAST_KEY, _PAST_VALUE, _FILLED = range(7)
_RESULT, _KEYS, _VALUES, _SCORES = range(4)
_RAW, _CAPPED, _BIASED, _WEIGHTS = range(4)
"""Values of ``qk_matmul_output_mode``: the stage of the scores that the node returns."""
_WHOLE = (None, 1, 11)
"""Values of softmax_precision that do not round scores of f32: not set, f32 and f64."""
_ONE, _LAST, _SWAPPED = np.array([1]), np.array([-1]), np.array([0, 2, 1, 3])


def attention(node: Reverse, /) -> Mapping[int, Value | None]:
    """Return the adjoints of queries, keys, values, past keys and values, and of a mask of
    floats.
    """
    if node.attributes.get("softmax_precision") not in _WHOLE:
        raise ValueError(
            f"its softmax_precision is {node.attributes['softmax_precision']}, "
            "which rounds the scores"
        )
    form = _Form.of(node)
    weights, slope = form.weights()
    of_result = _split_heads(node, node.adjoint_of(_RESULT), "q_num_heads")
    of_weights = form.asked(
        form.flat(product(node, form.grouped(of_result), form.shared(form.values), False, True)),
        _WEIGHTS,
    )
    pulled = node.ops.reduce_sum(of_weights * weights, _LAST, keep_dims=True)
    of_biased = form.asked(weights * (of_weights - pulled), _BIASED)
    of_capped = form.asked(of_biased, _CAPPED)
    of_raw = form.asked(of_capped if slope is None else of_capped * slope, _RAW)
    scores = form.grouped(of_raw * form.scale)
    of_query = form.flat(product(node, scores, form.shared(form.keys), False, False))
    of_keys = form.summed(product(node, scores, form.grouped(form.query), True, False))
    of_values = form.summed(
        product(node, form.grouped(weights), form.grouped(of_result), True, False)
    )
    adjoints: dict[int, Value | None] = {
        _QUERY: _join_heads(node, of_query, _QUERY),
        _MASK: form.of_mask(of_biased),
    }
    adjoints |= form.of_present(of_keys, _KEYS, _KEY, _PAST_KEY) | form.of_present(
        of_values, _VALUES, _VALUE, _PAST_VALUE
    )
    return adjoints


@dataclass(frozen=True, slots=True)
class _Form:
    """Inputs of Attention, the past included, and the scale of the scores.

    Queries are [N, heads, L, E], keys [N, kv heads, S, E] and values [N, kv heads, S, V].
    """

    node: Reverse
    query: Value
    keys: Value
    values: Value
    scale: Value | float

    @staticmethod
    def of(node: Reverse) -> _Form:
        query = _split_heads(node, _input(node, _QUERY), "q_num_heads")
        keys, values = (
            _append_past(
                node, _split_heads(node, _input(node, own), "kv_num_heads"), node.input_at(past)
            )
            for own, past in ((_KEY, _PAST_KEY), (_VALUE, _PAST_VALUE))
        )
        scale = node.attributes["scale"]
        return _Form(
            node,
            query,
            keys,
            values,
            scale_of(node, query, None) if scale is None else float(scale),
        )

    @property
    def _one_each(self) -> bool:
        """True if every query head is known to have keys of its own."""
        lengths = self.query.shape.at(1), self.keys.shape.at(1)
        return all(length.is_static for length in lengths) and lengths[0] == lengths[1]

    def grouped(self, value: Value) -> Value:
        """Reshape ``[N, heads, L, X]`` to ``[N, kv heads, heads of a group, L, X]``. The queries of
        a group share their keys.
        """
        if self._one_each:
            return value
        node, shape = self.node, self.node.shape_of(value)
        lengths = node.ops.concat(
            _slice_shape(node, shape, 0, 1),
            _slice_shape(node, node.shape_of(self.keys), 1, 2),
            _LAST,
            _slice_shape(node, shape, 2, 4),
            axis=0,
        )
        return node.ops.reshape(value, lengths, special_zero=False)

    def flat(self, value: Value) -> Value:
        """Undo ``grouped``."""
        if self._one_each:
            return value
        node, shape = self.node, self.node.shape_of(value)
        lengths = node.ops.concat(
            _slice_shape(node, shape, 0, 1),
            _slice_shape(node, node.shape_of(self.query), 1, 2),
            _slice_shape(node, shape, 3, 5),
            axis=0,
        )
        return node.ops.reshape(value, lengths, special_zero=False)

    def shared(self, value: Value) -> Value:
        """Return keys or values with an axis for the queries of a group."""
        return value if self._one_each else self.node.ops.unsqueeze(value, np.array([2]))

    def summed(self, value: Value) -> Value:
        """Sum an adjoint over the queries of a group, which share their keys and values."""
        return (
            value
            if self._one_each
            else self.node.ops.reduce_sum(value, np.array([2]), keep_dims=False)
        )

    def weights(self) -> tuple[Value, Value | None]:
        """Return the weights ``[N, heads, L, S]``, and the slope of the soft cap or None. A query
        that sees no key has weights of 0.
        """
        node, cap = self.node, float(self.node.attributes["softcap"])
        scores = (
            self.flat(product(node, self.grouped(self.query), self.shared(self.keys), False, True))
            * self.scale
        )
        slope = None
        if cap > 0:
            bent = node.ops.tanh(scores / cap)
            scores, slope = bent * cap, 1.0 - bent * bent
        biased, hidden = self._masked(scores), self._hidden(scores)
        if hidden is not None:
            biased = node.ops.select(hidden, minus_infinity(biased), biased)
        if hidden is None and node.input_at(_MASK) is None:
            return node.ops.softmax(biased, axis=-1), slope
        return weights_of_seen(node, biased), slope

    def _masked(self, scores: Value) -> Value:
        node, mask = self.node, self.node.input_at(_MASK)
        if mask is None:
            return scores
        if mask.rank is None or mask.element_type is None:
            raise ValueError(
                "the rank or type of its mask is not known: declare them for the model's inputs"
            )
        none = np.array(False) if not mask.element_type.is_float else minus_infinity(mask)
        length, reach = scores.shape.at(-1), mask.shape.at(-1)
        if not (length.is_static and reach.is_static and length == reach):
            # Keys beyond the end of a mask that is shorter than the keys are hidden.
            missing = _slice_shape(node, node.shape_of(scores), 3, 4) - _slice_shape(
                node, node.shape_of(mask), mask.rank - 1, mask.rank
            )
            before = np.zeros(mask.rank, np.int64)
            mask = node.ops.pad(
                mask,
                before,
                node.ops.concat(before[1:], missing, axis=0),
                none,
                pad_mode="constant",
            )
        return (
            scores + mask
            if none.dtype != np.bool_
            else node.ops.select(mask, scores, minus_infinity(scores))
        )

    def of_mask(self, of_biased: Value) -> Value | None:
        node, mask = self.node, self.node.input_at(_MASK)
        if (
            mask is None
            or mask.element_type is None
            or not mask.element_type.is_float
            or mask.rank is None
        ):
            return None
        reach = _slice_shape(node, node.shape_of(mask), mask.rank - 1, mask.rank)
        return node.sum_to(node.ops.slice(of_biased, np.array([0]), reach, _ONE, _LAST), mask)

    def _hidden(self, scores: Value) -> Value | None:
        """Return which keys each query may not see, apart from the mask, as [1 or N, 1, L, S]; None
        if every query may see all keys.
        """
        node, filled = self.node, self.node.input_at(_FILLED)
        shape = node.shape_of(scores)
        rows, columns = (positions(node, shape, axis) for axis in (2, 3))
        past = node.input_at(_PAST_KEY)
        before: Value | np.ndarray = (
            np.array(0) if past is None else _slice_shape(node, node.shape_of(past), 2, 3)
        )
        count = None if filled is None else node.reshaped_to(filled, (-1, 1, 1, 1))
        if count is not None:
            before = count - _slice_shape(node, shape, 2, 3)
        beyond = columns - (node.ops.unsqueeze(rows, _ONE) + before)
        left, right = (
            int(node.attributes.get(f"{side}_window_size", -1)) for side in ("left", "right")
        )
        rules = [beyond > 0] if node.attributes["is_causal"] else []
        rules += [beyond > right] if right >= 0 else []
        rules += [beyond < -left] if left >= 0 else []
        rules += [columns >= count] if count is not None else []
        if not rules:
            return None
        whole = rules[0]
        for rule in rules[1:]:
            whole = node.ops.logical_or(whole, rule)
        return whole

    def asked(self, adjoint: Value, state: int) -> Value:
        """Add the adjoint of the scores that the node returns, if it returns them at this stage."""
        shown = self.node.adjoints[_SCORES] if len(self.node.adjoints) > _SCORES else None
        return (
            adjoint
            if shown is None or self.node.attributes["qk_matmul_output_mode"] != state
            else adjoint + shown
        )

    def of_present(
        self, adjoint: Value, output: int, own: int, past: int
    ) -> dict[int, Value | None]:
        """Split the adjoint of all keys or values into that of the past and that of the new ones.
        Adds the adjoint of the output that returns them.
        """
        node, earlier = self.node, self.node.input_at(past)
        shown = node.adjoints[output] if len(node.adjoints) > output else None
        whole = adjoint if shown is None else adjoint + shown
        if earlier is None:
            return {own: _join_heads(node, whole, own)}
        lengths = node.ops.concat(_slice_shape(node, node.shape_of(earlier), 2, 3), _LAST, axis=0)
        of_past, of_own = node.several("VariadicSplit", whole, np.array(2), lengths)
        return {past: of_past, own: _join_heads(node, of_own, own)}


_TOKENS, _COSINES, _SINES, _POSITIONS = range(4)


def rotary_embedding(node: Reverse, /) -> Mapping[int, Value | None]:
    """Return the adjoints. Pairs of elements are rotated by an angle, so their adjoints are rotated
    back.
    """
    tokens, adjoint = (
        _split_heads(node, value, "num_heads") for value in (_input(node, _TOKENS), node.adjoint)
    )
    turned, rest = _split_rotated(node, adjoint)
    first, second = _split_pairs(node, turned)
    cosines, sines = (_token_rows(node, place) for place in (_COSINES, _SINES))
    back = _join_pairs(node, first * cosines + second * sines, second * cosines - first * sines)
    whole = back if rest is None else node.ops.concat(back, rest, axis=-1)
    before, after = _split_pairs(node, _split_rotated(node, tokens)[0])
    return {
        _TOKENS: _join_heads(node, whole, _TOKENS),
        _COSINES: _cache_adjoint(node, before * first + after * second, _COSINES),
        _SINES: _cache_adjoint(node, before * second - after * first, _SINES),
    }


def _split_rotated(node: Reverse, value: Value) -> tuple[Value, Value | None]:
    """Split each head into the elements that are rotated and the rest, or None if all are
    rotated.
    """
    count = int(node.attributes["rotary_embedding_dim"] or 0)
    if not count:
        return value, None
    turned, rest = node.several("VariadicSplit", value, np.array(-1), np.array([count, -1]))
    return turned, rest


def _split_pairs(node: Reverse, value: Value) -> tuple[Value, Value]:
    """Split ``[N, heads, L, 2 X]`` into the two elements of each pair, ``[N, heads, L, X]``
    each.
    """
    if not node.attributes["interleaved"]:
        first, second = node.several("Split", value, np.array(-1), num_splits=2)
        return first, second
    apart = node.ops.reshape(value, np.array([0, 0, 0, -1, 2]), special_zero=True)
    first, second = (
        node.ops.gather(apart, np.array(place), np.array(-1), batch_dims=0) for place in range(2)
    )
    return first, second


def _join_pairs(node: Reverse, first: Value, second: Value) -> Value:
    if not node.attributes["interleaved"]:
        return node.ops.concat(first, second, axis=-1)
    pairs = node.ops.concat(
        node.ops.unsqueeze(first, _LAST), node.ops.unsqueeze(second, _LAST), axis=-1
    )
    return node.ops.reshape(pairs, np.array([0, 0, 0, -1]), special_zero=True)


def _token_rows(node: Reverse, place: int) -> Value:
    """Return the cosines or sines of each token, [N, 1, L, X]."""
    cache, positions = _input(node, place), node.input_at(_POSITIONS)
    rows = (
        cache if positions is None else node.ops.gather(cache, positions, np.array(0), batch_dims=0)
    )
    return node.ops.unsqueeze(rows, _ONE)


def _cache_adjoint(node: Reverse, adjoint: Value, place: int) -> Value | None:
    cache, positions = _input(node, place), node.input_at(_POSITIONS)
    rows = node.ops.reduce_sum(adjoint, _ONE, keep_dims=False)
    if positions is None:
        return node.sum_to(rows, cache)
    inner = replace(node, outputs=(), adjoints=(rows,))
    return openvino_adjoints(
        "Gather",
        inner,
        (cache, positions, node.constant(np.array(0, np.int64))),
        {"batch_dims": 0},
        INDICES_INSIDE,
    )[0]


def _input(node: Reverse, place: int) -> Value:
    value = node.input_at(place)
    assert value is not None
    return value


def _split_heads(node: Reverse, value: Value, count: str) -> Value:
    """Reshape ``[N, L, heads X]`` to ``[N, heads, L, X]``; a value of rank 4 has that form
    already.
    """
    if _input(node, 0).rank is None:
        raise ValueError(
            "the rank of its first input is not known: give the model's inputs their ranks"
        )
    if _input(node, 0).rank == 4:
        return value
    apart = node.ops.reshape(
        value, np.array([0, 0, int(node.attributes[count] or 1), -1]), special_zero=True
    )
    return node.ops.transpose(apart, _SWAPPED)


def _join_heads(node: Reverse, value: Value, place: int) -> Value:
    """Undo ``_heads`` and return the value in the shape of an input."""
    if _input(node, 0).rank == 4:
        return value
    return node.reshaped(node.ops.transpose(value, _SWAPPED), _input(node, place))


def _append_past(node: Reverse, own: Value, past: Value | None) -> Value:
    return own if past is None else node.ops.concat(past, own, axis=2)


def _slice_shape(node: Reverse, shape: Value, start: int, end: int) -> Value:
    return node.ops.slice(shape, np.array([start]), np.array([end]), _ONE)
