"""``loopscope cut``: write a part of a model, with its recorded inputs and outputs, to a folder."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

import loopscope
from loopscope.cases import Case, cut_folder, recorded_case, refuse_folder
from loopscope.errors import EngineError, InputError, counted
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FINISHED,
    SCHEMA,
    add_json,
    add_limits,
    add_model,
    command_parser,
    print_lines,
    refusal_fields,
    refuse_as_json,
    requested_limits,
    whole_number,
)
from loopscope_app.command.given_inputs import add_inputs, read_inputs


def main(words: Sequence[str]) -> int:
    """Run the model, write the folder, and return the exit code.

    0: the folder is written. 2: the model, the inputs or the address are bad.
    """
    options = _options(words)
    try:
        data = _cut(options)
    except EngineError as error:
        return refuse_as_json(options, error, refusal_fields(error))
    if options.json:
        print(json.dumps({"schema": SCHEMA, **data}))
    else:
        print_lines(_lines(data))
    return FINISHED


def _cut(options: argparse.Namespace) -> dict[str, Any]:
    if bool(options.address) is bool(options.start or options.end):
        raise InputError("expected an ADDRESS, or --from and --to")
    model = progress.read(options.model)
    refuse_folder(options.output, model)
    part = {
        "address": options.address,
        "around": options.around,
        "start": options.start,
        "end": options.end,
    }
    loopscope.cut(model, **part)  # a bad address is refused before the run
    run = progress.run_whole(
        loopscope.Debugger(
            model,
            read_inputs(options.inputs, model),
            limits=loopscope.Limits(**requested_limits(options)),
        )
    )
    case = recorded_case(run, iteration=options.iteration, **part)
    files = cut_folder(case, options.output, model)
    return _data(case, options.output, [str(file) for file in files])


def _data(case: Case, folder: str, files: list[str]) -> dict[str, Any]:
    data = {
        "folder": folder,
        "place": case.place,
        "nodes": len(case.model.graph.nodes),
        "inputs": list(case.inputs),
        "outputs": list(case.expected),
        "files": files,
    }
    return {**data, "missing": case.missing} if case.missing else data


def _lines(data: dict[str, Any]) -> list[str]:
    nodes = counted(data["nodes"], "node")
    inputs, outputs = counted(len(data["inputs"]), "input"), counted(len(data["outputs"]), "output")
    lines = [
        f"{data['folder']}: {nodes} of {data['place']}, {inputs}, {outputs} with recorded values"
    ]
    if "missing" in data:
        lines.append(f"  some outputs have no value: {data['missing']}")
    return [*lines, f"  python {data['folder']}/run.py compares a runtime with the recorded values"]


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "cut",
        "Write a part of a model as a model of its own, with the inputs and outputs that a run "
        "recorded: a body, a branch, a function, a node with its neighbours, or a path.",
        "The folder contains the model in the format that it came in, inputs.npz, expected.npz, "
        "README.md, and run.py, which runs the model in ONNX Runtime or OpenVINO without "
        "Loopscope. Exit code: 0 the folder is written, 2 it cannot be.",
    )
    add_model(parser)
    parser.add_argument(
        "address",
        metavar="ADDRESS",
        nargs="?",
        default="",
        help="a graph (main/loop/body, main/if/then), or an operation, or the end of an address "
        "if it is unique",
    )
    parser.add_argument(
        "--iteration",
        type=whole_number(0),
        metavar="N",
        help="iteration of the innermost loop around the part (default: the last)",
    )
    parser.add_argument(
        "--around",
        type=whole_number(0, 1000),
        default=0,
        metavar="N",
        help="with an operation: also cut out the operations up to N edges away (default: 0)",
    )
    parser.add_argument(
        "--from",
        dest="start",
        default="",
        metavar="A",
        help="cut out the paths from operation A, instead of ADDRESS",
    )
    parser.add_argument(
        "--to", dest="end", default="", metavar="B", help="end of the paths: operation B"
    )
    add_inputs(parser)
    parser.add_argument(
        "-o", dest="output", required=True, metavar="FOLDER", help="folder to write to"
    )
    add_json(parser)
    add_limits(parser)
    return parser.parse_intermixed_args(words)
