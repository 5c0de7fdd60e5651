"""Draws loops and branches whose gradients are computed: nested, empty, growing, joined backwards,
sharing their weights.

``python -m tests.engine.drawn.walks --seconds 600 --seed 1`` draws for a while; each that does not
agree is told by its seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from tests.engine.builder.both import run_both
from tests.engine.drawn.for_a_while import check_drawn, parser

_DEEPEST = 2
_SHAPE = (2, 3)


@dataclass(frozen=True, slots=True)
class Walk:
    """A model with one loss, and what it is differentiated by."""

    model: loopscope.Model
    feeds: tuple[np.ndarray, ...]
    is_joined_by_openvino: bool
    """Whether OpenVINO's loops can join and carry what is in it."""


class _Draw:
    """One drawn function of a state [2, 3], a sequence [n, 2, 3], a weight [3, 3] and a scalar;
    all of them in all of its bodies.
    """

    def __init__(self, seed: int, xs: Tensor, weight: Tensor, scale: Tensor, length: int) -> None:
        self.random = np.random.default_rng(seed)
        self.xs, self.weight, self.scale, self.length = xs, weight, scale, length
        self.is_plain = True

    def value(self, state: Tensor, depth: int) -> Tensor:
        """One to three steps after each other."""
        for _ in range(self.random.integers(1, 4)):
            steps: list[Callable[[Tensor, int], Tensor]] = [
                self._formula,
                self._formula,
                self._product,
            ]
            if depth < _DEEPEST:
                steps += [
                    self._counted,
                    self._while,
                    self._folded,
                    self._scanned,
                    self._branch,
                    self._mapped,
                    self._growing,
                ]
            state = steps[self.random.integers(len(steps))](state, depth)
        return state

    def _formula(self, state: Tensor, depth: int) -> Tensor:
        forms: list[Callable[[], Tensor]] = [
            lambda: ops.tanh(state + self.scale),
            lambda: ops.sigmoid(state) * self.scale,
            lambda: state * 0.5 + ops.sin(state),
            lambda: ops.sin(state * state) * 0.6,
            lambda: ops.relu(state - 0.1) + state * 0.2,
            lambda: ops.softmax(state, axis=1),
            lambda: state - ops.reduce_mean(state, [1], keep_dims=True),
            lambda: ops.transpose(ops.reshape(state, [3, 2], special_zero=False), [1, 0]),
        ]
        return forms[self.random.integers(len(forms))]()

    def _product(self, state: Tensor, depth: int) -> Tensor:
        return ops.tanh(state @ self.weight)

    def _counted(self, state: Tensor, depth: int) -> Tensor:
        count = int(self.random.integers(0, 4))
        uses_number = bool(self.random.integers(2))

        def body(number: Tensor, h: Tensor) -> tuple[Tensor]:
            h = self.value(h, depth + 1)
            return (h + ops.convert(number, destination_type="f64") * 0.05 if uses_number else h,)

        (made,) = builder.for_loop(count, body, (state,))
        return made

    def _while(self, state: Tensor, depth: int) -> Tensor:
        bound, most = float(self.random.uniform(-1, 6)), int(self.random.integers(1, 5))
        _, made = builder.while_loop(
            lambda i, h: ops.less(ops.reduce_sum(h, [0, 1]), bound),
            lambda i, h: (i + 1, self.value(h, depth + 1) + 0.4),
            (0, state),
            maximum_iterations=most,
        )
        return ops.tanh(made)

    def _folded(self, state: Tensor, depth: int) -> Tensor:
        return ops.tanh(
            builder.foldl(lambda h, x: self.value(h + x * self.scale, depth + 1), self.xs, state)
        )

    def _scanned(self, state: Tensor, depth: int) -> Tensor:
        reverse = bool(self.random.integers(2))
        kept = builder.scan(
            lambda h, x: self.value(h * 0.6 + x, depth + 1), self.xs, state, reverse=reverse
        )
        return ops.reduce_sum(kept * kept, [0]) * 0.1 + state * 0.5

    def _mapped(self, state: Tensor, depth: int) -> Tensor:
        made = builder.map_fn(lambda x: self.value(x * state, depth + 1), self.xs)
        return ops.reduce_mean(made, [0]) * 0.5 + state * 0.5

    def _growing(self, state: Tensor, depth: int) -> Tensor:
        """A sequence that each iteration makes longer, by what it computes of all of it."""
        self.is_plain = False
        count = int(self.random.integers(0, 4))

        def body(number: Tensor, rows: Tensor) -> tuple[Tensor]:
            mean = ops.reduce_mean(rows, [0], keep_dims=True)
            return (ops.concat([rows * self.scale, self._product(ops.tanh(mean), depth)], axis=0),)

        (rows,) = builder.for_loop(count, body, (state,), shape_invariants=([None, 3],))
        return ops.tanh(state + ops.reduce_mean(rows, [0], keep_dims=True))

    def _branch(self, state: Tensor, depth: int) -> Tensor:
        bound = float(self.random.uniform(-0.5, 1.5))
        decides = ops.greater(ops.reduce_mean(state, [0, 1]), bound)
        return builder.cond(
            decides,
            lambda: self.value(state, depth + 1),
            lambda: self.value(state * self.scale, depth + 1),
        )


def drawn_walk(seed: int) -> Walk:
    """The same for the same seed."""
    random = np.random.default_rng([seed, 1])
    length = int(random.integers(1, 4))
    graph = builder.Graph(f"walk {seed}")
    x = graph.parameter("x", "f64", _SHAPE)
    xs = graph.parameter("xs", "f64", [length if random.integers(2) else None, *_SHAPE])
    weight, scale = graph.parameter("weight", "f64", [3, 3]), graph.parameter("scale", "f64", [])
    draw = _Draw(seed, xs, weight, scale, length)
    made = draw.value(x, 0)
    loss = ops.reduce_sum(made * ops.sin(made + 0.3), [0, 1])
    shapes = (_SHAPE, (length, *_SHAPE), (3, 3), ())
    feeds = tuple(np.asarray(random.uniform(0.2, 0.8, shape)) for shape in shapes)
    return Walk(graph.model({"loss": loss}), feeds, draw.is_plain)


SOURCES = ["x", "xs", "weight", "scale"]


def must_agree(walk: Walk, *, with_openvino: bool) -> None:
    """Central differences, stepping, generated code and, where asked for, OpenVINO give the same
    gradient.
    """
    found = loopscope.check_gradient(walk.model, list(walk.feeds), "loss", SOURCES)
    assert found.ok, found
    made = loopscope.gradients(walk.model, "loss", SOURCES)
    fast = loopscope.run(made, list(walk.feeds)).outputs
    debugger: Any = loopscope.Debugger(made, list(walk.feeds))
    while debugger.state == "paused":
        debugger.step()
    assert debugger.state == "finished", debugger.failure
    for mine, other in zip(fast, debugger.result.outputs, strict=True):
        np.testing.assert_array_equal(mine, other)
    if with_openvino and walk.is_joined_by_openvino:
        _as_in_openvino(made, walk)


def _as_in_openvino(made: loopscope.Model, walk: Walk) -> None:
    run_both(made, list(walk.feeds), tolerance=1e-3)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--openvino", action="store_true", help="OpenVINO too, where it can")
    asked = options.parse_args()
    check_drawn(
        lambda seed: must_agree(drawn_walk(seed), with_openvino=asked.openvino),
        asked.seconds,
        asked.seed,
    )


if __name__ == "__main__":
    main()
