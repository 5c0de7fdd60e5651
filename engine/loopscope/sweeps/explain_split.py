"""Sweep rows as numbers, their selection by a condition, and a decision tree over the inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loopscope.debug.expression import parse
from loopscope.errors import EngineError, InputError, shorten
from loopscope.ir.address_search import ambiguous, ending
from loopscope.ir.readable import as_written, significant, static_words

if TYPE_CHECKING:
    import pyarrow as pa

    from loopscope.ir.model import Model
    from loopscope.sweeps.samples import Samples


_MAX_DEPTH, _MAX_RULES = 3, 2
_MAX_FEATURES_PER_INPUT = 64
"""Maximum number of elements of an input that become one feature each."""
_MAX_SAMPLES, _SAMPLES_PER_READ = 20_000, 256
_MIN_GAIN = 0.02
"""Minimum gain of the rules in correctly classified runs, as a share of the runs above the
bound.
"""


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Conditions that hold together."""

    conditions: tuple[str, ...]
    """Conditions such as ``n > 26`` or ``features[0,2] <= 0.5``."""
    runs: int
    """Number of runs for which all of them hold."""
    more: int
    """Number of these runs above the bound."""


@dataclass(frozen=True, slots=True)
class Separation:
    """Common conditions of the runs whose column is above a bound, which the other runs do not
    satisfy.
    """

    column: str
    bound: float
    runs: int
    more: int
    """Number of runs above ``bound``."""
    rules: tuple[SplitRule, ...]
    """Rules for which most runs are above the bound; empty if no input separates them."""

    @property
    def sentence(self) -> str:
        """The separation in words."""
        bound_text = f"{_number(self.bound)} in {self.column}"
        if not self.more:
            return f"No run has more than {bound_text}."
        if self.more == self.runs:
            return f"All {self.runs:,} runs have more than {bound_text}."
        if not self.rules:
            return (
                f"{self.more:,} of {self.runs:,} runs have more than {bound_text}; "
                "no input, by itself or with others, tells which."
            )
        conditions = " or ".join(" and ".join(rule.conditions) for rule in self.rules)
        matching = sum(rule.runs for rule in self.rules)
        right = sum(rule.more for rule in self.rules)
        coverage = (
            "Most of them are" if 2 * right > self.more else "No rule tells most of them; some are"
        )
        return (
            f"{self.more:,} of {self.runs:,} runs have more than {bound_text}. "
            f"{coverage} where {conditions}: "
            f"that holds for {matching:,} runs, "
            f"and {'all' if right == matching else f'{right:,}'} of these have more."
        )


def separation(
    rows: pa.Table, column: str, bound: float, features: Mapping[str, np.ndarray]
) -> Separation:
    """Return the separation of the first 20,000 rows. ``features`` are numbers for each row, by
    name (``features_of``).

    Raises ``EngineError`` if scikit-learn is not installed.
    """
    values = numbers(rows, column)[:_MAX_SAMPLES]
    finite_rows = np.flatnonzero(np.isfinite(values))
    more = values[finite_rows] > bound
    usable = {
        name: values[finite_rows]
        for name, values in features.items()
        if np.isfinite(values[finite_rows]).all() and len(np.unique(values[finite_rows])) > 1
    }
    unexplained = Separation(column, bound, len(finite_rows), int(more.sum()), ())
    if not usable or more.all() or not more.any():
        return unexplained
    names, table = list(usable), np.stack(list(usable.values()), axis=1).astype(np.float64)
    tree = _tree().fit(table, more)
    rules = sorted(_rules(tree, names, table, more), key=lambda rule: -rule.more)[:_MAX_RULES]
    right = sum(rule.more - (rule.runs - rule.more) for rule in rules) / len(finite_rows)
    return Separation(
        column,
        bound,
        len(finite_rows),
        int(more.sum()),
        tuple(rules) if right >= _MIN_GAIN * more.mean() else (),
    )


def _tree() -> Any:
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        raise EngineError(
            "separating runs requires scikit-learn, which is not installed: "
            "pip install scikit-learn"
        ) from None
    return DecisionTreeClassifier(max_depth=_MAX_DEPTH, min_samples_leaf=2, random_state=0)


