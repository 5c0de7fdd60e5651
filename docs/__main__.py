"""Writes the documentation as HTML: python -m docs FOLDER. A warning of pdoc's, such as a name that it cannot find, is an error."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pdoc
import pdoc.render

from engine.version import VERSION

PAGES = (
    "docs",
    "engine",
    "engine.ops.custom",
    "!docs.__main__",
    "!engine.build.function",
    "!engine.build.while_loop",
    "!engine.check",
    "!engine.run",
    "!engine.show",
)
"""``engine`` has ``engine.build`` among its names; a function that is called as its module is shown where it is exported."""


def write(folder: Path) -> None:
    """All pages, and an ``index.html`` that leads to the first."""
    pdoc.render.configure(docformat="markdown", footer_text=f"Loopscope {VERSION}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdoc.pdoc(*PAGES, output_directory=folder)
    (folder / "index.html").write_text('<!doctype html><meta http-equiv="refresh" content="0; url=docs.html">\n', encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
