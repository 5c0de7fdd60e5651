"""DOT text of a canvas: geometry for the browser's layout, and a complete picture for the ``dot``
program.

Only synthetic ids, numbers and fixed words are written bare; text of the model goes through
``loopscope.view.escape`` into HTML-like labels. Back edges are written from the Parameter down to
the Result with ``dir=back``, which lays them out along the frame's side.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.view.colours import COLOURS
from loopscope.view.escape import escape
from loopscope.view.graph import ClusterKind, EdgeKind, GraphView, ViewCluster, ViewEdge, ViewNode
from loopscope.view.measure import text_width
from loopscope.view.rows import SIDEWAYS, LayoutPart, UnrolledRow, ViewRows

_FONT = 'fontname="Helvetica"'
_PICTURE_FONT = 'fontname="Arial,Helvetica,sans-serif"'
"""``dot`` takes Helvetica for a name of PostScript's, and measures another font than the one
that is shown.
"""
_GAP = "&#160;"
"""After bold words: a plain space at the beginning of a text is lost in SVG."""
_REVERSED = frozenset({"back", "again"})
_LONGEST_ROW = 12
_PART = " · part [10] of 12"
"""What the canvas adds to the label of a slice while it runs."""
_SHAPE = {"control": "box", "condition": "box", "output": "box", "more": "box", "cut_end": "circle"}


def _colour(name: str) -> str:
    """A colour in quotes; a picture outside the app has a white background."""
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
    """DOT of a view. ``standalone``: with words and colours, for a picture outside the app;
    otherwise for layout only.

    For layout, a row of copies is one box whose size is written ``@r0w@`` and ``@r0h@``:
    ``row_texts`` says what it is made of.
    """
    if standalone or not view.unrolled:
        part = LayoutPart(list(view.nodes), list(view.clusters), list(view.edges))
    else:
        part, _ = ViewRows(view).parts()
    return _text(part, standalone)


def row_texts(view: GraphView) -> list[tuple[UnrolledRow, str]]:
    """The rows of copies, those inside others first, each with the DOT of its first copy."""
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
    yield f"  graph [compound=true rankdir=TB ranksep=0.62 nodesep=0.34 labeljust=l {border} splines=true];"
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
    # A stack instead of recursion: bodies may be nested hundreds deep. None closes a frame.
    waiting: list[ViewCluster | None] = [*reversed(inside.get("", []))]
    while waiting:
        cluster = waiting.pop()
        if cluster is None:
            yield "}"
            continue
        yield f"subgraph cluster_{cluster.id} {{ graph [id={cluster.id} {_frame(cluster, standalone, one_copy)}];"
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
    """Puts the Results of a copy into its last row, where lines to the next copy begin."""
    results = [node.id for node in nodes if node.kind == "result"]
    if 0 < len(results) <= _LONGEST_ROW:
        yield f"  {{ rank=sink; {' '.join(results)} }}"


def _inside(nodes: list[ViewNode], standalone: bool) -> Iterator[str]:
    """Boxes of one frame; the boxes of its inputs form one row, up to the length of a row."""
    for node in nodes:
        yield _node(node, standalone)
    row = [node.id for node in nodes if node.at_top]
    if 1 < len(row) <= _LONGEST_ROW:
        yield f"  {{ rank=same; {' '.join(row)} }}"


def _branches_below_their_header(part: LayoutPart) -> Iterator[str]:
    """Invisible lines that keep everything of a branch below the box that chooses it."""
    fed = {
        edge.target
        for edge in part.edges
        if edge.kind not in ("back", "again", "input_map", *SIDEWAYS)
    }
    for edge in part.edges:
        if edge.kind == "branch":
            for node in part.nodes:
                if node.cluster == edge.frame and node.id not in fed:
                    yield f"  {edge.source} -> {node.id} [style=invis];"


def _frame(cluster: ViewCluster, standalone: bool, one_copy: bool) -> str:
    """A frame's header keeps room for its title, its buttons and the iteration that the canvas
    writes there.
    """
    branch = cluster.kind in ("then", "else")
    width = (
        text_width(cluster.title, 14)
        + text_width(cluster.name, 13)
        + (96 if branch else 120 if cluster.kind == "copy" else 210)
    )
    width += 84 if cluster.copies else 0
    words = f"<B>{escape(cluster.title)}</B>{_GAP}{escape(cluster.name)}" if standalone else ""
    table = f'<TABLE BORDER="0" CELLBORDER="0" FIXEDSIZE="TRUE" WIDTH="{width:.0f}" HEIGHT="26"><TR><TD ALIGN="LEFT">{words}</TD></TR></TABLE>'
    # A margin of the whole picture is in inches, that of a frame in points.
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
            # Enters its Parameter from the side: below it the value on the wire is written.
            words.append("tailport=e arrowsize=1.1")
    if edge.frame:
        words.append(f"lhead=cluster_{edge.frame}")
    if edge.kind in ("branch", "input_map", "trip_count", "start", "condition"):
        words.append("weight=1")
    elif edge.kind == "data":
        words.append("weight=3")
    elif edge.kind in SIDEWAYS:
        # Instances are side by side: a line from one to the next must not push it down.
        words.append("constraint=false")
    if edge.kind == "back":
        # Room for the value that flows along it.
        words.append(
            'label=<<TABLE BORDER="0" FIXEDSIZE="TRUE" WIDTH="136" HEIGHT="38"><TR><TD></TD></TR></TABLE>>'
        )
    elif edge.label:
        text = escape(edge.label) if standalone else ""
        width = text_width(edge.label + (_PART if edge.slices else ""), 10.5) + 10
        words.append(
            f'label=<<TABLE BORDER="0" FIXEDSIZE="TRUE" WIDTH="{width:.0f}" HEIGHT="16"><TR><TD>{text}</TD></TR></TABLE>>'
        )
    if standalone:
        words.append(_LINE[edge.kind] if edge.placed else f"{_LINE[edge.kind]} constraint=false")
    elif edge.latent:
        words.append("style=invis")
    return f"  {tail} -> {head} [{' '.join(words)}];"
