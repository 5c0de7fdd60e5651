"""Keeps autograd's gradients of every case: ``python -m tests.engine.ops.torch_gradients.make``,
with torch 2.13.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch  # not needed to run the tests, only to make their table anew
from torch.nn import functional

from tests.engine.ops.torch_gradients import CASES, TABLE, Case, weights


def _complex(pairs: Any) -> Any:
    return torch.view_as_complex(pairs.contiguous())


def _transform(case: Case, data: Any) -> Any:
    axes, sizes = (*case.whole, None)[:2]
    match case.type:
        case "DFT":
            return torch.view_as_real(torch.fft.fftn(_complex(data), sizes, axes))
        case "IDFT":
            return torch.view_as_real(torch.fft.ifftn(_complex(data), sizes, axes))
        case "RDFT":
            return torch.view_as_real(torch.fft.rfftn(data, sizes, axes))
        case _:
            return torch.fft.irfftn(_complex(data), sizes, axes)


def output(case: Case, inputs: list[Any]) -> Any:
    data, given = inputs[0], case.attributes
    match case.type:
        case "GridSample":
            return functional.grid_sample(data, inputs[1], **given)
        case "STFT":
            size, step = case.whole
            return torch.view_as_real(
                torch.stft(data, size, step, window=inputs[1], center=False, return_complex=True)
            )
        case "Inverse":
            return torch.linalg.inv(data)
        case "AdaptiveAvgPool":
            return functional.adaptive_avg_pool2d(data, case.whole[0])
        case "AdaptiveMaxPool":
            return functional.adaptive_max_pool2d(data, case.whole[0])
        case "ShuffleChannels":
            return functional.channel_shuffle(data, given["group"])
        case "Col2Im":
            return functional.fold(
                data, *case.whole, padding=given["pads_begin"], stride=given["strides"]
            )
        case _:
            return _transform(case, data)


def main() -> None:
    table: dict[str, Any] = {}
    for case in CASES:
        inputs = [torch.tensor(one, requires_grad=True) for one in case.arrays()]
        found = output(case, inputs)
        (found * torch.tensor(weights(tuple(found.shape)))).sum().backward()
        table |= {f"{case.name}:{number}": one.grad.numpy() for number, one in enumerate(inputs)}
    np.savez_compressed(TABLE, **table)


if __name__ == "__main__":
    main()
