"""Native code of other people, in processes of its own: it reads untrusted bytes, and when it
crashes, we do not.
"""

from __future__ import annotations

from loopscope.native.trim_memory import give_back

__all__ = ["give_back"]
