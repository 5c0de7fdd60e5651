"""Repairs of a model: the repaired model as a zip file, and its comparison in the runtime."""

from __future__ import annotations

from pathlib import Path

import loopscope
from loopscope.ir import Model
from loopscope.peers import compare_repair
from loopscope.transform import repair
from loopscope_app.actions.cutting_out import zipped
from loopscope_app.actions.report_errors import clear_and_show_errors
from loopscope_app.state.user_session import Message, current

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
