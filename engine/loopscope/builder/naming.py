"""How things are called: names that are unique in their graph, and the snake_case name of an
operation's function.
"""

from __future__ import annotations

import keyword
import re
from functools import lru_cache

_ONE_WORD = re.compile(
    r"MatMul|SoftMax|SoftPlus|SoftSign|P?ReLU|HSwish|HSigmoid|TopK(?!R)|PSROI|NaN$|RGB|BGR|ErfInv$"
)
"""What the spec spells with inner capitals but everybody reads as one word, as OpenVINO's Python
factories do.
"""
_TAKEN = frozenset({"version"})
"""What ``builder.ops`` has besides operations."""
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[0-9])(?=to[A-Z])")
_LETTERS = re.compile(r"[^a-z0-9]")


def snake_case(name: str) -> str:
    """An operation's name in snake_case: a word begins at a capital, and a run of capitals is one
    word.

    What Python or ``builder.ops`` keeps for itself gets ``_`` after it: ``snake_case("Lambda")`` is
    ``lambda_``.

    >>> [snake_case(name) for name in ("ReduceSum", "GRUCell", "GatherND", "MatMul", "I420toBGR", "Col2Im", "IsNaN", "ReduceL1")]
    ['reduce_sum', 'gru_cell', 'gather_nd', 'matmul', 'i420_to_bgr', 'col2im', 'is_nan',
    'reduce_l1']
    """
    joined = _ONE_WORD.sub(lambda match: match[0].capitalize(), name)
    joined = re.sub(r"to(?=(Bgr|Rgb|NV12)$)", "_to_", joined).replace("2I", "2i")
    spelled = _BOUNDARY.sub("_", joined).lower().replace("__", "_")
    return f"{spelled}_" if keyword.iskeyword(spelled) or spelled in _TAKEN else spelled


@lru_cache(4096)
def letters(name: str) -> str:
    """What two spellings of one operation share: letters and digits, in lower case.

    >>> letters("mat_mul") == letters("MatMul") == letters("matmul")
    True
    """
    return _LETTERS.sub("", name.lower())


class Names:
    """The names in use in one graph, and the scope that new ones are put in."""

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}
        self._scopes: dict[str, int] = {}
        self.scopes: list[str] = []
        """Whole names of the open scopes, outermost first."""

    @property
    def prefix(self) -> str:
        """Of new names: ``decoder/attention/`` inside two scopes, empty outside of any."""
        return f"{self.scopes[-1]}/" if self.scopes else ""

    def unique(self, wanted: str) -> str:
        """``wanted`` in the current scope; with ``_1``, ``_2``, ... after it when it is taken."""
        return _free(self.prefix + wanted, self._nodes)

    def copied(self) -> Names:
        """Return a copy, which names that are made later do not change."""
        copied = Names()
        copied._nodes, copied._scopes, copied.scopes = (
            dict(self._nodes),
            dict(self._scopes),
            list(self.scopes),
        )
        return copied

    def enter(self, wanted: str) -> str:
        """Opens a scope inside the current one; a scope that was opened before gets a number, so
        that the two stay apart.
        """
        scope = _free(self.prefix + wanted, self._scopes)
        self.scopes.append(scope)
        return scope

    def leave(self) -> None:
        """Back to the scope around."""
        self.scopes.pop()


def _free(wanted: str, used: dict[str, int]) -> str:
    """The first of ``wanted``, ``wanted_1``, ... that is not in use; ``used`` remembers where to
    go on.
    """
    name, number = wanted, used.get(wanted, 0)
    while name in used:
        number += 1
        name = f"{wanted}_{number}"
    used[wanted] = number
    used.setdefault(name, 0)
    return name
