"""Loops and branches to be walked back, each a function of tensors, with the shapes of its
arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.tensor import Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A function, and what it is called with."""

    function: Callable[..., Any]
    shapes: tuple[Shape, ...]

    @property
    def name(self) -> str:
        return self.function.__name__


def for_loop_of_a_matrix(x: Tensor, w: Tensor) -> Any:
    return builder.for_loop(3, lambda i, h: ops.tanh(h @ w), [x])


def while_by_data(x: Tensor) -> Any:
    return builder.while_loop(
        lambda h: ops.reduce_sum(h * h, [0]) < 10.0, lambda h: h * 1.5 + 0.1, [x]
    )


def do_while_by_data(x: Tensor, w: Tensor) -> Any:
    return builder.do_while(
        lambda h: ops.reduce_sum(h * h, [0]) < 3.0, lambda h: h * 1.5 + w * w, [x]
    )


def no_iteration(x: Tensor, w: Tensor) -> Any:
    return builder.while_loop(lambda h: ops.reduce_sum(h * h, [0]) < -1.0, lambda h: h * w, [x])


def no_iteration_by_count(x: Tensor, w: Tensor) -> Any:
    return builder.for_loop(0, lambda i, h: h * w, [x])


def one_iteration(x: Tensor, w: Tensor) -> Any:
    return builder.for_loop(1, lambda i, h: h * w, [x])


def scan_of_a_matrix(xs: Tensor, h: Tensor, w: Tensor) -> Any:
    return builder.scan(lambda a, x: ops.tanh(a @ w + x), xs, h)


def map_of_rows(xs: Tensor, w: Tensor) -> Any:
    return builder.map_fn(lambda x: ops.tanh(x * w), xs)


def map_of_two(xs: Tensor, ys: Tensor) -> Any:
    return builder.map_fn(lambda pair: (pair[0] * pair[1], ops.exp(pair[1])), (xs, ys))


def number_of_the_iteration(x: Tensor) -> Any:
    return builder.for_loop(
        4, lambda i, h: h * ops.convert(i + 1, destination_type="f64") + ops.tanh(h), [x]
    )


def a_branch(x: Tensor, w: Tensor) -> Any:
    return builder.cond(ops.reduce_sum(x, [0]) > 0.0, lambda: x * w, lambda: ops.tanh(x))


def a_branch_of_two_outputs(x: Tensor, w: Tensor) -> Any:
    return builder.cond(ops.reduce_sum(x, [0]) > 0.0, lambda: (x * w, w), lambda: (ops.tanh(x), x))


def a_branch_in_a_branch(x: Tensor, w: Tensor) -> Any:
    total = ops.reduce_sum(x, [0])
    return builder.cond(
        total > -9.0,
        lambda: builder.cond(total > 9.0, lambda: x * w, lambda: x / w),
        lambda: ops.tanh(x),
    )


def a_chain_of_branches(x: Tensor, w: Tensor) -> Any:
    return builder.switch_case(1, [lambda: x * x, lambda: x * w, lambda: ops.exp(w)])


def a_branch_in_a_loop(x: Tensor, w: Tensor) -> Any:
    return builder.for_loop(
        5, lambda i, h: builder.cond(i % 2 == 0, lambda: h * w, lambda: ops.tanh(h) + x), [x]
    )


def a_loop_in_a_branch(x: Tensor, w: Tensor) -> Any:
    def loop() -> Any:
        return builder.for_loop(3, lambda i, h: ops.tanh(h * w) + x, [x])[0]

    return builder.cond(ops.reduce_sum(x * x, [0]) > 0.0, loop, lambda: x)


def a_branch_by_the_state(x: Tensor, w: Tensor) -> Any:
    def body(h: Tensor) -> Any:
        return builder.cond(ops.reduce_sum(h, [0]) > 1.0, lambda: h * 0.5, lambda: h * 1.25 + w * w)

    return builder.for_loop(6, lambda i, h: body(h), [x])


def a_loop_in_a_loop(x: Tensor, w: Tensor) -> Any:
    def outer(i: Tensor, h: Tensor) -> Any:
        return builder.for_loop(i + 1, lambda j, g: ops.tanh(g * w + x), [h])

    return builder.for_loop(3, outer, [x])


def a_loop_in_a_loop_that_may_not_run(x: Tensor, w: Tensor) -> Any:
    def outer(i: Tensor, h: Tensor) -> Any:
        return builder.for_loop(i, lambda j, g: ops.tanh(g * w + x), [h])

    return builder.for_loop(3, outer, [x])


