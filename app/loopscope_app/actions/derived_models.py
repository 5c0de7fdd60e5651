"""Models made from the open one: a part that is cut out, its repair, its specialisation, and the
model with operators such as LSTM opened as loops.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import loopscope
from loopscope.cases import cut_folder, recorded_case
from loopscope.errors import EngineError, InputError
from loopscope.ir import Model, graphs
from loopscope.peers import compare_repair
from loopscope.transform import repair
from loopscope.view import GraphView, without_iterations
from loopscope_app.actions import models, moves, selection
from loopscope_app.actions.memory_budget import with_room
from loopscope_app.actions.report_errors import clear_and_show_errors, show_errors
from loopscope_app.describe.specialised_model import specialised_to_run
from loopscope_app.links.codec import Unreadable
from loopscope_app.state.open_model import Opened, with_loops
from loopscope_app.state.user_session import Message, UserSession, current


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


_REPAIR_SECONDS = 60.0


def repaired_model(model: Model, code: str) -> bytes:
    """Return the model without one kind of fault as a zip file."""
    return zipped(lambda folder: _write_model(repair(model, [code])[0], folder))


def _write_model(model: Model, folder: Path) -> list[Path]:
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
        model, repair(model, [code])[0], dict(session.model.inputs), seconds=_REPAIR_SECONDS
    )
    session.message = Message(comparison.sentence, "info")


@clear_and_show_errors
def preview_specialised(address: str) -> None:
    """Specialise the model to what an If or loop did in the run, for the menu to show."""
    session = current()
    opened, debugger = session.model.opened, session.run.at_rest
    if opened is not None and debugger is not None:
        session.run.specialised = specialised_to_run(opened.model, debugger, address)


@show_errors
def open_loop(address: str) -> None:
    """Show the model with an operator opened as a loop, its body drawn open."""
    session = current()
    if session.model.opened is not None:
        _show_opened(session, (*session.model.opened.operators, address), address)
        selection.reveal_loop(address)


@show_errors
def fold_loop(address: str) -> None:
    """Show the model with an opened operator as one box again."""
    session = current()
    if session.model.opened is not None:
        remaining = [item for item in session.model.opened.operators if item != address]
        _show_opened(session, remaining, address)
        session.canvas.selected = address


def has_handle(view: GraphView, address: str) -> bool:
    """Return True if the handle at an address opens an operator, or folds an opened one."""
    opened = current().model.opened
    box = view.node_of.get(address)
    is_open = opened is not None and without_iterations(address) in opened.operators
    return is_open or (box is not None and box.handle is not None)


def switch_operator(address: str) -> None:
    """Open the operator at an address, or fold it if it is open."""
    opened = current().model.opened
    static = without_iterations(address)
    if opened is not None:
        (fold_loop if static in opened.operators else open_loop)(static)


def with_linked_loops(opened: Opened, operators: Sequence[str | Unreadable]) -> Opened:
    """Return the model of a link with the operators that the link opens."""
    addresses = [item for item in operators if isinstance(item, str)]
    for item in operators:
        if isinstance(item, Unreadable):
            raise InputError(item.expected)
    return with_loops(opened, addresses) if addresses else opened


def _show_opened(session: UserSession, operators: Sequence[str], switched: str) -> None:
    """Show the model with these operators opened, on the same inputs, at the same moment.

    The rest of the picture remains as it was. ``switched``: the operator that was opened or folded.
    """
    opened, debugger = session.model.opened, session.run.at_rest
    if opened is None:
        return
    is_computed = debugger is not None and debugger.state == "finished"
    moment = debugger.cursor.address if debugger is not None and debugger.cursor.step else ""
    is_at_end = debugger is not None and debugger.cursor.kind == "finished"
    name, inputs = session.model.input_set, session.model.inputs
    folding, root, boxes = session.canvas.folding, session.canvas.root, session.canvas.boxes
    changed = with_loops(opened, operators)
    with_room(lambda: models.show_model(changed, name))
    if any(place.address == root for place in graphs(changed.model)):
        session.canvas.folding, session.canvas.root, session.canvas.boxes = folding, root, boxes
    if inputs and not name:
        models.use_inputs(inputs)
    if is_at_end:
        moves.go(lambda run: run.run())
        return
    if moment:
        remaining = _moment_or_operator(changed.model, moment, switched)
        moves.go(lambda run: run.seek(remaining))
    if is_computed:
        moves.run_on()


def _moment_or_operator(model: Model, moment: str, operator: str) -> str:
    """Return the address of a moment, or that of the operator if the model lacks the moment."""
    known = {
        address
        for place in graphs(model)
        for address in (
            place.address,
            *(f"{place.address}/{label}" for label in place.labels.values()),
        )
    }
    if without_iterations(moment) in known:
        return moment
    around = moment.split("/")[: operator.count("/")]
    return "/".join((*around, operator.rpartition("/")[2]))
