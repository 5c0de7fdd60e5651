"""``loopscope fate``: report what the runtime runs in place of each loop and branch."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from loopscope.errors import EngineError
from loopscope.peers import Fates, fates
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

_MAX_UNCHANGED = 3
"""Number of unchanged loops and branches that get a line each; more are counted in one line."""


def main(words: Sequence[str]) -> int:
    """Report the fates and return the exit code.

    0: the runtime accepted the model. 2: it did not, or the runtime is not installed.
    """
    options = _options(words)
    try:
        model = progress.read_operations(options.model)
        with progress.doing("compiling the model in its runtime"):
            result = fates(model, device=options.device, seconds=options.seconds)
    except EngineError as error:
        return refuse_as_json(options, error, {"regions": None, "sentence": str(error)})
    if options.json:
        print(json.dumps(asdict(result)))
    else:
        print_lines(_lines(result))
    return FINISHED


def _lines(result: Fates) -> Iterator[str]:
    unchanged = sum(region.became == "kept" for region in result.regions)
    are_counted = unchanged > _MAX_UNCHANGED
    for region in result.regions:
        if not (are_counted and region.became == "kept"):
            yield f"{region.address}: {region.sentence}"
    if are_counted:
        which = "all" if unchanged == len(result.regions) else "the other"
        yield (
            f"{result.runtime} keeps {which} {unchanged} loops and branches as they are "
            "(each of them with --json)."
        )
    if not result.regions:
        yield f"The model has no loop and no branch; {result.runtime} accepts it."


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "fate",
        "Report what the runtime of a model (OpenVINO for IR, ONNX Runtime for ONNX) runs in place "
        "of each Loop, If, TensorIterator and Scan: the operation itself, one fused operation, "
        "copies of its body, or one branch.",
        "The answer comes from the graph that the runtime runs, in a process of its own. What "
        "cannot be read from it is reported as not known. "
        "Exit code: 0 the runtime accepts the model, 2 it does not.",
    )
    add_model(parser)
    parser.add_argument(
        "--device",
        default="CPU",
        metavar="NAME",
        help="device of the runtime (default: %(default)s)",
    )
    add_seconds(parser)
    add_json(parser)
    return parser.parse_args(words)
