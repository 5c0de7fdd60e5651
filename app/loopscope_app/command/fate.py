"""``loopscope fate``: says what the runtime of a model runs in place of each of its loops and
branches.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from loopscope.errors import EngineError, neutral
from loopscope.peers import Fates, fates
from loopscope_app.command import progress
from loopscope_app.command.run import FINISHED, REFUSED

_KEPT_TOLD = 3


def main(words: Sequence[str]) -> int:
    """The exit code: 0 the runtime took the model, 2 it did not, or there is none."""
    options = _options(words)
    try:
        model = progress.read(options.model)
        with progress.doing("asking the runtime what it makes of the model"):
            found = fates(model, device=options.device, seconds=options.seconds)
    except EngineError as error:
        if not options.json:
            raise
        print(json.dumps({"regions": None, "sentence": str(error)}))
        return REFUSED
    if options.json:
        print(json.dumps(asdict(found)))
        return FINISHED
    for line in _lines(found):
        print(neutral(line, len(line)))
    return FINISHED


def _lines(found: Fates) -> Iterator[str]:
    """One for each loop and branch; many that are kept are counted in one."""
    kept = sum(one.became == "kept" for one in found.regions)
    counted = kept > _KEPT_TOLD
    for one in found.regions:
        if not (counted and one.became == "kept"):
            yield f"{one.address}: {one.sentence}"
    if counted:
        every = "all" if kept == len(found.regions) else "the other"
        yield f"{found.runtime} keeps {every} {kept} loops and branches as they are (each of them with --json)."
    if not found.regions:
        yield f"The model has no loop and no branch; {found.runtime} takes it."


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope fate",
        description="Say what the runtime of a model, OpenVINO for IR and ONNX Runtime for ONNX, runs in place of each Loop, If, "
        "TensorIterator and Scan: the operation itself, one fused operation, copies of its body, or one branch.",
        epilog="It is read from the graph that the runtime runs, in a process of its own. What cannot be read is said to be not known. "
        "The exit code is 0 when the runtime takes the model, else 2.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts",
    )
    parser.add_argument(
        "--device",
        default="CPU",
        metavar="NAME",
        help="the runtime's device (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=120.0,
        metavar="S",
        help="the most that it may take (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args(words)
