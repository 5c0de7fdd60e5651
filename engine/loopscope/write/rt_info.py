"""``rt_info`` and ``meta_data`` elements, from the nested mappings of the reader."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from loopscope.errors import WriteError
from loopscope.write.xml_elements import child, element, is_name

# The limit of the reader.
_MAX_DEPTH = 64


def information(
    tag: str, content: Mapping[str, object], *, of_layer: bool = False
) -> etree._Element:
    """Return an ``rt_info`` element.

    In a layer or port, mappings become ``<attribute name="..." .../>``; elsewhere they become
    sections.
    """
    root = element(tag)
    for key, value in content.items():
        _entry(root, key, value, of_layer=of_layer, depth=1)
    return root


def _entry(parent: etree._Element, key: str, value: object, *, of_layer: bool, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise WriteError(f"rt_info is nested deeper than {_MAX_DEPTH}, the limit of readers")
    plain = is_name(key) and key not in ("info", "attribute")
    tag, name = (key, {}) if plain else ("info", {"name": key})
    if not isinstance(value, Mapping):
        child(parent, tag, {**name, "value": value})
        return
    if not of_layer:
        target, content = child(parent, tag, name), value
    else:
        texts = {
            inner: text
            for inner, text in value.items()
            if not isinstance(text, Mapping) and is_name(inner) and inner != "name"
        }
        target = child(parent, "attribute", {"name": key, **texts})
        content = {inner: text for inner, text in value.items() if inner not in texts}
    for inner, text in content.items():
        _entry(target, inner, text, of_layer=False, depth=depth + 1)