def a_while_in_a_scan(xs: Tensor, w: Tensor) -> Any:
    def step(a: Tensor, x: Tensor) -> Any:
        (doubled,) = builder.while_loop(
            lambda v: ops.reduce_sum(v * v, [0]) < 5.0, lambda v: v * 1.7 + x, [a]
        )
        return ops.tanh(doubled * w)

    return builder.scan(step, xs, w)


def three_loops_deep(x: Tensor) -> Any:
    def inner(h: Tensor) -> Any:
        return builder.for_loop(2, lambda k, f: ops.tanh(f) + f * x, [h])[0]

    def middle(h: Tensor) -> Any:
        return builder.for_loop(2, lambda j, g: inner(g) * 0.5, [h])[0]

    return builder.for_loop(2, lambda i, h: middle(h), [x])


def two_loops_share_an_invariant(x: Tensor, w: Tensor) -> Any:
    (h,) = builder.for_loop(3, lambda i, h: ops.tanh(h @ w), [x])
    (g,) = builder.for_loop(2, lambda i, h: ops.tanh(h @ w) + x, [h])
    return g, h


def a_weight_that_is_carried_unchanged(x: Tensor, w: Tensor) -> Any:
    return builder.for_loop(3, lambda i, h, v: (ops.tanh(h @ v), v), [x, w])


def states_that_change_places(x: Tensor, w: Tensor) -> Any:
    return builder.for_loop(3, lambda i, a, b: (b * 1.1, a * b), [x, w])


def one_state_becomes_both(x: Tensor, w: Tensor) -> Any:
    def body(i: Tensor, a: Tensor, b: Tensor) -> Any:
        product = ops.tanh(a * b)
        return product, product

    return builder.for_loop(3, body, [x, w])


def a_scalar_state(x: Tensor) -> Any:
    return builder.for_loop(3, lambda i, a: a * a + x, [x])


def what_is_collected(x: Tensor) -> Any:
    parts = builder.Collected("parts")

    def body(i: Tensor, a: Tensor) -> Any:
        parts.append(a * x)
        return ops.tanh(a)

    (last,) = builder.for_loop(3, body, [x])
    return parts.tensor, last


def only_what_is_collected(x: Tensor) -> Any:
    parts = builder.Collected("parts")

    def body(i: Tensor, a: Tensor) -> Any:
        parts.append(ops.exp(a))
        return ops.tanh(a) * x

    builder.for_loop(4, body, [x])
    return parts.tensor


def a_whole_number_beside(x: Tensor) -> Any:
    def body(n: Tensor, h: Tensor) -> Any:
        return n * 2, h * ops.convert(n, destination_type="f64") + ops.tanh(h)

    return builder.while_loop(lambda n, h: n < 20, body, [1, x])[1]


def a_product_of_all(xs: Tensor) -> Any:
    return builder.scan(lambda a, x: a * x, xs, 1.5)


def a_state_that_grows(x: Tensor, w: Tensor) -> Any:
    def body(i: Tensor, h: Tensor) -> Any:
        return ops.concat(h, ops.tanh(h[-1:] * w), axis=0)

    (last,) = builder.for_loop(3, body, [x], shape_invariants=[[None, 3]])
    return last * last


def a_state_that_grows_and_is_summed(x: Tensor, w: Tensor) -> Any:
    sums = builder.Collected("sums")

    def body(i: Tensor, h: Tensor) -> Any:
        sums.append(ops.reduce_sum(h * h, [0]))
        return ops.concat(h, ops.tanh(h[-1:] * w), axis=0)

    builder.for_loop(3, body, [x], shape_invariants=[[None, 3]])
    return sums.tensor


def a_growing_state_that_is_joined(x: Tensor, w: Tensor) -> Any:
    states = builder.Collected("states")

    def body(i: Tensor, h: Tensor) -> Any:
        states.extend(h * w)
        return ops.concat(h, ops.tanh(h[-1:] * w), axis=0)

    builder.for_loop(3, body, [x], shape_invariants=[[None, 3]])
    return states.tensor * states.tensor


def a_fold_from_its_first(xs: Tensor, w: Tensor) -> Any:
    return builder.foldl(lambda a, x: ops.tanh(a * w + x), xs)


