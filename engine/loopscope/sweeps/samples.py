"""Sources of a sweep's inputs: arrays, files of arrays, tables, a grid, random numbers."""

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
from loopscope.sweeps.job import Batch
from loopscope.sweeps.ranges import InputRange, draw, points, rounded, values_said, whole

_BLOCK_ELEMENTS = 1 << 20
_MAX_BLOCK_SAMPLES = 4096
_MAX_DRAWN_ELEMENTS = 1 << 26
MOST_SAMPLES = 10**18
_MAX_CHECKED_SAMPLES = 1000
_SEED = "seed="


class Samples(Protocol):
    """Input samples that can be read by their numbers, in any order."""

    @property
    def count(self) -> int: ...

    @property
    def description(self) -> str:
        """Text that identifies the samples, so that a resumed sweep can check that they are the
        same.
        """

    def batch(self, first: int, end: int) -> Batch: ...


Given = Samples | str | Path | Mapping[Any, Any] | Sequence[Mapping[Any, Any]]


def samples_of(model: Model, source: Given, batch: Sequence[str] = ()) -> Samples:
    """Return the samples of a description: the words of ``--inputs``, arrays with a leading sample
    axis, or a sequence of inputs.

    ``batch`` are the inputs with a sample axis, if others are the same in all samples. By default
    all have one.
    """
    for name in batch:
        input_position(model, name)
    if isinstance(source, str | Path):
        return _parse_inputs(model, str(source), batch)
    if isinstance(source, Mapping):
        return of_arrays(model, source, batch, "arrays")
    return _of_sequence(model, source) if isinstance(source, Sequence) else source


def samples_said(model: Model, text: str) -> Samples:
    """Return random samples or a grid; ``InputError`` for words of another form, such as the path
    of a file.
    """
    words = text.split()
    if words and words[0].startswith("random:"):
        return _random(model, text, words)
    if words and all("=" in word for word in words):
        return _grid(model, text, words)
    raise InputError(
        f"{shorten(repr(text), 80)} does not describe inputs: "
        "write a range such as number=1..500, or random:1000"
    )


def seed_said(words: Sequence[str]) -> int:
    """Return the seed of the last ``seed=3`` among words, 0 by default; ``InputError`` for a seed
    that is not an integer.
    """
    seeds = ["0", *(word.removeprefix(_SEED) for word in words if word.startswith(_SEED))]
    return whole(
        seeds[-1],
        f"the seed is {shorten(seeds[-1], 60)!r}, "
        "expected a whole number from 0 on, of at most 18 digits",
    )


def one_sample(model: Model, words: Sequence[str], seed: int = 0) -> dict[int, np.ndarray]:
    """Return one value, by position, for each input that words such as ``number=27`` or
    ``x[2,3]=normal(0,1)`` name.

    The value is drawn from a list, a span or a distribution. Raises ``InputError`` for an invalid
    range or an unknown input.
    """
    ranges = _ranges_by_position(model, words)
    random = Random(model, " ".join(words), 1, seed, ranges)
    return {key: random.drawn(key, 0, 1)[0] for key in ranges}


def _ranges_by_position(model: Model, words: Sequence[str]) -> dict[int, InputRange]:
    """Return the range of each input; ``InputError`` for an input with two ranges."""
    ranges: dict[int, InputRange] = {}
    for values in map(values_said, words):
        key = input_position(model, values.name)
        if key in ranges:
            raise InputError(
                f"{shorten(model.inputs[key].name, 60)} is given twice: "
                "expected one word for each input"
            )
        ranges[key] = values
    return ranges


def _parse_inputs(model: Model, text: str, batch: Sequence[str]) -> Samples:
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
            f"{shorten(repr(text), 200)}: {reason}; "
            "inputs are a file, a folder, a grid n=1..500 or random:1000"
        ) from None
    description = f"{path.resolve()} {state.st_size} {state.st_mtime_ns}"
    if path.is_dir():
        files = tuple(sorted(path.glob("*.npz")))
        if not files:
            raise InputError(
                f"{path}: there is no .npz file in this folder, "
                "and each is expected to hold the inputs of one run"
            )
        return Folder(model, files, description)
    if path.suffix == ".npz":
        return of_arrays(model, stored_arrays(path), batch, description)
    if path.suffix in (".parquet", ".csv"):
        return of_table(model, path.name, path.read_bytes(), description)
    raise InputError(f"{path.name}: inputs must be .npz, .parquet, .csv or a folder of .npz files")


@dataclass(frozen=True, slots=True, eq=False)
class Completed:
    """Samples of some of a model's inputs; the remaining inputs have the same value in all of
    them.
    """

    samples: Samples
    others: Mapping[int, Any]
    """Values by position. The samples' own inputs take precedence."""

    @property
    def count(self) -> int:
        return self.samples.count

    @property
    def description(self) -> str:
        digest = hashlib.blake2b(digest_size=8)
        for key, value in sorted(self.others.items()):
            array = np.asarray(value)
            text = array.tolist() if array.dtype == object else ""
            digest.update(f"{key} {array.dtype} {array.shape} {text}".encode())
            digest.update(b"" if array.dtype == object else array.tobytes())
        return f"{self.samples.description} {digest.hexdigest()}"

    def batch(self, first: int, end: int) -> Batch:
        batch = self.samples.batch(first, end)
        return Batch(batch.samples, batch.varying, {**self.others, **batch.fixed})


