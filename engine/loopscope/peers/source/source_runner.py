"""What a source program did, and the file's own runtime, where our run of the file did not
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
from loopscope.native.run_once import never
from loopscope.ops.values import is_tensor
from loopscope.peers.comparing import shape_text
from loopscope.peers.other_runtimes import CALLED, Patience, ask_outputs, runtime_of
from loopscope.peers.source.program import Source, SourceRun, run_source
from loopscope.peers.source.report_columns import order, path
from loopscope.peers.source.source_report import ran, took

_SHOWN = 4
"""Elements of an output."""


@dataclass(frozen=True, slots=True)
class SourceAlone:
    """A source program and the file's runtime, beside a run of ours that came to no end."""

    source: str
    framework: str
    """Name and version."""
    failure: str
    """Why our run came to no end."""
    regions: tuple[tuple[str, str], ...]
    """Each loop and branch of the program, and what it did."""
    outputs: tuple[tuple[str, str, str], ...]
    """The name of each output, what the source gave, and what the runtime did; empty where it
    gave none.
    """
    runtime: str
    """Name and version, or the name alone where it did not run."""
    why: str
    """Why it did not run; empty where it did."""
    unwatched: str = ""
    """Why the loops and branches of the source were not watched; empty where they were."""

    @property
    def sentence(self) -> str:
        """What to know, in a few sentences."""
        beside = (
            f"{self.runtime} is not beside it: {self.why.removesuffix('.')}."
            if self.why
            else f"{self.runtime} runs the file too."
        )
        ours = f"The run of the file did not finish in Loopscope: {self.failure.removesuffix('.')}."
        return " ".join(
            part
            for part in (ours, f"{self.framework} runs the source.", beside, self.unwatched)
            if part
        )

    def table(self) -> tuple[tuple[str, str, str, str], ...]:
        """Three columns as those of a comparison: source, Loopscope, and the file's runtime."""
        head = ("", self.framework, "Loopscope", self.runtime)
        regions = ((name, did, "", "") for name, did in self.regions)
        return (
            head,
            *regions,
            *(
                (f"output {name}", there, "did not finish", runtime)
                for name, there, runtime in self.outputs
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
    """Runs a source program, and the file's own runtime where it is installed, with the inputs of a
    run that did not finish.

    ``document`` is the content of an ONNX file, for a model that was read from its bytes.
    ``EngineError`` when the program does not run within ``seconds``, or ``stopped`` says yes before
    it has.
    """
    patience = Patience(seconds, stopped)
    did = run_source(source, run.model, inputs, patience)
    called, why, given = CALLED[run.model.dialect], "not installed", ()
    if runtime_of(run.model):
        try:
            called, given = ask_outputs(run.model, inputs, patience, document)
            why = ""
        except EngineError as error:
            if stopped():
                raise
            why = str(error)
    failure = run.failure or "it was stopped"
    return SourceAlone(
        source.where,
        did.framework,
        failure,
        tuple(_regions(did)),
        tuple(_outputs(did, run, given)),
        called,
        why,
        did.unwatched,
    )


def _regions(did: SourceRun) -> Iterator[tuple[str, str]]:
    for number, one in enumerate(did.regions):
        yield path(did, number), ran(one.counts) if one.is_loop else took(one.taken)


def _outputs(did: SourceRun, run: Run, given: tuple[Any, ...]) -> Iterator[tuple[str, str, str]]:
    """By the names of the file where they are known."""
    ours = [(next(iter(one.names), one.name), {one.name, *one.names}) for one in run.model.outputs]
    for number, (name, value) in zip(order(did, ours, given), did.outputs, strict=True):
        there = _words(value) if value is not None else "no tensor of numbers"
        runtime = _words(given[number]) if number is not None and given else ""
        yield elided(ours[number][0] if number is not None else name), there, runtime


def _words(value: Any) -> str:
    """The first elements of a tensor, with its shape where it has several."""
    if not is_tensor(value):
        return "no tensor"
    array = np.asarray(value)
    some = [
        f"{float(one):.7g}" if array.dtype.kind == "f" else str(one)
        for one in array.reshape(-1)[:_SHOWN]
    ]
    told = elided(", ".join([*some, "..."] if array.size > _SHOWN else some))
    return told if array.ndim == 0 else f"{shape_text(array)} {told}"