def a_scan_from_its_end(xs: Tensor, h: Tensor, w: Tensor) -> Any:
    return builder.scan(lambda a, x: ops.tanh(a * w + x), xs, h, reverse=True)


def a_fold_from_its_end(xs: Tensor, w: Tensor) -> Any:
    return builder.scan(lambda a, x: ops.tanh(a) * w + x, xs, w, reverse=True)


def three_loops_share_a_weight(x: Tensor, w: Tensor) -> Any:
    def loop(value: Tensor, count: int) -> Tensor:
        last: Tensor = builder.for_loop(count, lambda i, h: ops.tanh(h * w) + x, [value])[0]
        return last

    return loop(loop(loop(x, 2), 3), 1)


def a_loop_and_a_branch_share_a_weight(x: Tensor, w: Tensor) -> Any:
    (h,) = builder.for_loop(3, lambda i, h: h * w + x, [x])
    return builder.cond(ops.reduce_sum(h, [0]) > 0.0, lambda: h * w, lambda: w * w)


def no_iteration_and_then_some(x: Tensor, w: Tensor) -> Any:
    (h,) = builder.for_loop(0, lambda i, h: h * w, [x])
    (g,) = builder.for_loop(2, lambda i, h: h * w + x, [h])
    return h * g


def no_iteration_of_a_weight_alone(x: Tensor, w: Tensor) -> Any:
    (h,) = builder.while_loop(lambda h: ops.reduce_sum(h, [0]) > 100.0, lambda h: h * w, [x])
    return h * h


def a_while_whose_count_is_its_state(x: Tensor, w: Tensor) -> Any:
    def body(left: Tensor, h: Tensor) -> Any:
        return left * 0.5, h * w + ops.reduce_sum(left, [0])

    return builder.while_loop(lambda left, h: ops.reduce_sum(left, [0]) > 0.2, body, [x, x])


def a_branch_in_a_loop_in_a_loop(x: Tensor, w: Tensor) -> Any:
    def inner(j: Tensor, g: Tensor) -> Any:
        return builder.cond(ops.reduce_sum(g, [0]) > 1.5, lambda: g * 0.5, lambda: g * w + x)

    return builder.for_loop(3, lambda i, h: builder.for_loop(2, inner, [h])[0], [x])


def a_while_in_a_while(x: Tensor, w: Tensor) -> Any:
    def outer(h: Tensor) -> Any:
        (g,) = builder.while_loop(
            lambda v: ops.reduce_sum(v * v, [0]) < 4.0, lambda v: v * 1.6 + w * w, [h * 0.3]
        )
        return g + x

    return builder.while_loop(lambda h: ops.reduce_sum(h, [0]) < 4.0, outer, [x])


def a_scan_in_a_loop(xs: Tensor, w: Tensor) -> Any:
    def outer(i: Tensor, rows: Tensor) -> Any:
        return builder.scan(lambda a, x: ops.tanh(a * w + x), rows, w)

    return builder.for_loop(2, outer, [xs])


def a_map_in_a_scan(xs: Tensor, w: Tensor) -> Any:
    return builder.scan(
        lambda a, x: builder.map_fn(lambda e: ops.tanh(e * w), a) + x, xs, xs[0] * 1.0
    )


def newtons_root(x: Tensor) -> Any:
    def body(guess: Tensor) -> Any:
        return 0.5 * (guess + x / guess)

    return builder.while_loop(
        lambda g: ops.reduce_max(ops.abs(g * g - x), [0]) > 1e-2, body, [x + 1.0]
    )


def a_cell_of_an_lstm(xs: Tensor, w: Tensor, u: Tensor) -> Any:
    def step(state: Any, x: Tensor) -> Any:
        h, c = state
        gates = x @ w + h @ u
        f, i, o, g = (gates[:, at : at + 2] for at in (0, 2, 4, 6))
        after = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(after), after

    zeros = xs[0, :, :2] * 0.0
    return builder.scan(step, xs, (zeros, zeros))


def a_rectifier_that_cuts_off(x: Tensor, w: Tensor) -> Any:
    return builder.for_loop(4, lambda i, h: ops.relu(h * w - 0.2) + x * 0.1, [x])


def a_sequence_of_an_lstm(xs: Tensor, h: Tensor, c: Tensor, w: Tensor, r: Tensor, b: Tensor) -> Any:
    lengths = np.array([3, 2])
    return ops.lstm_sequence(xs, h, c, lengths, w, r, b, hidden_size=2, direction="forward")


