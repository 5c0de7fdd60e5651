"""Names that TensorFlow keeps for programs of its first version."""

from loopscope.builder.compat import v1

__all__ = ["v1"]
