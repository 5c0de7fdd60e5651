"""``loopscope convert``: write a model as OpenVINO IR, or as a TensorFlow graph."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import loopscope
from loopscope_app.command import progress
from loopscope_app.command.command_line import add_model, command_parser
from loopscope_app.command.output_files import refuse_unwritable


def main(words: Sequence[str]) -> int:
    """Write the .xml file and the .bin file beside it, or the .pb file.

    Raise ``ReadError`` or ``WriteError`` if that is impossible.
    """
    options = _options(words)
    refuse_unwritable(options.output)
    model = progress.read_operations(options.model)
    loopscope.write_model(model, options.output)
    output = Path(options.output)
    if output.suffix == ".xml":
        weights = output.with_suffix(".bin").name
        print(f"{output} and {weights} contain {model.name!r} as OpenVINO IR 11")
    else:
        print(f"{output} contains {model.name!r} as a TensorFlow graph")
    return 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "convert",
        "Write a model as OpenVINO IR 11, or as a TensorFlow graph with loops and branches as "
        "While and If. A native ONNX model cannot be written: its operations differ from "
        "OpenVINO's.",
    )
    add_model(parser, help="an OpenVINO .xml, or a model that OpenVINO converts")
    parser.add_argument(
        "output",
        metavar="OUT",
        help="OUT.xml (the weights go to a .bin file beside it), OUT.pb or OUT.pbtxt",
    )
    return parser.parse_args(words)
