"""``loopscope clock``: report where the time of a run goes, by operation and iteration."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from loopscope.errors import EngineError
from loopscope.peers import Clock, clock
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FINISHED,
    add_json,
    add_model,
    add_seconds,
    command_parser,
    print_lines,
    refuse_as_json,
)
from loopscope_app.command.given_inputs import add_inputs, read_inputs

_PRINTED_ROWS = 15


def main(words: Sequence[str]) -> int:
    """Time a run and return the exit code: 0 if it was timed, 2 if not."""
    options = _options(words)
    try:
        model = progress.read_operations(options.model)
        inputs = read_inputs(options.inputs, model)
        with progress.doing("timing a run"):
            times = clock(model, inputs, runtime=options.runtime, seconds=options.seconds)
    except EngineError as error:
        return refuse_as_json(options, error, {"operations": None, "sentence": str(error)})
    if options.json:
        print(json.dumps({"sentence": times.sentence, **asdict(times)}))
    else:
        print_lines(_lines(times))
    return FINISHED


def _lines(times: Clock) -> Iterator[str]:
    yield times.sentence
    for row in times.operations[:_PRINTED_ROWS]:
        place = row.address or row.name
        yield f"{row.microseconds:12,.1f} µs {row.runs:8,} x  {row.operation:20} {place}"
    if len(times.operations) > _PRINTED_ROWS:
        yield f"  and {len(times.operations) - _PRINTED_ROWS:,} operations more: use --json"
    if times.note:
        yield times.note


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "clock",
        "Run a model in a runtime on one thread and report where the time goes: for each "
        "operation, and for each iteration if the runtime reports it (ONNX Runtime does; OpenVINO "
        "reports one row for a loop).",
        "The time of a loop or branch includes the operations inside. "
        "Exit code: 0 the run was timed, 2 it was not.",
    )
    add_model(parser)
    add_inputs(parser)
    parser.add_argument(
        "--runtime",
        choices=("onnxruntime", "openvino", "loopscope"),
        help="the runtime (default: the model's own if it is installed, else loopscope, which "
        "steps through the run)",
    )
    add_seconds(parser)
    add_json(parser, "print the result as JSON, with the time of every run of every operation")
    return parser.parse_args(words)
