"""``loopscope precision``: find the weights and carried states that must not be rounded."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from loopscope.comparison import Precision, precision
from loopscope.ir import Model, significant
from loopscope.ops import NARROWER
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FINISHED,
    add_json,
    add_model,
    add_open,
    add_seconds,
    add_tolerance,
    command_parser,
    print_lines,
)
from loopscope_app.command.given_inputs import add_inputs, read_inputs

_TOLERANCE = 1e-2
_PRINTED_COSTS = 20


def main(words: Sequence[str]) -> int:
    """Report the costs of rounding and return the exit code 0; a refusal or the time limit
    raises.
    """
    options = _options(words)
    model = progress.read_operations(options.model, options.open)
    inputs = read_inputs(options.inputs, model)
    result = _round_each(model, inputs, options)
    if options.json:
        print(json.dumps(_as_json(result), allow_nan=False))
        return FINISHED
    print_lines(_lines(result))
    return FINISHED


def _round_each(
    model: Model, inputs: Mapping[str | int, object], options: argparse.Namespace
) -> Precision:
    finished, total = 0, 0

    def count(runs: int, limit: int) -> None:
        nonlocal finished, total
        finished, total = runs, limit

    with progress.doing(
        "rounding each in turn",
        lambda: f"{progress.bar(finished, total)} run {finished:,} of at most {total:,}",
    ):
        return precision(
            model,
            inputs,
            to=options.to,
            tolerance=options.tolerance,
            seconds=options.seconds,
            report=count,
        )


def _lines(result: Precision) -> Iterator[str]:
    yield result.sentence
    yield f"Error of the outputs if only this is rounded to {result.to}:"
    unrounded = set(result.stay)
    for cost in result.costs[:_PRINTED_COSTS]:
        mark = ", stays" if cost.candidate in unrounded else ""
        error = significant(cost.error, 2)
        yield f"  {error}  {cost.candidate.address} ({cost.candidate.kind}){mark}"
    if len(result.costs) > _PRINTED_COSTS:
        more = len(result.costs) - _PRINTED_COSTS
        largest = significant(result.costs[_PRINTED_COSTS].error, 2)
        yield f"  and {more:,} more, each at most {largest}"
    if result.names:
        yield f"nncf.IgnoredScope(names={json.dumps(list(result.names))})"
    if result.inside:
        verb = "is" if len(result.inside) == 1 else "are"
        yield (
            f"{len(result.inside):,} of those that must not be rounded {verb} inside loops or "
            "branches: NNCF compresses nothing inside, and accepts no names from there."
        )


def _as_json(result: Precision) -> dict[str, object]:
    """Return the JSON answer; the error of a failed run is null."""
    costs = [{**asdict(cost.candidate), "error": _finite(cost.error)} for cost in result.costs]
    return {
        "sentence": result.sentence,
        "to": result.to,
        "tolerance": result.tolerance,
        "costs": costs,
        "everything": _finite(result.everything),
        "stay": [candidate.address for candidate in result.stay],
        "error": _finite(result.error),
        "ignored_scope": list(result.names),
    }


def _finite(error: float) -> float | None:
    return error if math.isfinite(error) else None


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "precision",
        "Round each weight (a float Const with several rows) and each state that a loop carries "
        "alone to a narrower type, rank the resulting errors at the outputs, and find a smallest "
        "set that must not be rounded, also as NNCF's IgnoredScope.",
        "The scale of int8 is per row along the last axis; the scale of int4 is per 128 numbers of "
        "a row. The IgnoredScope names the operations that compute with the unrounded values, "
        "except inside loops and branches, where NNCF compresses nothing.",
    )
    add_model(parser)
    add_open(parser)
    add_inputs(parser)
    parser.add_argument("--to", required=True, choices=NARROWER, help="the narrower type")
    add_tolerance(
        parser,
        "accepted error of the outputs, as a fraction of the largest magnitude in them",
        _TOLERANCE,
    )
    add_seconds(parser, "time limit of all runs in seconds", 600.0)
    add_json(parser)
    return parser.parse_args(words)
