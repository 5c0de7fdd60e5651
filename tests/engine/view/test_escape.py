"""Names that want to be something else: markup, attributes, another direction of writing."""

from __future__ import annotations

import html
from xml.dom import minidom

import pytest

from loopscope.errors import neutral
from loopscope.view.build import graph_view
from loopscope.view.dot import dot_text, escape
from tests.engine.view.models import chain

HOSTILE = [
    '"', "\\", '\\"', "\\N \\G \\l", "a\nb", "a\r\nb", "a\tb", "<b>x</b>", "</TD></TR></TABLE>",
    "<script>alert(1)</script>", "&amp;", "&lt;", "&#60;",
    'x" onmouseover="alert(1)', "]; evil [label=", "-->", "/* */", "//", "#", "{}|", "\x00", "\x1b[31m", "\x7f", "\ud800", "\ufffe",
    "\u202egnp.exe", "\u2066x\u2069",
    "\u200b", "\u2028", "שלום", "العربية", "名前", "🙂", "e\u0301", "javascript:alert(1)", "a" * 5000, "", " ",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_escaped_text_is_markup_of_nothing_but_itself(name: str) -> None:
    text = escape(name)
    shown = minidom.parseString(f"<label>{text}</label>".encode()).documentElement
    assert shown is not None
    assert all(child.nodeType == child.TEXT_NODE for child in shown.childNodes)
    content = "".join(child.data for child in shown.childNodes if isinstance(child, minidom.Text))
    assert content == neutral(name).replace("\\", "\\\u2060")
    assert html.unescape(text) == content
    assert "\\" not in text
    assert "\n" not in text
    assert len(content) <= 330


@pytest.mark.parametrize("name", HOSTILE)
def test_neutral_text_hides_nothing(name: str) -> None:
    text = neutral(name)
    assert len(text) <= 160
    assert not any(
        character in text for character in "\x00\x1b\x7f\u202e\u2066\u200b\u2028\n\r\t\ufffe"
    )
    text.encode()


@pytest.mark.parametrize("name", HOSTILE)
def test_names_enter_dot_in_labels_only(name: str) -> None:
    model = chain(2, lambda _: name)
    for standalone in (True, False):
        lines = dot_text(graph_view(model), standalone=standalone).splitlines()
        named = next(line for line in lines if line.startswith("  n1 ["))
        bare = named.partition("label=<")[0] + named.rpartition(">")[2]
        assert (
            name not in bare
            or len(name) < 3
            or name in dot_text(graph_view(chain(2, lambda _: "ordinary")), standalone=standalone)
        )
        assert len(lines) == len(
            dot_text(graph_view(chain(2, lambda _: "ordinary")), standalone=standalone).splitlines()
        )


def test_long_text_keeps_both_ends() -> None:
    assert neutral("begin" + "x" * 500 + "end", 21).startswith("begin")
    assert neutral("begin" + "x" * 500 + "end", 21).endswith("end")