def completed(model: Model, samples: Samples, others: Mapping[Any, Any]) -> Samples:
    """Return the samples with values, by name or position, for the inputs that they leave out;
    ``InputError`` for an unknown input.
    """
    return Completed(samples, {input_position(model, key): value for key, value in others.items()})


def expect_all_inputs(model: Model, samples: Samples) -> None:
    """Raise ``MissingInput`` for an input that no sample has, and ``InputError`` if no sample can
    be read.

    An input that only some samples lack is reported in their rows.
    """
    missing, refused = set(range(len(model.inputs))), list[InputError]()
    looked_at = min(samples.count, _MAX_CHECKED_SAMPLES)
    for number in range(looked_at):
        try:
            missing -= samples.batch(number, number + 1).inputs(0).keys()
        except InputError as error:
            refused.append(error)
        if not missing:
            return
    if looked_at and len(refused) == looked_at:
        raise refused[0]
    if looked_at:
        scope = (
            "all samples"
            if looked_at == samples.count
            else f"the first {looked_at:,} of {samples.count:,} samples"
        )
        names = listed([model.inputs[key].name for key in sorted(missing)])
        raise MissingInput(f"{scope} leave out {names}; {describe_inputs(model)}")


def input_position(model: Model, key: object) -> int:
    """Return the number of the input that a key names; ``InputError`` unless it names exactly
    one.
    """
    names = [[signature.name, *signature.names] for signature in model.inputs]
    matches = [place for place, signature in enumerate(names) if key in signature]
    if not matches and str(key) in map(str, range(len(names))):
        matches = [int(str(key))]
    if len(matches) != 1:
        known_names = listed([signature.name for signature in model.inputs]) or "none"
        matches_text = f"{len(matches) or 'no'} input{'s' * (len(matches) > 1)}"
        raise InputError(
            f"{shorten(repr(key), 60)} means {matches_text}: the model's are {known_names}"
        )
    return matches[0]


# -- arrays


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
            {key: values[first:end] for key, values in self.varying.items()},
            self.fixed,
        )


def of_arrays(
    model: Model, arrays: Mapping[Any, Any], batch: Sequence[str], description: str
) -> Arrays:
    """Return arrays as samples; ``InputError`` for arrays without a sample axis, or of different
    lengths along it.
    """
    by_position = {input_position(model, key): np.asarray(value) for key, value in arrays.items()}
    batched = {input_position(model, name) for name in batch} or set(by_position)
    lengths = {
        model.inputs[key].name: len(by_position[key]) if by_position[key].ndim else None
        for key in sorted(batched & set(by_position))
    }
    if len(set(lengths.values())) != 1 or None in lengths.values():
        lengths_text = (
            ", ".join(
                f"{shorten(name, 60)}: {'no axis' if length is None else length}"
                for name, length in lengths.items()
            )
            or "no arrays"
        )
        raise InputError(
            f"the arrays have no sample axis of one length ({lengths_text}); "
            "--batch NAME says which inputs have one"
        )
    count = next(iter(lengths.values())) or 0
    varying = {key: value for key, value in by_position.items() if key in batched}
    return Arrays(
        count,
        description,
        varying,
        {key: value for key, value in by_position.items() if key not in batched},
    )


def _of_sequence(model: Model, samples: Sequence[object]) -> Arrays:
    mappings = [sample for sample in samples if isinstance(sample, Mapping)]
    if len(mappings) < len(samples):
        raise InputError(
            "a sequence of samples holds a mapping of inputs for each, by name or position"
        )
    rows = [
        {input_position(model, key): value for key, value in sample.items()} for sample in mappings
    ]
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
                    {
                        input_position(self.model, key): value
                        for key, value in stored_arrays(file).items()
                    }
                )
            except (
                InputError,
                OSError,
                ValueError,
            ) as error:  # the row of the sample reports the error of its file
                rows.append({})
                message = str(error)
                refused[number] = message if str(file) in message else f"{file}: {message}"
        keys = sorted({key for row in rows for key in row})
        return Batch(
            np.arange(first, end),
            {key: [row.get(key) for row in rows] for key in keys},
            {},
            refused,
        )


# -- tables, grids, random numbers


