"""``loopscope convert``: writes whatever can be opened as OpenVINO IR."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import engine


def main(words: Sequence[str]) -> int:
    """Writes the .xml and the .bin beside it; ``ReadError`` or ``WriteError`` when that cannot be."""
    options = _options(words)
    model = engine.read_model(options.model)
    engine.write_model(model, options.output)
    print(f"{options.output} and {Path(options.output).with_suffix('.bin').name} hold {model.name!r} as OpenVINO IR 11")
    return 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope convert",
        description="Write a model as OpenVINO IR 11. A native ONNX model cannot be written: its operations differ from OpenVINO's.",
        allow_abbrev=False,
    )
    parser.add_argument("model", metavar="MODEL", help="an OpenVINO .xml, or a model that OpenVINO converts")
    parser.add_argument("output", metavar="OUT.xml", help="the weights go beside it, to a .bin file")
    return parser.parse_args(words)
