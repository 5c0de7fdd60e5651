"""``rt_info`` and ``meta_data`` from the nested mappings that the reader makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.errors import WriteError
from engine.write.xml import attributes, escape, is_name, line

# As deep as the reader reads.
_DEEPEST = 64


def information(level: int, tag: str, content: Mapping[str, object], *, of_layer: bool = False) -> Iterator[str]:
    """An ``rt_info`` element. In a layer or port, mappings are ``<attribute name="..." .../>``; elsewhere they are sections."""
    if not content:
        yield line(level, f"<{tag} />")
        return
    yield line(level, f"<{tag}>")
    for key, value in content.items():
        yield from _entry(level + 1, key, value, of_layer=of_layer, depth=1)
    yield line(level, f"</{tag}>")


def _entry(level: int, key: str, value: object, *, of_layer: bool, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        raise WriteError(f"rt_info is nested deeper than {_DEEPEST}, which no reader takes")
    opening = key if is_name(key) and key not in ("info", "attribute") else f'info name="{escape(key)}"'
    if not isinstance(value, Mapping):
        yield line(level, f'<{opening} value="{escape(str(value))}" />')
        return
    texts = {name: text for name, text in value.items() if of_layer and not isinstance(text, Mapping) and is_name(name) and name != "name"}
    if of_layer:
        opening = f'attribute name="{escape(key)}"'
    opening += attributes(texts)
    inside = {name: inner for name, inner in value.items() if name not in texts}
    if not inside:
        yield line(level, f"<{opening} />")
        return
    yield line(level, f"<{opening}>")
    for name, inner in inside.items():
        yield from _entry(level + 1, name, inner, of_layer=False, depth=depth + 1)
    yield line(level, f"</{opening.split(' ', 1)[0]}>")
