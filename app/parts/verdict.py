"""Why it ended: how many iterations a loop ran, what ended it, and the values that decided."""

from __future__ import annotations

import engine
from app import markup
from app.focus import LoopInFocus
from app.session import Session
from engine.errors import EngineError
from engine.explain.verdict import verdict
from engine.ir.address import decode
from engine.ir.model import Model
from engine.view.preview import value_preview

_FIRST = (
    "Press <kbd>→</kbd> or <b>Step</b>: the next operation runs, and its value appears on its wire.",
    '<span class="quiet"><kbd>Shift</kbd> <kbd>→</kbd> runs a whole iteration, <kbd>End</kbd> everything, <kbd>←</kbd> goes back.</span>',
)


def show(session: Session, loop: LoopInFocus | None) -> None:
    """Sentences about the loop in focus and about the whole run; before the first step, how to take it."""
    if session.debugger is None or session.opened is None:
        return
    lines = [*([_of_loop(session.debugger, loop)] if loop else []), *_of_run(session.opened.model, session.debugger)]
    failed = session.debugger.state in ("failed", "limit")
    markup.show("<br>".join(lines or _FIRST), "verdict failed" if failed else "verdict")


def _of_loop(debugger: engine.Debugger, loop: LoopInFocus) -> str:
    """How often it ran and why it ended; when its condition ended it, with the operation that decided."""
    name = markup.text(decode(loop.place.labels[loop.place.node.id]), 60)
    try:
        sentence = verdict(debugger, loop.address).sentence
    except EngineError:
        return f"<b>{name}</b> has not begun"
    words = markup.text(sentence[:1].lower() + sentence[1:], 600).split("`")
    spans = [f'<span class="mono">{word}</span>' if number % 2 else word for number, word in enumerate(words)]
    return f"<b>{name}</b> {''.join(spans)}"


def _of_run(model: Model, debugger: engine.Debugger) -> list[str]:
    if debugger.state in ("failed", "limit"):
        place = f" at {debugger.failed_address}" if debugger.failed_address else ""
        return [f"<b>It stopped{markup.text(place)}:</b> {markup.text(debugger.failure, 600)}"]
    if debugger.cursor.kind != "finished":
        return []
    outputs = zip(model.outputs, debugger.result.outputs, strict=True)
    told = " · ".join(f"{next(iter(one.names), one.name)} = {value_preview(array)}" for one, array in outputs)
    return [f'<b>Result</b> <span class="mono">{markup.text(told, 400)}</span>']
