"""The command: damages models, or files of data, at random, and prints what that brings about."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.cases import Case
from tests.fuzz.data_files import DATA
from tests.fuzz.subjects import subject
from tests.fuzz.watched import Finding, Plan, fuzz


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    if options.case is not None:
        return _one(options)
    began = time.time()
    seconds = (
        options.seconds
        if options.seconds is not None
        else 60
        if options.count is None
        else float("inf")
    )
    plan = Plan(
        options.seed,
        options.files,
        options.first,
        options.count,
        began + seconds,
        options.jobs,
        options.share,
        options.data,
    )
    seen: Counter[str] = Counter()
    for one in fuzz(plan):
        if isinstance(one, Finding):
            seen[one.signature] += 1
            if seen[one.signature] == 1:
                print(one, flush=True)
                _keep(options.keep, one.case, plan.subject.case(one.seed, one.case))
        else:
            print(
                f"seed {plan.seed} from {plan.first}: {one:,} cases in {time.time() - began:.0f} s, {len(seen)} kinds of findings",
                flush=True,
            )
    for signature, count in seen.most_common():
        print(f"{count:6}  {signature}")
    return int(bool(seen))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description="Damage models, or files of data, at random; print what that brings about.",
    )
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="models to damage (default: samples, and what is made up)",
    )
    parser.add_argument(
        "--data",
        default="",
        choices=sorted(DATA),
        help="files of data of this kind instead of models",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--count", type=int, help="so many cases")
    parser.add_argument(
        "--seconds", type=float, help="so long (default: 60, or what --count takes)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="of the slow stages, how many of those that are usual",
    )
    parser.add_argument("--case", type=int, help="only this case, in this process")
    parser.add_argument("--keep", type=Path, help="a folder for the files of what is found")
    return parser.parse_args(arguments)


def _one(options: argparse.Namespace) -> int:
    whole = subject(options.data, options.files)
    case = whole.case(options.seed, options.case)
    _keep(options.keep, options.case, case)
    print(case.name)
    whole.go(case, lambda number: print(whole.stages[number]), options.share)
    return 0


def _keep(folder: Path | None, number: int, case: Case) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / (f"case_{number}" + _suffix(case.document))
        target.write_bytes(case.document)
        target.with_suffix(".bin").write_bytes(case.weights)


def _suffix(document: bytes) -> str:
    return ".onnx" if document[:1] == b"\x08" else ".zip" if document[:2] == b"PK" else ".xml"


if __name__ == "__main__":
    sys.exit(main())
