"""Operations that ONNX Runtime adds to ONNX in the domain com.microsoft.

Files that ONNX Runtime has optimized or quantized contain them.
"""

from __future__ import annotations

from loopscope.ops.microsoft.catalogue import DOMAIN, MICROSOFT

__all__ = [
    "DOMAIN",
    "MICROSOFT",
]
