"""Small pieces of HTML. Text of a model enters the markup of screens here only, escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

import streamlit as st

from loopscope.errors import neutral


def text(words: object, limit: int = 200) -> str:
    """Return text of unknown origin, escaped and shortened to ``most`` characters.

    >>> text("<b>&")
    '&lt;b&gt;&amp;'
    """
    return html.escape(neutral(str(words), limit))


def sentence(words: object) -> str:
    """Return a result, a failure or a problem as escaped text, whole up to 20,000 characters.

    >>> len(sentence("a" * 5000)), len(sentence("a" * 1_000_000))
    (5000, 20000)
    """
    return text(words, 20_000)


def plain(words: object, limit: int = 200) -> str:
    """Return text of unknown origin with all Markdown marks of Streamlit escaped.

    >>> plain("[a](b) *c*")
    '\\\\[a\\\\](b) \\\\*c\\\\*'
    """
    return "".join(
        f"\\{mark}" if mark in "\\`*_{}[]<>#$~:|!" else mark for mark in neutral(str(words), limit)
    )


def prose(words: object, limit: int = 2000) -> str:
    """Return escaped text in which backticks mark code and double asterisks mark bold words.

    >>> prose("`a<b>` is **so**")
    '<code>a&lt;b&gt;</code> is <b>so</b>'
    """
    named = re.sub(r"`([^`]+)`", r"<code>\1</code>", text(words, limit))
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", named)


def chip(words: object, kind: str = "") -> str:
    return f'<span class="chip {kind}">{text(words, 60)}</span>'


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of two columns. The cells are HTML that is already escaped."""
    return (
        '<table class="facts">'
        + "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows)
        + "</table>"
    )


def section(title: str) -> str:
    return f'<div class="section">{title}</div>'


def show(markup: str, classes: str = "") -> None:
    """Draw markup whose variable parts are already escaped."""
    st.html(f'<div class="ls {classes}">{markup}</div>')
