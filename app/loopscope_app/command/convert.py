"""``loopscope convert``: writes whatever can be opened as OpenVINO IR, or as a graph of
TensorFlow's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import loopscope
from loopscope_app.command import progress
from loopscope_app.command.output_files import refuse_unwritable


def main(words: Sequence[str]) -> int:
    """Writes the .xml and the .bin beside it, or the .pb; ``ReadError`` or ``WriteError`` when
    that cannot be.
    """
    options = _options(words)
    refuse_unwritable(options.output)
    model = progress.read(options.model)
    loopscope.write_model(model, options.output)
    output = Path(options.output)
    held = (
        f"{output} and {output.with_suffix('.bin').name} hold"
        if output.suffix == ".xml"
        else f"{output} holds"
    )
    print(
        f"{held} {model.name!r} as {'OpenVINO IR 11' if output.suffix == '.xml' else 'a TensorFlow graph'}"
    )
    return 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope convert",
        description="Write a model as OpenVINO IR 11, or as a TensorFlow graph with loops and branches as While and If. "
        "A native ONNX model cannot be written: its operations differ from OpenVINO's.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model", metavar="MODEL", help="an OpenVINO .xml, or a model that OpenVINO converts"
    )
    parser.add_argument(
        "output",
        metavar="OUT",
        help="OUT.xml (the weights go beside it, to a .bin file), OUT.pb or OUT.pbtxt",
    )
    return parser.parse_args(words)
