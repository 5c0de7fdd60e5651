"""What is declared of an ONNX operation that is computed here directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loopscope.ops.declare import KeepingKernel, Kernel

LAST = 10_000
"""Later than any version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """A kernel and what generated loops make of it; the fields that ``Operation`` has as well
    mean what they mean there.
    """

    kernel: Kernel
    """Takes all attributes of the versions by keyword; what a node leaves out and ONNX gives no
    default is None.
    """
    first: int
    last: int = LAST
    """The first and last version that it computes, as ONNX counts them: the opset in which the
    operation came or changed.
    """
    symbol: str = ""
    float_symbol: str = ""
    integer_symbol: str = ""
    identity: bool = False
    symbol_when: Mapping[str, object] = field(default_factory=dict[str, object])
    by_constant: Callable[..., KeepingKernel | None] | None = None
    kept_input: int = 1
    counts_outputs: bool = False
    always_tensor: bool = True
    """Whether what it gives is never a sequence, nor an optional without a value."""

    @property
    def fields(self) -> dict[str, Any]:
        """What an ``Operation`` has of it, apart from its kernel."""
        names = (
            "symbol",
            "float_symbol",
            "integer_symbol",
            "identity",
            "symbol_when",
            "by_constant",
            "kept_input",
            "counts_outputs",
        )
        return {name: getattr(self, name) for name in names}
