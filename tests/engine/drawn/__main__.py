"""Draws models for a while: ``python -m tests.engine.drawn --seconds 600 --seed 1``. Each that does not agree is told by its seed."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import traceback

from tests.engine.drawn.agreement import Agreement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    end = time.monotonic() + asked.seconds
    drawn = wrong = 0
    for seed in itertools.count(asked.seed):
        if time.monotonic() > end:
            break
        drawn += 1
        try:
            agreement = Agreement(seed)
            if agreement.is_short:
                agreement.check(8)
        except Exception:
            wrong += 1
            sys.stdout.write(f"seed {seed}:\n{traceback.format_exc(limit=-3)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{drawn} models, {wrong} of them wrong\n")


if __name__ == "__main__":
    main()
