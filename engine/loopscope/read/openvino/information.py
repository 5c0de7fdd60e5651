"""``rt_info`` and ``meta_data``: what a file tells about itself, as nested mappings of text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from loopscope.read.file_limits import ReadLimits

# Elements whose key is their attribute "name" and not their tag.
_NAMED = ("info", "attribute")


class InformationCollector:
    """Takes the elements inside one ``rt_info``; ``finished`` is the mapping once its end was
    seen.
    """

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._open: list[tuple[str, dict[str, object]]] = [("", {})]

    @property
    def depth(self) -> int:
        """Elements open inside the outermost one."""
        return len(self._open) - 1

    @property
    def finished(self) -> Mapping[str, object]:
        return MappingProxyType(self._open[0][1])

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins; ``ValueError`` when it is deeper or longer than the limits allow."""
        if self.depth >= self._limits.information_depth:
            raise ValueError(
                f"elements of rt_info are nested deeper than {self._limits.information_depth}, the limit 'information_depth'"
            )
        self._limits.short_texts(attributes)
        key = attributes.pop("name", tag) if tag in _NAMED else tag
        self._open.append((key, dict(attributes)))

    def end(self) -> None:
        """The innermost open element ends: ``<key value="..."/>`` is a text, anything else a
        mapping.
        """
        key, inside = self._open.pop()
        value: object = inside["value"] if inside.keys() == {"value"} else MappingProxyType(inside)
        self._open[-1][1][key] = value
