"""Writes the documentation as HTML: python -m docs FOLDER. A warning of pdoc's, such as a name
that it cannot find, is an error.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pdoc
import pdoc.render

from loopscope.version import VERSION

PAGES = (
    "docs",
    "loopscope",
    "loopscope.comparison",
    "loopscope.ops.custom",
    "loopscope.sweeps",
    "!docs.__main__",
    "!loopscope.builder.function",
    "!loopscope.builder.while_loop",
)
"""``loopscope`` has ``loopscope.builder`` among its names; a function that is called as its
module is shown where it is exported.
"""


def write(folder: Path) -> None:
    """All pages, and an ``index.html`` that leads to the first."""
    pdoc.render.configure(docformat="markdown", footer_text=f"Loopscope {VERSION}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdoc.pdoc(*PAGES, output_directory=folder)
    (folder / "index.html").write_text(
        '<!doctype html><meta http-equiv="refresh" content="0; url=docs.html">\n', encoding="utf-8"
    )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
