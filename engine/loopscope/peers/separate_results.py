"""Results of runtimes and of a source program without a finished run of ours to compare.

Each installed runtime loads a file in a process of its own. The model's runtime is asked for inputs
with which our run does not finish.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from loopscope.debug.inputs import Inputs
from loopscope.debug.run import Run
from loopscope.errors import EngineError, elided
from loopscope.ir.readable import significant
from loopscope.native.run_once import CallStopped, never, run_alone
from loopscope.ops.values import is_tensor
from loopscope.peers.comparing import shape_text
from loopscope.peers.other_runtimes import CALLED, PACKAGES, Patience, ask_outputs, runtime_of
from loopscope.peers.source.program import Source, SourceRun, run_source
from loopscope.peers.source.report_columns import order, path
from loopscope.peers.source.source_report import ran, took

_MAX_SHAPES = 4


def runtime_alone(
    run: Run,
    inputs: Inputs,
    *,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> str:
    """Return a sentence: the runtime fails as well, with its reason, or runs the model, with the
    output shapes.

    Return an empty text if the runtime is not installed. Raise ``EngineError`` if ``stopped``
    returns True before the runtime ends.
    """
    if not runtime_of(run.model):
        return ""
    try:
        runtime, outputs = ask_outputs(run.model, inputs, Patience(seconds, stopped), document)
    except EngineError as error:
        if stopped():
            raise
        called = CALLED[run.model.dialect]
        reason = str(error).removeprefix(f"{called} does not run the model: ").removesuffix(".")
        return f"{called} does not run the model with these inputs either: {reason}."
    shapes = [
        f"{elided(signature.name)!r} {shape_text(np.asarray(value))}"
        if is_tensor(value)
        else f"{elided(signature.name)!r}"
        for signature, value in zip(run.model.outputs, outputs, strict=True)
    ]
    more = f" and {len(shapes) - _MAX_SHAPES:,} more" if len(shapes) > _MAX_SHAPES else ""
    listed = ", ".join(shapes[:_MAX_SHAPES])
    return f"{runtime} runs the model with these inputs: it gives {listed}{more}."


_DIALECTS = {".onnx": ("onnx", "openvino"), ".xml": ("openvino",)}
"""Runtimes that read a kind of file, by the dialect that they are the runtime of."""


@dataclass(frozen=True, slots=True)
class RuntimeLoads:
    """The answer of one runtime."""

    runtime: str
    """Name, with the version if it loads the model."""
    reason: str = ""
    """Reason why it does not load the model; empty if it does."""
    original_fails: bool = False
    """True if it does not load the original model either."""

    @property
    def sentence(self) -> str:
        if self.original_fails:
            return f"{self.runtime} loads neither it nor the original: {self.reason}"
        if self.reason:
            return f"{self.runtime} does not load it: {self.reason}"
        return f"{self.runtime} loads it"


def runtimes_load(
    file: Path,
    original: Path | None = None,
    *,
    seconds: float = 120.0,
    stopped: Callable[[], bool] = never,
) -> Iterator[RuntimeLoads]:
    """Yield for each installed runtime whether it loads and compiles a model file.

    A runtime that does not is tried on the ``original`` that the file was made of.
    """
    for dialect in _DIALECTS.get(file.suffix, ()):
        if importlib.util.find_spec(PACKAGES[dialect]) is None:
            continue
        try:
            answer = _loads(dialect, file, seconds, stopped)
            if answer.reason and original is not None:
                fails = bool(_loads(dialect, original, seconds, stopped).reason)
                answer = replace(answer, original_fails=fails)
        except CallStopped:
            return
        yield answer


def _loads(dialect: str, file: Path, seconds: float, stopped: Callable[[], bool]) -> RuntimeLoads:
    package, called = PACKAGES[dialect], CALLED[dialect]
    process = Path(__file__).with_name("loading_process.py")
    try:
        ended = run_alone(process, package, str(file), seconds=seconds, stopped=stopped)
    except TimeoutError:
        return RuntimeLoads(called, f"it did not finish within {seconds:g} seconds")
    if ended.code == 0:
        return RuntimeLoads(f"{called} {ended.said.strip()}")
    return RuntimeLoads(called, ended.reason or "it crashed")


_MAX_ELEMENTS = 4
"""Maximum number of elements shown of an output."""


@dataclass(frozen=True, slots=True)
class SourceAlone:
    """Results of a source program and of the file's runtime, next to an unfinished run of ours."""

    source: str
    framework: str
    """Name and version."""
    failure: str
    """Reason why our run did not finish."""
    regions: tuple[tuple[str, str], ...]
    """Name and description of each loop and branch of the program."""
    outputs: tuple[tuple[str, str, str], ...]
    """Name, source value and runtime value of each output; the runtime value is empty if
    missing.
    """
    runtime: str
    """Name and version, or the name alone if the runtime did not run."""
    why: str
    """Reason why the runtime did not run; empty if it did."""
    unwatched: str = ""
    """Reason why loops and branches of the source were not recorded; empty if they were."""

    @property
    def sentence(self) -> str:
        """Summary in a few sentences."""
        beside = (
            f"{self.runtime} is not beside it: {self.why.removesuffix('.')}."
            if self.why
            else f"{self.runtime} runs the file too."
        )
        own = f"The run of the file did not finish in Loopscope: {self.failure.removesuffix('.')}."
        return " ".join(
            part
            for part in (own, f"{self.framework} runs the source.", beside, self.unwatched)
            if part
        )

    def table(self) -> tuple[tuple[str, str, str, str], ...]:
        """Return three columns, as in a comparison: source, Loopscope, and the file's runtime."""
        head = ("", self.framework, "Loopscope", self.runtime)
        regions = ((name, description, "", "") for name, description in self.regions)
        return (
            head,
            *regions,
            *(
                (f"output {name}", source_value, "did not finish", runtime)
                for name, source_value, runtime in self.outputs
            ),
        )


