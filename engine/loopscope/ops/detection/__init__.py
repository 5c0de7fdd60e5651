"""Category detection of the OpenVINO operation specs: priors, proposals, pooled regions, and
detections.
"""

from __future__ import annotations

from loopscope.ops.declare import Operation
from loopscope.ops.detection import aligning, output, pooling, priors, proposals, yolo

OPERATIONS: tuple[Operation, ...] = (
    *priors.OPERATIONS,
    *proposals.OPERATIONS,
    *aligning.OPERATIONS,
    *pooling.OPERATIONS,
    *yolo.OPERATIONS,
    *output.OPERATIONS,
)
