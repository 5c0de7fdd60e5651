"""Where the inputs of a sweep come from: arrays, files of arrays, tables, a grid, random
numbers.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Protocol

import numpy as np

from loopscope.debug.inputs import describe_inputs
from loopscope.errors import InputError, MissingInput, listed, shorten
from loopscope.ir.model import Model, Signature
from loopscope.native.workers import WORKERS, Crashed, Refused
from loopscope.ops.stored import stored_arrays
from loopscope.sweeps.batch import Batch
from loopscope.sweeps.ranges import InputRange, draw, points, rounded, values_said, whole

_BLOCK_ELEMENTS = 1 << 20
_BLOCK = 4096
_MOST_ELEMENTS = 1 << 26
MOST_SAMPLES = 10**18
_LOOKED_AT = 1000
_SEED = "seed="


class Samples(Protocol):
    """Inputs that can be asked for by their numbers, in any order."""

    @property
    def count(self) -> int: ...

    @property
    def description(self) -> str:
        """What they are, so that a sweep that goes on can tell whether they are the same."""

    def batch(self, first: int, end: int) -> Batch: ...


Given = Samples | str | Path | Mapping[Any, Any] | Sequence[Mapping[Any, Any]]


def samples_of(model: Model, given: Given, batch: Sequence[str] = ()) -> Samples:
    """The samples that are meant: words as ``--inputs`` takes them, arrays with a leading sample
    axis by input, a sequence of inputs.

    ``batch``: the inputs that have a sample axis, where others are the same in all samples; empty:
    all have one.
    """
    for name in batch:
        position(model, name)
    if isinstance(given, str | Path):
        return _said(model, str(given), batch)
    if isinstance(given, Mapping):
        return of_arrays(model, given, batch, "arrays")
    return _of_sequence(model, given) if isinstance(given, Sequence) else given


def samples_said(model: Model, text: str) -> Samples:
    """Random samples or a grid; ``InputError`` for words that say neither, such as the path of a
    file.
    """
    words = text.split()
    if words and words[0].startswith("random:"):
        return _random(model, text, words)
    if words and all("=" in word for word in words):
        return _grid(model, text, words)
    raise InputError(
        f"{shorten(repr(text), 80)} says no inputs: write a range such as number=1..500, or random:1000"
    )


def seed_said(words: Sequence[str]) -> int:
    """The seed of the last ``seed=3`` among words, 0 where there is none; ``InputError`` for one
    that is no whole number.
    """
    seeds = ["0", *(word.removeprefix(_SEED) for word in words if word.startswith(_SEED))]
    return whole(
        seeds[-1],
        f"the seed is {shorten(seeds[-1], 60)!r}, expected a whole number from 0 on, of at most 18 digits",
    )


def one_sample(model: Model, words: Sequence[str], seed: int = 0) -> dict[int, np.ndarray]:
    """The values, by position, of the inputs that words such as ``number=27`` or
    ``x[2,3]=normal(0,1)`` speak of.

    A list, a span or a distribution is drawn from. ``InputError`` for what says no values or names
    no input.
    """
    said = _by_position(model, words)
    random = Random(model, " ".join(words), 1, seed, said)
    return {key: random.drawn(key, 0, 1)[0] for key in said}


def _by_position(model: Model, words: Sequence[str]) -> dict[int, InputRange]:
    """What words say of each input; ``InputError`` for one that is given twice."""
    found: dict[int, InputRange] = {}
    for one in map(values_said, words):
        key = position(model, one.name)
        if key in found:
            raise InputError(
                f"{shorten(model.inputs[key].name, 60)} is given twice: expected one word for each input"
            )
        found[key] = one
    return found


def _said(model: Model, text: str, batch: Sequence[str]) -> Samples:
    if not text.strip():
        raise InputError(
            "no inputs are given: expected a file, a folder, a grid n=1..500 or random:1000"
        )
    path = Path(text)
    try:
        state = path.stat()
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        if text.startswith("random:") or "=" in text:
            return samples_said(model, text)
        reason = error.strerror if isinstance(error, OSError) else "no file has such a name"
        raise InputError(
            f"{shorten(repr(text), 200)}: {reason}; inputs are a file, a folder, a grid n=1..500 or random:1000"
        ) from None
    description = f"{path.resolve()} {state.st_size} {state.st_mtime_ns}"
    if path.is_dir():
        files = tuple(sorted(path.glob("*.npz")))
        if not files:
            raise InputError(
                f"{path}: there is no .npz file in this folder, and each is expected to hold the inputs of one run"
            )
        return Folder(model, files, description)
    if path.suffix == ".npz":
        return of_arrays(model, stored_arrays(path), batch, description)
    if path.suffix in (".parquet", ".csv"):
        return of_table(model, path.name, path.read_bytes(), description)
    raise InputError(
        f"{path.name} is none of what inputs are read from: .npz, .parquet, .csv, a folder of .npz"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Completed:
    """Samples of some of a model's inputs; the others have the same value in all of them."""

    samples: Samples
    others: Mapping[int, Any]
    """By position; those that the samples have count for nothing."""

    @property
    def count(self) -> int:
        return self.samples.count

    @property
    def description(self) -> str:
        digest = hashlib.blake2b(digest_size=8)
        for key, value in sorted(self.others.items()):
            array = np.asarray(value)
            digest.update(
                f"{key} {array.dtype} {array.shape} {array.tolist() if array.dtype == object else ''}".encode()
            )
            digest.update(b"" if array.dtype == object else array.tobytes())
        return f"{self.samples.description} {digest.hexdigest()}"

    def batch(self, first: int, end: int) -> Batch:
        found = self.samples.batch(first, end)
        return Batch(found.samples, found.varying, {**self.others, **found.fixed})


