"""Options of ``loopscope check`` for repairs."""

from __future__ import annotations

import argparse

from loopscope.transform import REPAIRABLE


def add_repair_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a repair to ``check``."""
    parser.add_argument(
        "--fix",
        metavar="OUT",
        default="",
        help="repair LS906 and LS931, compare before and after in the model's runtime, and write "
        "the repaired model to OUT",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=REPAIRABLE,
        default=[],
        help="with --fix: repair only this fault (a loop that is meant to be a do-while loop is "
        "no fault); may be given twice",
    )
    parser.add_argument(
        "--inputs",
        default="",
        metavar="INPUTS",
        help="with --fix: inputs of the comparison, as for `loopscope run` (default: generated)",
    )
    parser.add_argument(
        "--source",
        default="",
        metavar="PROGRAM",
        help="with --fix: also compare with the program that the model was converted from, as "
        "`loopscope compare --source` does",
    )