def a_sequence_of_an_rnn_from_its_end(
    xs: Tensor, h: Tensor, w: Tensor, r: Tensor, b: Tensor
) -> Any:
    lengths = np.array([3, 3])
    return ops.rnn_sequence(xs, h, lengths, w, r, b, hidden_size=2, direction="reverse")


CASES: tuple[Case, ...] = (
    Case(for_loop_of_a_matrix, ((2, 3), (3, 3))),
    Case(while_by_data, ((3,),)),
    Case(do_while_by_data, ((3,), (3,))),
    Case(no_iteration, ((3,), (3,))),
    Case(no_iteration_by_count, ((3,), (3,))),
    Case(one_iteration, ((3,), (3,))),
    Case(scan_of_a_matrix, ((5, 2, 3), (2, 3), (3, 3))),
    Case(map_of_rows, ((5, 3), (3,))),
    Case(map_of_two, ((4, 3), (4, 2, 3))),
    Case(number_of_the_iteration, ((3,),)),
    Case(a_branch, ((3,), (3,))),
    Case(a_branch_of_two_outputs, ((3,), (3,))),
    Case(a_branch_in_a_branch, ((3,), (3,))),
    Case(a_chain_of_branches, ((3,), (3,))),
    Case(a_branch_in_a_loop, ((3,), (3,))),
    Case(a_loop_in_a_branch, ((3,), (3,))),
    Case(a_branch_by_the_state, ((3,), (3,))),
    Case(a_loop_in_a_loop, ((3,), (3,))),
    Case(a_loop_in_a_loop_that_may_not_run, ((3,), (3,))),
    Case(a_while_in_a_scan, ((3, 2), (2,))),
    Case(three_loops_deep, ((3,),)),
    Case(two_loops_share_an_invariant, ((2, 3), (3, 3))),
    Case(a_weight_that_is_carried_unchanged, ((2, 3), (3, 3))),
    Case(states_that_change_places, ((3,), (3,))),
    Case(one_state_becomes_both, ((3,), (3,))),
    Case(a_scalar_state, ((),)),
    Case(what_is_collected, ((2,),)),
    Case(only_what_is_collected, ((2,),)),
    Case(a_whole_number_beside, ((3,),)),
    Case(a_product_of_all, ((4,),)),
    Case(a_state_that_grows, ((1, 3), (3,))),
    Case(a_state_that_grows_and_is_summed, ((1, 3), (3,))),
    Case(a_growing_state_that_is_joined, ((1, 3), (3,))),
    Case(a_fold_from_its_first, ((5, 3), (3,))),
    Case(a_scan_from_its_end, ((5, 3), (3,), (3,))),
    Case(a_fold_from_its_end, ((4, 3), (3,))),
    Case(three_loops_share_a_weight, ((3,), (3,))),
    Case(a_loop_and_a_branch_share_a_weight, ((3,), (3,))),
    Case(no_iteration_and_then_some, ((3,), (3,))),
    Case(no_iteration_of_a_weight_alone, ((3,), (3,))),
    Case(a_while_whose_count_is_its_state, ((3,), (3,))),
    Case(a_branch_in_a_loop_in_a_loop, ((3,), (3,))),
    Case(a_while_in_a_while, ((3,), (3,))),
    Case(a_scan_in_a_loop, ((4, 3), (3,))),
    Case(a_map_in_a_scan, ((3, 4, 2), (2,))),
    Case(newtons_root, ((3,),)),
    Case(a_cell_of_an_lstm, ((4, 2, 3), (3, 8), (2, 8))),
    Case(a_rectifier_that_cuts_off, ((5,), (5,))),
    Case(a_sequence_of_an_lstm, ((2, 3, 3), (2, 1, 2), (2, 1, 2), (1, 8, 3), (1, 8, 2), (1, 8))),
    Case(a_sequence_of_an_rnn_from_its_end, ((2, 3, 3), (2, 1, 2), (1, 2, 3), (1, 2, 2), (1, 2))),
)

GROWING = frozenset(
    {"a_state_that_grows", "a_state_that_grows_and_is_summed", "a_growing_state_that_is_joined"}
)
"""Their values of all iterations are recorded in a row, in parts of different lengths."""


def arguments(case: Case) -> list[np.ndarray]:
    """The same in every run."""
    random = np.random.default_rng(3)
    return [random.uniform(0.2, 0.9, shape) for shape in case.shapes]
