"""A processor is judged by what Linux says of it."""

from __future__ import annotations

import pytest

from loopscope.checks.rules.onnxruntime_results import lacks_vnni_of


@pytest.mark.parametrize(
    ("machine", "lines", "lacks"),
    [
        ("x86_64", ["processor : 0", "flags\t\t: fpu sse2 avx2"], True),
        ("AMD64", ["flags : avx2 avx512f"], True),
        ("x86_64", ["flags\t\t: avx2 avx_vnni"], False),
        ("x86_64", ["flags\t\t: avx2 avx512_vnni"], False),
        ("x86_64", [], False),
        ("aarch64", ["Features : asimddp"], False),
    ],
)
def test_vnni(machine: str, lines: list[str], lacks: bool) -> None:
    assert lacks_vnni_of(machine, lines) is lacks
