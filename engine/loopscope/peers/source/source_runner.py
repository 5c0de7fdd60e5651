"""Results of a source program and of the file's own runtime, for a run of ours that did not
finish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.debug.inputs import Inputs
from loopscope.debug.run import Run
from loopscope.errors import EngineError, elided
from loopscope.ir.readable import significant
from loopscope.native.run_once import never
from loopscope.ops.values import is_tensor
from loopscope.peers.comparing import shape_text
from loopscope.peers.other_runtimes import CALLED, Patience, ask_outputs, runtime_of
from loopscope.peers.source.program import Source, SourceRun, run_source
from loopscope.peers.source.report_columns import order, path
from loopscope.peers.source.source_report import ran, took

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
