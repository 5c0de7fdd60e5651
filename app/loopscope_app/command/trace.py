"""``loopscope trace import``: make a trace of arrays that a program dumped."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from loopscope.errors import InputError
from loopscope.run_file import ENDING
from loopscope.tracing import DEFAULT_BUDGET, import_dumps
from loopscope_app.command import progress
from loopscope_app.command.command_line import command_parser, megabytes, refuse_unwritable


def main(words: Sequence[str]) -> int:
    """Write the trace and return the exit code 0; raise ``InputError`` if no file matches."""
    options = _options(words)
    if Path(options.output).suffix != ENDING:
        raise InputError(f"--output must end in {ENDING}, got {options.output!r}")
    refuse_unwritable(options.output)
    order = [name.strip() for name in options.order.split(",") if name.strip()]
    with progress.doing("reading the arrays"):
        count = import_dumps(
            options.folder,
            options.pattern,
            options.output,
            axis=options.axis,
            order=order,
            budget=options.budget,
        )
    print(f"{options.output} contains {count:,} file{'' if count == 1 else 's'}")
    return 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "trace",
        "Make a trace of arrays that a program in any language dumped. The trace opens like a run, "
        "and `loopscope drift` compares it with another trace or a model.",
        "{name} in a pattern is the name of a value. Every other placeholder is a number and "
        "becomes a loop: the first one is the outermost, and {layer} is the innermost. "
        "Files are .npy, .npz, .safetensors, or .pt, which torch reads with weights_only in a "
        "process of its own.",
    )
    parser.add_argument("task", choices=["import"], help="the only task: import dumped arrays")
    parser.add_argument("folder", metavar="DIR", help="folder with the dumped files")
    parser.add_argument(
        "--pattern",
        action="append",
        required=True,
        metavar="PATTERN",
        help="file names relative to DIR, such as '{name}_step{step}.npy' or "
        "'step{step}/layer{layer}.safetensors'; repeat for more patterns",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT.loopscope", help="write the trace here"
    )
    parser.add_argument(
        "--axis",
        type=int,
        metavar="N",
        help="split every array along this axis into the iterations of a loop `step`",
    )
    parser.add_argument(
        "--order",
        default="",
        metavar="A,B",
        help="the loops, outermost first (default: as in the pattern, with layer innermost)",
    )
    parser.add_argument(
        "--budget",
        type=megabytes,
        default=float(DEFAULT_BUDGET),
        metavar="MB",
        help="megabytes of arrays that are stored exactly; later ones become fingerprints "
        "(default: %(default)g)",
    )
    return parser.parse_args(words)
