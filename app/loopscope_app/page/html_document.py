"""The HTML document of a run: one file, under a policy that allows its own script and no
request.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import loopscope
from loopscope.errors import EngineError
from loopscope.ir import significant
from loopscope.view import Folding, NodeData, declarations, default_folding
from loopscope_app.bundle import bundle
from loopscope_app.page.paged_run import PagedRun, packed, paged_run
from loopscope_app.page.text_sections import text
from loopscope_app.vendor import LIBRARY

_CANVAS = Path(__file__).parents[1] / "canvas" / "assets"
_SHEET = Path(__file__).parent / "assets" / "page.css"
_PARTS = Path(__file__).parents[1] / "assets"
_BELOW = (("#code > div", "code.css"), (".matrix > div", "lanes.css"))
"""Style sheets of components of the app, each for the elements that show the component here."""
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
LIBRARY_FILE, SCRIPT_FILE, STYLE_FILE = "layout-library.js", "page.js", "page.css"
"""Files that linked pages share."""
_CODE = '<details id="code"><summary>The graph as code, in step</summary><div></div></details>'


class BytesBound(EngineError):
    """The run does not fit into the allowed size of its page."""


def page_of(
    debugger: loopscope.Debugger,
    *,
    title: str,
    note: str = "",
    folding: Folding | None = None,
    root: str = "main",
    with_values: bool = True,
    node_data: NodeData | None = None,
    most_bytes: int = 5 * 2**20,
    assets: str | None = None,
) -> str:
    """Return the document of a run, opened at the debugger's cursor. ``node_data`` colours nodes.

    ``assets`` is the address of the folder that contains the files of ``shared_assets``, relative
    to the page. The page contains them if it is None.

    A page larger than ``most_bytes`` is thinned: it leaves out every other moment, again and again,
    and ways to fold the graph, and names what it left out. Raise ``BytesBound`` if not even a few
    moments fit, and ``EngineError`` if the layout library is missing.
    """
    if not LIBRARY.is_file():
        raise EngineError(
            "the layout library is missing from this installation: in a clone, run python -m "
            "loopscope_app.vendor"
        )
    folding = default_folding(debugger.model, root) if folding is None else folding
    content = paged_run(debugger, folding, root, with_values=with_values, node_data=node_data)
    parts = _contained() if assets is None else _linked(assets)
    while True:
        document = _document(title, note[:_LONGEST_NOTE], content, parts)
        if len(document.encode()) <= most_bytes:
            return document
        smaller = content.smaller()
        if smaller is None:
            raise BytesBound(
                f"the page has {len(document.encode()) / 2**20:.1f} MB with "
                f"{len(content.moments.steps)} moments of the run, "
                f"more than the {significant(most_bytes / 2**20, 3)} MB of its limit: "
                "allow more megabytes"
            )
        content = smaller


def shared_assets() -> dict[str, str]:
    """Return the content of the files that linked pages share, by file name.

    The scripts are not modules, because a browser loads no module of a page opened as a file.
    """
    script = _script().replace("export default ", "")
    return {
        LIBRARY_FILE: (
            'document.currentScript.after(Object.assign(document.createElement("script"), '
            f'{{ type: "text/plain", id: "library", textContent: "{_library()}" }}));\n'
        ),
        SCRIPT_FILE: f'(() => {{\n"use strict";\n{script}}})();\n',
        STYLE_FILE: _style(),
    }


@dataclass(frozen=True, slots=True)
class _Parts:
    """Markup of the script, style and layout library, and the policy that allows them."""

    style: str
    scripts: str
    script_source: str
    style_source: str


def _contained() -> _Parts:
    script, style = _script(), _style()
    return _Parts(
        f"<style>{style}</style>",
        f'<script type="text/plain" id="library">{_library()}</script>\n'
        f'<script type="module">{script}</script>',
        _hash(script),
        _hash(style),
    )


def _linked(folder: str) -> _Parts:
    addresses = {
        name: text(f"{folder}/{name}", _LONGEST_NOTE)
        for name in (LIBRARY_FILE, SCRIPT_FILE, STYLE_FILE)
    }
    return _Parts(
        f'<link rel="stylesheet" href="{addresses[STYLE_FILE]}">',
        f'<script src="{addresses[LIBRARY_FILE]}" defer></script>\n'
        f'<script src="{addresses[SCRIPT_FILE]}" defer></script>',
        "self",
        "self",
    )


def _document(title: str, note: str, content: PagedRun, parts: _Parts) -> str:
    policy = (
        f"default-src 'none'; script-src '{parts.script_source}' 'wasm-unsafe-eval'; "
        f"worker-src blob:; style-src '{parts.style_source}'; img-src blob: data:; "
        "base-uri 'none'; form-action 'none'"
    )
    buttons = "".join(
        f'<button data-move="{name}" title="{meaning}">{label}</button>'
        for name, label, meaning in _MOVES
    )
    note_markup = f'<p class="note">{text(note, _LONGEST_NOTE)}</p>' if note else ""
    data = packed({**content.as_data(), "file": _file_name(title)})
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{text(title, 200)}</title>
{parts.style}
</head>
<body>
<header><h1>{text(title, 200)}</h1>{note_markup}<p class="about">{text(content.about)}</p></header>
<main>
<nav aria-label="Moves through the run">{buttons}
<button id="play" title="Step by itself (Space)">Play</button></nav>
<p id="place" role="status"></p>
<div id="stage"><div id="canvas"></div>{_CODE}</div>
<p id="chosen"></p>
<section id="said"><h2>What the run did</h2>{content.beside()}</section>
</main>
<script type="text/plain" id="run">{data}</script>
{parts.scripts}
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
        raise ValueError(
            "a script of the canvas holds the end of a script, and cannot stand in a page"
        )
    return script


@cache
def _style() -> str:
    canvas = "\n".join(
        (_CANVAS / name).read_text(encoding="utf-8") for name in ("canvas.css", "side_panel.css")
    )
    light, dark = declarations("light"), declarations("dark")
    page = (
        f":root, .canvas {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ "
        f"{dark} }} }}"
    )
    parts = "\n".join(
        f"{where} {{\n{(_PARTS / name).read_text(encoding='utf-8')}}}" for where, name in _BELOW
    )
    return (
        f'{page}\n.canvas[data-theme="dark"] {{ {dark} '
        f"}}\n{canvas}\n{parts}\n{_SHEET.read_text(encoding='utf-8')}"
    )


@cache
def _library() -> str:
    return base64.b64encode(LIBRARY.read_bytes()).decode()
