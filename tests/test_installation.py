"""What `make install` and `make test` install goes with every Python that the README names, and
loads when it is needed.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

OLDEST = "3.11.0"
"""Debian 12 has 3.11.2: there pip tries versions for hours where one pin asks for a later one."""


def test_every_pinned_package_goes_with_the_oldest_python() -> None:
    pins = [
        Requirement(line).name
        for line in Path("constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    declared = {
        name: metadata.metadata(name).json.get("requires_python")
        for name in pins
        if _is_installed(name)
    }
    assert len(declared) > 50
    assert [
        name
        for name, wanted in declared.items()
        if wanted and OLDEST not in SpecifierSet(str(wanted))
    ] == []


def _is_installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


def test_the_engine_loads_no_package_before_it_is_needed() -> None:
    late = ("onnx", "openvino", "onnxruntime", "streamlit", "pandas", "torch", "tensorflow")
    told = f"import sys, loopscope; print([name for name in {late!r} if name in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", told], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
