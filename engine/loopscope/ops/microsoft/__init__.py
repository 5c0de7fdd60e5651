"""The operations that ONNX Runtime adds to ONNX, in the domain com.microsoft: files that it has
optimized or quantized hold them.
"""

from __future__ import annotations

from loopscope.ops.microsoft.catalogue import DOMAIN, MICROSOFT

__all__ = [
    "DOMAIN",
    "MICROSOFT",
]
