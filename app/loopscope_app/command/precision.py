"""``loopscope precision``: which weights and carried states of a model have to stay when the
others are rounded to a narrower type.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from loopscope.comparison import Precision, precision
from loopscope.errors import neutral
from loopscope.ir import Model
from loopscope.ops import NARROWER
from loopscope_app.command import progress
from loopscope_app.command.compare import tolerance
from loopscope_app.command.given_inputs import add_inputs, read_inputs
from loopscope_app.command.run import FINISHED

_TOLERANCE = 1e-2
_MOST_SHOWN = 20


def main(words: Sequence[str]) -> int:
    """The exit code: 0 done, 2 the model or the inputs are refused, or the time is up."""
    options = _options(words)
    model = progress.read(options.model)
    inputs = read_inputs(options.inputs, model)
    found = _found(model, inputs, options)
    if options.json:
        print(json.dumps(_as_json(found), allow_nan=False))
        return FINISHED
    for line in _lines(found):
        print(neutral(line, len(line)))
    return FINISHED


def _found(
    model: Model, inputs: Mapping[str | int, object], options: argparse.Namespace
) -> Precision:
    done, most = 0, 0

    def told(runs: int, total: int) -> None:
        nonlocal done, most
        done, most = runs, total

    with progress.doing(
        "rounding one after the other",
        lambda: f"{progress.bar(done, most)} run {done:,} of at most {most:,}",
    ):
        return precision(
            model,
            inputs,
            to=options.to,
            tolerance=options.tolerance,
            seconds=options.seconds,
            report=told,
        )


def _lines(found: Precision) -> Iterator[str]:
    yield found.sentence
    yield f"What rounding one alone to {found.to} does to the outputs:"
    stay = set(found.stay)
    for cost in found.costs[:_MOST_SHOWN]:
        yield f"  {cost.error:.2g}  {cost.candidate.address} ({cost.candidate.kind}){', stays' if cost.candidate in stay else ''}"
    if len(found.costs) > _MOST_SHOWN:
        yield f"  and {len(found.costs) - _MOST_SHOWN:,} more, each at most {found.costs[_MOST_SHOWN].error:.2g}"
    if found.names:
        yield f"nncf.IgnoredScope(names={json.dumps(list(found.names))})"
    if found.inside:
        which = (
            f"{len(found.inside):,} of what has to stay {'is' if len(found.inside) == 1 else 'are'}"
        )
        yield f"{which} inside loops or branches: NNCF compresses nothing there, and takes no names from there."


def _as_json(found: Precision) -> dict[str, object]:
    """With null for an error without a number: a run that failed."""
    costs = [{**asdict(cost.candidate), "error": _finite(cost.error)} for cost in found.costs]
    return {
        "sentence": found.sentence,
        "to": found.to,
        "tolerance": found.tolerance,
        "costs": costs,
        "everything": _finite(found.everything),
        "stay": [one.address for one in found.stay],
        "error": _finite(found.error),
        "ignored_scope": list(found.names),
    }


def _finite(error: float) -> float | None:
    return error if math.isfinite(error) else None


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope precision",
        description="Round each weight (a Const of floats with several rows) and each state that a loop carries alone to a narrower type, "
        "rank what that costs at the outputs, and find a smallest set that has to stay as it is, also as NNCF's IgnoredScope.",
        epilog="The scale of int8 is that of a row along the last axis, of int4 that of 128 numbers in a row. The names in the "
        "IgnoredScope are those of the operations that compute with what has to stay, but for those inside loops and branches, where "
        "NNCF compresses nothing.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts",
    )
    add_inputs(parser)
    parser.add_argument("--to", required=True, choices=NARROWER, help="what is rounded to")
    parser.add_argument(
        "--tolerance",
        type=tolerance,
        default=_TOLERANCE,
        metavar="T",
        help="how far the outputs may be apart, as a part of the largest magnitude in them (default: %(default)g)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=600.0,
        metavar="S",
        help="the most that all runs may take (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args(words)
