"""Activation functions of recurrent cells as operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, shorten

Activation = Callable[[Tensor, str], Tensor]
"""Function that applies an activation under the name of its last node."""
Formula = Callable[[Tensor, float, float, str], Tensor]


def _affine(x: Tensor, alpha: float, beta: float, name: str) -> Tensor:
    return ops.add(ops.multiply(x, _like(x, alpha)), _like(x, beta), name=name)


def _like(x: Tensor, number: float | list[float]) -> np.ndarray:
    assert x.element_type is not None, "activations are applied to values of known type"
    return np.asarray(number).astype(x.element_type.dtype)


_FORMULAS: Mapping[str, tuple[Formula, float | None, float | None]] = {
    "affine": (_affine, 1.0, 0.0),
    "elu": (lambda x, a, b, name: ops.elu(x, alpha=a, name=name), 1.0, None),
    "hardsigmoid": (
        lambda x, a, b, name: ops.hard_sigmoid(x, _like(x, a), _like(x, b), name=name),
        0.2,
        0.5,
    ),
    "leakyrelu": (lambda x, a, b, name: ops.prelu(x, _like(x, [a]), name=name), 0.01, None),
    "relu": (lambda x, a, b, name: ops.relu(x, name=name), None, None),
    "scaledtanh": (
        lambda x, a, b, name: ops.multiply(
            ops.tanh(ops.multiply(x, _like(x, b))), _like(x, a), name=name
        ),
        1.0,
        1.0,
    ),
    "sigmoid": (lambda x, a, b, name: ops.sigmoid(x, name=name), None, None),
    "softplus": (lambda x, a, b, name: ops.softplus(x, name=name), None, None),
    "softsign": (lambda x, a, b, name: ops.softsign(x, name=name), None, None),
    "tanh": (lambda x, a, b, name: ops.tanh(x, name=name), None, None),
    "thresholdedrelu": (
        lambda x, a, b, name: ops.select(ops.greater(x, _like(x, a)), x, _like(x, 0), name=name),
        1.0,
        None,
    ),
}
"""The operation of each function, and the defaults of its alpha and beta; None if it has none."""


def activations_by_direction(
    names: Sequence[str],
    alphas: Sequence[float],
    betas: Sequence[float],
    each: int,
    directions: int,
) -> list[list[Activation]]:
    """Return ``each`` functions for each direction.

    Alpha and beta are listed only for functions that have them. ``BuildError`` for an unknown
    function, or too few of them.
    """
    if len(names) < each * directions:
        raise BuildError(f"activations names {len(names)} functions, expected {each * directions}")
    remaining_alphas, remaining_betas = iter(alphas), iter(betas)
    functions = []
    for name in names[: each * directions]:
        if name.lower() not in _FORMULAS:
            raise BuildError(
                f"the activation {shorten(name)!r} is unknown, expected {', '.join(_FORMULAS)}"
            )
        formula, alpha, beta = _FORMULAS[name.lower()]
        functions.append(
            _bound(
                formula,
                0.0 if alpha is None else next(remaining_alphas, alpha),
                0.0 if beta is None else next(remaining_betas, beta),
            )
        )
    return [functions[start : start + each] for start in range(0, len(functions), each)]


def _bound(formula: Formula, alpha: float, beta: float) -> Activation:
    return lambda x, name: formula(x, alpha, beta, name)


def over_directions(
    names: Sequence[str], by_direction: Sequence[Sequence[Activation]], each: int
) -> list[Activation]:
    """Return ``each`` functions of values ``[D, B, H]``.

    If the directions have different functions, each is applied to its part of the values.
    """
    if len(by_direction) == 1 or list(names[:each]) == list(names[each : 2 * each]):
        return list(by_direction[0])
    return [
        _of_both(first, second)
        for first, second in zip(by_direction[0], by_direction[1], strict=True)
    ]


def _of_both(first: Activation, second: Activation) -> Activation:
    def apply(x: Tensor, name: str) -> Tensor:
        forward, backward = ops.split(x, 0, num_splits=2)
        parts = [first(forward, f"{name}_forward"), second(backward, f"{name}_backward")]
        return ops.concat(parts, axis=0, name=name)

    return apply
