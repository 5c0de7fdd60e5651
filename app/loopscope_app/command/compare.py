"""``loopscope compare``: runs a model here and with its own runtime, and says where they first
differ.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import loopscope
from loopscope.comparison import COMPARED
from loopscope.debug import run_stopped
from loopscope.errors import EngineError, neutral
from loopscope.peers import TOLERANCE, ComparisonReport, against, runtime_alone, source_of
from loopscope_app.command import progress
from loopscope_app.command.device_precision import offered
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.command.run import FAILED, FINISHED, REFUSED
from loopscope_app.command.source_comparison import beside_source


def main(words: Sequence[str]) -> int:
    """The exit code: 0 the outputs agree, 1 an output differs, 2 there is nothing to compare,
    such as a run that did not finish.
    """
    options = _options(words)
    try:
        if options.source:
            source = source_of(options.source)
            return beside_source(source, _run(options), options)
        run, inputs = _finished(options)
        with progress.doing("running the model in its own runtime"):
            report = against(run, inputs, tolerance=options.tolerance, seconds=options.seconds)
    except EngineError as error:
        if not options.json:
            raise
        print(json.dumps({"agrees": None, "sentence": str(error)}))
        return REFUSED
    if options.json:
        print(
            json.dumps(
                {
                    "agrees": report.agrees,
                    "outputs_agree": report.outputs_agree,
                    "sentence": report.sentence,
                    **asdict(report),
                }
            )
        )
    else:
        offers = (
            offered(options.model, options.inputs, run.model, inputs, options.seconds)
            if report.counts_differ
            else []
        )
        for line in (*_lines(report), *offers):
            print(neutral(line, len(line)))
    return FINISHED if report.outputs_agree else FAILED


def _finished(options: argparse.Namespace) -> tuple[loopscope.Debugger, Mapping[str | int, object]]:
    """A finished run, and its inputs."""
    debugger, inputs = _run(options)
    if debugger.state != "finished":
        with progress.doing("running the model in its own runtime"):
            there = runtime_alone(debugger, inputs, seconds=options.seconds)
        failure = (
            f"{(debugger.failure or 'the run did not finish').removesuffix('.')}. {there}".strip()
        )
        raise run_stopped(debugger.machine, failure, "error")
    return debugger, inputs


def _run(options: argparse.Namespace) -> tuple[loopscope.Debugger, Mapping[str | int, object]]:
    """A run as far as it comes, and its inputs."""
    model = progress.read(options.model)
    inputs = read_inputs(options.inputs, model)
    limits = loopscope.Limits(seconds=options.seconds)
    return progress.run_whole(
        loopscope.Debugger(model, inputs, limits=limits, record=COMPARED)
    ), inputs


def _lines(report: ComparisonReport) -> Iterator[str]:
    yield report.sentence
    for one in report.outputs[: _MOST_SHOWN if report.first else 0]:
        yield f"  output {one.address}: {one.there} in {report.runtime}, {one.here} here"
    if report.refused and not report.outputs:
        yield f"  not compared inside: {report.refused}"
    if report.left_out and not report.refused:
        yield "  not compared: " + ", ".join(
            f"{count:,} {reason}" for reason, count in report.left_out.items()
        )


_MOST_SHOWN = 10


def tolerance(text: str) -> float:
    """The number that an option says; ``ArgumentTypeError`` for text that is none from 0 on."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number >= 0:  # with NaN nothing would differ
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a tolerance: expected a number from 0 on"
        )
    return number


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope compare",
        description="Run a model here and with its own runtime, OpenVINO for IR and ONNX Runtime for ONNX, and say which value, "
        "of which operation in which iteration, is the first that differs.",
        epilog="One quantum is no difference: a step of an integer of at most 16 bits that floats were rounded to, and what follows "
        "from it; the result says how many elements there are. The exit code is 0 when the outputs that were compared agree (a value "
        "inside may differ: the sentence says so), 1 when an output differs, 2 when there is nothing to compare.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts",
    )
    add_inputs(parser)
    parser.add_argument(
        "--source",
        default="",
        metavar="SOURCE",
        help="the program that the model was converted from, run by torch or TensorFlow with its loops and branches watched: a .pt2 file "
        "of torch.export, the folder of a SavedModel, or module:function, which is imported from this folder; what it did "
        "is told too where the run here does not finish",
    )
    parser.add_argument(
        "--tolerance",
        type=tolerance,
        default=TOLERANCE,
        metavar="T",
        help="how much floats may differ, as a part of the largest magnitude in their tensor, or of the bound of their operation "
        "(1 for a sigmoid) (default: %(default)g)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=120.0,
        metavar="S",
        help="the most that each run may take (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args(words)
