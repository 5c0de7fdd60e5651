"""All colours of Loopscope by meaning, and families of operations that colours distinguish.

The canvas, the page, charts and DOT use them. Hues follow Okabe and Ito. Colours with different
meanings also differ in lightness, so that they stay distinct in grey and for colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from loopscope.ops.catalogue import CATALOGUE


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour in both themes: ``#rrggbb``, or ``#rrggbbaa`` if translucent."""

    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text colour and its backgrounds (names of ``COLOURS``), with a contrast of at least 4.5 to
    1.
    """

    colour: str
    on: tuple[str, ...]
    tint: float = 0.0
    """Share of the text colour that is mixed into the background, 0 to 1."""


_PAGE = {
    "page": Colour("#fbfbfe", "#12141c"),
    "page-soft": Colour("#f1f2f8", "#1b1e2a"),
    "page-text": Colour("#1c1f2e", "#e8eaf3"),
    "page-quiet": Colour("#595d6e", "#a4a8b8"),
    "page-border": Colour("#dfe1ec", "#2c3040"),
    "table-border": Colour("#e6e8f1", "#262a38"),
    "table-header": Colour("#f4f5fa", "#1b1e2a"),
    "code-background": Colour("#eef0f8", "#1e2231"),
    "code-text": Colour("#3730a3", "#a5b4fc"),
    "accent": Colour("#4f46e5", "#818cf8"),
    "accent-text": Colour("#4f46e5", "#a5b4fc"),
    "on-accent": Colour("#ffffff", "#12141c"),
    "good": Colour("#0a6f44", "#5fd39d"),
    "bad": Colour("#b93426", "#ff8f80"),
    "warn": Colour("#965500", "#f2b45c"),
    "veil": Colour("#0b0d18", "#0b0d18"),
    "code-string": Colour("#0f766e", "#5eead4"),
    "code-keyword": Colour("#7c3aed", "#c4b5fd"),
    "code-number": Colour("#b45309", "#fbbf24"),
    "code-call": Colour("#1d4ed8", "#93c5fd"),
}
"""Colours of the page, which Streamlit's theme repeats
(``app/loopscope_app/.streamlit/config.toml``).
"""

_RUN = {
    "now": Colour("#e08a00", "#fbbf24"),
    "then": Colour("#00795c", "#1fa67c"),
    "on-then": Colour("#ffffff", "#0b0d18"),
    "else": Colour("#cc8400", "#f0b04c"),
    "on-else": Colour("#1c1f2e", "#0b0d18"),
    "back": Colour("#b5370f", "#ff8a5c"),
    "back-soft": Colour("#fff1ec", "#35201a"),
    "stop": Colour("#dc2626", "#f87171"),
    "nan": Colour("#be185d", "#f472b6"),
    "on-nan": Colour("#ffffff", "#0b0d18"),
    "nan-text": Colour("#be185d", "#f9a8d4"),
    "failed": Colour("#c81e1e", "#f87171"),
    "on-failed": Colour("#ffffff", "#0b0d18"),
    "origin": Colour("#0f9d8a", "#2dd4bf"),
    "curve": Colour("#6366f1", "#6366f1"),
    "lane": Colour("#1418280d", "#ffffff12"),
    "lane-quiet": Colour("#1418289e", "#ffffff9e"),
    "lane-line": Colour("#1e1b4bb3", "#ffffffbf"),
    "more": Colour("#4f46e5", "#818cf8"),
    "less": Colour("#d97706", "#fb923c"),
    "shape-0": Colour("#0284c7", "#7dd3fc"),
    "shape-1": Colour("#7c3aed", "#c4b5fd"),
    "shape-2": Colour("#15803d", "#86efac"),
    "shape-3": Colour("#be123c", "#fda4af"),
    "shape-4": Colour("#b45309", "#fcd34d"),
    "matrix-negative": Colour("#b25818", "#b25818"),
    "matrix-zero": Colour("#f7f7f7", "#f7f7f7"),
    "matrix-positive": Colour("#2148ac", "#2148ac"),
    "matrix-low": Colour("#f3f4fc", "#f3f4fc"),
    "matrix-high": Colour("#312e81", "#312e81"),
    "matrix-nan": Colour("#dc2626", "#dc2626"),
}
"""Colours of a run: current moment, branches, backward pass, failures, values as colours."""

_CANVAS = {
    "paper": Colour("#fbfcfe", "#101217"),
    "grid": Colour("#e6eaf1", "#1e222a"),
    "surface": Colour("#ffffff", "#1b1f27"),
    "ink": Colour("#1b2330", "#e9edf3"),
    "quiet": Colour("#5d6878", "#a3aebd"),
    "faint": Colour("#98a2b3", "#6d7787"),
    "wire": Colour("#a9b4c4", "#556070"),
    "wire-live": Colour("#475569", "#b6c1d1"),
    "now-soft": Colour("#fff7e6", "#3a2f12"),
    "chosen": Colour("#4f46e5", "#a5a0ff"),
    "map": Colour("#6a5fd0", "#9b93f5"),
    "taken": Colour("#0b7a5c", "#4fd1a5"),
    "chip": Colour("#ffffff", "#0e1116"),
    "shadow": Colour("#0f172a", "#000000"),
    "frame": Colour("#f7f7fd", "#17181f"),
    "frame-if": Colour("#f3f8fc", "#151b22"),
    "frame-then": Colour("#f0f8f4", "#141c1a"),
    "frame-else": Colour("#fcf8f0", "#1d1a15"),
    "frame-group": Colour("#f6f7f9", "#191c22"),
    "then-text": Colour("#006b51", "#45cca3"),
    "else-text": Colour("#965500", "#f0b04c"),
}
"""Colours of the drawn graph: paper, lines and frames."""

_FAMILIES = {
    "port": (Colour("#5a6a80", "#8d9bb0"), Colour("#f1f4f8", "#20262f")),
    "constant": (Colour("#6b707a", "#8f96a3"), Colour("#f6f6f7", "#1f2329")),
    "math": (Colour("#0a6aa8", "#58b2ee"), Colour("#eaf4fb", "#132a3b")),
    "logic": (Colour("#965500", "#f0b04c"), Colour("#fdf4e3", "#33270f")),
    "matrix": (Colour("#7a3e9d", "#c994ea"), Colour("#f6eefa", "#2b1c36")),
    "activation": (Colour("#00755a", "#45cca3"), Colour("#e7f6f1", "#102e26")),
    "movement": (Colour("#126b85", "#57c4df"), Colour("#e6f5f9", "#112c34")),
    "shape": (Colour("#666a26", "#c3c772"), Colour("#f6f7e8", "#292b15")),
    "sequence": (Colour("#a3376b", "#f08fbd"), Colour("#fcedf4", "#351b29")),
    "region": (Colour("#5b4bd6", "#a49bff"), Colour("#efedfd", "#242043")),
    "other": (Colour("#5f6878", "#98a3b5"), Colour("#f3f4f7", "#21262e")),
}
"""Line colour (also of badges) and fill colour of each family of operations."""


def _families() -> Iterator[tuple[str, Colour]]:
    for family, (line, fill) in _FAMILIES.items():
        yield f"line-{family}", line
        yield f"fill-{family}", fill


COLOURS: Mapping[str, Colour] = MappingProxyType(_PAGE | _RUN | _CANVAS | dict(_families()))
"""Colours by name, which is the CSS variable without its two dashes."""

TEXTS: tuple[Text, ...] = (
    Text("page-text", ("page", "page-soft", "table-header", "code-background")),
    Text("code-text", ("code-background", "page")),
    Text("page-quiet", ("page", "page-soft", "table-header")),
    *(
        Text(colour, ("page", "page-soft"), tint=0.1)
        for colour in ("accent-text", "good", "bad", "warn", "nan-text", "back", "then-text")
    ),
    *(Text(f"code-{part}", ("page",)) for part in ("string", "keyword", "number", "call")),
    Text("on-accent", ("accent",)),
    Text("on-then", ("then",)),
    Text("on-else", ("else",)),
    Text("on-nan", ("nan",)),
    Text("on-failed", ("failed", "stop")),
    Text(
        "ink",
        (
            "paper",
            "surface",
            "chip",
            "frame",
            "frame-if",
            "frame-then",
            "frame-else",
            "frame-group",
            "now-soft",
            "back-soft",
        ),
    ),
    Text("ink", tuple(f"fill-{family}" for family in _FAMILIES)),
    Text(
        "quiet",
        ("paper", "surface", "frame", "frame-if", "frame-then", "frame-else", "frame-group"),
    ),
    Text("quiet", tuple(f"fill-{family}" for family in _FAMILIES)),
    Text("map", ("paper", "frame")),
    Text("back", ("paper", "frame", "back-soft")),
    Text("taken", ("surface",)),
    Text("then-text", ("surface", "frame-then")),
    Text("else-text", ("surface", "frame-else")),
    *(Text(f"line-{family}", (f"fill-{family}", "surface")) for family in _FAMILIES),
)
"""Text colours of the screens with their backgrounds."""


def declarations(theme: Literal["light", "dark"]) -> str:
    """Return a CSS variable declaration for every colour of a theme.

    >>> declarations("light")[:31]
    '--page: #fbfbfe; --page-soft: #'
    """
    return " ".join(
        f"--{name}: {colour.light if theme == 'light' else colour.dark};"
        for name, colour in COLOURS.items()
    )


def channels(name: str) -> tuple[int, int, int]:
    """Return red, green and blue of a colour in the light theme, for pixel images.

    >>> channels("matrix-nan")
    (220, 38, 38)
    """
    red, green, blue = bytes.fromhex(COLOURS[name].light[1:7])
    return red, green, blue


Family = Literal[
    "port",
    "constant",
    "math",
    "logic",
    "matrix",
    "activation",
    "movement",
    "shape",
    "sequence",
    "region",
    "other",
]

FAMILIES: Mapping[Family, str] = MappingProxyType(
    {
        "port": "inputs, outputs",
        "math": "arithmetic",
        "logic": "comparison, logic",
        "matrix": "matrix, convolution",
        "activation": "activation, norm",
        "movement": "data movement",
        "shape": "shape, type",
        "sequence": "recurrent",
        "region": "control flow",
        "constant": "constant",
        "other": "other",
    }
)
"""Words of the legend by family, in order."""

_FAMILY_OF: Mapping[str, Family] = MappingProxyType(
    {
        "activation": "activation",
        "arithmetic": "math",
        "bitwise": "logic",
        "comparison": "logic",
        "condition": "movement",
        "convolution": "matrix",
        "detection": "other",
        "generation": "constant",
        "image": "other",
        "infrastructure": "port",
        "logical": "logic",
        "matrix": "matrix",
        "movement": "movement",
        "normalization": "activation",
        "pooling": "matrix",
        "quantization": "shape",
        "reduction": "math",
        "sequence": "sequence",
        "shape": "shape",
        "signals": "other",
        "sort": "movement",
        "sparse": "movement",
        "string": "other",
        "type": "shape",
    }
)
_FIXED: Mapping[str, Family] = MappingProxyType(
    {
        "Parameter": "port",
        "Result": "port",
        "Const": "constant",
        "Constant": "constant",
        "ReadValue": "port",
        "Assign": "port",
        "Loop": "region",
        "If": "region",
        "TensorIterator": "region",
        "Scan": "region",
        "SequenceMap": "region",
        "Select": "logic",
        "LSTMCell": "sequence",
        "GRUCell": "sequence",
        "RNNCell": "sequence",
        "Where": "logic",
        "Gemm": "matrix",
        "Conv": "matrix",
        "Identity": "movement",
        "Cast": "shape",
    }
)


@lru_cache(maxsize=4096)
def family_of(type: str) -> Family:
    """Return the family of an operation type; ``other`` if no catalogue contains the type."""
    if type in _FIXED:
        return _FIXED[type]
    versions = CATALOGUE.versions(type)
    return _FAMILY_OF.get(
        CATALOGUE.category_of(versions[-1]) if versions else _category_elsewhere(type), "other"
    )


def _category_elsewhere(type: str) -> str:
    # Imported here because it imports the onnx package, which OpenVINO models do not need.
    from loopscope.ops.microsoft import CATEGORY

    return CATEGORY.get(type, "")