def completed(model: Model, samples: Samples, others: Mapping[Any, Any]) -> Samples:
    """The same samples with values, by name or position, for the inputs that they leave out.
    ``InputError`` for what is no input.
    """
    return Completed(samples, {position(model, key): value for key, value in others.items()})


def expect_all_inputs(model: Model, samples: Samples) -> None:
    """``MissingInput`` for an input that no sample has, and ``InputError`` where none can be read:
    every run would fail by it.

    What only some lack fails in their rows.
    """
    left, refused = set(range(len(model.inputs))), list[InputError]()
    looked_at = min(samples.count, _LOOKED_AT)
    for number in range(looked_at):
        try:
            left -= samples.batch(number, number + 1).inputs(0).keys()
        except InputError as error:
            refused.append(error)
        if not left:
            return
    if looked_at and len(refused) == looked_at:
        raise refused[0]
    if looked_at:
        where = (
            "all samples"
            if looked_at == samples.count
            else f"the first {looked_at:,} of {samples.count:,} samples"
        )
        raise MissingInput(
            f"{where} leave out {listed([model.inputs[key].name for key in sorted(left)])}; {describe_inputs(model)}"
        )


def position(model: Model, key: object) -> int:
    """The number of the input that a key means; ``InputError`` when it means none or several."""
    names = [[one.name, *one.names] for one in model.inputs]
    found = [place for place, one in enumerate(names) if key in one]
    if not found and str(key) in map(str, range(len(names))):
        found = [int(str(key))]
    if len(found) != 1:
        there = listed([one.name for one in model.inputs]) or "none"
        raise InputError(
            f"{shorten(repr(key), 60)} means {len(found) or 'no'} input{'s' * (len(found) > 1)}: the model's are {there}"
        )
    return found[0]


# -- arrays
# -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """Arrays with a leading sample axis, or a list of samples, by the input's position."""

    count: int
    description: str
    varying: Mapping[int, np.ndarray | Sequence[Any]]
    fixed: Mapping[int, Any]

    def batch(self, first: int, end: int) -> Batch:
        return Batch(
            np.arange(first, end),
            {key: one[first:end] for key, one in self.varying.items()},
            self.fixed,
        )


