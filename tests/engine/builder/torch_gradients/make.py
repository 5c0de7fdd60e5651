"""Runs every case eagerly in torch and keeps autograd's gradients: ``python -m
tests.engine.builder.torch_gradients.make``, with torch 2.13.

The functions of the cases are called with torch's tensors: ``eager_loops`` and ``eager_operations``
stand for ``build`` and ``ops``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch  # not needed to run the tests, only to make their table anew

from tests.engine.builder import walked_back
from tests.engine.builder.torch_gradients import TABLE


def while_loop(cond: Any, body: Any, values: Any, **_: Any) -> Any:
    values = list(values)
    while bool(cond(*values)):
        values = _several(body(*values))
    return values


def do_while(cond: Any, body: Any, values: Any) -> Any:
    values = _several(body(*values))
    return while_loop(cond, body, values)


def for_loop(count: Any, body: Any, values: Any, **_: Any) -> Any:
    values = list(values)
    for number in range(int(count)):
        values = _several(body(torch.tensor(number), *values))
    return values


def scan(step: Any, elements: Any, start: Any = None, reverse: bool = False) -> Any:
    rows = list(elements.flip(0) if reverse else elements)
    state = rows.pop(0) if start is None else start
    found = []
    for row in rows:
        state = step(state, row)
        found.append(state)
    ordered = found[::-1] if reverse else found
    return (
        tuple(map(torch.stack, zip(*ordered, strict=True)))
        if isinstance(state, tuple)
        else torch.stack(ordered)
    )


def foldl(step: Any, elements: Any) -> Any:
    state = elements[0]
    for row in elements[1:]:
        state = step(state, row)
    return state


def map_fn(function: Any, elements: Any) -> Any:
    rows = zip(*elements, strict=True) if isinstance(elements, tuple) else iter(elements)
    found = [function(row) for row in rows]
    return (
        tuple(map(torch.stack, zip(*found, strict=True)))
        if isinstance(found[0], tuple)
        else torch.stack(found)
    )


class Collected:
    def __init__(self, name: str) -> None:
        self.parts: list[Any] = []

    def append(self, part: Any) -> None:
        self.parts.append(part[None])

    def extend(self, part: Any) -> None:
        self.parts.append(part)

    @property
    def tensor(self) -> Any:
        return torch.cat(self.parts)


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (tuple, list)) else [given]


def lstm_sequence(xs: Any, h: Any, c: Any, lengths: Any, w: Any, r: Any, b: Any, **_: Any) -> Any:
    """Of one direction; the gates are forget, input, candidate, output."""
    state, cell = h[:, 0], c[:, 0]
    found: list[Any] = []
    for step in range(xs.shape[1]):
        going = torch.tensor(step < lengths)[:, None]
        forget, take, candidate, give = (xs[:, step] @ w[0].T + state @ r[0].T + b[0]).chunk(
            4, dim=1
        )
        after = torch.sigmoid(forget) * cell + torch.sigmoid(take) * torch.tanh(candidate)
        shown = torch.sigmoid(give) * torch.tanh(after)
        found.append(torch.where(going, shown, torch.zeros_like(shown)))
        state, cell = torch.where(going, shown, state), torch.where(going, after, cell)
    return torch.stack(found, dim=1)[:, None], state[:, None], cell[:, None]


def rnn_sequence(xs: Any, h: Any, lengths: Any, w: Any, r: Any, b: Any, **_: Any) -> Any:
    """Of one direction, from the end of sequences that are all as long."""
    state = h[:, 0]
    found: list[Any] = []
    for step in reversed(range(xs.shape[1])):
        state = torch.tanh(xs[:, step] @ w[0].T + state @ r[0].T + b[0])
        found.insert(0, state)
    return torch.stack(found, dim=1)[:, None], state[:, None]


eager_loops = SimpleNamespace(
    while_loop=while_loop,
    do_while=do_while,
    for_loop=for_loop,
    scan=scan,
    foldl=foldl,
    map_fn=map_fn,
    Collected=Collected,
    cond=lambda pred, true_fn, false_fn: true_fn() if bool(pred) else false_fn(),
    switch_case=lambda index, functions: functions[index](),
)
eager_operations = SimpleNamespace(
    lstm_sequence=lstm_sequence,
    rnn_sequence=rnn_sequence,
    tanh=torch.tanh,
    exp=torch.exp,
    abs=torch.abs,
    relu=torch.relu,
    sigmoid=torch.sigmoid,
    reduce_max=lambda value, axes: value.amax(dim=axes),
    reduce_sum=lambda value, axes: value.sum(dim=axes),
    convert=lambda value, destination_type: torch.as_tensor(value).double(),
    concat=lambda *parts, axis: torch.cat(parts, dim=axis),
)


def gradients(case: walked_back.Case) -> list[np.ndarray]:
    """Of the sum of all elements that the case gives."""
    arguments = [torch.tensor(array, requires_grad=True) for array in walked_back.arguments(case)]
    outputs = [
        one
        for one in _several(case.function(*arguments))
        if torch.is_tensor(one) and one.is_floating_point()
    ]
    found = torch.autograd.grad(sum(one.sum() for one in outputs), arguments, allow_unused=True)
    return [
        np.zeros(shape) if one is None else one.numpy()
        for one, shape in zip(found, case.shapes, strict=True)
    ]


def main() -> None:
    vars(walked_back).update(build=eager_loops, ops=eager_operations)  # in place of the modules
    table: dict[str, Any] = {
        f"{case.name}:{number}": array
        for case in walked_back.CASES
        for number, array in enumerate(gradients(case))
    }
    np.savez_compressed(TABLE, **table)


if __name__ == "__main__":
    main()