def _rules(
    classifier: Any, names: Sequence[str], table: np.ndarray, more: np.ndarray
) -> Iterator[SplitRule]:
    """Yield a rule for each leaf in which most runs are above the bound."""
    tree = classifier.tree_
    leaf_of = classifier.apply(table)
    are_integers = [bool(np.all(column == np.rint(column))) for column in table.T]
    waiting: list[tuple[int, dict[int, tuple[float, float]]]] = [(0, {})]
    while waiting:
        node, spans = waiting.pop()
        if tree.children_left[node] < 0:
            in_leaf = leaf_of == node
            if 2 * int(more[in_leaf].sum()) > int(in_leaf.sum()):
                conditions = tuple(
                    _condition(names[feature], *span, whole=are_integers[feature])
                    for feature, span in sorted(spans.items())
                )
                yield SplitRule(conditions, int(in_leaf.sum()), int(more[in_leaf].sum()))
            continue
        feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
        lower, upper = spans.get(feature, (-np.inf, np.inf))
        waiting.append(
            (int(tree.children_right[node]), {**spans, feature: (max(lower, threshold), upper)})
        )
        waiting.append(
            (int(tree.children_left[node]), {**spans, feature: (lower, min(upper, threshold))})
        )


def _condition(name: str, low: float, high: float, *, whole: bool) -> str:
    """
    >>> _condition("n", 26.5, np.inf, whole=True), _condition("n", 2.5, 9.5, whole=True)
    ('n > 26', '2 < n <= 9')
    >>> _condition("x", -np.inf, 0.25, whole=False)
    'x <= 0.25'
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
    return (
        f"{int(value):,}"
        if value == np.rint(value) and abs(value) < 1e15
        else f"{significant(value)}"
    )


def features_of(
    model: Model, samples: Samples, rows: pa.Table, columns: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Return the features of the first 20,000 rows that may separate the runs: the numbers of their
    inputs, and ``columns``.

    An input of a few numbers has one feature for each of them. A larger input, or one of differing
    shapes, has none.
    """
    sample_numbers = rows["sample"].to_numpy()[:_MAX_SAMPLES]
    features = {name: numbers(rows, name)[: len(sample_numbers)] for name in columns}
    parts: dict[int, list[np.ndarray]] = {}
    for first in range(0, len(sample_numbers), _SAMPLES_PER_READ):
        chunk = sample_numbers[first : first + _SAMPLES_PER_READ]
        batch = samples.batch(int(chunk[0]), int(chunk[-1]) + 1)
        for position, values in batch.varying.items():
            if (
                isinstance(values, np.ndarray)
                and values.dtype.kind in "biuf"
                and values[0].size <= _MAX_FEATURES_PER_INPUT
            ):
                parts.setdefault(position, []).append(values[chunk - chunk[0]].astype(np.float64))
    for position, arrays in parts.items():
        features.update(_elements(model.inputs[position].name, np.concatenate(arrays)))
    return features


