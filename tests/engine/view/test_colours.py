"""Colours: one file names them, words can be read on what they stand on, and what is told apart
stays apart.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal

import pytest

from loopscope.view.colours import COLOURS, FAMILIES, TEXTS, Text

ROOT = Path(__file__).parents[3]
HEX = re.compile(r"(?<![&\w])#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b(?!\()")
BY_FUNCTION = re.compile(r"\b(?:rgb|rgba|hsl|hsla)\(\s*\d")
ELSEWHERE = {
    "engine/loopscope/view/colours.py": "the file of colours",
    "app/loopscope_app/.streamlit/config.toml": "Streamlit reads it by itself; a test below holds it to the file of colours",
    "app/loopscope_app/command/serve.py": "an example of Streamlit's options",
}
THEME = {
    "primaryColor": "accent",
    "backgroundColor": "page",
    "secondaryBackgroundColor": "page-soft",
    "textColor": "page-text",
    "borderColor": "page-border",
    "dataframeBorderColor": "table-border",
    "dataframeHeaderBackgroundColor": "table-header",
    "codeBackgroundColor": "code-background",
    "codeTextColor": "code-text",
}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def test_no_other_file_names_a_colour() -> None:
    files = [
        path
        for room in ("app", "engine")
        for path in (ROOT / room).rglob("*")
        if path.suffix in (".py", ".js", ".css", ".toml")
    ]
    named = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if not {"vendor", "node_modules"} & set(path.parts)
        and (HEX.search(text := path.read_text(encoding="utf-8")) or BY_FUNCTION.search(text))
    }
    assert named == set(ELSEWHERE)


@pytest.mark.parametrize("theme", THEMES)
def test_streamlit_s_theme_has_the_same_colours(theme: str) -> None:
    config = tomllib.loads(
        (ROOT / "app/loopscope_app/.streamlit/config.toml").read_text(encoding="utf-8")
    )
    assert config["theme"][theme] == {
        option: getattr(COLOURS[name], theme) for option, name in THEME.items()
    }


def test_what_style_sheets_and_scripts_use_is_a_colour_or_set_beside_it() -> None:
    """A variable that nothing sets makes its whole rule void, silently."""
    sheets = [
        *ROOT.glob("app/loopscope_app/assets/*.css"),
        *ROOT.glob("app/loopscope_app/canvas/assets/*.css"),
    ]
    scripts = [
        *ROOT.glob("app/loopscope_app/assets/*.js"),
        *ROOT.glob("app/loopscope_app/canvas/assets/*.js"),
    ]
    texts = [path.read_text(encoding="utf-8") for path in (*sheets, *scripts)]
    used = {name for text in texts for name in re.findall(r"var\(--([\w-]+)\)", text)}
    used |= {name for text in texts for name in re.findall(r'\bnamed\("([\w-]+)"\)', text)}
    set_there = {name for text in texts for name in re.findall(r"--([\w-]+)(?:\"?,|:)", text)}
    assert {name for name in used if not name.startswith("st-")} - set_there - set(COLOURS) == set()


def test_every_colour_is_used() -> None:
    files = [
        path
        for suffix in ("py", "css", "js", "toml")
        for room in ("app", "engine")
        for path in (ROOT / room).rglob(f"*.{suffix}")
    ]
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in files
        if path.name != "colours.py" and "vendor" not in path.parts
    )
    made = {
        f"{part}-{family}" for part in ("line", "fill") for family in FAMILIES
    }  # by name in dot.py and canvas.css
    made |= {f"shape-{number}" for number in range(5)} | {
        name for name in COLOURS if name.startswith("matrix-")
    }
    unused = {
        name
        for name in set(COLOURS) - made - set(THEME.values())
        if not re.search(rf"(?:--|\"){name}\b", text)
    }
    assert unused == set()


def test_every_family_has_a_line_and_a_fill() -> None:
    assert {name.split("-", 1)[1] for name in COLOURS if name.startswith(("line-", "fill-"))} == {
        *FAMILIES,
        "region",
        "other",
        "constant",
    }


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("words", TEXTS, ids=lambda words: f"{words.colour} on {words.on[0]}")
def test_words_can_be_read(words: Text, theme: str) -> None:
    """WCAG 2.2, success criterion 1.4.3: 4.5 to 1."""
    colour = getattr(COLOURS[words.colour], theme)
    grounds = {name: _over(colour, getattr(COLOURS[name], theme), words.tint) for name in words.on}
    assert {
        name: round(_contrast(colour, ground), 2)
        for name, ground in grounds.items()
        if _contrast(colour, ground) < 4.5
    } == {}


@pytest.mark.parametrize("theme", THEMES)
def test_branches_stay_apart_without_hue(theme: str) -> None:
    assert _contrast(getattr(COLOURS["then"], theme), getattr(COLOURS["else"], theme)) > 1.5


def _over(colour: str, ground: str, share: float) -> str:
    mixed = (
        round(share * a + (1 - share) * b)
        for a, b in zip(bytes.fromhex(colour[1:]), bytes.fromhex(ground[1:]), strict=True)
    )
    return "#" + bytes(mixed).hex()


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance after WCAG, from 0 for black to 1 for white."""
    linear = _linear(colour)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# Machado, Oliveira, Fernandes: "A Physiologically-based Model for Simulation of Color Vision
# Deficiency" (2009), severity 1, on linear RGB.
_SEEN = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_APART = 20
"""Of the CIE's 1976 difference, in which 2.3 is just noticed: plain at a glance on small marks."""


@pytest.mark.parametrize("sight", _SEEN)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("one", "other"), [("then", "else"), ("nan", "accent"), ("back", "curve")])
def test_the_colour_blind_tell_them_apart(
    one: str, other: str, theme: Literal["light", "dark"], sight: str
) -> None:
    first, second = (_lab(_linear(getattr(COLOURS[name], theme)), sight) for name in (one, other))
    assert sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) ** 0.5 >= _APART


def _linear(colour: str) -> tuple[float, ...]:
    parts = [one / 255 for one in bytes.fromhex(colour[1:7])]
    return tuple(
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )


def _lab(linear: tuple[float, ...], sight: str) -> tuple[float, ...]:
    seen = [
        min(1.0, max(0.0, sum(a * b for a, b in zip(row, linear, strict=True))))
        for row in _SEEN[sight]
    ]
    rows = (
        (0.4124564, 0.3575761, 0.1804375),
        (0.2126729, 0.7151522, 0.0721750),
        (0.0193339, 0.1191920, 0.9503041),
    )
    xyz = [
        sum(a * b for a, b in zip(row, seen, strict=True)) / white
        for row, white in zip(rows, (0.95047, 1.0, 1.08883), strict=True)
    ]
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)
