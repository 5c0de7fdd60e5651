"""Small pieces of HTML; the one place of the screens where text of a model enters markup,
escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

import streamlit as st

from loopscope.errors import neutral


def text(words: object, most: int = 200) -> str:
    """Text of unknown origin, made harmless and cut to a bearable length.

    >>> text("<b>&")
    '&lt;b&gt;&amp;'
    """
    return html.escape(neutral(str(words), most))


def sentence(words: object) -> str:
    """A result, a failure or a problem: whole, since what is cut from it may be what it says.

    Only what no page can bear loses its middle.

    >>> len(sentence("a" * 5000)), len(sentence("a" * 1_000_000))
    (5000, 20000)
    """
    return text(words, 20_000)


def plain(words: object, most: int = 200) -> str:
    """Text of unknown origin for where Streamlit reads Markdown: it means nothing there.

    >>> plain("[a](b) *c*")
    '\\\\[a\\\\](b) \\\\*c\\\\*'
    """
    return "".join(
        f"\\{mark}" if mark in "\\`*_{}[]<>#$~:|!" else mark for mark in neutral(str(words), most)
    )


def prose(words: object, most: int = 2000) -> str:
    """Text with `names` in backticks and **bold** words.

    >>> prose("`a<b>` is **so**")
    '<code>a&lt;b&gt;</code> is <b>so</b>'
    """
    named = re.sub(r"`([^`]+)`", r"<code>\1</code>", text(words, most))
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", named)


def chip(words: object, kind: str = "") -> str:
    return f'<span class="chip {kind}">{text(words, 60)}</span>'


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A two-column table of (escaped) HTML."""
    return (
        '<table class="facts">'
        + "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows)
        + "</table>"
    )


def section(title: str) -> str:
    return f'<div class="section">{title}</div>'


def show(markup: str, classes: str = "") -> None:
    """Draws markup whose variable parts went through ``text``."""
    st.html(f'<div class="ls {classes}">{markup}</div>')
