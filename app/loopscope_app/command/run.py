"""``loopscope run``: run a model once without a browser."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import loopscope
from loopscope.debug import Result, RunStopped
from loopscope.errors import EngineError, in_one_line, neutral
from loopscope.executor import Plan, StopCause, generated_loops
from loopscope.explain import NotFinite, first_infinity, first_nan
from loopscope.ir import Model, Signature
from loopscope.ops.stored import FORMS, entry_name, packed, write
from loopscope.replaced_file import replaced_file
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FAILED,
    FINISHED,
    REFUSED,
    STOPPED,
    add_json,
    add_limits,
    add_model,
    add_open,
    command_parser,
    megabytes,
    refuse_unwritable,
    requested_limits,
)
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.command.report import Outcome, as_json, as_text


def main(words: Sequence[str]) -> int:
    """Run a model and return the exit code.

    0: the run finished. 1: the run failed or hit a limit. 2: the model or the inputs are bad.
    130: Ctrl+C stopped the run.
    """
    options = _options(words)
    recorded = options.json or options.save or options.first_nan or options.first_infinity
    try:
        model = progress.read(options.model, options.open)
        run = _record_run if recorded and not options.fetch else _run
        refuse_unwritable(options.outputs)
        refuse_unwritable(options.save)
        outcome = run(model, read_inputs(options.inputs, model), options)
    except EngineError as error:
        if not options.json:
            raise
        return _print_outcome(Outcome("refused", in_one_line(str(error))), options)
    if options.outputs and outcome.result is not None and outcome.state == "finished":
        try:
            write_outputs(options.outputs, outcome.result.signatures, outcome.result.outputs)
        except OSError as error:  # the results of a long run are printed all the same
            _print_outcome(outcome, options, model)
            raise EngineError(f"{options.outputs}: {error.strerror or error}") from None
    code = _print_outcome(outcome, options, model)
    if options.generated and outcome.result is not None:
        _print_generated(outcome.result.machine.plan)
    return code


def _print_generated(plan: Plan) -> None:
    """Print the Python functions that the run generated for loops.

    Addresses are escaped, because names in a model may contain any character.
    """
    loops = list(generated_loops(plan))
    print(
        "" if loops else "\nno code was generated: no loop ran long enough to repay the compilation"
    )
    for address, loop in loops:
        print(f"generated for {in_one_line(address)}:\n")
        print("\n".join(map(neutral, loop.annotated.splitlines())))


def _run(model: Model, inputs: Mapping[str | int, object], options: argparse.Namespace) -> Outcome:
    session = loopscope.Session(model, optimise=_optimise(options))
    try:
        with interruptible(session.stop), progress.doing("running the model"):
            result = session.run(inputs, options.fetch or None, limits=_limits(options))
    except RunStopped as stopped:
        state = {"limit": "limit", "stopped": "stopped"}.get(stopped.cause, "failed")
        return Outcome(state, str(stopped), stopped.address, stopped.result)
    return Outcome("finished", result=result)


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` at the first Ctrl+C, so that the command can report how far the run went.

    The second Ctrl+C ends the command.
    """
    if (
        signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def stop_at_first(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    signal.signal(signal.SIGINT, stop_at_first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _record_run(
    model: Model, inputs: Mapping[str | int, object], options: argparse.Namespace
) -> Outcome:
    """Record a run, so that it can be explained, searched for NaN and saved."""
    requests = ((options.first_nan, first_nan), (options.first_infinity, first_infinity))
    searches = [search for requested, search in requests if requested]
    debugger = loopscope.Debugger(
        model,
        inputs,
        limits=_limits(options),
        record=_record(options),
        whole=bool(searches or options.save),
        optimise=_optimise(options),
    )
    with interruptible(debugger.stop):
        progress.run_whole(debugger)
    odd = tuple(search(debugger, _SEARCH_SECONDS) for search in searches)
    if options.save:
        loopscope.save(
            debugger,
            options.save,
            budget_bytes=int(options.budget * 2**20),
            weights=not options.without_weights,
        )
    return outcome_of(debugger, odd)


def _record(options: argparse.Namespace) -> loopscope.Record | None:
    """Return the recording options: every value if the file will have no weights to recompute."""
    if not options.without_weights:
        return None
    return loopscope.Record(
        everything=True, recompute=False, budget_bytes=int(options.budget * 2**20)
    )


def outcome_of(debugger: loopscope.Debugger, odd: tuple[NotFinite, ...] = ()) -> Outcome:
    """Return the outcome of a run, with its state as the command line names it."""
    if debugger.state == "finished":
        return Outcome("finished", result=debugger.result, odd=odd, debugger=debugger)
    address = debugger.failed_address or debugger.cursor.address
    cause: StopCause = (
        "error"
        if debugger.state == "failed"
        else "limit"
        if debugger.state == "limit"
        else "stopped"
    )
    state = "failed" if cause == "error" else cause
    return Outcome(
        state,
        f"{address}: {debugger.failure or 'the run was stopped'}",
        address,
        Result(debugger.machine, cause),
        odd,
        debugger,
    )


def _print_outcome(
    outcome: Outcome, options: argparse.Namespace, model: Model | None = None
) -> int:
    if options.json:
        # Joined first: an error in one piece must not leave half an object on the terminal.
        print("".join(as_json(outcome, model)))
    else:
        for line in as_text(outcome, model):
            print(line)
    return {"finished": FINISHED, "refused": REFUSED, "stopped": STOPPED}.get(outcome.state, FAILED)


_RESERVED_NAMES = ("file", "allow_pickle", FORMS)
"""Keywords of ``numpy.savez``, and the entry that describes the other entries.

An entry with such a name could not be written again by ``numpy.savez``.
"""


def write_outputs(path: str, signatures: Sequence[Signature], outputs: Sequence[Any]) -> None:
    """Write an .npz file (``engine/loopscope/ops/stored.py``) with the outputs.

    An entry is named by the first tensor name or the Result's name, with the position appended if
    that name is already used.
    """
    values: dict[str, Any] = {}
    for position, (signature, value) in enumerate(zip(signatures, outputs, strict=True)):
        name = entry_name(next(iter(signature.names), signature.name))
        is_used = name in values or name in _RESERVED_NAMES
        values[f"{name}:{position}" if is_used else name] = value
    with replaced_file(path) as file:
        write(file, packed(values))


_SEARCH_SECONDS = 60.0


def _limits(options: argparse.Namespace) -> loopscope.Limits:
    return loopscope.Limits(**requested_limits(options))


def _optimise(options: argparse.Namespace) -> loopscope.Optimise:
    return loopscope.Optimise(
        prune=not options.no_prune, fold=not options.no_fold, cse=not options.no_cse
    )


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "run",
        "Run a model on recorded inputs and report what its loops and branches did.",
        "Exit code: 0 the run finished, 1 the run failed or hit a limit, 2 the model or the "
        "inputs are bad, 130 Ctrl+C stopped the run (what it did until then is printed).",
    )
    add_model(parser)
    add_open(parser)
    add_inputs(parser)
    parser.add_argument(
        "--outputs", default="", metavar="OUT.npz", help="write the outputs to this file"
    )
    parser.add_argument(
        "--generated",
        action="store_true",
        help="print the Python code generated for loops, with the operation of each line",
    )
    add_json(
        parser,
        "print outputs and control flow as JSON, with the reason why each loop ended and each "
        "branch was taken (no reasons with --fetch)",
    )
    parser.add_argument(
        "--first-nan",
        action="store_true",
        help="report the operation and iteration that produced the first NaN",
    )
    parser.add_argument(
        "--first-infinity",
        action="store_true",
        help="report the operation and iteration that produced the first infinity",
    )
    _add_saving(parser)
    parser.add_argument(
        "--fetch",
        action="append",
        default=[],
        metavar="TENSOR",
        help="return this tensor instead of the outputs, and run only what it needs: a tensor "
        "name, or an address such as main/loop[2]/body/Add; repeat for more tensors",
    )
    parser.add_argument(
        "--no-prune", action="store_true", help="also run operations that no output needs"
    )
    parser.add_argument(
        "--no-fold", action="store_true", help="do not compute constant expressions in advance"
    )
    parser.add_argument(
        "--no-cse", action="store_true", help="do not reuse the results of equal operations"
    )
    add_limits(parser)
    options = parser.parse_args(words)
    _check_combinations(parser, options)
    return options


def _add_saving(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--save",
        default="",
        metavar="RUN.loopscope",
        help="save the run to this file; `loopscope RUN.loopscope` opens it",
    )
    parser.add_argument(
        "--budget",
        type=megabytes,
        default=64.0,
        metavar="MB",
        help="with --save: megabytes of recorded values to store, and as many of outputs and "
        "control flow, which verify the run when the file is opened (default: 64)",
    )
    parser.add_argument(
        "--without-weights",
        action="store_true",
        help="with --save: leave out constants of more than 64 elements, and record every value "
        "instead",
    )


def _check_combinations(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the command with a message if two options exclude each other, or one lacks another."""
    if options.generated and options.json:
        parser.error("--generated prints Python code and cannot be combined with --json")
    if (options.first_nan or options.first_infinity) and options.fetch:
        option = "--first-nan" if options.first_nan else "--first-infinity"
        parser.error(f"{option} searches the whole run, but --fetch runs only a part of it")
    if options.without_weights and not options.save:
        parser.error("--without-weights applies to the file of --save: expected --save FILE")
    if options.save and options.fetch:
        parser.error("--save saves the whole run, but --fetch runs only a part of it")