def _elements(name: str, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """
    >>> [name for name, _ in _elements("x", np.zeros((5, 1, 2)))]
    ['x[0,0]', 'x[0,1]']
    >>> [name for name, _ in _elements("n", np.zeros((5, 1)))]
    ['n']
    """
    if values[0].size == 1:
        yield name, values.reshape(len(values))
        return
    for place in np.ndindex(values.shape[1:]):
        yield f"{name}[{','.join(map(str, place))}]", values[:, *place]


OF_PLACES = ("iterations", "ended", "margin", "then", "else")
"""First words of the columns that are named after a place."""
_STATISTIC = re.compile(r" (?:sum|min|max)$")


def full_name(names: Sequence[str], text: str) -> str:
    """Return the column that a text names, or the text itself if it names none; ``InputError`` if
    it names several.

    >>> full_name(["sample", "iterations main/a%2Floop"], "iterations a › loop")
    'iterations main/a%2Floop'
    >>> full_name(["sample"], "wrong")
    'wrong'
    """
    kind, _, place = text.strip().partition(" ")
    if text in names or kind not in OF_PLACES:
        return text
    statistic = match[0] if (match := _STATISTIC.search(place)) else ""
    path = place.removesuffix(statistic).strip()
    columns = {
        name.removeprefix(f"{kind} ").removesuffix(statistic): name
        for name in names
        if _is_column_of_kind(name, kind, statistic)
    }
    if path in columns:
        return columns[path]
    matches = ending(tuple(columns), as_written(path), static_words(path))
    if len(matches) > 1:
        raise InputError(ambiguous(text, matches))
    return columns[next(iter(matches))] if matches else text


def _is_column_of_kind(name: str, kind: str, statistic: str) -> bool:
    match = _STATISTIC.search(name)
    return name.startswith(f"{kind} ") and (match[0] if match else "") == statistic


_AND = re.compile(r"""\s+and\s+(?=(?:[^`"]|`[^`]*`|"[^"]*")*$)""")
"""Pattern of ``and`` between two conditions, outside of names in backticks and quoted texts."""
_TEXT_CONDITION = re.compile(
    r"(?P<name>[^\"]+?)\s*(?P<how>==|!=|\bcontains\b|\blacks\b)\s*"
    r"(?P<quote>[\"'])(?P<text>.*)(?P=quote)"
)
_PLACE_COLUMN = rf"\b(?:{'|'.join(OF_PLACES)}) [^\s<>=!()+*`][^<>=!()+*`]*(?<!\s)"
"""Pattern of a column that is named after a place, up to the next comparison sign."""


def numbers(rows: pa.Table, name: str) -> np.ndarray:
    """Return a column as float64; NaN if the run did not reach it."""
    column = rows[name]
    if str(column.type) == "bool":
        column = column.cast("int8")
    values: np.ndarray = column.to_numpy().astype(np.float64)
    return values


def places_where(rows: pa.Table, condition: str) -> np.ndarray:
    """Return the indices of the rows for which a condition holds: comparisons of columns, joined by
    ``and``.

    A text column is compared with a text: ``ended main/loop == "condition"``, ``error contains
    "shape"``, also with ``!=`` and ``lacks``. A missing text counts as empty. Places in column
    names may be in the form that screens show, or a unique end. Raises ``EngineError`` for an
    invalid condition.
    """
    holds = np.ones(len(rows), bool)
    for part in _AND.split(condition.strip()) if condition.strip() else []:
        holds &= _holds(rows, part)
    return np.flatnonzero(holds)


def _holds(rows: pa.Table, part: str) -> np.ndarray:
    numeric = sorted(
        (field.name for field in rows.schema if str(field.type) != "string"), key=len, reverse=True
    )
    texts = [name for name in rows.column_names if name not in numeric]
    if (match := _TEXT_CONDITION.fullmatch(part.strip())) and (
        name := full_name(texts, match["name"].strip("` "))
    ) in texts:
        return _text_holds(rows, name, match["how"], match["text"])
    result = np.asarray(
        parse(_quote_names(part, numeric)).value(lambda name: _column(rows, numeric, name))
    )
    if result.shape != (len(rows),) or result.dtype != bool:
        raise InputError(
            f"{shorten(repr(part), 80)} is not a condition of a run: "
            f"compare a column, such as {numeric[-1]} > 3"
        )
    return result


def _text_holds(rows: pa.Table, name: str, operator: str, text: str) -> np.ndarray:
    values = ["" if value is None else value for value in rows[name].to_pylist()]
    match operator:
        case "==":
            return np.array([value == text for value in values], bool)
        case "!=":
            return np.array([value != text for value in values], bool)
        case "contains":
            return np.array([text in value for value in values], bool)
        case _:
            return np.array([text not in value for value in values], bool)


def _column(rows: pa.Table, names: Sequence[str], name: str) -> np.ndarray:
    column = full_name(names, name)
    if column not in names:
        raise InputError(f"there is no column {shorten(repr(name), 80)} of numbers")
    return numbers(rows, column)


def _quote_names(condition: str, names: Sequence[str]) -> str:
    """Put names of columns into backticks, which names that are not identifiers require.

    >>> _quote_names("iterations main/loop > n", ["iterations main/loop", "n"])
    '`iterations main/loop` > `n`'
    >>> _quote_names("iterations a › loop >= 3", [])
    '`iterations a › loop` >= 3'
    """
    exactly = "|".join(rf"(?<![\w`]){re.escape(name)}(?![\w`])" for name in names)
    either = rf"`[^`]*`|{exactly + '|' if exactly else ''}{_PLACE_COLUMN}"
    return re.sub(
        either, lambda match: match[0] if match[0].startswith("`") else f"`{match[0]}`", condition
    )
