"""Options, exit codes and answers that the subcommands share, and the check of output paths."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import loopscope
from loopscope.errors import EngineError, in_one_line, neutral

FINISHED, FAILED, REFUSED, STOPPED = 0, 1, 2, 130
"""Exit codes: done; a run failed or a result differs; model or inputs are bad; Ctrl+C."""
SCHEMA = 1
"""Version of the JSON answers; ``answers.schema.json`` describes them."""
MODEL_HELP = (
    "an OpenVINO .xml, an .onnx or .tflite file, a TensorFlow or PaddlePaddle model, or a PyTorch "
    "exported program"
)


def command_parser(
    command: str, description: str, epilog: str = "", *, preformatted: bool = False
) -> argparse.ArgumentParser:
    """Return the parser of a subcommand. Options must be written in full.

    ``preformatted`` keeps the line breaks of the description and the epilog.
    """
    return argparse.ArgumentParser(
        prog=f"loopscope {command}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter
        if preformatted
        else argparse.HelpFormatter,
        allow_abbrev=False,
    )


def add_model(
    parser: argparse.ArgumentParser, metavar: str = "MODEL", help: str = MODEL_HELP
) -> None:
    """Add the argument ``model``."""
    parser.add_argument("model", metavar=metavar, help=help)


def add_open(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--open``, which opens operators that are loops."""
    parser.add_argument(
        "--open",
        action="append",
        default=[],
        metavar="OPERATOR",
        help="open an LSTM, GRU, LinearAttention or another operator that is a loop as this loop: "
        "its name or address, a pattern with *, or all; repeat for more operators",
    )


def add_json(
    parser: argparse.ArgumentParser, help: str = "print the result as JSON instead of text"
) -> None:
    """Add the option ``--json``."""
    parser.add_argument("--json", action="store_true", help=help)


def add_seconds(
    parser: argparse.ArgumentParser, help: str = "time limit in seconds", default: float = 120.0
) -> None:
    """Add the option ``--seconds``, the time limit of a command."""
    parser.add_argument(
        "--seconds",
        type=float,
        default=default,
        metavar="S",
        help=f"{help} (default: %(default)g)",
    )


def add_tolerance(parser: argparse.ArgumentParser, help: str, default: float) -> None:
    """Add the option ``--tolerance``."""
    parser.add_argument(
        "--tolerance",
        type=tolerance,
        default=default,
        metavar="T",
        help=f"{help} (default: %(default)g)",
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--iterations`` and ``--seconds``, which limit one run."""
    default = loopscope.Limits()
    parser.add_argument(
        "--iterations",
        type=int,
        metavar="N",
        help=f"stop after N iterations of all loops together (default: {default.iterations:,})",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help=f"stop after S seconds (default: {default.seconds:g})",
    )


def requested_limits(options: argparse.Namespace) -> dict[str, Any]:
    """Return the limits that the command line sets, by field of ``Limits``."""
    values = {name: getattr(options, name) for name in ("iterations", "seconds")}
    return {name: value for name, value in values.items() if value is not None}


def whole_number(lower: int, upper: int | None = None) -> Callable[[str], int]:
    """Return a function that parses a whole number from ``lower`` to ``upper``.

    >>> whole_number(1)("3")
    3
    """

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < lower or (upper is not None and int(text) > upper):
            limit = f"from {lower} on" if upper is None else f"from {lower} to {upper:,}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {limit}")
        return int(text)

    return parse


def megabytes(text: str) -> float:
    """Parse a size in megabytes."""
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if not 0 <= size < 1e6:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size: expected a number of megabytes from 0 on"
        )
    return size


def tolerance(text: str) -> float:
    """Parse a tolerance: a number from 0 on."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number >= 0:  # no value would differ by more than NaN
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a tolerance: expected a number from 0 on"
        )
    return number


def refusal_fields(error: EngineError) -> dict[str, Any]:
    """Return the JSON answer of a command that cannot answer."""
    return {"schema": SCHEMA, "state": "refused", "message": in_one_line(str(error))}


def refuse_as_json(options: argparse.Namespace, error: EngineError, answer: dict[str, Any]) -> int:
    """Print the answer and return the exit code for bad input. Raise the error without
    ``--json``.
    """
    if not options.json:
        raise error
    print(json.dumps(answer))
    return REFUSED


def print_lines(lines: Iterable[str]) -> None:
    """Print lines that may contain names of the model, without control characters."""
    for line in lines:
        print(neutral(line, len(line)))


def refuse_unwritable(path: str) -> None:
    """Raise ``EngineError`` for a folder, and for a file in a folder that does not exist; accept an
    empty path.
    """
    folder = Path(path).parent
    if path and Path(path).is_dir():
        raise EngineError(f"{path}: expected a file to write to, got a folder")
    if path and not folder.is_dir():
        raise EngineError(f"{path}: cannot be written, the folder {str(folder)!r} does not exist")


def refuse_opened(path: str, *opened: str) -> None:
    """Raise ``EngineError`` if ``path`` is a file that was opened; accept a new file."""
    target = Path(path)
    for file in map(Path, opened):
        if target.exists() and file.exists() and target.samefile(file):
            raise EngineError(
                f"{path}: it was opened as the model, expected another path to write to"
            )
