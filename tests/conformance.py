"""Runs and round-trips a folder of recorded models and says which of them the engine reads, writes
or answers differently.

``python -m tests.conformance FOLDER [--openvino] [--show N]``: every folder below it with a
``model.xml`` is a case. Beside it lie ``inputs*.npz`` (i0, i1, ... in the order of the Parameters),
``expected*.npz`` (o0, ... in the order of the Results), and a ``case.json`` that may say
``negative``, ``tags``, ``check_rtol``, ``check_atol``, ``output_types``, ``verified``. With
``--openvino``, what was written of a verified case is also run by OpenVINO, which must compute the
same of it as of the original.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import loopscope
from loopscope.ir.equal import difference
from loopscope.write import write_model

SECONDS = 30
NOT_RUN = {"undefined", "load_only", "infinite"}
LEAST_TOLERANCE = {"f16": (5e-3, 1e-3), "bf16": (2e-2, 1e-2)}


@dataclass(frozen=True)
class Case:
    """One recorded model."""

    folder: Path
    facts: dict[str, object]

    @property
    def negative(self) -> bool:
        return bool(self.facts.get("negative"))

    @property
    def tags(self) -> set[str]:
        return {str(tag) for tag in listed(self.facts.get("tags"))}

    @property
    def runs(self) -> list[tuple[Path, Path]]:
        """The pairs of an inputs file and the expected outputs beside it."""
        if self.tags & NOT_RUN:
            return []
        pairs = (
            (inputs, inputs.with_name(inputs.name.replace("inputs", "expected", 1)))
            for inputs in sorted(self.folder.glob("inputs*.npz"))
        )
        return [(inputs, expected) for inputs, expected in pairs if expected.exists()]

    def tolerance(self, output: int) -> tuple[float, float]:
        """Relative and absolute."""
        types = listed(self.facts.get("output_types"))
        kind = str(types[output]) if output < len(types) else ""
        relative, absolute = (
            float(str(self.facts.get("check_rtol", 1e-3))),
            float(str(self.facts.get("check_atol", 1e-5))),
        )
        least = LEAST_TOLERANCE.get(kind, (0, 0))
        return max(relative, least[0]), max(absolute, least[1], 1e-5)


def listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def cases(folder: Path) -> Iterator[Case]:
    for model in sorted(folder.rglob("model.xml")):
        facts = model.with_name("case.json")
        yield Case(model.parent, json.loads(facts.read_text()) if facts.exists() else {})


def judged(case: Case, openvino: bool) -> Iterator[tuple[str, str]]:
    """What was done with a case, and the problem with it in words (empty when there is none)."""
    if case.negative:
        yield "refused", refusal_problem(case)
        return
    try:
        model = loopscope.read_model(case.folder / "model.xml")
    except loopscope.EngineError as error:
        yield "read", str(error)
        return
    yield "read", ""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "model.xml"
        problem = writing_problem(model, written)
        yield "written and read again", problem
        if openvino and not problem and case.runs and case.facts.get("verified"):
            yield "the same in OpenVINO", openvino_problem(case, written)
    for inputs, expected in case.runs:
        yield "run", running_problem(case, model, inputs, expected)


def refusal_problem(case: Case) -> str:
    """A model that OpenVINO refuses must not be run, unless it is harmless to."""
    inputs = next(iter(sorted(case.folder.glob("inputs*.npz"))), None)
    try:
        model = loopscope.read_model(case.folder / "model.xml")
        loopscope.run(
            model, numbered(inputs, "i") if inputs else [], limits=loopscope.Limits(seconds=SECONDS)
        )
    except loopscope.EngineError:
        return ""
    return (
        ""
        if "may_accept" in case.tags
        else f"accepted, but OpenVINO says: {case.facts.get('ov_error')}"
    )


def writing_problem(model: loopscope.Model, path: Path) -> str:
    try:
        write_model(model, path)
        return difference(model, loopscope.read_model(path))
    except loopscope.EngineError as error:
        return str(error)


def running_problem(case: Case, model: loopscope.Model, inputs: Path, expected: Path) -> str:
    try:
        outputs = loopscope.run(
            model, numbered(inputs, "i"), limits=loopscope.Limits(seconds=SECONDS)
        ).outputs
    except loopscope.EngineError as error:
        return str(error)
    wanted = numbered(expected, "o")
    if len(outputs) != len(wanted):
        return f"{len(outputs)} outputs, {len(wanted)} expected"
    told = (
        f"{inputs.stem}, output {position}: {problem}"
        for position, (got, want) in enumerate(zip(outputs, wanted, strict=True))
        if (problem := value_problem(np.asarray(got), want, *case.tolerance(position)))
    )
    return next(told, "")


def openvino_problem(case: Case, written: Path) -> str:
    """Compares the written model with the original, both run by OpenVINO; what it cannot run
    itself is no problem of ours.
    """
    import openvino as ov

    core = ov.Core()
    hints = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
    arrays = numbered(case.runs[0][0], "i")
    try:
        original = core.read_model(case.folder / "model.xml")
        with np.errstate(invalid="ignore"):
            values = [
                array.astype(port.element_type.to_dtype())
                for array, port in zip(arrays, original.inputs, strict=True)
            ]
        wanted = core.compile_model(original, "CPU", hints)(values)
    except (RuntimeError, TypeError, ValueError):
        return ""
    try:
        ours = core.compile_model(core.read_model(written), "CPU", hints)(values)
    except RuntimeError as error:
        return f"OpenVINO refuses what was written: {str(error).strip().splitlines()[-1]}"
    told = (value_problem(ours[index], wanted[index], 1e-6, 1e-6) for index in range(len(wanted)))
    return next((problem for problem in told if problem), "")


def numbered(path: Path, letter: str) -> list[np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        return [
            stored[f"{letter}{position}"]
            for position in range(len(stored.files))
            if f"{letter}{position}" in stored.files
        ]


def value_problem(got: np.ndarray, want: np.ndarray, relative: float, absolute: float) -> str:
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, expected {list(want.shape)}"
    if got.dtype.names:
        got = got[got.dtype.names[0]]
    if want.dtype.kind in "USO":
        return "" if got.astype(str).tolist() == want.astype(str).tolist() else "texts differ"
    if want.dtype.kind in "iub" and got.dtype.kind in "iub":
        return (
            ""
            if np.array_equal(got, want)
            else f"{np.count_nonzero(got != want)} of {want.size} numbers differ"
        )
    got, want = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        if np.allclose(got, want, relative, absolute, equal_nan=True):
            return ""
        return f"values differ, by up to {np.nanmax(np.abs(got - want)):.3g}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Run and round-trip a folder of recorded models.")
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--openvino",
        action="store_true",
        help="also compare what was written with the original in OpenVINO",
    )
    parser.add_argument("--show", type=int, default=20, help="how many problems to print")
    arguments = parser.parse_args()
    tried: dict[str, Counter[str]] = defaultdict(Counter)
    problems = []
    for case in cases(arguments.folder):
        group = case.folder.parent.name
        for done, problem in judged(case, arguments.openvino):
            tried[done][f"{group} tried"] += 1
            tried[done][f"{group} good"] += not problem
            if problem:
                problems.append(
                    f"{case.folder.relative_to(arguments.folder)}, {done}: {' '.join(problem.split())[:300]}"
                )
    for done, counts in tried.items():
        groups = sorted({key.rpartition(" ")[0] for key in counts})
        print(
            f"{done}: "
            + ", ".join(
                f"{group} {counts[f'{group} good']}/{counts[f'{group} tried']}" for group in groups
            )
        )
    for problem in problems[: arguments.show]:
        print(f"  {problem}")
    if len(problems) > arguments.show:
        print(f"  and {len(problems) - arguments.show} more")
    if not tried:
        print(
            f"there are no cases in {arguments.folder}: a case is a folder with a model.xml and its inputs*.npz and expected*.npz"
        )
    return 1 if problems or not tried else 0


if __name__ == "__main__":
    raise SystemExit(main())
