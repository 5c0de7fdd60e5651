"""Operations whose derivatives torch has too; ``gradients.npz`` holds what autograd gives, made
by ``make.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

TABLE = Path(__file__).with_name("gradients.npz")


@dataclass(frozen=True)
class Case:
    """A node, the shapes of its floats, and the whole numbers behind them."""

    type: str
    shapes: tuple[tuple[int, ...], ...]
    whole: tuple[Any, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return " ".join(
            [
                self.type,
                str(self.shapes),
                *map(str, self.whole),
                *(f"{key}={value}" for key, value in self.attributes.items()),
            ]
        )

    def arrays(self) -> list[np.ndarray]:
        """The same in every process; wide enough that grid points lie outside the image too."""
        random = np.random.default_rng(11)
        return [random.uniform(-1.4, 1.4, shape) for shape in self.shapes]


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """How the target depends on each element of the output."""
    return np.random.default_rng(12).uniform(-1, 1, shape)


CASES = (
    *(
        Case(
            "GridSample",
            ((2, 3, 5, 4), (2, 3, 2, 2)),
            (),
            {"mode": mode, "padding_mode": padding, "align_corners": corners},
        )
        for mode in ("bilinear", "bicubic", "nearest")
        for padding in ("zeros", "border", "reflection")
        for corners in (False, True)
    ),
    *(Case(name, ((3, 5, 2),), (axes,)) for name in ("DFT", "IDFT") for axes in ((0,), (1, 0))),
    Case("DFT", ((3, 5, 2),), ((0, 1), (4, 3))),
    *(Case("RDFT", ((3, length),), (axes,)) for length in (4, 5) for axes in ((1,), (0, 1))),
    *(Case("IRDFT", ((3, 4, 2),), (axes,)) for axes in ((1,), (0, 1))),
    Case("IRDFT", ((3, 4, 2),), ((1,), (5,))),
    Case("STFT", ((2, 9), (4,)), (4, 2), {"transpose_frames": True}),
    Case("Inverse", ((2, 3, 3),)),
    Case("AdaptiveAvgPool", ((2, 3, 5, 7),), ((2, 3),)),
    Case("AdaptiveMaxPool", ((2, 3, 5, 7),), ((2, 3),)),
    Case("ShuffleChannels", ((2, 6, 3, 2),), (), {"axis": 1, "group": 3}),
    Case(
        "Col2Im",
        ((2, 12, 6),),
        ((4, 4), (2, 3)),
        {"strides": (1, 2), "pads_begin": (0, 1), "pads_end": (0, 1)},
    ),
)