def of_arrays(
    model: Model, arrays: Mapping[Any, Any], batch: Sequence[str], description: str
) -> Arrays:
    """``InputError`` for arrays without a sample axis, or of different lengths along it."""
    by_position = {position(model, key): np.asarray(value) for key, value in arrays.items()}
    chosen = {position(model, name) for name in batch} or set(by_position)
    lengths = {
        model.inputs[key].name: len(by_position[key]) if by_position[key].ndim else None
        for key in sorted(chosen & set(by_position))
    }
    if len(set(lengths.values())) != 1 or None in lengths.values():
        told = (
            ", ".join(
                f"{shorten(name, 60)}: {'no axis' if length is None else length}"
                for name, length in lengths.items()
            )
            or "no arrays"
        )
        raise InputError(
            f"the arrays have no sample axis of one length ({told}); --batch NAME says which inputs have one"
        )
    count = next(iter(lengths.values())) or 0
    varying = {key: value for key, value in by_position.items() if key in chosen}
    return Arrays(
        count,
        description,
        varying,
        {key: value for key, value in by_position.items() if key not in chosen},
    )


def _of_sequence(model: Model, given: Sequence[object]) -> Arrays:
    maps = [one for one in given if isinstance(one, Mapping)]
    if len(maps) < len(given):
        raise InputError(
            "a sequence of samples holds a mapping of inputs for each, by name or position"
        )
    rows = [{position(model, key): value for key, value in one.items()} for one in maps]
    keys = {key for row in rows for key in row}
    return Arrays(
        len(rows), "a sequence", {key: [row.get(key) for row in rows] for key in sorted(keys)}, {}
    )


@dataclass(frozen=True, slots=True, eq=False)
class Folder:
    """A folder of .npz files, one for each sample, in the order of their names."""

    model: Model
    files: tuple[Path, ...]
    description: str

    @property
    def count(self) -> int:
        return len(self.files)

    def batch(self, first: int, end: int) -> Batch:
        rows: list[dict[int, Any]] = []
        refused: dict[int, str] = {}
        for number, file in enumerate(self.files[first:end], first):
            try:
                rows.append(
                    {position(self.model, key): value for key, value in stored_arrays(file).items()}
                )
            except (InputError, OSError, ValueError) as error:  # of one file, which its row says
                rows.append({})
                told = str(error)
                refused[number] = told if str(file) in told else f"{file}: {told}"
        keys = sorted({key for row in rows for key in row})
        return Batch(
            np.arange(first, end),
            {key: [row.get(key) for row in rows] for key in keys},
            {},
            refused,
        )


# -- tables, grids, random numbers
# ------------------------------------------------------------------------------------


def of_table(model: Model, name: str, data: bytes, description: str) -> Arrays:
    """A column for each scalar input; a row is a sample. ``name``: the file's, which ends in .csv
    or .parquet.

    A column that names no input is an ``InputError``, which tells a misspelt one.
    """
    try:
        parts = WORKERS.ask("table", PurePath(name).suffix.removeprefix(".").encode(), data)
    except (Refused, Crashed) as error:
        raise InputError(
            f"{shorten(name, 100)} cannot be read as a table: {shorten(str(error) or 'it takes too long', 200)}"
        ) from None
    found = {
        position(model, column.decode()): np.load(io.BytesIO(numbers), allow_pickle=False)
        for column, numbers in zip(parts[::2], parts[1::2], strict=True)
    }
    columns = {
        key: rounded(numbers, model.inputs[key].element_type) for key, numbers in found.items()
    }
    count = max((len(one) for one in columns.values()), default=0)
    return Arrays(
        count,
        description,
        {key: shaped(model.inputs[key], one) for key, one in columns.items()},
        {},
    )


