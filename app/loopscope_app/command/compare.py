"""``loopscope compare``: report the first difference to a runtime or to the source program.

``--source`` names the program that the model was converted from.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import loopscope
from loopscope.comparison import COMPARED
from loopscope.debug import run_stopped
from loopscope.errors import EngineError
from loopscope.peers import (
    TOLERANCE,
    ComparisonReport,
    Source,
    SourceReport,
    against,
    against_source,
    runtime_alone,
    source_alone,
    source_of,
)
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FAILED,
    FINISHED,
    REFUSED,
    add_json,
    add_model,
    add_seconds,
    add_tolerance,
    command_parser,
    print_lines,
    refuse_as_json,
)
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.describe.wording import DEVICES


def main(words: Sequence[str]) -> int:
    """Compare a run with its runtime and return the exit code.

    0: the outputs agree. 1: an output differs. 2: there is nothing to compare, such as a run that
    did not finish.
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
        return refuse_as_json(options, error, {"agrees": None, "sentence": str(error)})
    if options.json:
        answer = {
            "agrees": report.agrees,
            "outputs_agree": report.outputs_agree,
            "sentence": report.sentence,
        }
        print(json.dumps({**answer, **asdict(report)}))
    else:
        offers = (
            rounding_suggestion(options.model, options.inputs, run.model, inputs, options.seconds)
            if report.counts_differ
            else []
        )
        print_lines((*_lines(report), *offers))
    return FINISHED if report.outputs_agree else FAILED


def _finished(options: argparse.Namespace) -> tuple[loopscope.Debugger, Mapping[str | int, object]]:
    """Return a finished run and its inputs. Raise ``RunStopped`` if the run did not finish."""
    debugger, inputs = _run(options)
    if debugger.state != "finished":
        with progress.doing("running the model in its own runtime"):
            runtime_result = runtime_alone(debugger, inputs, seconds=options.seconds)
        reason = (debugger.failure or "the run did not finish").removesuffix(".")
        failure = f"{reason}. {runtime_result}".strip()
        raise run_stopped(debugger.machine, failure, "error")
    return debugger, inputs


def _run(options: argparse.Namespace) -> tuple[loopscope.Debugger, Mapping[str | int, object]]:
    """Return a run, as far as it goes, and its inputs."""
    model = progress.read_operations(options.model)
    inputs = read_inputs(options.inputs, model)
    limits = loopscope.Limits(seconds=options.seconds)
    return progress.run_whole(
        loopscope.Debugger(model, inputs, limits=limits, record=COMPARED)
    ), inputs


def _lines(report: ComparisonReport) -> Iterator[str]:
    yield report.sentence
    for output in report.outputs[: _PRINTED_OUTPUTS if report.first else 0]:
        yield f"  output {output.address}: {output.there} in {report.runtime}, {output.here} here"
    if report.refused and not report.outputs:
        yield f"  not compared inside: {report.refused}"
    if report.left_out and not report.refused:
        yield "  not compared: " + ", ".join(
            f"{count:,} {reason}" for reason, count in report.left_out.items()
        )


_PRINTED_OUTPUTS = 10


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "compare",
        "Run a model here and in its own runtime (OpenVINO for IR, ONNX Runtime for ONNX), and "
        "report the first value that differs, with its operation and iteration.",
        "A difference of one quantum does not count: one step of an integer type of at most 16 "
        "bits that floats were rounded to, and what follows from it; the result reports how many "
        "elements are concerned. Exit code: 0 the compared outputs agree (a value inside may "
        "differ; the sentence says so), 1 an output differs, 2 there is nothing to compare.",
    )
    add_model(parser)
    add_inputs(parser)
    parser.add_argument(
        "--source",
        default="",
        metavar="SOURCE",
        help="the program that the model was converted from; torch or TensorFlow runs it and "
        "records its loops and branches: a .pt2 file of torch.export, the folder of a SavedModel, "
        "or module:function, imported from this folder; reported even if the run here fails",
    )
    add_tolerance(
        parser,
        "accepted difference of floats, as a fraction of the largest magnitude in their tensor, or "
        "of the bound of their operation (1 for a sigmoid)",
        TOLERANCE,
    )
    add_seconds(parser, "time limit of each run in seconds")
    add_json(parser)
    return parser.parse_args(words)


