"""Third-party native code that reads untrusted bytes, in separate processes that may crash."""

from __future__ import annotations

from loopscope.native.run_once import trim_heap

__all__ = ["trim_heap"]