def of_table(model: Model, name: str, data: bytes, description: str) -> Arrays:
    """Return the samples of a table: a column for each scalar input, a row for each sample.

    ``name`` is the file's, which ends in .csv or .parquet. An unknown column raises ``InputError``,
    to detect misspelt names.
    """
    try:
        parts = WORKERS.ask("table", PurePath(name).suffix.removeprefix(".").encode(), data)
    except (Refused, Crashed) as error:
        reason = shorten(str(error) or "it takes too long", 200)
        raise InputError(f"{shorten(name, 100)} cannot be read as a table: {reason}") from None
    values_by_position = {
        input_position(model, column.decode()): np.load(io.BytesIO(numbers), allow_pickle=False)
        for column, numbers in zip(parts[::2], parts[1::2], strict=True)
    }
    columns = {
        key: rounded(numbers, model.inputs[key].element_type)
        for key, numbers in values_by_position.items()
    }
    count = max((len(values) for values in columns.values()), default=0)
    return Arrays(
        count,
        description,
        {key: shaped(model.inputs[key], values) for key, values in columns.items()},
        {},
    )


def shaped(signature: Signature, numbers: np.ndarray) -> np.ndarray:
    """Return a number for each sample, in the shape of an input of one number."""
    lengths = signature.shape.dimensions
    ones = (1,) * len(lengths) if lengths is not None else ()
    return numbers.reshape(-1, *ones)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """All combinations of the values of some inputs; the last input changes fastest."""

    model: Model
    description: str
    axes: tuple[tuple[int, np.ndarray | range], ...]
    """Position and values of each input."""

    @property
    def count(self) -> int:
        return math.prod(len(values) for _, values in self.axes)

    def batch(self, first: int, end: int) -> Batch:
        remaining, varying = np.arange(first, end), {}
        for key, axis in reversed(self.axes):
            remaining, places = np.divmod(remaining, len(axis))
            numbers = places + axis.start if isinstance(axis, range) else axis[places]
            signature = self.model.inputs[key]
            varying[key] = shaped(signature, rounded(numbers, signature.element_type))
        return Batch(np.arange(first, end), varying, {})


def _grid(model: Model, text: str, words: Sequence[str]) -> Grid:
    grid = Grid(
        model,
        text,
        tuple((key, points(values)) for key, values in _ranges_by_position(model, words).items()),
    )
    if grid.count > MOST_SAMPLES:
        raise InputError(
            f"the grid has {grid.count:,} points: at most {MOST_SAMPLES:,} are expected"
        )
    return grid


@dataclass(frozen=True, slots=True, eq=False)
class Random:
    """Random samples. Each sample is independent of the number of samples and of the parts in which
    they are read.
    """

    model: Model
    description: str
    count: int
    seed: int
    ranges: Mapping[int, InputRange]

    def batch(self, first: int, end: int) -> Batch:
        return Batch(
            np.arange(first, end),
            {key: self.drawn(key, first, end) for key in range(len(self.model.inputs))},
            {},
        )

    def drawn(self, key: int, first: int, end: int) -> np.ndarray:
        """Return drawn values of an input. Each block has its own generator, so that any part of it
        is reproducible.
        """
        signature, values = self.model.inputs[key], self.ranges.get(key)
        shape = self._shape(signature, values)
        block = max(1, min(_MAX_BLOCK_SAMPLES, _BLOCK_ELEMENTS // max(1, math.prod(shape))))
        blocks = [
            draw(values, signature, shape, block, np.random.default_rng([self.seed, key, number]))[
                max(0, first - number * block) : end - number * block
            ]
            for number in range(first // block, max(first // block, -(-end // block)))
        ]
        return rounded(
            np.concatenate(blocks) if blocks else np.zeros((0, *shape)), signature.element_type
        )

    def _shape(self, signature: Signature, values: InputRange | None) -> tuple[int, ...]:
        if values is not None and values.shape is not None:
            if math.prod(max(1, length) for length in values.shape) > _MAX_DRAWN_ELEMENTS:
                written = ",".join(map(str, values.shape))
                raise InputError(
                    f"{shorten(signature.name, 60)}[{written}] is too large: "
                    f"at most {_MAX_DRAWN_ELEMENTS:,} elements are drawn"
                )
            return values.shape
        lengths = None if signature.shape.dimensions is None else signature.shape.lengths_or_zeros()
        if lengths is None or not signature.shape.is_static:
            name = shorten(signature.name, 60)
            known = signature.shape.dimensions
            fitting = (
                "2,3"
                if known is None
                else ",".join(
                    str(dimension.length if dimension.is_static else 2) for dimension in known
                )
            )
            raise InputError(
                f"input {name!r} has the shape {signature.shape}: "
                f"give its lengths, such as {name}[{fitting}]=uniform(0,1)"
            )
        return tuple(lengths)


def _random(model: Model, text: str, words: Sequence[str]) -> Random:
    """Return the samples of ``random:10000 seed=3 number=1..500 x=normal(0,1)``.

    An input with the name seed cannot have a range; its values are the default ones.
    """
    amount = whole(
        words[0].removeprefix("random:"),
        f"{shorten(words[0], 60)!r} is not a number of samples: write random:10000",
    )
    seed = seed_said(words[1:])
    drawn = Random(
        model,
        text,
        amount,
        seed,
        _ranges_by_position(model, [word for word in words[1:] if not word.startswith(_SEED)]),
    )
    # Raise the error of an input that cannot be drawn before anything runs.
    drawn.batch(0, min(1, drawn.count))
    return drawn
