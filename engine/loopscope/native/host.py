"""The host computer: features of its processor, and memory that its operating system takes back."""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import lru_cache
from pathlib import Path


def trim_heap() -> None:
    """Return freed memory of the heap to the system, which takes some milliseconds.

    Only glibc retains much freed memory.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


_INFORMATION = Path("/proc/cpuinfo")
_VNNI = frozenset({"avx512_vnni", "avx_vnni"})


@lru_cache(maxsize=1)
def lacks_vnni() -> bool:
    """Return True if this is an x64 processor without VNNI instructions; False if unknown."""
    try:
        lines = _INFORMATION.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return lacks_vnni_of(platform.machine(), lines)


def lacks_vnni_of(machine: str, lines: list[str]) -> bool:
    """Return True if this architecture and these lines of /proc/cpuinfo show x64 without VNNI."""
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return machine.lower() in ("x86_64", "amd64") and bool(flags) and _VNNI.isdisjoint(flags)
