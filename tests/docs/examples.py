"""Run the examples of a Markdown page and write what they print: ``python -m tests.docs.examples PAGE ...``."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

from loopscope_app import cli

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VERSION = re.compile(r"(OpenVINO|ONNX Runtime) \d+(\.\d+)+")
"""Versions of runtimes in output. The text that is stored may be from another version."""


def executed(page: str) -> str:
    """Return the page with the output of every ``console`` block and of every ``python`` block that a ``text`` block follows.

    All blocks run in order in one interpreter and in the working folder.
    """
    names: dict[str, object] = {}
    printed = ""

    def run(match: re.Match[str]) -> str:
        nonlocal printed
        kind, text = match.groups()
        if kind == "python":
            printed = _run_python(text, names)
        elif kind == "text":
            return f"```text\n{printed}```"
        elif kind == "console":
            command = text.partition("\n")[0]
            return f"```console\n{command}\n{_run_command(command)}```"
        return match.group()

    return BLOCK.sub(run, page)


def _run_python(text: str, names: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(text, "page.md", "exec"), names)
    return output.getvalue()


def _run_command(command: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        cli.main(shlex.split(command.removeprefix("$ loopscope ")))
    return output.getvalue()


def without_versions(page: str) -> str:
    """Return the page without the version numbers of runtimes."""
    return VERSION.sub(r"\1", page)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(executed(path.read_text(encoding="utf-8")), encoding="utf-8")
