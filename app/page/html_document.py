"""The HTML document of a run: everything in one file, under a policy that lets it fetch nothing and run its own script only."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import engine
from app.bundle import bundle
from app.page.moments import Moments, moments
from app.page.paged_pictures import Pictures, pictures
from app.page.said_in_words import tables, text, verdicts
from app.vendor import LIBRARY
from engine.errors import EngineError
from engine.ir import graphs
from engine.version import VERSION
from engine.view import Folding, declarations, default_folding

_CANVAS = Path(__file__).parents[1] / "canvas" / "assets"
_SHEET = Path(__file__).parent / "assets" / "page.css"
_LONGEST_NOTE = 10_000
_MOVES = (
    ("restart", "⇤", "To the first moment (Home)"),
    ("previous", "«", "To the iteration before (Shift+Left)"),
    ("back", "‹", "One operation back (Left)"),
    ("step", "Step ›", "One operation on (Right)"),
    ("over", "Over", "A whole loop or branch as one operation (O)"),
    ("out", "Out", "To the end of this body (Up)"),
    ("next", "Iteration »", "To the next iteration (Shift+Right)"),
    ("run", "End ⇥", "To the end (End)"),
)


class BytesBound(EngineError):
    """The run does not fit into the bytes that its page may have."""


def page_of(
    debugger: engine.Debugger,
    *,
    title: str,
    note: str = "",
    folding: Folding | None = None,
    root: str = "main",
    with_values: bool = True,
    most_bytes: int = 5 * 2**20,
) -> str:
    """The document of what has run, opened at the debugger's cursor.

    What does not fit into ``most_bytes`` is thinned: moments, every other one again and again, and ways to fold the
    graph are left out, and the page says so.
    ``BytesBound`` where not even a few fit, ``EngineError`` where the layout library is missing.
    """
    if not LIBRARY.is_file():
        raise EngineError("the layout library is missing from this installation: in a clone, run python -m app.vendor")
    step = debugger.cursor.step
    drawn = pictures(debugger.model, default_folding(debugger.model) if folding is None else folding, root)
    kept = moments(debugger, drawn, step, with_values=with_values)
    said = verdicts(debugger, with_values=with_values)
    while True:
        first_in: dict[str, int] = {}
        for number, graph in enumerate(kept.graphs):
            first_in.setdefault(graph, number)
        data = {**drawn.as_data(), "run": "run", "at": kept.at(step), "file": _file_name(title), **kept.as_data()}
        beside = said + tables(debugger, first_in, with_values=with_values)
        made = _document(title, note[:_LONGEST_NOTE], _about(debugger, kept, drawn, with_values), beside, data)
        if len(made.encode()) <= most_bytes:
            return made
        smaller = _smaller(drawn, kept, step)
        if smaller is None:
            raise BytesBound(
                f"the page has {len(made.encode()) / 2**20:.1f} MB with {len(kept.steps)} moments of the run, "
                f"more than the {most_bytes / 2**20:g} MB that it may have: allow more megabytes"
            )
        drawn, kept = smaller


def _smaller(drawn: Pictures, kept: Moments, step: int) -> tuple[Pictures, Moments] | None:
    """Half of the pictures or of the moments, whichever take more room; None where nothing can be left out."""
    thinner = kept.thinned(step)
    fewer = drawn.first((len(drawn.views) + 1) // 2)
    can_thin, can_fold_less = len(thinner.steps) < len(kept.steps), len(fewer.views) < len(drawn.views)
    if can_fold_less and (not can_thin or len(_packed(drawn.as_data())) > len(_packed(kept.as_data()))):
        return fewer, kept
    return (drawn, thinner) if can_thin else None


def _packed(data: Mapping[str, object]) -> str:
    """As the text that stands in the page."""
    return base64.b64encode(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)).decode()


def _about(debugger: engine.Debugger, kept: Moments, drawn: Pictures, with_values: bool) -> str:
    counted = sum(len(place.graph.nodes) for place in graphs(debugger.model))
    parts = [f"{counted:,} nodes", f"{debugger.steps:,} steps, {debugger.state}"]
    if len(kept.steps) <= debugger.steps:
        parts.append(f"this page holds {len(kept.steps):,} of the {debugger.steps + 1:,} moments of the run, to stay small")
    if not drawn.complete:
        parts.append(f"it is drawn in {len(drawn.views)} ways to fold it, others are left out")
    if not with_values:
        parts.append("values of the run are left out")
    return " · ".join([*parts, f"made by Loopscope {VERSION}"])


def _document(title: str, note: str, about: str, beside: str, data: dict[str, object]) -> str:
    script, style = _script(), _style()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}' 'wasm-unsafe-eval'; worker-src blob:; "
        f"style-src '{_hash(style)}'; img-src blob: data:; base-uri 'none'; form-action 'none'"
    )
    buttons = "".join(f'<button data-move="{name}" title="{meaning}">{label}</button>' for name, label, meaning in _MOVES)
    said = f'<p class="note">{text(note, _LONGEST_NOTE)}</p>' if note else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{text(title, 200)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{text(title, 200)}</h1>{said}<p class="about">{text(about)}</p></header>
<main>
<nav aria-label="Moves through the run">{buttons}<button id="play" title="Step by itself (Space)">Play</button></nav>
<p id="place" role="status"></p>
<div id="canvas"></div>
<p id="chosen"></p>
<section id="said"><h2>What the run did</h2>{beside}</section>
</main>
<script type="text/plain" id="library">{_library()}</script>
<script type="text/plain" id="run">{_packed(data)}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _file_name(title: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in title)[:80].strip("_") or "run"


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


@cache
def _script() -> str:
    script = bundle(_CANVAS / "page.js")
    if "</script" in script or "<!--" in script:
        raise ValueError("a script of the canvas holds the end of a script, and cannot stand in a page")
    return script


@cache
def _style() -> str:
    canvas = "\n".join((_CANVAS / name).read_text(encoding="utf-8") for name in ("canvas.css", "beside.css"))
    light, dark = declarations("light"), declarations("dark")
    page = f":root, .canvas {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    return f'{page}\n.canvas[data-theme="dark"] {{ {dark} }}\n{canvas}\n{_SHEET.read_text(encoding="utf-8")}'


@cache
def _library() -> str:
    return base64.b64encode(LIBRARY.read_bytes()).decode()
