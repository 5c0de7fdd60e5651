"""Checks the scripts of the screens: ``python -m tests.javascript check`` runs biome and tsc over
them and their tests, ``test`` the tests.

The tools are npm packages, pinned by the lock file in ``app/loopscope_app/frontend``, and lie in
the virtual environment: installed once for each lock file. Node runs the tests itself.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from loopscope_app.vendor import NodeCommands, find_node

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / ".venv" / "javascript"
_FRONTEND = ROOT / "app" / "loopscope_app" / "frontend"
_LOCK = "package-lock.json"
_NEEDED = ("package.json", ".npmrc", _LOCK)
_SECONDS = 300


def main(what: str) -> int:
    """Runs one kind of checks; the exit code of the first that fails."""
    try:
        node = find_node(TOOLS / "node")
        if what == "check":
            install(node)
    except (OSError, subprocess.SubprocessError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        print(
            f"node or the tools for JavaScript could not be installed: {detail.strip()[-600:]}",
            file=sys.stderr,
        )
        return 1
    return next(
        (
            code
            for command in _commands(node, what)
            if (code := subprocess.run(command, cwd=ROOT, check=False).returncode)
        ),
        0,
    )


def _commands(node: NodeCommands, what: str) -> list[list[str]]:
    packages = TOOLS / "node_modules"
    match what:
        case "check":
            biome = [
                *node.node,
                str(packages / "@biomejs" / "biome" / "bin" / "biome"),
                "check",
                "--error-on-warnings",
            ]
            tsc = [*node.node, str(packages / "typescript" / "bin" / "tsc"), "--project"]
            projects = ("", "app/vscode/", "tests/js/")
            return [biome, *([*tsc, f"{folder}jsconfig.json"] for folder in projects)]
        case "test":
            return [
                [*node.node, "--test", *map(str, sorted((ROOT / "tests" / "js").glob("*.test.js")))]
            ]
        case _:
            raise SystemExit(f"say check or test, not {what!r}")


def install(node: NodeCommands) -> None:
    """Nothing when what is there was installed from the same lock file."""
    stamp = TOOLS / f"installed-{_LOCK}"
    wanted = (_FRONTEND / _LOCK).read_bytes()
    if stamp.is_file() and stamp.read_bytes() == wanted:
        return
    TOOLS.mkdir(parents=True, exist_ok=True)
    for name in _NEEDED:
        shutil.copyfile(_FRONTEND / name, TOOLS / name)
    subprocess.run(
        [*node.npm, "ci"], cwd=TOOLS, check=True, capture_output=True, text=True, timeout=_SECONDS
    )
    stamp.write_bytes(wanted)


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
