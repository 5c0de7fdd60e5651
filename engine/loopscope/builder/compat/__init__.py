"""Names of TensorFlow 1."""

from loopscope.builder.compat import v1

__all__ = ["v1"]