_MAX_WIDTH = 60


def beside_source(
    source: Source,
    run: tuple[loopscope.Debugger, Mapping[str | int, object]],
    options: argparse.Namespace,
) -> int:
    """Print the comparison and return the exit code.

    0: the outputs agree with those of the source. 1: an output differs. 2: the run did not finish.
    """
    debugger, inputs = run
    if debugger.state != "finished":
        return _report_source_only(source, debugger, inputs, options)
    with progress.doing("running the source, and the model in its own runtime"):
        report = against_source(
            debugger, source, inputs, tolerance=options.tolerance, seconds=options.seconds
        )
    if options.json:
        answer = {
            "agrees": report.agrees,
            "outputs_agree": report.outputs_agree,
            "sentence": report.sentence,
            **asdict(report),
        }
        print(json.dumps(answer))
    else:
        print_lines(_source_lines(report))
    return FINISHED if report.outputs_agree else FAILED


def _report_source_only(
    source: Source,
    debugger: loopscope.Debugger,
    inputs: Mapping[str | int, object],
    options: argparse.Namespace,
) -> int:
    """Report only the source, because a run that did not finish cannot be compared."""
    with progress.doing("running the source, and the model in its own runtime"):
        report = source_alone(debugger, source, inputs, seconds=options.seconds)
    if options.json:
        print(json.dumps({"agrees": None, "sentence": report.sentence, **asdict(report)}))
    else:
        print_lines((report.sentence, *_columns(report.table())))
    return REFUSED


def _columns(table: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
    widths = [min(max(len(row[column]) for row in table), _MAX_WIDTH) for column in range(3)]
    for row in table if len(table) > 1 else ():
        yield (
            "  "
            + "  ".join(
                [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]
            ).rstrip()
        )


def _source_lines(report: SourceReport) -> Iterator[str]:
    yield report.sentence
    yield from _columns(report.table())
    for region in report.regions:
        for value in region.values:
            if value.first is not None:
                match = f"beside {value.label}, by {value.how}"
                place = value.first.address
                yield f"  {region.source}: {value.name} ({match}) differs first at {place}"
            elif value.left_out:
                kind = "compared" if value.compared else "not compared:"
                yield f"  {region.source}: {value.name} {kind} {value.left_out}"
    for region in report.regions:
        yield f"  {region.source} is beside {region.address} by {region.how}"


def rounding_suggestion(
    path: str,
    inputs_option: str,
    model: loopscope.Model,
    inputs: Mapping[str | int, object],
    seconds: float,
) -> list[str]:
    """Return a line with such a command, or nothing if no rounded run finishes within ``seconds``.

    ``path`` and ``inputs_option`` are the model and the inputs as the command line has them.
    """
    finishing = [to for to in DEVICES if _finishes_rounded(model, inputs, to, seconds)]
    if not finishing:
        return []
    words = f" --inputs {shlex.quote(inputs_option)}" if inputs_option else ""
    command = f"loopscope drift {shlex.quote(path)}{words} --round '*={finishing[0]}'"
    reason = "Narrower floats often make a loop run another number of times."
    return [
        f"  {reason} To run it here with the device's precision ({', '.join(finishing)}): {command}"
    ]


def _finishes_rounded(
    model: loopscope.Model, inputs: Mapping[str | int, object], to: str, seconds: float
) -> bool:
    try:
        debugger = loopscope.Debugger(
            model,
            inputs,
            limits=loopscope.Limits(seconds=seconds),
            record=COMPARED,
            rounding={"*": to},
        )
    except EngineError:
        return False
    debugger.run()
    return debugger.state == "finished"
