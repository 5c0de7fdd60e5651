"""``rt_info`` and ``meta_data`` from the nested mappings that the reader makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from loopscope.errors import WriteError
from loopscope.write.xml_elements import child, element, is_name

# As deep as the reader reads.
_DEEPEST = 64


def information(
    tag: str, content: Mapping[str, object], *, of_layer: bool = False
) -> etree._Element:
    """An ``rt_info`` element. In a layer or port, mappings are ``<attribute name="..." .../>``;
    elsewhere they are sections.
    """
    root = element(tag)
    for key, value in content.items():
        _entry(root, key, value, of_layer=of_layer, depth=1)
    return root


def _entry(parent: etree._Element, key: str, value: object, *, of_layer: bool, depth: int) -> None:
    if depth > _DEEPEST:
        raise WriteError(f"rt_info is nested deeper than {_DEEPEST}, which no reader takes")
    plain = is_name(key) and key not in ("info", "attribute")
    tag, name = (key, {}) if plain else ("info", {"name": key})
    if not isinstance(value, Mapping):
        child(parent, tag, {**name, "value": value})
        return
    if not of_layer:
        made, inside = child(parent, tag, name), value
    else:
        texts = {
            inner: text
            for inner, text in value.items()
            if not isinstance(text, Mapping) and is_name(inner) and inner != "name"
        }
        made = child(parent, "attribute", {"name": key, **texts})
        inside = {inner: text for inner, text in value.items() if inner not in texts}
    for inner, text in inside.items():
        _entry(made, inner, text, of_layer=False, depth=depth + 1)
