"""Base of the commands that run a model and answer a question about one address."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import loopscope
from loopscope.errors import EngineError, InputError, in_one_line
from loopscope.ir import full_address
from loopscope.run_file import SavedRun, difference_from, is_run_file, read_run, resume
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FINISHED,
    MODEL_HELP,
    SCHEMA,
    add_json,
    add_limits,
    add_model,
    add_open,
    command_parser,
    print_lines,
    refusal_fields,
    refuse_as_json,
    requested_limits,
)
from loopscope_app.command.given_inputs import add_inputs, read_inputs

Answer = tuple[Mapping[str, Any], Iterator[str]]
"""Fields of the JSON answer, and lines of the text answer."""


def print_answer(
    options: argparse.Namespace, ask: Callable[[loopscope.Debugger, str], Answer]
) -> int:
    """Run the model, print the answer of ``ask`` for the address, and return the exit code.

    0: there is an answer. 2: there is none.
    """
    try:
        data, lines = ask(*run_of(options))
    except EngineError as error:
        return refuse_as_json(options, error, refusal_fields(error))
    if options.json:
        print(json.dumps({"schema": SCHEMA, **data}, allow_nan=False))
    else:
        print_lines(lines)
    return FINISHED


def run_of(options: argparse.Namespace) -> tuple[loopscope.Debugger, str]:
    """Return a run and the full address that the question names.

    A model runs until it finishes, fails or hits a limit. A saved run is at its end.
    """
    limits = requested_limits(options)
    if is_run_file(options.model):
        if limits:
            raise InputError(
                f"a saved run has its own limits: --{next(iter(limits))} applies to a model only"
            )
        if options.open:
            raise InputError("a saved run has its own loops: --open applies to a model only")
        debugger, _ = saved_run(options.model, options.inputs)
        return debugger, options.address and full_address(debugger.model, options.address)
    model = progress.read(options.model, options.open)
    address = options.address and full_address(model, options.address)
    debugger = loopscope.Debugger(
        model, read_inputs(options.inputs, model), limits=loopscope.Limits(**limits)
    )
    return progress.run_whole(debugger), address


def saved_run(path: str, inputs: str) -> tuple[loopscope.Debugger, SavedRun]:
    """Return the run of a file and what the file contains; run it to the end if it has weights.

    Raise ``InputError`` if other inputs are passed. Print the first difference if this machine
    computes other values than the file recorded.
    """
    if inputs:
        raise InputError("a saved run has its own inputs: --inputs applies to a model only")
    saved = read_run(path)
    debugger = resume(saved)
    if difference := difference_from(saved, debugger):
        print(f"loopscope: {in_one_line(difference)}", file=sys.stderr)
    debugger.breakpoints.clear()
    if not debugger.plan.lacks_weights:
        progress.run_whole(debugger)
    return debugger, saved


def address_parser(
    command: str, description: str, what: str, *, needed: bool = True
) -> argparse.ArgumentParser:
    """Return a parser with the arguments of all these commands.

    ``what`` describes the place that ADDRESS names. ADDRESS is optional if not ``needed``.
    """
    parser = command_parser(
        command,
        description,
        "A run that fails or hits a limit is analysed as far as it went. "
        "Exit code: 0 there is an answer, 2 there is none.",
    )
    add_model(
        parser,
        help=f"{MODEL_HELP}, or a saved run",
    )
    parser.add_argument(
        "address",
        metavar="ADDRESS",
        nargs=None if needed else "?",
        default="",
        help=f"{what}, or the end of an address if it is unique"
        + ("" if needed else "; without ADDRESS, one line for each loop and branch that ran"),
    )
    add_inputs(parser)
    add_open(parser)
    add_json(parser, "print the answer as JSON")
    add_limits(parser)
    return parser
