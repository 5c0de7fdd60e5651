"""``loopscope render``: draws a model into an SVG, PNG or PDF file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from loopscope.errors import EngineError, listed, shorten
from loopscope.ir import graphs
from loopscope.replaced_file import replaced_file
from loopscope.view import PICTURE_FORMATS, default_folding, graph_view, render
from loopscope_app.command import progress
from loopscope_app.command.output_files import refuse_unwritable


def main(words: Sequence[str]) -> int:
    """Draws one canvas of a model; ``EngineError`` when the format is unknown or nothing is
    there to draw with.
    """
    options = _options(words)
    target = Path(options.output)
    found = [one for one in PICTURE_FORMATS if target.suffix.lower() == f".{one}"]
    if not found:
        raise EngineError(
            f"{target.name!r} does not end in .{', .'.join(PICTURE_FORMATS)}, so that it is not clear what to draw"
        )
    refuse_unwritable(options.output)
    model = progress.read(options.model)
    bodies = [place.address for place in graphs(model)]
    if options.body not in bodies:
        raise EngineError(
            f"the model has no graph {shorten(options.body)!r} to draw: it has {listed(bodies)}"
        )
    picture = render(graph_view(model, default_folding(model), options.body), found[0])
    with replaced_file(target) as file:
        file.write(picture)
    return 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope render",
        description="Draw a model. Needs Graphviz's `dot` program; the app does not.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="ends in .svg, .png or .pdf"
    )
    parser.add_argument(
        "--body",
        default="main",
        metavar="ADDRESS",
        help="draw this body alone, such as main/while_3/body",
    )
    return parser.parse_args(words)
