"""``loopscope convert``: write a model as OpenVINO IR, as ONNX, or as a TensorFlow graph."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import loopscope
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    add_model,
    command_parser,
    refuse_opened,
    refuse_unwritable,
)


def main(words: Sequence[str]) -> int:
    """Write the .xml file and the .bin file beside it, the .onnx file, or the .pb file.

    Raise ``ReadError`` or ``WriteError`` if that is impossible.
    """
    options = _options(words)
    refuse_unwritable(options.output)
    refuse_opened(options.output, options.model)
    model = progress.read_operations(options.model)
    loopscope.write_model(model, options.output)
    output = Path(options.output)
    if output.suffix == ".xml":
        weights = output.with_suffix(".bin").name
        print(f"{output} and {weights} contain {model.name!r} as OpenVINO IR 11")
    elif output.suffix == ".onnx":
        print(f"{output} contains {model.name!r} as ONNX")
    else:
        print(f"{output} contains {model.name!r} as a TensorFlow graph")
    return 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "convert",
        "Write a model as OpenVINO IR 11, as ONNX, or as a TensorFlow graph with loops and "
        "branches as While and If. A model that was read from ONNX is written as ONNX only: its "
        "operations differ from OpenVINO's.",
    )
    add_model(parser)
    parser.add_argument(
        "output",
        metavar="OUT",
        help="OUT.xml (the weights go to a .bin file beside it), OUT.onnx, OUT.pb or OUT.pbtxt",
    )
    return parser.parse_args(words)
