"""Recording of outputs of ONNX Runtime 1.32, for operations that are new in it.

Run it with a Python that has onnxruntime 1.32 or newer: ``python -m
tests.engine.ops.recorded.make_recurrences``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.recurrence_nodes import GATED_DELTA_NETS, RAGGED_CONVOLUTIONS

FILE = Path(__file__).parent / "recurrences.npz"
RECORDED: Mapping[str, Case] = {
    **{f"GatedDeltaNet, {name}": case for name, case in GATED_DELTA_NETS.items()},
    **{f"VarlenCausalConvWithState, {name}": case for name, case in RAGGED_CONVOLUTIONS.items()},
}


def main() -> None:
    """Write the outputs of each case, named by the case and the number of the output."""
    outputs = {
        f"{name}:{number}": output
        for name, case in RECORDED.items()
        for number, output in enumerate(case.there())
    }
    np.savez_compressed(FILE, allow_pickle=False, **outputs)


if __name__ == "__main__":
    main()
