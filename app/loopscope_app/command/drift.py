"""``loopscope drift``: report how far two models drift apart over the iterations.

The second model may be the first one with values rounded.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import loopscope
from loopscope.comparison import (
    COMPARED,
    TOLERANCE,
    Alignment,
    Drift,
    RequestedPair,
    cosine_words,
    write_table,
)
from loopscope.debug import run_stopped
from loopscope.errors import AddressError, InputError
from loopscope.ir import Model, is_trace, significant
from loopscope.peers import RuntimeDrift, drift_from_runtime, drift_of_opened
from loopscope.read import what_is_at
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FAILED,
    FINISHED,
    add_json,
    add_model,
    add_open,
    add_seconds,
    add_tolerance,
    command_parser,
    print_lines,
    refuse_unwritable,
    tolerance,
)
from loopscope_app.command.compare import rounding_suggestion
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.command.junit import drift_suite, write_junit

_PRINTED_ROWS = 10
_RUNTIMES = {"openvino:CPU": "openvino", "openvino": "openvino", "onnxruntime": "onnx"}
"""Runtimes that B may name, with the dialect of the models that each one runs."""


def main(words: Sequence[str]) -> int:
    """Compare the values of two runs and return the exit code.

    0: done. 1: an output is over ``--fail-over`` or a run failed. 2: a model or the inputs are bad.
    """
    options = _options(words)
    pairs = RequestedPair.parse(options.match)
    alignment = Alignment.parse(options.align) if options.align else None
    if bool(options.other) == bool(options.round):
        raise InputError("drift needs either a second model or --round 'PATTERN=TYPE'")
    refuse_unwritable(options.out)
    refuse_unwritable(options.junit)
    if (
        options.other.partition(":")[0] in _RUNTIMES
        and options.other not in _RUNTIMES
        and what_is_at(options.other) is None
    ):
        raise InputError(
            f"{options.other} is not a runtime that drift compares with: expected openvino:CPU, "
            "onnxruntime or a model file"
        )
    model = progress.read(options.model, options.open)
    if options.round and is_trace(model):
        raise InputError(f"{options.model} is a trace: --round needs a model, which can run again")
    inputs = _inputs_of(model, options)
    run = _run(model, inputs, options, {})
    if options.other in _RUNTIMES and what_is_at(options.other) is None:
        return _compare_with_runtime(run, inputs, options)
    if options.other:
        model = _read_other(options)
        inputs = _inputs_of(model, options)
    other_run = _run(model, inputs, options, parse_rounding(options.round))
    with progress.doing("comparing all values of both"):
        result = loopscope.drift(
            run, other_run, tolerance=options.tolerance, pairs=pairs, alignment=alignment
        )
    return _print_result(result, run, options, result.sentence, models=(run.model, model))


def _inputs_of(model: Model, options: argparse.Namespace) -> Mapping[str | int, object]:
    """Return the inputs of a model; a trace does not take any."""
    return {} if is_trace(model) else read_inputs(options.inputs, model)


def _read_other(options: argparse.Namespace) -> Model:
    """Return the second model with the same operators opened, as far as it has them.

    It may have the loop itself where the first model has the operator.
    """
    model = progress.read(options.other)
    try:
        return loopscope.open_as_loop(model, options.open) if options.open else model
    except AddressError:
        return model


def _compare_with_runtime(
    run: loopscope.Debugger, inputs: Mapping[str | int, object], options: argparse.Namespace
) -> int:
    """Compare a run with the runtime that the model belongs to."""
    if _RUNTIMES[options.other] != run.model.dialect:
        expected = next(name for name, dialect in _RUNTIMES.items() if dialect == run.model.dialect)
        raise InputError(
            f"{options.other} does not run {options.model} unconverted: expected {expected}"
        )
    with progress.doing("running the model in its own runtime"):
        result = _runtime_drift(run, inputs, options)
    differ = bool(result.drift.partings)
    offers = (
        rounding_suggestion(options.model, options.inputs, run.model, inputs, options.seconds)
        if differ
        else []
    )
    return _print_result(result.drift, run, options, result.sentence, offers)


def _runtime_drift(
    run: loopscope.Debugger, inputs: Mapping[str | int, object], options: argparse.Namespace
) -> RuntimeDrift:
    """Return the drift from the runtime, which runs the operators that are opened here."""
    if not options.open:
        return drift_from_runtime(run, inputs, tolerance=options.tolerance, seconds=options.seconds)
    closed = _run(loopscope.read_model(options.model), inputs, options, {})
    return drift_of_opened(
        run, closed, inputs, tolerance=options.tolerance, seconds=options.seconds
    )


def _print_result(
    result: Drift,
    run: loopscope.Debugger,
    options: argparse.Namespace,
    sentence: str,
    offers: Sequence[str] = (),
    models: Sequence[Model] = (),
) -> int:
    if options.out:
        write_table(result, run, options.out)
    # A trace has no outputs but what it recorded last, so that every matched value counts.
    every_value = options.align or any(map(is_trace, models))
    worst = result.worst
    error = result.outputs
    if every_value:
        error = worst.worst.relative if worst is not None else math.nan
    if options.junit:
        limit = options.tolerance if options.fail_over is None else options.fail_over
        name = f"loopscope drift {options.model} {options.other}"
        write_junit(options.junit, [drift_suite(result, name, limit)])
    if options.json:
        print(json.dumps({**drift_data(result), "sentence": sentence}, allow_nan=False))
    else:
        print_lines((sentence, *_lines(result), *offers))
    return FAILED if options.fail_over is not None and not error <= options.fail_over else FINISHED


def _run(
    model: Model,
    inputs: Mapping[str | int, object],
    options: argparse.Namespace,
    rounding: Mapping[str, str],
) -> loopscope.Debugger:
    limits = loopscope.Limits(seconds=options.seconds)
    debugger = progress.run_whole(
        loopscope.Debugger(model, inputs, limits=limits, record=COMPARED, rounding=rounding)
    )
    if debugger.state != "finished":
        raise run_stopped(debugger.machine, debugger.failure or "the run did not finish", "error")
    return debugger


def parse_rounding(assignments: Sequence[str]) -> dict[str, str]:
    """Return the type by pattern, from ``PATTERN=TYPE``; a pattern may contain an equals sign."""
    pairs = [text.rpartition("=") for text in assignments]
    wrong = next(
        (text for text, (pattern, _, _) in zip(assignments, pairs, strict=True) if not pattern),
        None,
    )
    if wrong is not None:
        raise InputError(
            f"{wrong!r} is not a rounding: expected PATTERN=TYPE, such as main/*/state=bf16"
        )
    return {pattern: to for pattern, _, to in pairs}


def _lines(result: Drift) -> Iterator[str]:
    over = sorted(
        (pair for pair in result.pairs if pair.first is not None),
        key=lambda pair: -pair.worst.relative,
    )
    for pair in over[:_PRINTED_ROWS]:
        growth = f", {pair.growth.words}" if pair.growth else ""
        match = "" if pair.one == pair.other else f" (beside {pair.other}, by {pair.how})"
        error = f"{significant(pair.worst.relative, 2)}{cosine_words(pair.worst)}"
        yield f"  {pair.worst.address}{match}: {error}{growth}"
    if len(over) > _PRINTED_ROWS:
        yield f"  and {len(over) - _PRINTED_ROWS:,} more over the tolerance"
    for parting in result.partings[1:]:
        yield f"  {parting.sentence}"
    if counts := Counter(
        pair.how for pair in result.pairs if pair.how != "name" or pair.one != pair.other
    ):
        yield "  different names: " + ", ".join(
            f"{count:,} matched by {how}" for how, count in counts.items()
        )
    for which, places in zip(("first", "second"), result.unmatched, strict=True):
        if places:
            yield f"  only in the {which}: {_shortened(places, _PRINTED_ROWS)}"
    for which, places in zip(("first", "second"), result.unpacking, strict=True):
        if places:
            only = (
                "1 operation only unpacks"
                if len(places) == 1
                else f"{len(places):,} operations only unpack"
            )
            names = _shortened(places, 2)
            yield f"  in the {which} {only} weights that are stored in a narrower type: {names}"
    if result.left_out:
        yield "  not compared: " + ", ".join(
            f"{count:,} {reason}" for reason, count in result.left_out.items()
        )


def _shortened(places: Sequence[str], limit: int) -> str:
    more = f" and {len(places) - limit:,} more" if len(places) > limit else ""
    return ", ".join(places[:limit]) + more


def drift_data(result: Drift) -> dict[str, object]:
    """Return every pair with its worst and first moment as JSON; NaN and infinities become null."""
    pairs = [
        {
            "one": pair.one,
            "other": pair.other,
            "matched": pair.how,
            "rows": len(pair.deviations.absolute),
            "worst": _plain(asdict(pair.worst)),
            "first": None if pair.first is None else _plain(asdict(pair.first)),
            "growth": None if pair.growth is None else _plain(asdict(pair.growth)),
        }
        for pair in result.pairs
    ]
    return {
        "tolerance": result.tolerance,
        "outputs": _finite(result.outputs),
        "choice": result.choice,
        "begins": None if result.first is None else result.first.one,
        "pairs": pairs,
        "partings": [asdict(parting) for parting in result.partings],
        "unmatched": [list(places) for places in result.unmatched],
        "unpacking": [list(places) for places in result.unpacking],
        "left_out": dict(result.left_out),
        "unrounded": list(result.unrounded),
    }


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    return {name: _finite(value) for name, value in values.items()}


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "drift",
        "Run two models on the same inputs, or one model as it is and with values rounded. Report "
        "how far each value is apart in each iteration, where the error begins and how it grows.",
        "Loops and values are matched by name, then by structure, then by type and shape. Errors "
        "are fractions of the largest magnitude in a tensor. "
        "A and B may also be traces (.loopscope). "
        "Exit code: 0 done, 1 an output, or any value of a trace, is further apart than "
        "--fail-over.",
    )
    add_model(parser, metavar="A", help="a model, or a trace that a program recorded")
    parser.add_argument(
        "other",
        metavar="B",
        nargs="?",
        default="",
        help="the second model, for example after conversion or compression; or the model's own "
        "runtime: openvino:CPU or onnxruntime",
    )
    add_inputs(parser)
    parser.add_argument(
        "--round",
        action="append",
        default=[],
        metavar="PATTERN=TYPE",
        help="instead of B: A with values rounded in all iterations, such as 'main/*/state=bf16'; "
        "types are bf16, f16, f8e4m3, f8e5m2, int8 (per row), int4 (per group of 128); repeat for "
        "more patterns",
    )
    add_open(parser)
    parser.add_argument(
        "--match",
        default="",
        metavar="A=B;...",
        help="pairs of loops and values, by name or address, that belong together whatever they "
        "are called, such as 'decode=main/while;state=S'",
    )
    parser.add_argument(
        "--align",
        default="",
        metavar="N:M",
        help="iterations of A to iterations of B, such as 64:1 for a sequential loop beside one "
        "in chunks of 64; auto follows from the counts. States are compared at the ends of chunks",
    )
    add_tolerance(parser, "smallest error that is reported as apart", TOLERANCE)
    parser.add_argument(
        "--out",
        default="",
        type=_table_path,
        metavar="TABLE",
        help="write every pair and iteration to a .parquet or .csv file",
    )
    parser.add_argument(
        "--junit",
        default="",
        metavar="FILE.xml",
        help="write a JUnit file with a test per pair of values, which fails if an error is over "
        "--fail-over (or the tolerance)",
    )
    parser.add_argument(
        "--fail-over",
        type=tolerance,
        metavar="T",
        help="exit with 1 if an output is further apart than T",
    )
    add_seconds(parser, "time limit of each run in seconds")
    add_json(parser)
    return parser.parse_args(words)


def _table_path(text: str) -> str:
    """Check the name before the runs, which may take long."""
    if text and Path(text).suffix.lower() not in (".parquet", ".csv"):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .parquet or .csv")
    return text
