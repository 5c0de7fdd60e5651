"""A sound model whose every name wants to be something else: markup, a script, a link, a
picture, another line, another direction.
"""

from __future__ import annotations

from pathlib import Path

from lxml import etree

from loopscope_samples import samples

HOSTILE = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=2>",
    "\"' onmouseover=window.hacked=3 x='",
    "](javascript:window.hacked=4)",
    "![p](http://127.0.0.1:9/picture.png) [link](http://127.0.0.1:9/)",
    "</style><svg onload=window.hacked=5>",
    "$\\href{javascript:window.hacked=6}{x}$ :red[x] **bold** `code`",
    "line one\nline two\r\ttab",
    "\u202egnp.exe\u2066\u200b\u0007",
    "a/b[0]:c*%7E~/..",
    "{}{{}}%s%n${x}",
    "é" * 9000,
    "x" * 9000,
    "\\N\\G\\\\",
    "]]>&amp;&#0;",
)


def write(folder: Path, sample: str = "decoder") -> Path:
    """The sample under hostile names, as files in a folder."""
    source = next(one for one in samples() if one.name == sample).model
    tree = etree.parse(str(source))
    for number, element in enumerate(tree.iter()):
        word = HOSTILE[number % len(HOSTILE)].replace("\u0007", "")
        if element.tag == "layer":
            element.set(
                "name",
                f"{word}{number}"
                if element.get("type") != "Loop"
                else f"<b onclick=window.hacked=7>{word[:200]}",
            )
        if "names" in element.attrib:
            element.set("names", word.replace(",", ";"))
        if element.tag == "net":
            element.set("name", HOSTILE[0])
        owner = element.getparent()
        if (
            element.tag == "data"
            and owner is not None
            and str(owner.get("type")) not in ("Const", "Parameter")
        ):
            element.set("note", word)
    rt_info = etree.SubElement(tree.getroot(), "rt_info")
    for number, word in enumerate(HOSTILE):
        etree.SubElement(
            rt_info,
            "info",
            name=word.replace("\u0007", "") + str(number),
            value=word.replace("\u0007", ""),
        )
    target = folder / "<b>'model'.xml"
    tree.write(str(target), encoding="utf-8", xml_declaration=True)
    target.with_suffix(".bin").write_bytes(source.with_suffix(".bin").read_bytes())
    return target
