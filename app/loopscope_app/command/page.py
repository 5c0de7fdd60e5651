"""``loopscope page``: write a run as one HTML file that opens offline."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import loopscope
from loopscope.errors import EngineError, InputError, listed, shorten
from loopscope.ir import graphs
from loopscope.replaced_file import replaced_file
from loopscope.run_file import is_run_file
from loopscope.view import Folding, NodeData, default_folding, given_node_data
from loopscope_app.command import progress
from loopscope_app.command.address_question import saved_run
from loopscope_app.command.command_line import (
    add_model,
    add_open,
    command_parser,
    megabytes,
    refuse_unwritable,
)
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.describe.canvas_boxes import at_window
from loopscope_app.describe.input_parsing import step_or_address
from loopscope_app.links.codec import Link, Window, read
from loopscope_app.page import page_of, shared_assets


def main(words: Sequence[str]) -> int:
    """Write the page, also of a run that failed, and return the exit code 0.

    Raise ``EngineError`` for a bad model, input or place.
    """
    options = _options(words)
    target = Path(options.output)
    if target.suffix.lower() not in (".html", ".htm"):
        raise EngineError(f"--output must end in .html, got {options.output!r}")
    refuse_unwritable(options.output)
    debugger, look = _run_file(options) if is_run_file(options.model) else (_run(options), Link())
    if options.at:
        debugger.seek(step_or_address(options.at))
    bodies = [place.address for place in graphs(debugger.model)]
    body = options.body or (look.body if look.body in bodies else "main")
    if body not in bodies:
        raise EngineError(
            f"the model has no graph {shorten(body)!r} to draw: it has {listed(bodies)}"
        )
    if options.assets:
        _write_assets(Path(options.assets))
    page = page_of(
        debugger,
        title=options.title or debugger.model.name or Path(options.model).stem,
        note=options.note,
        folding=_saved_folding(debugger, look, body),
        root=body,
        with_values=not options.without_values,
        node_data=_overlay(options.overlay, debugger.model),
        most_bytes=int(options.megabytes * 2**20),
        assets=_relative(options.assets, target) if options.assets else None,
    )
    with replaced_file(target) as file:
        file.write(page.encode())
    size = f"{len(page.encode()) / 2**20:.2f} MB"
    moment = f"opens at step {debugger.cursor.step:,} of {debugger.steps:,}"
    print(f"{options.output}: {size}, {moment}")
    return 0


def _write_assets(folder: Path) -> None:
    """Write the files that pages share. A file that is complete is not written again."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in shared_assets().items():
        path, data = folder / name, content.encode()
        if not path.is_file() or path.read_bytes() != data:
            with replaced_file(path) as file:
                file.write(data)


def _relative(folder: str, page: Path) -> str:
    """Return the address of a folder, relative to a page."""
    relative = os.path.relpath(folder, page.parent)
    return quote(relative.replace(os.sep, "/"))


def _saved_folding(debugger: loopscope.Debugger, look: Link, body: str) -> Folding:
    """Return the folding of the graph, with the loops unrolled as they were when the run was
    saved.
    """
    folding = default_folding(debugger.model, body)
    for window in look.unrolled:
        if isinstance(window, Window):
            folding = at_window(
                debugger,
                debugger.model,
                folding,
                body,
                (window.address, window.first, window.count),
            )
    return folding


def _overlay(path: str, model: loopscope.Model) -> NodeData | None:
    if not path:
        return None
    data = given_node_data(path, model)
    warning = data.unmatched_words(Path(path).name)
    if warning:
        print(f"loopscope: {warning}", file=sys.stderr)
    return data


def _run_file(options: argparse.Namespace) -> tuple[loopscope.Debugger, Link]:
    """Return a saved run at the step at which it was saved, and its view at that time."""
    if options.open:
        raise InputError("a saved run has its own loops: --open applies to a model only")
    debugger, saved = saved_run(options.model, options.inputs)
    debugger.seek(saved.description.step)
    return debugger, read(saved.description.look)


def _run(options: argparse.Namespace) -> loopscope.Debugger:
    model = progress.read(options.model, options.open)
    debugger = progress.run_whole(loopscope.Debugger(model, read_inputs(options.inputs, model)))
    debugger.seek(0)
    return debugger


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "page",
        "Run a model and write the run as one HTML file, which can be stepped, played and folded "
        "offline, without Loopscope.",
    )
    add_model(parser, help="a model, or a saved run (.loopscope)")
    add_open(parser)
    add_inputs(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="PAGE.html", help="write the page to this file"
    )
    parser.add_argument(
        "--title",
        default="",
        metavar="TEXT",
        help="title of the page (default: the name of the model)",
    )
    parser.add_argument(
        "--note", default="", metavar="TEXT", help="a note about the run in plain text"
    )
    parser.add_argument(
        "--at",
        default="",
        metavar="PLACE",
        help="the moment at which the page opens: a step, or an address (default: the first step)",
    )
    parser.add_argument(
        "--body",
        default="",
        metavar="ADDRESS",
        help="draw only this body, such as main/while_3/body (default: main; for a saved run the "
        "body that was drawn)",
    )
    parser.add_argument(
        "--overlay",
        default="",
        metavar="FILE.json",
        help="color nodes by a number or a text from this file",
    )
    parser.add_argument(
        "--assets",
        default="",
        metavar="FOLDER",
        help="link script, style and layout library from this folder, so that pages share them "
        "(default: the page contains them)",
    )
    parser.add_argument(
        "--without-values", action="store_true", help="leave out the values of the run"
    )
    parser.add_argument(
        "--megabytes",
        type=_page_size,
        default=5.0,
        metavar="MB",
        help="largest size of the page (default: 5); moments of the run are left out to reach it",
    )
    return parser.parse_args(words)


def _page_size(text: str) -> float:
    size = megabytes(text)
    if not 0 < size < 1000:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size of a page: expected megabytes between 0 and 1000"
        )
    return size
