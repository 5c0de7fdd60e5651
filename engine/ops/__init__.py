"""What each operation computes, with one typed declaration per operation and version; here is what those need who declare their own."""

from __future__ import annotations

from engine.ops.custom import by_element_type, install
from engine.ops.declare import Attribute, Known, Operation
from engine.ops.infer import elementwise, same

__all__ = ["Attribute", "Known", "Operation", "by_element_type", "elementwise", "install", "same"]
