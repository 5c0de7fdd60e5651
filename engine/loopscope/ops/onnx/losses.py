"""NegativeLogLikelihoodLoss with ignored labels of -1. The onnx package's mean counts ignored
elements, ONNX Runtime's does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def mean_of_what_counts(slow: Any, attributes: Mapping[str, Any], outputs: int) -> Any:
    """Return the kernel of a node. ``slow`` prepares the onnx package's kernel, whose mean leaves
    out ignored elements if classes have weights.
    """
    loss = slow(attributes, outputs)
    if attributes.get("ignore_index") != -1:
        return loss

    def compute(scores: Any, labels: Any, weights: Any = None, /) -> Any:
        alike = (
            np.ones(np.shape(scores)[1:2], np.asarray(scores).dtype) if weights is None else weights
        )
        return loss(scores, labels, alike)

    return compute
