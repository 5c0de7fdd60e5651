"""The folder of a part of a model with the values that a run recorded."""

from __future__ import annotations

import os
from pathlib import Path

from loopscope.cases.case import Case
from loopscope.cases.case_folder import refuse_folder, write_case
from loopscope.cases.markdown import code_span
from loopscope.ir.model import Model
from loopscope.ir.readable import readable


def cut_folder(case: Case, folder: str | os.PathLike[str], source: Model) -> list[Path]:
    """Write a case that was cut out of ``source`` to a folder; return the files.

    Raise ``WriteError`` if the model cannot be written, or if ``source`` lies in the folder.
    """
    refuse_folder(folder, source)
    origin = code_span(Path(source.file).name or source.name)
    place = code_span(readable(case.place), 200)
    values = (
        "`inputs.npz` contains what the part read in that execution, and `expected.npz` what it "
        "computed in Loopscope."
    )
    rules = (
        "A weight of the original model stays a weight. Random numbers and variables are inputs."
    )
    paragraphs = [f"Cut out of {origin} at {place}. {values}", rules]
    if case.missing:
        paragraphs.append(f"Some outputs have no expected value: {code_span(case.missing)}.")
    return write_case(case, folder, title="A part of a model", paragraphs=paragraphs)
