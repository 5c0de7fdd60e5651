"""Run the tests that need PyTorch or TensorFlow: ``python -m tests.frameworks``; with ``--install``
only install what they need.

Each framework is installed into an environment of its own, which also sees the packages of
``.venv``. A framework whose wheel cannot be installed is left out with a message. The result is
kept until the pins change.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".venv" / "frameworks"
PYTHON = FOLDER / "bin" / "python"
_STAMP = FOLDER / "installed.json"
_INSTALL_SECONDS = 300

WHEELS = {"torch": "torch==2.13.0+cpu", "tensorflow": "tensorflow-cpu==2.21.0"}
"""The CPU wheel of each framework, of the version that the recorded answers come from."""


def main(options: list[str]) -> int:
    """Install what is missing and run the tests; return the exit code of pytest."""
    installed = install()
    if "--install" in options:
        return 0
    for name in WHEELS.keys() - set(installed):
        print(f"{name}: {WHEELS[name]} could not be installed, its tests are left out")
    if not installed:
        return 0
    files = [
        str(path.relative_to(ROOT))
        for name in installed
        for path in sorted((ROOT / "tests" / "engine").glob(f"*/test_*_{name}.py"))
        if path.name in (f"test_source_{name}.py", f"test_trace_{name}.py")
    ]
    command = [
        str(PYTHON),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--numprocesses",
        "auto",
        "-o",
        "filterwarnings=default",
        *files,
    ]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def install() -> list[str]:
    """Return the frameworks that are installed."""
    pins = {"wheels": WHEELS, "constraints": (ROOT / "constraints.txt").read_text(encoding="utf-8")}
    if _STAMP.is_file():
        stamp = json.loads(_STAMP.read_text(encoding="utf-8"))
        if stamp["pins"] == pins:
            return list(stamp["installed"])
    venv.create(FOLDER, with_pip=False, clear=True)
    inner = subprocess.check_output(
        [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    ).strip()
    Path(inner, "outer.pth").write_text(
        f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n", encoding="utf-8"
    )
    installed = [name for name, wheel in WHEELS.items() if _installs(wheel)]
    _STAMP.write_text(json.dumps({"pins": pins, "installed": installed}), encoding="utf-8")
    return installed


def _installs(wheel: str) -> bool:
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(PYTHON),
        "install",
        "--quiet",
        "--no-compile",  # most modules of a framework are never imported
        "--only-binary",
        ":all:",
        "--constraint",
        "constraints.txt",
        wheel,
    ]
    try:
        return (
            subprocess.run(
                command, cwd=ROOT, stderr=subprocess.DEVNULL, timeout=_INSTALL_SECONDS, check=False
            ).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
