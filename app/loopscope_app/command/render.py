"""``loopscope render``: draw a model into an SVG, PNG or PDF file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from loopscope.errors import EngineError, listed, shorten
from loopscope.ir import graphs
from loopscope.replaced_file import replaced_file
from loopscope.view import PICTURE_FORMATS, default_folding, graph_view, render
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    add_model,
    add_open,
    command_parser,
    refuse_unwritable,
)


def main(words: Sequence[str]) -> int:
    """Draw one graph of a model and return the exit code 0.

    Raise ``EngineError`` if the format is unknown or Graphviz is not installed.
    """
    options = _options(words)
    target = Path(options.output)
    formats = [name for name in PICTURE_FORMATS if target.suffix.lower() == f".{name}"]
    if not formats:
        raise EngineError(
            f"--output must end in .{', .'.join(PICTURE_FORMATS)}, got {target.name!r}"
        )
    refuse_unwritable(options.output)
    model = progress.read(options.model, options.open)
    bodies = [place.address for place in graphs(model)]
    if options.body not in bodies:
        raise EngineError(
            f"the model has no graph {shorten(options.body)!r}: expected one of {listed(bodies)}"
        )
    picture = render(graph_view(model, default_folding(model), options.body), formats[0])
    with replaced_file(target) as file:
        file.write(picture)
    return 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "render", "Draw a model. Requires Graphviz's program `dot`; the app does not require it."
    )
    add_model(parser)
    add_open(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="write the picture to this file: .svg, .png or .pdf",
    )
    parser.add_argument(
        "--body",
        default="main",
        metavar="ADDRESS",
        help="draw only this body, such as main/while_3/body",
    )
    return parser.parse_args(words)
