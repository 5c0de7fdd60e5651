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

from docs import check_rules, command_line, gallery, lesson_pages, living_pages
from loopscope.version import VERSION
from loopscope_samples import FOLDER as SAMPLES

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
GENERATED = {
    "reference/command-line.md": command_line.page,
    "reference/checks.md": check_rules.page,
}
"""Pages that the product writes about itself, by file name."""
API = ("loopscope", "loopscope.ops.custom")
THEME = FOLDER / "api_theme"
"""Templates of pdoc that differ from its own: pages are dark where the reader's system is."""


MAX_MEGABYTES = 25
FOUND_FIRST = "---\nsearch: { boost: 4 }\n---\n\n"
"""Header of pages that the site's search lists first, because they answer questions of users."""


def build_site(target: Path) -> None:
    """Build all pages, runs and the API reference in ``target``.

    A warning of mkdocs or pdoc is an error. Raise ``ValueError`` if the site is too large.
    """
    commands = build_pages(target)
    living_pages.write_all(commands, target, ROOT)
    megabytes = sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) / 2**20
    print(f"{target}: {megabytes:.1f} MB, {len(set(commands))} runs")
    if megabytes > MAX_MEGABYTES:
        raise ValueError(
            f"the site has {megabytes:.1f} MB, expected at most {MAX_MEGABYTES}: leave out "
            "pictures or runs"
        )


def build_pages(target: Path) -> list[str]:
    """Build all pages in ``target`` without the runs; return the commands that write those."""
    with tempfile.TemporaryDirectory() as scratch:
        pages = Path(scratch) / "pages"
        shutil.copytree(
            FOLDER, pages, ignore=shutil.ignore_patterns("*.py", "*.yml", "__pycache__", THEME.name)
        )
        shutil.copytree(SAMPLES / "pictures", pages / gallery.PICTURES)
        write_generated(pages)
        commands = embed_living_pages(pages)
        for path in (pages / "questions").glob("*.md"):
            if not (FOLDER / "questions" / path.name).exists():
                continue  # the generated list of faults has the words of nearly every question
            path.write_text(f"{FOUND_FIRST}{path.read_text('utf-8')}", encoding="utf-8")
        # mkdocs checks links between pages; the API pages are written beside them afterwards.
        write_api(pages / "api")
        configuration = load_config(
            str(FOLDER / "mkdocs.yml"),
            docs_dir=str(pages),
            site_dir=str(target.resolve()),
            strict=True,
        )
        build(configuration)
    return commands


def write_generated(pages: Path) -> None:
    """Write the pages that are generated from the product, its samples and its lessons."""
    generated = {name: page() for name, page in GENERATED.items()}
    for name, page in {**generated, **gallery.pages(), **lesson_pages.pages()}.items():
        path = pages / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(page, encoding="utf-8")


def embed_living_pages(pages: Path) -> list[str]:
    """Replace living blocks of all pages by frames; return their commands."""
    commands: list[str] = []
    for path in sorted(pages.rglob("*.md")):
        markdown = path.read_text(encoding="utf-8")
        commands += living_pages.commands(markdown)
        depth = len(path.relative_to(pages).parents) - 1
        path.write_text(living_pages.embedded(markdown, depth), encoding="utf-8")
    return commands


def write_api(target: Path) -> None:
    """Write the reference of every public name of the library."""
    pdoc.render.configure(
        docformat="markdown", footer_text=f"Loopscope {VERSION}", template_directory=THEME
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdoc.pdoc(*API, output_directory=target)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    build_site(Path(sys.argv[1]))