def source_alone(
    run: Run,
    source: Source,
    inputs: Inputs,
    *,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> SourceAlone:
    """Run a source program, and the file's runtime if installed, with the inputs of an unfinished
    run.

    ``document`` is the content of an ONNX file, for a model read from bytes. Raise ``EngineError``
    if the program does not run within ``seconds``, or if ``stopped`` returns True first.
    """
    patience = Patience(seconds, stopped)
    source_run = run_source(source, run.model, inputs, patience)
    called, why, outputs = CALLED[run.model.dialect], "not installed", ()
    if runtime_of(run.model):
        try:
            called, outputs = ask_outputs(run.model, inputs, patience, document)
            why = ""
        except EngineError as error:
            if stopped():
                raise
            why = str(error)
    failure = run.failure or "it was stopped"
    return SourceAlone(
        source.where,
        source_run.framework,
        failure,
        tuple(_regions(source_run)),
        tuple(_outputs(source_run, run, outputs)),
        called,
        why,
        source_run.unwatched,
    )


def _regions(source_run: SourceRun) -> Iterator[tuple[str, str]]:
    for number, region in enumerate(source_run.regions):
        yield path(source_run, number), ran(region.counts) if region.is_loop else took(region.taken)


def _outputs(
    source_run: SourceRun, run: Run, runtime_outputs: tuple[Any, ...]
) -> Iterator[tuple[str, str, str]]:
    """Yield the outputs under the names of the file, if they are known."""
    names = [
        (next(iter(signature.names), signature.name), {signature.name, *signature.names})
        for signature in run.model.outputs
    ]
    for number, (name, value) in zip(
        order(source_run, names, runtime_outputs), source_run.outputs, strict=True
    ):
        source_words = _words(value) if value is not None else "not a tensor of numbers"
        runtime = _words(runtime_outputs[number]) if number is not None and runtime_outputs else ""
        yield elided(names[number][0] if number is not None else name), source_words, runtime


def _words(value: Any) -> str:
    """Return the first elements of a tensor, with its shape if it has dimensions."""
    if not is_tensor(value):
        return "not a tensor"
    array = np.asarray(value)
    elements = [
        f"{significant(float(element), 7)}" if array.dtype.kind == "f" else str(element)
        for element in array.reshape(-1)[:_MAX_ELEMENTS]
    ]
    text = elided(", ".join([*elements, "..."] if array.size > _MAX_ELEMENTS else elements))
    return text if array.ndim == 0 else f"{shape_text(array)} {text}"
