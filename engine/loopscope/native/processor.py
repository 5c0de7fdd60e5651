"""Features of the processor that change the numbers of a runtime."""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path

_INFORMATION = Path("/proc/cpuinfo")
_VNNI = frozenset({"avx512_vnni", "avx_vnni"})


@lru_cache(maxsize=1)
def lacks_vnni() -> bool:
    """True if this is an x64 processor that is known to have no VNNI instructions."""
    try:
        lines = _INFORMATION.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return lacks_vnni_of(platform.machine(), lines)


def lacks_vnni_of(machine: str, lines: list[str]) -> bool:
    """Judge a processor by its architecture and by the lines in which Linux describes it."""
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return machine.lower() in ("x86_64", "amd64") and bool(flags) and _VNNI.isdisjoint(flags)
