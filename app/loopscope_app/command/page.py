"""``loopscope page``: a run as one HTML file that opens offline by a double click."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import loopscope
from loopscope.errors import EngineError, listed, shorten
from loopscope.ir import graphs
from loopscope.replaced_file import replaced_file
from loopscope.run_file import is_run_file
from loopscope.view import Folding, NodeData, default_folding, given_node_data
from loopscope_app.command import progress
from loopscope_app.command.asking import saved_run
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.command.output_files import refuse_unwritable
from loopscope_app.describe.unrolled import at_window
from loopscope_app.links.codec import Link, Window, read
from loopscope_app.page import page_of


def main(words: Sequence[str]) -> int:
    """0 when the page is written, also of a run that failed; ``EngineError`` for a model, inputs
    or a place that are none.
    """
    options = _options(words)
    target = Path(options.output)
    if target.suffix.lower() not in (".html", ".htm"):
        raise EngineError(f"{options.output!r} does not end in .html, and a page is an HTML file")
    refuse_unwritable(options.output)
    debugger, look = _run_file(options) if is_run_file(options.model) else (_run(options), Link())
    if options.at:
        debugger.seek(
            int(options.at) if options.at.isdecimal() and len(options.at) < 16 else options.at
        )
    bodies = [place.address for place in graphs(debugger.model)]
    body = options.body or (look.body if look.body in bodies else "main")
    if body not in bodies:
        raise EngineError(
            f"the model has no graph {shorten(body)!r} to draw: it has {listed(bodies)}"
        )
    page = page_of(
        debugger,
        title=options.title or debugger.model.name or Path(options.model).stem,
        note=options.note,
        folding=seen_folding(debugger, look, body),
        root=body,
        with_values=not options.without_values,
        node_data=_overlay(options.overlay, debugger.model),
        most_bytes=int(options.megabytes * 2**20),
    )
    with replaced_file(target) as file:
        file.write(page.encode())
    print(
        f"{options.output}: {len(page.encode()) / 2**20:.2f} MB, opens at step {debugger.cursor.step:,} of {debugger.steps:,}"
    )
    return 0


def seen_folding(debugger: loopscope.Debugger, look: Link, body: str) -> Folding:
    """How the graph is drawn: with the loops unrolled that were when the run was saved."""
    folding = default_folding(debugger.model, body)
    for one in look.unrolled:
        if isinstance(one, Window):
            folding = at_window(
                debugger, debugger.model, folding, body, (one.address, one.first, one.count)
            )
    return folding


def _overlay(path: str, model: loopscope.Model) -> NodeData | None:
    if not path:
        return None
    found = given_node_data(path, model)
    words = found.unmatched_words(Path(path).name)
    if words:
        print(f"loopscope: {words}", file=sys.stderr)
    return found


def _run_file(options: argparse.Namespace) -> tuple[loopscope.Debugger, Link]:
    """At the moment at which it was saved, and how it was looked at then."""
    debugger, saved = saved_run(options.model, options.inputs)
    debugger.seek(saved.description.step)
    return debugger, read(saved.description.look)


def _run(options: argparse.Namespace) -> loopscope.Debugger:
    model = progress.read(options.model)
    debugger = progress.run_whole(loopscope.Debugger(model, read_inputs(options.inputs, model)))
    debugger.seek(0)
    return debugger


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope page",
        description="Run a model and write the run as one HTML file, which steps, plays, slides and folds offline, without Loopscope.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model", metavar="MODEL", help="a model, or a run that was saved (.loopscope)"
    )
    add_inputs(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="PAGE.html", help="where the page goes"
    )
    parser.add_argument(
        "--title", default="", metavar="TEXT", help="(default: the name of the model)"
    )
    parser.add_argument(
        "--note",
        default="",
        metavar="TEXT",
        help="what you want to say about the run, in plain text",
    )
    parser.add_argument(
        "--at",
        default="",
        metavar="PLACE",
        help="the moment that it opens at: a step, or an address (default: the first)",
    )
    parser.add_argument(
        "--body",
        default="",
        metavar="ADDRESS",
        help="draw this body alone, such as main/while_3/body (default: main, of a saved run what was drawn)",
    )
    parser.add_argument(
        "--overlay",
        default="",
        metavar="FILE.json",
        help="a number or a text for nodes, shown as colours",
    )
    parser.add_argument(
        "--without-values", action="store_true", help="leave out the values of the run"
    )
    parser.add_argument(
        "--megabytes",
        type=_megabytes,
        default=5.0,
        metavar="MB",
        help="size of the page at most (default: 5): moments of the run are left out for it",
    )
    return parser.parse_args(words)


def _megabytes(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1000:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size: a number of megabytes above 0 is expected"
        )
    return number
