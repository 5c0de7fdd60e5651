"""Third-party native code that reads untrusted bytes, in separate processes that may crash."""

from __future__ import annotations

from loopscope.native.trim_memory import give_back

__all__ = ["give_back"]
