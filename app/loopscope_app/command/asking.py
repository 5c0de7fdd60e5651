"""What the commands have in common that run a model and ask about one address of it: options,
the run, answers as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import loopscope
from loopscope.errors import EngineError, InputError, in_one_line, neutral
from loopscope.ir import full_address
from loopscope.run_file import SavedRun, difference_from, is_run_file, read_run, resume
from loopscope_app.command import progress
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.command.report import SCHEMA
from loopscope_app.command.run import FINISHED, REFUSED

Answer = tuple[Mapping[str, Any], Iterator[str]]
"""What is said as JSON, and the lines for a terminal."""


def answered(options: argparse.Namespace, ask: Callable[[loopscope.Debugger, str], Answer]) -> int:
    """Runs the model, asks about the address and prints the answer; the exit code: 0 there is
    one, 2 there is none.
    """
    try:
        data, lines = ask(*run_of(options))
    except EngineError as error:
        if not options.json:
            raise
        print(
            json.dumps({"schema": SCHEMA, "state": "refused", "message": in_one_line(str(error))})
        )
        return REFUSED
    if options.json:
        print(json.dumps({"schema": SCHEMA, **data}, allow_nan=False))
        return FINISHED
    for line in lines:
        print(neutral(line, len(line)))
    return FINISHED


def run_of(options: argparse.Namespace) -> tuple[loopscope.Debugger, str]:
    """A run, as far as it comes within its limits, and the whole address that is asked about; of
    a saved run at its end.
    """
    given = {
        name: getattr(options, name)
        for name in ("iterations", "seconds")
        if getattr(options, name) is not None
    }
    if is_run_file(options.model):
        if given:
            raise InputError(
                f"a saved run has its limits in it: give --{next(iter(given))} with a model"
            )
        debugger, _ = saved_run(options.model, options.inputs)
        return debugger, options.address and full_address(debugger.model, options.address)
    model = progress.read(options.model)
    address = options.address and full_address(model, options.address)
    debugger = loopscope.Debugger(
        model, read_inputs(options.inputs, model), limits=loopscope.Limits(**given)
    )
    return progress.run_whole(debugger), address


def saved_run(path: str, inputs: str) -> tuple[loopscope.Debugger, SavedRun]:
    """The run of a file, computed to its end where its weights are there, and what the file holds.

    ``InputError`` when other inputs are named for it. Where this machine computes something else
    than the file recorded, the first difference is told.
    """
    if inputs:
        raise InputError("a saved run has its inputs in it: give --inputs with a model")
    saved = read_run(path)
    debugger = resume(saved)
    if different := difference_from(saved, debugger):
        print(f"loopscope: {in_one_line(different)}", file=sys.stderr)
    debugger.breakpoints.clear()
    if not debugger.plan.lacks_weights:
        progress.run_whole(debugger)
    return debugger, saved


def parser_of(
    command: str, description: str, what: str, *, needed: bool = True
) -> argparse.ArgumentParser:
    """A parser with the arguments that all of them take; ``what``: the place that ADDRESS names;
    ``needed``: it cannot be left out.
    """
    parser = argparse.ArgumentParser(
        prog=f"loopscope {command}",
        description=description,
        epilog="A run that fails or hits a limit is asked about all the same, as far as it came. "
        "The exit code is 0 when there is an answer, 2 when there is none.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an OpenVINO .xml, an .onnx file, a model that OpenVINO converts, or a saved run",
    )
    told = f"{what}, or an end of an address that no other has" + (
        "" if needed else "; without it, all that ran are told in a line each"
    )
    parser.add_argument(
        "address", metavar="ADDRESS", nargs=None if needed else "?", default="", help=told
    )
    add_inputs(parser)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    default = loopscope.Limits()
    parser.add_argument(
        "--iterations",
        type=int,
        metavar="N",
        help=f"stop after so many iterations, all loops together (default: {default.iterations:,})",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help=f"stop after so many seconds (default: {default.seconds:g})",
    )
    return parser
