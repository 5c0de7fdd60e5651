"""Models made from the open one: a part that is cut out, its repair, and its specialisation."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import loopscope
from loopscope.cases import cut_folder, recorded_case
from loopscope.errors import EngineError
from loopscope.ir import Model
from loopscope.peers import compare_repair
from loopscope.transform import repair
from loopscope_app.actions.report_errors import clear_and_show_errors
from loopscope_app.describe.specialised_model import specialised_to_run
from loopscope_app.state.user_session import Message, current


def cut_out(debugger: loopscope.Debugger, address: str) -> bytes:
    """Return a zip file with a node, or a graph, and its values in the shown iterations.

    If it cannot be cut out, the zip file contains a text with the reason.
    """
    return zipped(
        lambda folder: cut_folder(recorded_case(debugger, address), folder, debugger.model)
    )


def zipped(write: Callable[[Path], Iterable[Path]]) -> bytes:
    """Return the files that ``write`` writes to a folder as a zip file.

    If they cannot be written, the zip file contains a text with the reason.
    """
    archive = io.BytesIO()
    with (
        tempfile.TemporaryDirectory(prefix="loopscope-") as name,
        zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        try:
            for path in write(Path(name)):
                file.write(path, path.name)
        except EngineError as error:
            file.writestr("reason.txt", f"{error}\n")
    return archive.getvalue()


_SECONDS = 60.0


def repaired_model(model: Model, code: str) -> bytes:
    """Return the model without one kind of fault as a zip file."""
    return zipped(lambda folder: _write(repair(model, [code])[0], folder))


def _write(model: Model, folder: Path) -> list[Path]:
    target = folder / ("repaired.onnx" if model.dialect == "onnx" else "repaired.xml")
    loopscope.write_model(model, target)
    return sorted(folder.iterdir())


@clear_and_show_errors
def compare_before_and_after(code: str) -> None:
    """Run the model before and after a repair in its runtime, and show the result."""
    session = current()
    opened = session.model.opened
    if opened is None:
        return
    model = opened.model
    comparison = compare_repair(
        model, repair(model, [code])[0], dict(session.model.inputs), seconds=_SECONDS
    )
    session.message = Message(comparison.sentence, "info")


@clear_and_show_errors
def preview(address: str) -> None:
    """Specialise the model to what an If or loop did in the run, for the menu to show."""
    session = current()
    opened, debugger = session.model.opened, session.run.at_rest
    if opened is not None and debugger is not None:
        session.run.specialised = specialised_to_run(opened.model, debugger, address)
