"""``loopscope clock``: says where the time of a run goes, by operation and iteration."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from loopscope.errors import EngineError, neutral
from loopscope.peers import Clock, clock
from loopscope_app.command import progress
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.command.run import FINISHED, REFUSED

_MOST_SHOWN = 15


def main(words: Sequence[str]) -> int:
    """The exit code: 0 the run was timed, 2 it was not."""
    options = _options(words)
    try:
        model = progress.read(options.model)
        inputs = read_inputs(options.inputs, model)
        with progress.doing("timing a run"):
            found = clock(model, inputs, runtime=options.runtime, seconds=options.seconds)
    except EngineError as error:
        if not options.json:
            raise
        print(json.dumps({"operations": None, "sentence": str(error)}))
        return REFUSED
    if options.json:
        print(json.dumps({"sentence": found.sentence, **asdict(found)}))
    else:
        for line in _lines(found):
            print(neutral(line, len(line)))
    return FINISHED


def _lines(found: Clock) -> Iterator[str]:
    yield found.sentence
    for row in found.operations[:_MOST_SHOWN]:
        yield f"{row.microseconds:12,.1f} µs {row.runs:8,} x  {row.operation:20} {row.address or row.name}"
    if len(found.operations) > _MOST_SHOWN:
        yield f"  and {len(found.operations) - _MOST_SHOWN:,} operations more: --json lists all"
    if found.note:
        yield found.note


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope clock",
        description="Run a model in a runtime, on one thread, and say where the time goes: for each operation, and for each iteration "
        "where the runtime tells of them (ONNX Runtime does, OpenVINO has one row for a loop).",
        epilog="Times of loops and branches hold those of what is inside. The exit code is 0 when the run was timed, else 2.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts",
    )
    add_inputs(parser)
    parser.add_argument(
        "--runtime",
        choices=("onnxruntime", "openvino", "loopscope"),
        help="which runtime (default: the model's own where it is installed, else loopscope, which steps through the run)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=120.0,
        metavar="S",
        help="the most that it may take (default: %(default)g)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the result as JSON, with the time of every run of every operation",
    )
    return parser.parse_args(words)
