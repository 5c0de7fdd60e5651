"""Build the documentation site: ``python -m docs FOLDER``."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import pdoc
import pdoc.render
from mkdocs.commands.build import build
from mkdocs.config import load_config

from docs import check_rules, command_line
from loopscope.version import VERSION

FOLDER = Path(__file__).parent
GENERATED = {
    "reference/command-line.md": command_line.page,
    "reference/checks.md": check_rules.page,
}
"""Pages that the product writes about itself, by file name."""
API = ("loopscope", "loopscope.ops.custom")


def build_site(target: Path) -> None:
    """Build all pages and the API reference in ``target``. A warning of mkdocs or pdoc is an error."""
    with tempfile.TemporaryDirectory() as scratch:
        pages = Path(scratch) / "pages"
        shutil.copytree(
            FOLDER, pages, ignore=shutil.ignore_patterns("*.py", "*.yml", "__pycache__")
        )
        for name, page in GENERATED.items():
            (pages / name).write_text(page(), encoding="utf-8")
        # mkdocs checks links between pages; the API pages are written beside them afterwards.
        write_api(pages / "api")
        configuration = load_config(
            str(FOLDER / "mkdocs.yml"),
            docs_dir=str(pages),
            site_dir=str(target.resolve()),
            strict=True,
        )
        build(configuration)


def write_api(target: Path) -> None:
    """Write the reference of every public name of the library."""
    pdoc.render.configure(docformat="markdown", footer_text=f"Loopscope {VERSION}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdoc.pdoc(*API, output_directory=target)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    build_site(Path(sys.argv[1]))
