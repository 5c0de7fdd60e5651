"""The shown graph as Python: the current line in step with the canvas, values beside their lines; a click selects the node."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st

import engine
from app.actions import selection
from app.components import component
from app.describe.node_index import places
from app.describe.signatures import bindings
from app.parts.panels import finder
from app.parts.widgets import markup
from app.state.user_session import Session, widget
from engine.errors import EngineError, shorten
from engine.explain import CodeLine, Listing, fits_in_code, listing, runnable_code
from engine.ir import ROOT, Address, Model
from engine.run import Plan
from engine.view import without_iterations

KEY = "code"
MOST_LINES = 3000
_LONGEST = 400

_code = component("code", "code.js", style="code.css")
_moment = component("code_moment", "code.js")
_listings: WeakKeyDictionary[Plan, dict[str, tuple[Listing, dict[str, object]]]] = WeakKeyDictionary()


def show(session: Session) -> None:
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        markup.show("Only a model that can be run is written as code: see its problems.", "quiet")
        return
    try:
        code, data = _listing(debugger.plan, session.canvas.root)
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return
    shown = code.lines[:MOST_LINES]

    def picked() -> None:
        number = getattr(widget(KEY), "pick", None)
        if isinstance(number, int) and 0 <= number < len(shown):
            _pick(opened.model, shown[number])

    with st.container(gap=None, key=f"{KEY}_parts"):
        overlay = {**moment(debugger, code, without_iterations(session.canvas.selected)), "key": KEY, "hash": data["hash"]}
        _moment(key=f"{KEY}_moment", data=overlay, height=1)
        _code(key=KEY, data={**data, "key": KEY}, on_pick_change=picked)
    given = bindings(opened.model, session.model.inputs) if session.canvas.root == ROOT else []
    _take_away(debugger.plan, session.canvas.root, code, given, opened.file_name(session.canvas.root))


def _listing(plan: Plan, root: str) -> tuple[Listing, dict[str, object]]:
    """The code of a graph and what is sent of it; written once."""
    kept = _listings.setdefault(plan, {})
    if root not in kept:
        code = listing(plan, root)
        lines = [[shorten(line.text, _LONGEST), bool(line.address)] for line in code.lines[:MOST_LINES]]
        name = hashlib.blake2b(code.text.encode("utf-8", "replace"), digest_size=8).hexdigest()
        kept[root] = (code, {"lines": lines, "head": _head(plan, root, code), "hash": name})
    return kept[root]


def _head(plan: Plan, root: str, code: Listing) -> str:
    """What a file needs before the shown lines, so that it runs."""
    try:
        whole = runnable_code(plan, root)
    except EngineError:
        return ""
    return "".join(f"{line.text}\n" for line in whole.lines[: len(whole.lines) - len(code.lines)])


def _pick(model: Model, line: CodeLine) -> None:
    """Selects the node of a line, or of the nearest node around it."""
    address = line.address
    at = places(model)
    while address and address not in at:
        address = address.rpartition("/")[0]
    if address:
        selection.reveal_place(address)


def moment(debugger: engine.Debugger, code: Listing, selected: str) -> dict[str, Any]:
    """What changes with a step: numbers of the current, chosen and skipped lines, from 0, and the values beside lines."""
    values, at = finder.values_at(debugger), places(debugger.model)
    statuses: Mapping[str, str] = debugger.statuses()
    dim = {number for one in _skipped(debugger) for number in branch_lines(code, *one)}
    hints: dict[str, str] = {}
    for number, line in enumerate(code.lines[:MOST_LINES]):
        place = at.get(line.address)
        if place is None:
            continue
        if statuses.get(line.address) == "skipped":
            dim.add(number)
        elif place.node.type != "Const" and len(place.node.outputs) == len(code.lines_of(line.address)) == 1 and line.address in values:
            hints[str(number)] = values[line.address]
    return {"current": current_lines(debugger, code), "chosen": _lines(code, selected), "dim": sorted(dim), "hints": hints}


def _skipped(debugger: engine.Debugger) -> list[tuple[str, str]]:
    """Static address of each If that has taken one branch at the cursor, and the name of the other."""
    scene = debugger.scene()
    found = [one for one in debugger.plan.programs if one.index in scene.skipped]
    return [(one.address.rpartition("/")[0], one.branch_name) for one in found]


def branch_lines(code: Listing, address: str, branch: str) -> range:
    """Numbers, from 0, of the lines of one branch of the If at a static address; none where it is not in the listing."""
    own = _lines(code, address)
    middle = next((number for number in own if code.lines[number].text.strip() == "else:"), None)
    if not own or branch not in ("then", "else"):
        return range(0)
    if branch == "then":
        return range(own[0] + 1, middle if middle is not None else own[-1] + 1)
    return range(middle + 1, own[-1] + 1) if middle is not None else range(0)


def current_lines(debugger: engine.Debugger, code: Listing) -> list[int]:
    """The line of what runs next; at the end of a body the last line that belongs to it; at the end of all the return."""
    cursor = debugger.cursor
    if not cursor.address:
        returns = [number for number, line in enumerate(code.lines) if line.text.lstrip().startswith("return")]
        return [number for number in returns[-1:] if number < MOST_LINES]
    static = Address.parse(cursor.address).static
    if cursor.kind == "end":
        owner, _, body = static.rpartition("/")
        return list(branch_lines(code, owner, body))[-1:] or _lines(code, owner)[-1:]
    own = _lines(code, static)
    headers = [number for number in own if code.lines[number].text.lstrip().startswith(("for ", "while "))]
    return headers[:1] if cursor.kind == "enter" and headers else own[:1]


def _lines(code: Listing, address: str) -> list[int]:
    return [number - 1 for number in code.lines_of(address) if number <= MOST_LINES] if address else []


def _take_away(plan: Plan, root: str, code: Listing, inputs: Sequence[np.ndarray], name: str) -> None:
    if len(code.lines) > MOST_LINES:
        markup.show(f"The first {MOST_LINES:,} of {len(code.lines):,} lines; open a body alone to read it, or download them all.", "quiet")
    if not code.complete:
        markup.show("Very deeply nested bodies are left out: open one alone to read it.", "quiet")
        return
    inputs = inputs if all(isinstance(one, np.ndarray | np.generic) for one in inputs) else []
    packed = bool(code.weights) or not all(map(fits_in_code, inputs))
    st.download_button(
        "Download as a file that runs" if not packed else "Download as a file that runs, with its weights",
        lambda: packed_file(plan, root, inputs, name),
        file_name=f"{name}.zip" if packed else f"{name}.py",
        icon=":material/download:",
        type="tertiary",
        key="code_download",
        on_click="ignore",
    )


def packed_file(plan: Plan, root: str, inputs: Sequence[np.ndarray] = (), name: str = ROOT) -> bytes:
    """The code as a Python file that prints what comes of the inputs, together with weights.npz in a zip where it needs that."""
    whole = runnable_code(plan, root, inputs)
    if not whole.weights:
        return whole.text.encode()
    weights, file = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(weights, "w") as inner:
        for name, array in whole.weights.items():
            with inner.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}.py", whole.text)
        archive.writestr("weights.npz", weights.getvalue())
    return file.getvalue()
