"""``loopscope run``: runs a model on recorded inputs, without a browser."""

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
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.command.output_files import refuse_unwritable
from loopscope_app.command.report import Outcome, as_json, as_text

FINISHED, FAILED, REFUSED, STOPPED = 0, 1, 2, 130


def main(words: Sequence[str]) -> int:
    """The exit code: 0 the run finished, 1 it failed or hit a limit, 2 the model or the inputs
    are bad, 130 Ctrl+C stopped it.
    """
    options = _options(words)
    try:
        model = progress.read(options.model)
        run = (
            _searched
            if options.first_nan or options.first_infinity
            else _saved
            if options.save
            else _run
        )
        refuse_unwritable(options.outputs)
        refuse_unwritable(options.save)
        outcome = run(model, read_inputs(options.inputs, model), options)
    except EngineError as error:
        if not options.json:
            raise
        return _tell(Outcome("refused", in_one_line(str(error))), options)
    if options.outputs and outcome.result is not None and outcome.state == "finished":
        try:
            write_outputs(options.outputs, outcome.result.signatures, outcome.result.outputs)
        except OSError as error:  # the results of a long run are printed all the same
            _tell(outcome, options, model)
            raise EngineError(f"{options.outputs}: {error.strerror or error}") from None
    code = _tell(outcome, options, model)
    if options.generated and outcome.result is not None:
        _tell_generated(outcome.result.machine.plan)
    return code


def _tell_generated(plan: Plan) -> None:
    """The Python functions that the run has generated for loops; addresses are escaped, because
    names in a model are anybody's.
    """
    found = list(generated_loops(plan))
    print("" if found else "\nno code was generated: no loop ran for long enough to repay it")
    for address, loop in found:
        print(f"generated for {in_one_line(address)}:\n")
        print("\n".join(map(neutral, loop.annotated.splitlines())))


