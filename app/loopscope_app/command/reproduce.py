"""``loopscope reproduce``: write the smallest model that still shows a fault of a runtime."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from loopscope.cases import (
    FILES,
    RUNTIMES,
    Difference,
    Fault,
    NotANumber,
    Reduced,
    ReductionSearch,
    RuntimeFailure,
    operations_sentence,
    reduce,
    refuse_folder,
    reproduction_folder,
    size_sentence,
)
from loopscope.errors import EngineError
from loopscope.ir import Model
from loopscope.peers import TOLERANCE, RuntimeName, RuntimeProcess, expect_installed
from loopscope.replaced_file import replaced_file
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FINISHED,
    SCHEMA,
    STOPPED,
    add_json,
    add_model,
    add_seconds,
    add_tolerance,
    command_parser,
    print_lines,
    refusal_fields,
    refuse_as_json,
)
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.command.loop_tests.failing_test import (
    FailingTest,
    as_toml,
    expectations_about,
)
from loopscope_app.command.loop_tests.file import NAME


def main(words: Sequence[str]) -> int:
    """Reduce the model, write the folder, and return the exit code.

    0: the folder is written. 130: it is written after Ctrl+C. 2: the model or the inputs are bad,
    or do not show the fault.
    """
    options = _options(words)
    try:
        return _reproduce(options)
    except EngineError as error:
        return refuse_as_json(options, error, refusal_fields(error))


def _reproduce(options: argparse.Namespace) -> int:
    model = progress.read(options.model)
    refuse_folder(options.output, model)
    inputs = read_inputs(options.inputs, model)
    runtime = _runtime(options, model)
    if not options.test:
        expect_installed(runtime)
    with RuntimeProcess(runtime) as process:
        fault = _fault(options, process)
        shown = _Progress()
        with progress.doing("reducing the model", lambda: shown.text):
            reduced = reduce(model, inputs, fault, seconds=options.seconds, report=shown)
        files = reproduction_folder(reduced, fault, options.output, tolerance=options.tolerance)
        if isinstance(fault, FailingTest):
            files.append(_write_test(fault, reduced, options.output))
        sentence = fault.sentence(reduced.candidate)
    _print(options, reduced, sentence, [str(file) for file in files])
    return STOPPED if reduced.was_stopped else FINISHED


def _runtime(options: argparse.Namespace, model: Model) -> RuntimeName:
    """Return the runtime that shows the fault.

    Raise ``EngineError`` if the runtime cannot read the model.
    """
    runtime: RuntimeName = options.differs or options.runtime or RUNTIMES[model.dialect]
    if runtime == "onnxruntime" and model.dialect != "onnx":
        raise EngineError("ONNX Runtime runs ONNX models only: this model needs openvino")
    return runtime


def _fault(options: argparse.Namespace, process: RuntimeProcess) -> Fault:
    if options.differs:
        return Difference(process, options.tolerance)
    if options.test:
        return FailingTest(process, expectations_about(options.test, options.model))
    return NotANumber(process) if options.nan else RuntimeFailure(process)


def _write_test(fault: FailingTest, reduced: Reduced, folder: str) -> Path:
    """Write the failing expectation beside the smallest model."""
    expectation = fault.expectation_in(reduced.candidate)
    assert expectation is not None
    path = Path(folder) / NAME
    with replaced_file(path) as file:
        file.write(as_toml(expectation, FILES[reduced.source.dialect], "inputs.npz").encode())
    return path


class _Progress:
    """Text of the progress line."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, step: str, search: ReductionSearch) -> None:
        self.text = (
            f"{step}: {search.best.node_count:,} operations after {search.attempts:,} attempts"
        )


def _print(options: argparse.Namespace, reduced: Reduced, sentence: str, files: list[str]) -> None:
    if options.json:
        data = {
            "folder": options.output,
            "fault": sentence,
            "operations": reduced.candidate.node_count,
            "operations_before": reduced.original.node_count,
            "elements": reduced.candidate.element_count,
            "elements_before": reduced.original.element_count,
            "attempts": reduced.attempts,
            "seconds": round(reduced.seconds, 3),
            "ended": reduced.ended,
            "files": files,
        }
        print(json.dumps({"schema": SCHEMA, **data}))
        return
    print_lines(
        [
            f"{options.output}: {sentence}",
            f"  {operations_sentence(reduced.candidate)}",
        ]
    )
    print(f"loopscope: {size_sentence(reduced)}", file=sys.stderr)


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "reproduce",
        "Write the smallest model that still shows a difference to a runtime, NaN, a failure "
        "of the runtime, or a failing test. Operations, bodies, iterations, carried values, "
        "lengths and weights are removed one after the other, and each smaller model runs in the "
        "runtime's own process.",
        "The folder is ready for a bug report: the model, inputs.npz, README.md, and run.py, which "
        "shows the fault without Loopscope. --differs and --test add expected.npz, and --test "
        "adds the failing test. Ctrl+C writes the smallest model so far. Exit code: 0 the folder "
        "is written, 130 it is written after Ctrl+C, 2 the model does not show the fault.",
    )
    add_model(parser)
    add_inputs(parser)
    fault = parser.add_mutually_exclusive_group(required=True)
    fault.add_argument(
        "--differs",
        choices=["onnxruntime", "openvino"],
        help="the outputs of this runtime differ from those of Loopscope",
    )
    fault.add_argument(
        "--nan", action="store_true", help="an output contains NaN, from inputs without NaN"
    )
    fault.add_argument("--fails", action="store_true", help="the runtime does not run the model")
    fault.add_argument(
        "--test",
        metavar="LOOPS.toml",
        help="an expectation of this file about the model fails, as loopscope test verifies it",
    )
    parser.add_argument(
        "--runtime",
        choices=["onnxruntime", "openvino"],
        help="runtime for --nan, --fails and the script of --test (default: ONNX Runtime for "
        "ONNX, else OpenVINO)",
    )
    parser.add_argument(
        "-o", dest="output", required=True, metavar="FOLDER", help="folder to write to"
    )
    add_tolerance(
        parser,
        "with --differs: difference relative to the largest magnitude of an output",
        TOLERANCE,
    )
    add_seconds(parser, "stop after S seconds and write the smallest model so far")
    add_json(parser)
    options = parser.parse_args(words)
    if options.differs and options.runtime:
        parser.error("--differs names the runtime already: leave out --runtime")
    return options
