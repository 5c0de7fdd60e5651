"""Checks one drawn model after another until the time is over, and writes those that are wrong
with their seeds.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import traceback
from collections.abc import Callable


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that say how long, and from which seed on."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--seconds", type=float, default=60.0)
    made.add_argument("--seed", type=int, default=0)
    return made


def check_drawn(check: Callable[[int], object], seconds: float, first: int) -> None:
    """``check`` raises when the model of a seed is wrong."""
    end = time.monotonic() + seconds
    drawn = wrong = 0
    for seed in itertools.count(first):
        if time.monotonic() > end:
            break
        drawn += 1
        try:
            check(seed)
        except Exception:
            wrong += 1
            sys.stdout.write(f"seed {seed}:\n{traceback.format_exc(limit=-3)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{drawn} models, {wrong} of them wrong\n")
