"""DOT text of a canvas: geometry for the browser's layout, or a picture drawn by ``dot``.

Only synthetic ids, numbers and fixed words are written directly. Text of the model is passed
through ``escape`` into HTML-like labels. Back edges are written from the Parameter
down to the Result with ``dir=back``, so that they are laid out along the side of the frame.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Literal, get_args

import graphviz

from loopscope.errors import MOST_OF_A_NAME, EngineError, neutral
from loopscope.view.boxes import text_width
from loopscope.view.colours import COLOURS
from loopscope.view.graph import ClusterKind, EdgeKind, GraphView, ViewCluster, ViewEdge, ViewNode
from loopscope.view.rows import SIDEWAYS, LayoutPart, UnrolledRow, ViewRows

_FONT = 'fontname="Helvetica"'
_PICTURE_FONT = 'fontname="Arial,Helvetica,sans-serif"'
"""Font of standalone pictures. ``dot`` treats Helvetica alone as a PostScript name, and would
measure another font than the displayed one.
"""
_GAP = "&#160;"
"""Space after bold words, because SVG drops a plain space at the beginning of a text."""
_REVERSED = frozenset({"back", "again"})
_MAX_ROW = 12
_PART = " · part [10] of 12"
"""Longest text that the canvas appends to the label of a slice while the model runs."""
_SHAPE = {"control": "box", "condition": "box", "output": "box", "more": "box", "cut_end": "circle"}


_HTML = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
    "\\": "&#92;&#8288;",
    "\n": "<BR/>",
}


def escape(text: str, max_length: int = MOST_OF_A_NAME) -> str:
    """Return untrusted text as an HTML-like DOT label, for use between ``<`` and ``>``.

    A backslash is followed by a word joiner, because Graphviz expands escapes such as
    ``\\\\N`` even in HTML-like labels.

    >>> escape('<b>"a" & \\\\N')
    '&lt;b&gt;&quot;a&quot; &amp; &#92;&#8288;N'
    """
    return "".join(_HTML.get(character, character) for character in neutral(text, max_length))


def _colour(name: str) -> str:
    """Return a quoted colour of the light theme, because standalone pictures have a white
    background.
    """
    return f'"{COLOURS[name].light}"'


def _lined(name: str) -> str:
    return f"color={_colour(name)} fontcolor={_colour(name)}"


_LINE: dict[EdgeKind, str] = {
    "data": f"color={_colour('line-port')}",
    "cut_end": f"color={_colour('faint')} style=dashed",
    "input_map": f"{_lined('line-region')} style=dashed",
    "output_map": f"{_lined('line-region')} style=dashed",
    "merge": f"color={_colour('line-region')} style=dashed",
    "trip_count": _lined("line-region"),
    "start": _lined("line-region"),
    "condition": _lined("line-region"),
    "branch": f"{_lined('line-region')} style=dotted",
    "carried": f"color={_colour('back')} penwidth=1.6",
    "goes_on": f"color={_colour('back')} penwidth=1.2 style=dotted",
    "back": f"{_lined('back')} penwidth=2",
    "again": f"{_lined('back')} penwidth=1.4 style=dotted",
}
_LOOP = f"color={_colour('line-region')} bgcolor={_colour('frame')}"
_FRAME: dict[ClusterKind, str] = {
    "loop": f"{_LOOP} penwidth=1.6",
    "tensor_iterator": f"{_LOOP} penwidth=1.6",
    "if": f"color={_colour('line-math')} bgcolor={_colour('frame-if')} penwidth=1.6",
    "then": f'color={_colour("then")} bgcolor={_colour("frame-then")} style="rounded"',
    "else": f'color={_colour("else")} bgcolor={_colour("frame-else")} style="rounded"',
    "region": _LOOP,
    "body": f"color={_colour('faint')}",
    "copy": f'color={_colour("line-region")} bgcolor={_colour("surface")} style="rounded"',
    "group": f"color={_colour('faint')} bgcolor={_colour('frame-group')}",
}


def dot_text(view: GraphView, *, standalone: bool = False) -> str:
    """Return the DOT of a view for layout only; with words and colours if ``standalone``.

    For layout, a row of copies is one box of size ``@r0w@`` by ``@r0h@``; ``row_texts`` returns its
    content.
    """
    if standalone or not view.unrolled:
        part = LayoutPart(list(view.nodes), list(view.clusters), list(view.edges))
    else:
        part, _ = ViewRows(view).parts()
    return _text(part, standalone)


def row_texts(view: GraphView) -> list[tuple[UnrolledRow, str]]:
    """Return the rows of copies, inner rows first, each with the DOT of its first copy."""
    return (
        [
            (row, _text(part, standalone=False, one_copy=True))
            for row, part in ViewRows(view).parts()[1]
        ]
        if view.unrolled
        else []
    )


def _text(part: LayoutPart, standalone: bool, one_copy: bool = False) -> str:
    return "\n".join((*_lines(part, standalone, one_copy), ""))


def _lines(part: LayoutPart, standalone: bool, one_copy: bool) -> Iterator[str]:
    yield "digraph view {"
    border = "pad=0 margin=0" if one_copy else "pad=0.3" if standalone else "pad=0.3 margin=16"
    font = _PICTURE_FONT if standalone else _FONT
    yield (
        "  graph [compound=true rankdir=TB ranksep=0.62 nodesep=0.34 labeljust=l"
        f" {border} splines=true];"
    )
    yield f'  node [shape=box style=rounded fixedsize=true {font} fontsize=11 label=""];'
    yield f"  edge [arrowsize=0.7 {font} fontsize=10];"
    nodes: dict[str, list[ViewNode]] = {}
    for node in part.nodes:
        nodes.setdefault(node.cluster, []).append(node)
    frames = {frame.id for frame in part.clusters}
    inside: dict[str, list[ViewCluster]] = {}
    for frame in part.clusters:
        inside.setdefault(frame.parent if frame.parent in frames else "", []).append(frame)
    yield from _inside(nodes.get("", []), standalone)
    # A stack replaces recursion, because bodies may be nested hundreds deep. None closes a frame.
    waiting: list[ViewCluster | None] = [*reversed(inside.get("", []))]
    while waiting:
        cluster = waiting.pop()
        if cluster is None:
            yield "}"
            continue
        attributes = f"id={cluster.id} {_frame(cluster, standalone, one_copy)}"
        yield f"subgraph cluster_{cluster.id} {{ graph [{attributes}];"
        yield from _inside(nodes.get(cluster.id, []), standalone)
        yield from (
            f"  {row.id} [id={row.id} width=@{row.id}w@ height=@{row.id}h@];"
            for row in part.rows
            if row.cluster == cluster.id
        )
        for header in nodes.get(cluster.id, []):
            if header.kind == "control":
                yield from (
                    f"  {header.id} -> {row.id} [style=invis];"
                    for row in part.rows
                    if row.cluster == cluster.id
                )
        if cluster.kind == "copy":
            yield from _ends(nodes.get(cluster.id, []))
        waiting.append(None)
        waiting.extend(reversed(inside.get(cluster.id, [])))
    for edge in part.edges:
        if standalone or edge.placed:
            yield _edge(edge, standalone)
    for source, target in part.pulls:
        yield f"  {source} -> {target} [style=invis];"
    yield from _branches_below_their_header(part)
    yield "}"


def _ends(nodes: list[ViewNode]) -> Iterator[str]:
    """Place the Results of a copy in its last row, where lines to the next copy begin."""
    results = [node.id for node in nodes if node.kind == "result"]
    if 0 < len(results) <= _MAX_ROW:
        yield f"  {{ rank=sink; {' '.join(results)} }}"


def _inside(nodes: list[ViewNode], standalone: bool) -> Iterator[str]:
    """Yield the boxes of a frame; those of its inputs form one row, up to the maximal row
    length.
    """
    for node in nodes:
        yield _node(node, standalone)
    row = [node.id for node in nodes if node.at_top]
    if 1 < len(row) <= _MAX_ROW:
        yield f"  {{ rank=same; {' '.join(row)} }}"


def _branches_below_their_header(part: LayoutPart) -> Iterator[str]:
    """Yield invisible lines that keep all boxes of a branch below the header of its If."""
    targets = {
        edge.target
        for edge in part.edges
        if edge.kind not in ("back", "again", "input_map", *SIDEWAYS)
    }
    for edge in part.edges:
        if edge.kind == "branch":
            for node in part.nodes:
                if node.cluster == edge.frame and node.id not in targets:
                    yield f"  {edge.source} -> {node.id} [style=invis];"


def _frame(cluster: ViewCluster, standalone: bool, one_copy: bool) -> str:
    """Return the attributes of a frame. Its header has room for title, buttons and iteration."""
    branch = cluster.kind in ("then", "else")
    width = (
        text_width(cluster.title, 14)
        + text_width(cluster.name, 13)
        + (96 if branch else 120 if cluster.kind == "copy" else 210)
    )
    width += 84 if cluster.copies else 0
    words = f"<B>{escape(cluster.title)}</B>{_GAP}{escape(cluster.name)}" if standalone else ""
    table = (
        '<TABLE BORDER="0" CELLBORDER="0" FIXEDSIZE="TRUE"'
        f' WIDTH="{width:.0f}" HEIGHT="26"><TR><TD ALIGN="LEFT">{words}</TD></TR></TABLE>'
    )
    # The margin of a whole picture is in inches, that of a frame in points.
    look = (
        f" style=rounded {_PICTURE_FONT} fontsize=12 {_FRAME[cluster.kind]}" if standalone else ""
    )
    margin = " margin=16" if standalone or one_copy else ""
    return f'class="{cluster.kind}" label=<{table}>{margin}{look}'


def _node(node: ViewNode, standalone: bool) -> str:
    shape = f" shape={_SHAPE[node.kind]}" if node.kind in _SHAPE else ""
    size = f"width={node.width / 72:.3f} height={node.height / 72:.3f}"
    # The then branch is left of the else branch.
    order = " ordering=out" if node.kind == "condition" else ""
    look = f" {_look(node)}" if standalone else ""
    return (
        f'  {node.id} [id={node.id} class="{node.kind} {node.family}" {size}{shape}{order}{look}];'
    )


def _look(node: ViewNode) -> str:
    words = [f"<B>{escape(node.title)}</B>" + (f"{_GAP}{escape(node.name)}" if node.name else "")]
    detail = "  ".join(
        part
        for part in (escape(node.detail), *(f"({escape(text)})" for text in node.constants))
        if part
    )
    if node.kind in ("control", "condition", "output", "more"):
        words[0] += f"{_GAP}{detail}" if detail else ""
    else:
        words += [
            f'<FONT POINT-SIZE="9">{text}</FONT>' for text in (detail, escape(node.badge)) if text
        ]
    style = "rounded,filled" if node.kind != "cut_end" else "filled"
    colours = f"color={_colour(f'line-{node.family}')} fillcolor={_colour(f'fill-{node.family}')}"
    double = " peripheries=2" if node.kind == "folded" else ""
    return f'label=<{"<BR/>".join(words)}> style="{style}" {colours}{double}'


def _edge(edge: ViewEdge, standalone: bool) -> str:
    backwards = edge.kind in _REVERSED or edge.upwards
    tail, head = (edge.target, edge.source) if backwards else (edge.source, edge.target)
    words = [f'id={edge.id} class="{edge.kind}"']
    if backwards:
        words.append("dir=back")
        if edge.kind == "back":
            # The line enters its Parameter from the side, because the value is displayed below.
            words.append("tailport=e arrowsize=1.1")
    if edge.frame:
        words.append(f"lhead=cluster_{edge.frame}")
    if edge.kind in ("branch", "input_map", "trip_count", "start", "condition"):
        words.append("weight=1")
    elif edge.kind == "data":
        words.append("weight=3")
    elif edge.kind in SIDEWAYS:
        # Copies are side by side: a line to the next copy must not move it down.
        words.append("constraint=false")
    if edge.kind == "back":
        # Room for the value on the line.
        words.append(
            'label=<<TABLE BORDER="0" FIXEDSIZE="TRUE" WIDTH="136" HEIGHT="38">'
            "<TR><TD></TD></TR></TABLE>>"
        )
    elif edge.label:
        text = escape(edge.label) if standalone else ""
        width = text_width(edge.label + (_PART if edge.slices else ""), 10.5) + 10
        words.append(
            f'label=<<TABLE BORDER="0" FIXEDSIZE="TRUE" WIDTH="{width:.0f}" HEIGHT="16">'
            f"<TR><TD>{text}</TD></TR></TABLE>>"
        )
    if standalone:
        words.append(_LINE[edge.kind] if edge.placed else f"{_LINE[edge.kind]} constraint=false")
    elif edge.latent:
        words.append("style=invis")
    return f"  {tail} -> {head} [{' '.join(words)}];"


PictureFormat = Literal["svg", "png", "pdf"]
PICTURE_FORMATS: tuple[PictureFormat, ...] = get_args(PictureFormat)
HOW_TO_GET_DOT = (
    "drawing files needs the `dot` program of Graphviz: apt install graphviz,"
    " brew install graphviz or winget install graphviz brings it"
)


class NoPicture(EngineError):
    """A picture that cannot be drawn; the message contains advice."""


def render(view: GraphView, format: PictureFormat = "svg") -> bytes:
    """Return the picture's bytes. ``NoPicture`` if the ``dot`` program is missing or fails."""
    return render_dot(dot_text(view, standalone=True), format)


def render_dot(text: str, format: PictureFormat) -> bytes:
    """Draw DOT text of ``loopscope.view.dot``."""
    if shutil.which("dot") is None:
        raise NoPicture(HOW_TO_GET_DOT)
    if format == "png":
        # Twice the density of a standard screen, so that small words stay readable.
        text = text.replace("{", "{ graph [dpi=144];", 1)
    try:
        return bytes(graphviz.pipe("dot", format, text.encode(), quiet=True))
    except graphviz.CalledProcessError as error:
        raise NoPicture(
            f"`dot` failed: {(error.stderr or b'').decode(errors='replace').strip()[:300]}"
        ) from error
