"""``loopscope drift``: how far two models, or a model and the same with values rounded, drift
apart over the iterations.
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
from loopscope.comparison import COMPARED, TOLERANCE, Drift, cosine_words, write_table
from loopscope.debug import run_stopped
from loopscope.errors import InputError, neutral
from loopscope.ir import Model
from loopscope.peers import drift_from_runtime
from loopscope.read import what_is_at
from loopscope_app.command import progress
from loopscope_app.command.compare import tolerance
from loopscope_app.command.device_precision import offered
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.command.output_files import refuse_unwritable
from loopscope_app.command.run import FAILED, FINISHED

_MOST_SHOWN = 10
_RUNTIMES = {"openvino:CPU": "openvino", "openvino": "openvino", "onnxruntime": "onnx"}
"""What B may be beside a file, with the dialect of the models that it takes."""


def main(words: Sequence[str]) -> int:
    """The exit code: 0 done, 1 an output is over ``--fail-over`` or a run failed, 2 a model or
    the inputs are refused.
    """
    options = _options(words)
    if bool(options.other) == bool(options.round):
        raise InputError("drift takes two models, or one and --round 'PATTERN=TYPE'")
    refuse_unwritable(options.out)
    if (
        options.other.partition(":")[0] in _RUNTIMES
        and options.other not in _RUNTIMES
        and what_is_at(options.other) is None
    ):
        raise InputError(
            f"{options.other} is no runtime that models are compared with: expected openvino:CPU, onnxruntime or a model file"
        )
    model = progress.read(options.model)
    inputs = read_inputs(options.inputs, model)
    one = _run(model, inputs, options, {})
    if options.other in _RUNTIMES and what_is_at(options.other) is None:
        return _beside_runtime(one, inputs, options)
    if options.other:
        model = progress.read(options.other)
        inputs = read_inputs(options.inputs, model)
    other = _run(model, inputs, options, rounding_said(options.round))
    with progress.doing("comparing all values of both"):
        found = loopscope.drift(one, other, tolerance=options.tolerance)
    return _told(found, one, options, found.sentence)


def _beside_runtime(
    one: loopscope.Debugger, inputs: Mapping[str | int, object], options: argparse.Namespace
) -> int:
    """Against the runtime that the model belongs to."""
    if _RUNTIMES[options.other] != one.model.dialect:
        fitting = next(name for name, dialect in _RUNTIMES.items() if dialect == one.model.dialect)
        raise InputError(
            f"{options.other} does not run {options.model} as it is: compare it with {fitting}"
        )
    with progress.doing("running the model in its own runtime"):
        found = drift_from_runtime(
            one, inputs, tolerance=options.tolerance, seconds=options.seconds
        )
    differ = bool(found.drift.partings)
    offers = (
        offered(options.model, options.inputs, one.model, inputs, options.seconds) if differ else []
    )
    return _told(found.drift, one, options, found.sentence, offers)


def _told(
    found: Drift,
    one: loopscope.Debugger,
    options: argparse.Namespace,
    sentence: str,
    offers: Sequence[str] = (),
) -> int:
    if options.out:
        write_table(found, one, options.out)
    if options.json:
        print(json.dumps({**drift_data(found), "sentence": sentence}, allow_nan=False))
    else:
        for line in (sentence, *_lines(found), *offers):
            print(neutral(line, len(line)))
    return (
        FAILED
        if options.fail_over is not None and not found.outputs <= options.fail_over
        else FINISHED
    )


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


def rounding_said(given: Sequence[str]) -> dict[str, str]:
    """From ``PATTERN=TYPE``; names may have an equals sign in them."""
    pairs = [text.rpartition("=") for text in given]
    wrong = next(
        (text for text, (pattern, _, _) in zip(given, pairs, strict=True) if not pattern), None
    )
    if wrong is not None:
        raise InputError(
            f"{wrong!r} does not say what is rounded to what: expected PATTERN=TYPE, such as main/*/state=bf16"
        )
    return {pattern: to for pattern, _, to in pairs}


def _lines(found: Drift) -> Iterator[str]:
    over = sorted(
        (pair for pair in found.pairs if pair.first is not None),
        key=lambda pair: -pair.worst.relative,
    )
    for pair in over[:_MOST_SHOWN]:
        grows = f", {pair.growth.words}" if pair.growth else ""
        matched = "" if pair.one == pair.other else f" (beside {pair.other}, by {pair.how})"
        yield f"  {pair.worst.address}{matched}: {pair.worst.relative:.2g}{cosine_words(pair.worst)}{grows}"
    if len(over) > _MOST_SHOWN:
        yield f"  and {len(over) - _MOST_SHOWN:,} more over the tolerance"
    for parting in found.partings[1:]:
        yield f"  {parting.sentence}"
    if counts := Counter(
        pair.how for pair in found.pairs if pair.how != "name" or pair.one != pair.other
    ):
        yield "  of other names: " + ", ".join(
            f"{count:,} matched by {how}" for how, count in counts.items()
        )
    for which, places in zip(("first", "second"), found.unmatched, strict=True):
        if places:
            listed = ", ".join(places[:_MOST_SHOWN]) + (
                f" and {len(places) - _MOST_SHOWN:,} more" if len(places) > _MOST_SHOWN else ""
            )
            yield f"  only in the {which}: {listed}"
    for which, places in zip(("first", "second"), found.unpacking, strict=True):
        if places:
            listed = ", ".join(places[:2]) + (
                f" and {len(places) - 2:,} more" if len(places) > 2 else ""
            )
            only = (
                "1 operation only unpacks"
                if len(places) == 1
                else f"{len(places):,} operations only unpack"
            )
            yield f"  in the {which} {only} weights that are kept in a narrower type: {listed}"
    if found.left_out:
        yield "  not compared: " + ", ".join(
            f"{count:,} {reason}" for reason, count in found.left_out.items()
        )


def drift_data(found: Drift) -> dict[str, object]:
    """Every pair with its worst and first moment; numbers that JSON lacks are null."""
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
        for pair in found.pairs
    ]
    return {
        "tolerance": found.tolerance,
        "outputs": _finite(found.outputs),
        "choice": found.choice,
        "begins": None if found.first is None else found.first.one,
        "pairs": pairs,
        "partings": [asdict(parting) for parting in found.partings],
        "unmatched": [list(places) for places in found.unmatched],
        "unpacking": [list(places) for places in found.unpacking],
        "left_out": dict(found.left_out),
        "unrounded": list(found.unrounded),
    }


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    return {name: _finite(value) for name, value in values.items()}


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope drift",
        description="Run two models on the same inputs, or one as it is and with values rounded, and say how far every value of every "
        "iteration is apart, where it begins and how it grows.",
        epilog="Loops and values belong together by name, then by structure, then by type and shape. Errors are parts of the largest "
        "magnitude in a tensor. The exit code is 0, or 1 when an output is further apart than --fail-over.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        metavar="A",
        help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts",
    )
    parser.add_argument(
        "other",
        metavar="B",
        nargs="?",
        default="",
        help="the other model: after conversion, compression, a fix; or the model's own runtime, openvino:CPU or onnxruntime",
    )
    add_inputs(parser)
    parser.add_argument(
        "--round",
        action="append",
        default=[],
        metavar="PATTERN=TYPE",
        help="instead of B: A with values rounded in all iterations, such as 'main/*/state=bf16'; types are bf16, f16, f8e4m3, f8e5m2, "
        "int8 (per row), int4 (per group of 128); may be given again",
    )
    parser.add_argument(
        "--tolerance",
        type=tolerance,
        default=TOLERANCE,
        metavar="T",
        help="what is called apart (default: %(default)g)",
    )
    parser.add_argument(
        "--out",
        default="",
        type=_table,
        metavar="TABLE",
        help="write every pair and iteration to a .parquet or .csv",
    )
    parser.add_argument(
        "--fail-over",
        type=tolerance,
        metavar="T",
        help="exit with 1 when an output is further apart than this",
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


def _table(text: str) -> str:
    """Said before the runs, which may be long."""
    if text and Path(text).suffix.lower() not in (".parquet", ".csv"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no table: expected a name that ends in .parquet or .csv"
        )
    return text
