"""Programs of torch with the loops and branches that ``torch.export`` keeps, each with inputs to
export it with.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop


class Doubling(torch.nn.Module):
    """Doubles x n times."""

    def forward(self, n, x):
        return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))


class Choosing(torch.nn.Module):
    """Doubles what is positive n times; takes 1 from what is not."""

    def forward(self, n, x):
        def doubled(n, x):
            return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))[1]

        return torch.cond(x.sum() > 0, doubled, lambda n, x: x - 1, (n, x))


class Recurrent(torch.nn.Module):
    """A state that takes in one row after the other."""

    def forward(self, x, h):
        def step(h, x):
            following = torch.tanh(h + x)
            return following, following * 2

        return scan(step, h, x, dim=0)


class Mapping(torch.nn.Module):
    """The sine of each row, and a bias."""

    def forward(self, x, y):
        return mapped(lambda row, y: torch.sin(row) + y, x, y)


class Alternating(torch.nn.Module):
    """Doubles x where n is even, else adds 1."""

    def forward(self, n, x):
        def body(n, x):
            return n - 1, torch.cond(n % 2 == 0, lambda x: x * 2, lambda x: x + 1, (x,))

        return while_loop(lambda n, x: n > 0, body, (n, x))


class Gated(torch.nn.Module):
    """A gated delta net: linear attention, as
    ``sample_models/loopscope_samples/recipes/linear_attention.py`` has it.
    """

    def forward(self, query, key, value, g, beta, state):
        def cell(state, parts):
            query, key, value, g, beta = parts
            state = state * torch.exp(g)[..., None, None]
            delta = (value - (state * key[..., None]).sum(-2)) * beta[..., None]
            state = state + key[..., None] * delta[..., None, :]
            return state.clone(), (state * query[..., None]).sum(-2)

        wholes = (query / query.shape[-1] ** 0.5, key, value, g, beta)
        last, rows = scan(cell, state, tuple(one.movedim(2, 0) for one in wholes), dim=0)
        return rows.movedim(0, 2), last


PROGRAMS: dict[str, tuple[torch.nn.Module, tuple[Any, ...]]] = {
    "doubling": (Doubling(), (torch.tensor(3), torch.ones(4))),
    "choosing": (Choosing(), (torch.tensor(3), torch.ones(4))),
    "recurrent": (Recurrent(), (torch.ones(4, 3), torch.zeros(3))),
    "mapping": (Mapping(), (torch.ones(4, 3), torch.zeros(3))),
    "alternating": (Alternating(), (torch.tensor(3), torch.ones(4))),
    "gated": (
        Gated(),
        (
            *(torch.ones(1, 4, 16, 8) for _ in range(3)),
            *(torch.ones(1, 4, 16) for _ in range(2)),
            torch.ones(1, 4, 8, 8),
        ),
    ),
}


def alternating() -> Any:
    """As an exported program, for a command line that names it."""
    module, example = PROGRAMS["alternating"]
    return torch.export.export(module, example)


class Triangle(torch.nn.Module):
    """Adds 1 to x, n + (n - 1) + ... + 1 times."""

    def forward(self, n, x):
        def body(n, x):
            return n - 1, while_loop(lambda i, x: i > 0, lambda i, x: (i - 1, x + 1), (n, x))[1]

        return while_loop(lambda n, x: n > 0, body, (n, x))


class Narrow(torch.nn.Module):
    """A product in bf16 of what was doubled, around which torch puts an operator of its own."""

    def forward(self, n, x):
        with torch.no_grad():
            n, x = while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            product = x[None] @ x[:, None]
        return n, product


def doubled(n, x):
    """A plain function."""
    return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))