def _run(model: Model, inputs: Mapping[str | int, object], options: argparse.Namespace) -> Outcome:
    if options.json and not options.fetch:
        return _explained(model, inputs, options)
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
    """The first Ctrl+C stops the run, so that the command can report where it was; the second
    one ends the command.
    """
    if (
        signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def first(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _explained(
    model: Model, inputs: Mapping[str | int, object], options: argparse.Namespace
) -> Outcome:
    """A run that is recorded, so that each loop and If can be explained."""
    debugger = loopscope.Debugger(
        model, inputs, limits=_limits(options), whole=False, optimise=_optimise(options)
    )
    with interruptible(debugger.stop):
        progress.run_whole(debugger)
    return outcome_of(debugger)


def _searched(
    model: Model, inputs: Mapping[str | int, object], options: argparse.Namespace
) -> Outcome:
    """Run a model and keep what it takes to look for the first NaN or the first infinity in it."""
    debugger = loopscope.Debugger(
        model, inputs, limits=_limits(options), record=_record(options), optimise=_optimise(options)
    )
    with interruptible(debugger.stop):
        progress.run_whole(debugger)
    searches = ((options.first_nan, first_nan), (options.first_infinity, first_infinity))
    odd = tuple(search(debugger, _SECONDS_OF_SEARCH) for wanted, search in searches if wanted)
    if options.save:
        _save(debugger, options)
    return outcome_of(debugger, odd)


def _saved(
    model: Model, inputs: Mapping[str | int, object], options: argparse.Namespace
) -> Outcome:
    """A run that goes to a file, wherever it came to."""
    debugger = loopscope.Debugger(
        model, inputs, limits=_limits(options), record=_record(options), optimise=_optimise(options)
    )
    with interruptible(debugger.stop):
        progress.run_whole(debugger)
    _save(debugger, options)
    return outcome_of(debugger)


def _save(debugger: loopscope.Debugger, options: argparse.Namespace) -> None:
    loopscope.save(
        debugger,
        options.save,
        budget_bytes=int(options.budget * 2**20),
        weights=not options.without_weights,
    )


def _record(options: argparse.Namespace) -> loopscope.Record | None:
    """Of a run whose file is to have no weights everything is recorded, since nothing that takes
    them can be computed from it.
    """
    if not options.without_weights:
        return None
    return loopscope.Record(
        everything=True, recompute=False, budget_bytes=int(options.budget * 2**20)
    )


def outcome_of(debugger: loopscope.Debugger, odd: tuple[NotFinite, ...] = ()) -> Outcome:
    """How a run went, to be told."""
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


def _tell(outcome: Outcome, options: argparse.Namespace, model: Model | None = None) -> int:
    if options.json:
        print("".join(as_json(outcome, model)))  # whole or not at all
    else:
        for line in as_text(outcome, model):
            print(line)
    return {"finished": FINISHED, "refused": REFUSED, "stopped": STOPPED}.get(outcome.state, FAILED)


_TAKEN = ("file", "allow_pickle", FORMS)
"""Keywords of ``numpy.savez``, by which others may want to write the file again, and what
describes the values in it.
"""


def write_outputs(path: str, signatures: Sequence[Signature], outputs: Sequence[Any]) -> None:
    """An .npz file (``engine/loopscope/ops/stored.py``) with the outputs by their first tensor name
    or their Result's name, with the position where that is taken.
    """
    values: dict[str, Any] = {}
    for position, (signature, value) in enumerate(zip(signatures, outputs, strict=True)):
        name = entry_name(next(iter(signature.names), signature.name))
        values[f"{name}:{position}" if name in values or name in _TAKEN else name] = value
    with replaced_file(path) as file:
        write(file, packed(values))


_DEFAULT = loopscope.Limits()
_SECONDS_OF_SEARCH = 60.0


def _limits(options: argparse.Namespace) -> loopscope.Limits:
    given = {
        name: getattr(options, name)
        for name in ("iterations", "seconds")
        if getattr(options, name) is not None
    }
    return loopscope.Limits(**given)


def _optimise(options: argparse.Namespace) -> loopscope.Optimise:
    return loopscope.Optimise(
        prune=not options.no_prune, fold=not options.no_fold, cse=not options.no_cse
    )


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope run",
        description="Run a model on recorded inputs and say what its loops and branches did.",
        epilog="The exit code is 0 when the run finished, 1 when it failed or hit a limit, 2 when the model or the inputs are bad, "
        "130 when Ctrl+C stopped it: it prints what the run had done by then.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts",
    )
    add_inputs(parser)
    parser.add_argument("--outputs", default="", metavar="OUT.npz", help="where the outputs go")
    parser.add_argument(
        "--generated",
        action="store_true",
        help="print the Python functions that loops ran as, with the operation of each line",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print outputs and control flow as JSON, with the reason why each loop ended and each branch was taken (not with --fetch)",
    )
    parser.add_argument(
        "--first-nan",
        action="store_true",
        help="say which operation, in which iteration, made the first NaN",
    )
    parser.add_argument(
        "--first-infinity",
        action="store_true",
        help="say which operation, in which iteration, made the first infinity",
    )
    parser.add_argument(
        "--save",
        default="",
        metavar="RUN.loopscope",
        help="where the run goes as a file that `loopscope` opens again",
    )
    parser.add_argument(
        "--budget",
        type=_megabytes,
        default=64.0,
        metavar="MB",
        help="megabytes that --save keeps of what was recorded, and as many of outputs and control flow, to hold a later run against "
        "(default: 64)",
    )
    parser.add_argument(
        "--without-weights",
        action="store_true",
        help="--save the structure of the model only: constants of more than 64 elements are left out, and values are recorded instead",
    )
    parser.add_argument(
        "--fetch",
        action="append",
        default=[],
        metavar="TENSOR",
        help="give this tensor instead of the outputs, and run only what it needs: a name, or an address such as main/loop[2]/body/Add; "
        "may be given several times",
    )
    parser.add_argument("--no-prune", action="store_true", help="run what no output needs, too")
    parser.add_argument(
        "--no-fold", action="store_true", help="compute anew what depends on constants alone"
    )
    parser.add_argument(
        "--no-cse",
        action="store_true",
        help="compute again what another operation has computed already",
    )
    parser.add_argument(
        "--iterations",
        type=int,
        metavar="N",
        help=f"stop after so many iterations, all loops together (default: {_DEFAULT.iterations:,})",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help=f"stop after so many seconds (default: {_DEFAULT.seconds:g})",
    )
    options = parser.parse_args(words)
    if options.generated and options.json:
        parser.error("--generated prints Python, which has no place in --json")
    if (options.first_nan or options.first_infinity) and options.fetch:
        parser.error(
            f"{'--first-nan' if options.first_nan else '--first-infinity'} searches the whole run, of which --fetch asks for a part"
        )
    if options.without_weights and not options.save:
        parser.error("--without-weights says what --save keeps: give it with --save")
    if options.save and options.fetch:
        parser.error("--save keeps the whole run, of which --fetch asks for a part")
    return options


def _megabytes(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size: a number of megabytes from 0 on is expected"
        )
    return number
