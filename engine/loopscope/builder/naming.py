"""Naming: unique names in a graph, and snake_case names of operation functions."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

_ONE_WORD = re.compile(
    r"MatMul|SoftMax|SoftPlus|SoftSign|P?ReLU|HSwish|HSigmoid|TopK(?!R)|PSROI|NaN$|RGB|BGR|ErfInv$"
)
"""Parts of names with inner capitals that are one word, as in OpenVINO's Python factories."""
_RESERVED = frozenset({"version"})
"""Names in ``builder.ops`` that are not operations."""
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[0-9])(?=to[A-Z])")
_LETTERS = re.compile(r"[^a-z0-9]")


def snake_case(name: str) -> str:
    """Return an operation's name in snake_case. A word starts at a capital, and a run of capitals
    is one word.

    Names that are reserved in Python or ``builder.ops`` get a trailing ``_``:
    ``snake_case("Lambda")`` is ``lambda_``.

    >>> [snake_case(name) for name in ("ReduceSum", "GRUCell", "GatherND", "MatMul", "ReduceL1")]
    ['reduce_sum', 'gru_cell', 'gather_nd', 'matmul', 'reduce_l1']
    >>> [snake_case(name) for name in ("I420toBGR", "Col2Im", "IsNaN")]
    ['i420_to_bgr', 'col2im', 'is_nan']
    """
    joined = _ONE_WORD.sub(lambda match: match[0].capitalize(), name)
    joined = re.sub(r"to(?=(Bgr|Rgb|NV12)$)", "_to_", joined).replace("2I", "2i")
    spelled = _BOUNDARY.sub("_", joined).lower().replace("__", "_")
    return f"{spelled}_" if keyword.iskeyword(spelled) or spelled in _RESERVED else spelled


@lru_cache(4096)
def letters(name: str) -> str:
    """Return the letters and digits of a name in lower case, which different spellings of an
    operation share.

    >>> letters("mat_mul") == letters("MatMul") == letters("matmul")
    True
    """
    return _LETTERS.sub("", name.lower())


@dataclass(frozen=True, slots=True)
class NameScope:
    """A name scope that views draw as a frame."""

    name: str
    """Full name, such as ``decoder/attention_1``."""
    function: str = ""
    """Name of the called function; empty for a scope that the user opened."""


class Names:
    """Used names of a graph, and the current scope for new names."""

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}
        self._scopes: dict[str, int] = {}
        self.scopes: list[str] = []
        """Full names of the open scopes, outermost first."""

    @property
    def prefix(self) -> str:
        """Prefix of new names, such as ``decoder/attention/`` inside two scopes; empty outside of
        scopes.
        """
        return f"{self.scopes[-1]}/" if self.scopes else ""

    def unique(self, stem: str) -> str:
        """Return ``stem`` in the current scope, with a suffix ``_1``, ``_2``, ... if it is used."""
        return _first_unused(self.prefix + stem, self._nodes)

    def copied(self) -> Names:
        """Return an independent copy."""
        copy = Names()
        copy._nodes, copy._scopes, copy.scopes = (
            dict(self._nodes),
            dict(self._scopes),
            list(self.scopes),
        )
        return copy

    def enter(self, stem: str) -> str:
        """Open a scope inside the current one and return its name. A repeated scope gets a
        number.
        """
        scope = _first_unused(self.prefix + stem, self._scopes)
        self.scopes.append(scope)
        return scope

    def leave(self) -> None:
        """Close the current scope."""
        self.scopes.pop()

    @contextmanager
    def unscoped(self) -> Iterator[None]:
        """Ignore the open scopes while inputs of a body are named."""
        scopes, self.scopes = self.scopes, []
        try:
            yield
        finally:
            self.scopes = scopes


def _first_unused(stem: str, used: dict[str, int]) -> str:
    """Return the first of ``stem``, ``stem_1``, ... that is unused; ``used`` stores the last number
    per stem.
    """
    name, number = stem, used.get(stem, 0)
    while name in used:
        number += 1
        name = f"{stem}_{number}"
    used[stem] = number
    used.setdefault(name, 0)
    return name
