"""What is checked of a derivative: a node, its attributes, and inputs at which it is smooth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Values = tuple[Any, ...]
ABOUT_ZERO = (-2.0, 2.0)


@dataclass(frozen=True)
class Row:
    """A node, and inputs at which it is smooth: lists and shapes of floats that are drawn."""

    type: str
    inputs: Values
    """A shape (tuple) of floats to be drawn, or an array; whole numbers and booleans are no
    arguments of the derivative.
    """
    attributes: Mapping[str, Any] = field(default_factory=dict)
    within: tuple[float, float] = (0.2, 1.8)
    """Where floats are drawn."""
    version: int | None = None
    output: int | None = None
    """The one output that is looked at; None: all that are floats."""
    unknown_lengths: bool = True
    """Whether it is also checked with lengths that are only known when it runs."""
    second: bool = True
    """Whether its derivative has one too."""

    @property
    def name(self) -> str:
        shapes = "-".join(
            str(one).replace(" ", "") if isinstance(one, tuple) else f"{np.asarray(one).tolist()}"
            for one in self.inputs
        )
        options = ",".join(f"{key}={value}" for key, value in self.attributes.items())
        return f"{self.type}{'-' + str(self.version) if self.version else ''} {shapes} {options}".strip()
