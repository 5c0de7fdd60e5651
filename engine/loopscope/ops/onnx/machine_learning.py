"""The operations of the domain ai.onnx.ml: models and features as scikit-learn, LightGBM and
XGBoost have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopscope.ops.onnx.features import FEATURES
from loopscope.ops.onnx.labels import LABELS
from loopscope.ops.onnx.linear_models import LINEAR_MODELS
from loopscope.ops.onnx.maps import MAPS
from loopscope.ops.onnx.older import Older
from loopscope.ops.onnx.support_vectors import SUPPORT_VECTORS
from loopscope.ops.onnx.tree_models import TREE_MODELS

__all__ = ["DOMAIN", "MACHINE_LEARNING", "TREE_MODELS"]

DOMAIN: Final = "ai.onnx.ml"

MACHINE_LEARNING: Mapping[str, Older] = {
    **FEATURES,
    **LABELS,
    **LINEAR_MODELS,
    **MAPS,
    **SUPPORT_VECTORS,
}
"""All but TREE_MODELS, whose trees are laid out once for each node."""