def shaped(signature: Signature, numbers: np.ndarray) -> np.ndarray:
    """A number for each sample, in the shape that the input has for one number."""
    lengths = signature.shape.dimensions
    ones = (1,) * len(lengths) if lengths is not None else ()
    return numbers.reshape(-1, *ones)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """All combinations of the values of some inputs; the last one changes fastest."""

    model: Model
    description: str
    axes: tuple[tuple[int, np.ndarray | range], ...]
    """Position and values of each input."""

    @property
    def count(self) -> int:
        return math.prod(len(one) for _, one in self.axes)

    def batch(self, first: int, end: int) -> Batch:
        left, varying = np.arange(first, end), {}
        for key, axis in reversed(self.axes):
            left, places = np.divmod(left, len(axis))
            numbers = places + axis.start if isinstance(axis, range) else axis[places]
            signature = self.model.inputs[key]
            varying[key] = shaped(signature, rounded(numbers, signature.element_type))
        return Batch(np.arange(first, end), varying, {})


def _grid(model: Model, text: str, words: Sequence[str]) -> Grid:
    grid = Grid(
        model, text, tuple((key, points(one)) for key, one in _by_position(model, words).items())
    )
    if grid.count > MOST_SAMPLES:
        raise InputError(
            f"the grid has {grid.count:,} points: at most {MOST_SAMPLES:,} are expected"
        )
    return grid


@dataclass(frozen=True, slots=True, eq=False)
class Random:
    """Random samples; each is the same however many are drawn, and in whatever parts."""

    model: Model
    description: str
    count: int
    seed: int
    said: Mapping[int, InputRange]

    def batch(self, first: int, end: int) -> Batch:
        return Batch(
            np.arange(first, end),
            {key: self.drawn(key, first, end) for key in range(len(self.model.inputs))},
            {},
        )

    def drawn(self, key: int, first: int, end: int) -> np.ndarray:
        """Block by block: a block has a generator of its own, whatever part of it is asked for."""
        signature, values = self.model.inputs[key], self.said.get(key)
        shape = self._shape(signature, values)
        block = max(1, min(_BLOCK, _BLOCK_ELEMENTS // max(1, math.prod(shape))))
        made = [
            draw(values, signature, shape, block, np.random.default_rng([self.seed, key, number]))[
                max(0, first - number * block) : end - number * block
            ]
            for number in range(first // block, max(first // block, -(-end // block)))
        ]
        return rounded(
            np.concatenate(made) if made else np.zeros((0, *shape)), signature.element_type
        )

    def _shape(self, signature: Signature, values: InputRange | None) -> tuple[int, ...]:
        if values is not None and values.shape is not None:
            if math.prod(max(1, length) for length in values.shape) > _MOST_ELEMENTS:
                written = ",".join(map(str, values.shape))
                raise InputError(
                    f"{shorten(signature.name, 60)}[{written}] is too large: at most {_MOST_ELEMENTS:,} elements are drawn"
                )
            return values.shape
        lengths = None if signature.shape.dimensions is None else signature.shape.lengths_or_zeros()
        if lengths is None or not signature.shape.is_static:
            name = shorten(signature.name, 60)
            known = signature.shape.dimensions
            fitting = (
                "2,3"
                if known is None
                else ",".join(str(one.length if one.is_static else 2) for one in known)
            )
            raise InputError(
                f"input {name!r} has the shape {signature.shape}: give its lengths, such as {name}[{fitting}]=uniform(0,1)"
            )
        return tuple(lengths)


def _random(model: Model, text: str, words: Sequence[str]) -> Random:
    """``random:10000 seed=3 number=1..500 x=normal(0,1)``; an input that is called seed cannot
    be said, and gets what is usual.
    """
    amount = whole(
        words[0].removeprefix("random:"),
        f"{shorten(words[0], 60)!r} says no number of samples: write random:10000",
    )
    seed = seed_said(words[1:])
    drawn = Random(
        model,
        text,
        amount,
        seed,
        _by_position(model, [word for word in words[1:] if not word.startswith(_SEED)]),
    )
    drawn.batch(
        0, min(1, drawn.count)
    )  # an input that cannot be drawn is told before anything runs
    return drawn
