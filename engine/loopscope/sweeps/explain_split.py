"""What separates the runs with a large count from the others: a small decision tree over their
inputs, told as a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loopscope.errors import EngineError
from loopscope.sweeps.row_numbers import numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from loopscope.ir.model import Model
    from loopscope.sweeps.samples import Samples

_DEPTH, _LEAVES = 3, 2
_MOST_ELEMENTS = 64
"""Of an input whose elements are looked at one by one."""
_MOST_SAMPLES, _READ = 20_000, 256
_LEAST_GAIN = 0.02
"""Share of the runs that a rule must tell right beyond what is right without one."""


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Conditions that hold together."""

    conditions: tuple[str, ...]
    """Such as ``n > 26`` or ``features[0,2] <= 0.5``."""
    runs: int
    """For which all of them hold."""
    more: int
    """Of those, the runs that have more."""


@dataclass(frozen=True, slots=True)
class Separation:
    """What the runs with more than so much of a column have in common, and the others have not."""

    column: str
    bound: float
    runs: int
    more: int
    """Runs that have more than ``bound``."""
    rules: tuple[SplitRule, ...]
    """Where most runs have more; none where no input tells."""

    @property
    def sentence(self) -> str:
        """In words."""
        what = f"{_number(self.bound)} in {self.column}"
        if not self.more:
            return f"No run has more than {what}."
        if self.more == self.runs:
            return f"All {self.runs:,} runs have more than {what}."
        if not self.rules:
            return f"{self.more:,} of {self.runs:,} runs have more than {what}; no input, by itself or with others, tells which."
        said = " or ".join(" and ".join(rule.conditions) for rule in self.rules)
        met, right = sum(rule.runs for rule in self.rules), sum(rule.more for rule in self.rules)
        most = (
            "Most of them are" if 2 * right > self.more else "No rule tells most of them; some are"
        )
        return (
            f"{self.more:,} of {self.runs:,} runs have more than {what}. {most} where {said}: "
            f"that holds for {met:,} runs, and {'all' if right == met else f'{right:,}'} of these have more."
        )


def separation(
    rows: pa.Table, column: str, bound: float, features: Mapping[str, np.ndarray]
) -> Separation:
    """Of the first 20,000 rows. ``features``: numbers for each, by name (``features_of``).

    ``EngineError`` where scikit-learn is not installed.
    """
    values = numbers(rows, column)[:_MOST_SAMPLES]
    there = np.flatnonzero(np.isfinite(values))
    more = values[there] > bound
    usable = {
        name: one[there]
        for name, one in features.items()
        if np.isfinite(one[there]).all() and len(np.unique(one[there])) > 1
    }
    found = Separation(column, bound, len(there), int(more.sum()), ())
    if not usable or more.all() or not more.any():
        return found
    names, table = list(usable), np.stack(list(usable.values()), axis=1).astype(np.float64)
    tree = _tree().fit(table, more)
    rules = sorted(_rules(tree, names, table, more), key=lambda rule: -rule.more)[:_LEAVES]
    right = sum(rule.more - (rule.runs - rule.more) for rule in rules) / len(there)
    return Separation(
        column,
        bound,
        len(there),
        int(more.sum()),
        tuple(rules) if right >= _LEAST_GAIN * more.mean() else (),
    )


def _tree() -> Any:
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        raise EngineError(
            "what separates runs is found with scikit-learn, which is not installed: pip install scikit-learn"
        ) from None
    return DecisionTreeClassifier(max_depth=_DEPTH, min_samples_leaf=2, random_state=0)


def _rules(
    fitted: Any, names: Sequence[str], table: np.ndarray, more: np.ndarray
) -> Iterator[SplitRule]:
    """Of the leaves in which most runs have more."""
    tree = fitted.tree_
    leaf_of = fitted.apply(table)
    whole = [bool(np.all(column == np.rint(column))) for column in table.T]
    waiting: list[tuple[int, dict[int, tuple[float, float]]]] = [(0, {})]
    while waiting:
        node, spans = waiting.pop()
        if tree.children_left[node] < 0:
            there = leaf_of == node
            if 2 * int(more[there].sum()) > int(there.sum()):
                conditions = tuple(
                    _condition(names[feature], *span, whole=whole[feature])
                    for feature, span in sorted(spans.items())
                )
                yield SplitRule(conditions, int(there.sum()), int(more[there].sum()))
            continue
        feature, at = int(tree.feature[node]), float(tree.threshold[node])
        low, high = spans.get(feature, (-np.inf, np.inf))
        waiting.append((int(tree.children_right[node]), {**spans, feature: (max(low, at), high)}))
        waiting.append((int(tree.children_left[node]), {**spans, feature: (low, min(high, at))}))


def _condition(name: str, low: float, high: float, *, whole: bool) -> str:
    """
    >>> _condition("n", 26.5, np.inf, whole=True), _condition("n", 2.5, 9.5, whole=True), _condition("x", -np.inf, 0.25, whole=False)
    ('n > 26', '2 < n <= 9', 'x <= 0.25')
    >>> _condition("n", 5.5, 6.5, whole=True)
    'n == 6'
    """
    if whole:
        low, high = np.floor(low), np.floor(high)
        if high == low + 1:
            return f"{name} == {_number(high)}"
    if np.isinf(low):
        return f"{name} <= {_number(high)}"
    return (
        f"{name} > {_number(low)}"
        if np.isinf(high)
        else f"{_number(low)} < {name} <= {_number(high)}"
    )


def _number(value: float) -> str:
    return f"{int(value):,}" if value == np.rint(value) and abs(value) < 1e15 else f"{value:.4g}"


def features_of(
    model: Model, samples: Samples, rows: pa.Table, columns: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """What may tell the runs of some rows apart, for the first 20,000 of them: each number among
    their inputs, and ``columns``.

    An input of a few numbers gives one feature for each of them; one of many, or of differing
    shapes, none.
    """
    at = rows["sample"].to_numpy()[:_MOST_SAMPLES]
    found = {name: numbers(rows, name)[: len(at)] for name in columns}
    parts: dict[int, list[np.ndarray]] = {}
    for first in range(0, len(at), _READ):
        asked = at[first : first + _READ]
        batch = samples.batch(int(asked[0]), int(asked[-1]) + 1)
        for position, values in batch.varying.items():
            if (
                isinstance(values, np.ndarray)
                and values.dtype.kind in "biuf"
                and values[0].size <= _MOST_ELEMENTS
            ):
                parts.setdefault(position, []).append(values[asked - asked[0]].astype(np.float64))
    for position, arrays in parts.items():
        found.update(_elements(model.inputs[position].name, np.concatenate(arrays)))
    return found


def _elements(name: str, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """
    >>> [name for name, _ in _elements("x", np.zeros((5, 1, 2)))], [name for name, _ in _elements("n", np.zeros((5, 1)))]
    (['x[0,0]', 'x[0,1]'], ['n'])
    """
    if values[0].size == 1:
        yield name, values.reshape(len(values))
        return
    for place in np.ndindex(values.shape[1:]):
        yield f"{name}[{','.join(map(str, place))}]", values[:, *place]
