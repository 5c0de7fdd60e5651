"""Import of dumped arrays as a trace: the names of the files are the format.

Files are .npy, .npz, .safetensors and .pt, all untrusted.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from loopscope.errors import InputError, elided, listed, shorten
from loopscope.ir.element_type import ElementType
from loopscope.native.run_once import run_alone
from loopscope.tracing.recorder import DEFAULT_BUDGET, Recorder

_MAX_FILES = 1_000_000
_PLACEHOLDER = re.compile(r"\{(\w{1,40})\}")
_NAME = "name"
_INNERMOST = "layer"
"""Placeholder whose loop is inside all others, unless an order is requested."""
STEP = "step"
"""Name of the loop over the parts of split arrays."""


@dataclass(frozen=True, slots=True)
class DumpPattern:
    """A pattern of file names, such as ``{name}_step{step}.npy``."""

    text: str
    expression: re.Pattern[str]
    axes: tuple[str, ...]
    """Placeholders of numbers, in the order of the pattern."""

    @staticmethod
    def parse(text: str) -> DumpPattern:
        """Parse a pattern; ``InputError`` if a placeholder is repeated or a brace is left over."""
        names = _PLACEHOLDER.findall(text)
        rest = _PLACEHOLDER.sub("", text)
        if not text or len(set(names)) < len(names) or "{" in rest or "}" in rest:
            raise InputError(
                f"--pattern: {shorten(repr(text))} is not a pattern: expected a file name with "
                "placeholders, each once, such as '{name}_step{step}.npy'"
            )
        parts, position = [], 0
        for match in _PLACEHOLDER.finditer(text):
            parts.append(re.escape(text[position : match.start()]))
            inner = r".+?" if match[1] == _NAME else r"\d{1,18}"
            parts.append(f"(?P<{match[1]}>{inner})")
            position = match.end()
        expression = re.compile("".join((*parts, re.escape(text[position:]))), re.ASCII)
        return DumpPattern(text, expression, tuple(name for name in names if name != _NAME))


@dataclass(frozen=True, slots=True)
class DumpedFile:
    """A file of a dump, its value's name and its number on each axis."""

    path: Path
    name: str
    numbers: Mapping[str, int]
    stem: str = ""
    """File name without ending, which names an array without a name."""


def import_dumps(
    folder: str | os.PathLike[str],
    patterns: Sequence[str],
    target: str | os.PathLike[str],
    *,
    axis: int | None = None,
    order: Sequence[str] = (),
    budget: float = DEFAULT_BUDGET,
) -> int:
    """Write a trace of the arrays in a folder, and return the number of files that it contains.

    ``patterns`` match paths relative to the folder. ``{name}`` is the name of the value; every
    other placeholder is a number and becomes a loop. ``order`` names the loops, outermost first.
    The default is the order in the pattern, with ``layer`` innermost. ``axis`` splits the arrays
    along an axis into the iterations of a loop ``step``. ``InputError`` if no file matches.
    """
    parsed = [DumpPattern.parse(pattern) for pattern in patterns]
    axes = _loop_order(parsed, order)
    if axis is not None and STEP in axes:
        raise InputError("--axis splits arrays into steps, and the pattern has {step} already")
    files = _matching_files(Path(folder), parsed)
    with without_torch([dumped.path for dumped in files]) as converted:
        readable = [
            replace(dumped, path=converted.get(dumped.path, dumped.path), stem=dumped.path.stem)
            for dumped in files
        ]
        recorder = Recorder(Path(target), int(budget * 2**20))
        try:
            with recorder:
                _record(recorder, readable, axes, axis)
        except InputError:
            Path(target).unlink(missing_ok=True)
            raise
    return len(files)


def _loop_order(patterns: Sequence[DumpPattern], order: Sequence[str]) -> tuple[str, ...]:
    axes = tuple(dict.fromkeys(axis for pattern in patterns for axis in pattern.axes))
    if order:
        if sorted(order) != sorted(axes):
            raise InputError(
                f"--order names {listed(order)}: expected the placeholders {listed(axes)}"
            )
        return tuple(order)
    return tuple(sorted(axes, key=lambda axis: axis == _INNERMOST))


def _matching_files(folder: Path, patterns: Sequence[DumpPattern]) -> list[DumpedFile]:
    if not folder.is_dir():
        raise InputError(f"{elided(str(folder))} is not a folder")
    files = []
    for path in islice(_walk(folder), _MAX_FILES):
        relative = path.relative_to(folder).as_posix()
        for pattern in patterns:
            if match := pattern.expression.fullmatch(relative):
                fields = match.groupdict()
                name = fields.pop(_NAME, "")
                numbers = {axis: int(number) for axis, number in fields.items()}
                files.append(DumpedFile(path, name, numbers))
                break
    if not files:
        names = [path.relative_to(folder).as_posix() for path in islice(_walk(folder), 5)]
        content = f"; it has {listed(names)}" if names else ""
        raise InputError(
            f"no file in {elided(str(folder))} matches "
            f"{listed([pattern.text for pattern in patterns])}{content}"
        )
    return files


def _walk(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, without following links to folders."""
    return sorted(Path(place) / name for place, _, names in os.walk(folder) for name in names)


def _record(
    recorder: Recorder, files: Sequence[DumpedFile], axes: Sequence[str], axis: int | None
) -> None:
    """Record the files of one level: those without further axes first, then the loop inside."""
    outside = [dumped for dumped in files if not any(name in dumped.numbers for name in axes)]
    inside = [dumped for dumped in files if any(name in dumped.numbers for name in axes)]
    _record_arrays(recorder, outside, axis)
    if not inside:
        return
    outermost, rest = axes[0], axes[1:]
    around = [dumped for dumped in inside if outermost not in dumped.numbers]
    if around:
        _record(recorder, around, rest, axis)
    groups: dict[int, list[DumpedFile]] = {}
    for dumped in inside:
        if outermost in dumped.numbers:
            groups.setdefault(dumped.numbers[outermost], []).append(dumped)
    numbers = sorted(groups)
    for number in recorder.iterations(outermost, numbers):
        if numbers != list(range(len(numbers))):
            recorder.record_values({f"{outermost}_number": number})
        _record(recorder, groups[number], rest, axis)


def _record_arrays(recorder: Recorder, files: Sequence[DumpedFile], axis: int | None) -> None:
    arrays = {
        ".".join(filter(None, (dumped.name, key))) or dumped.stem: array
        for dumped in files
        for key, array in dumped_arrays(dumped.path)
    }
    if axis is None or not arrays:
        if arrays:
            recorder.record_values(arrays)
        return
    short = next(
        (name for name, array in arrays.items() if not -array.ndim <= axis < array.ndim), None
    )
    if short is not None:
        raise InputError(
            f"--axis {axis}: {shorten(repr(short))} has the shape {list(arrays[short].shape)}"
        )
    lengths = {array.shape[axis] for array in arrays.values()}
    if len(lengths) > 1:
        raise InputError(
            f"--axis {axis}: the arrays have {listed([str(length) for length in sorted(lengths)])} "
            "steps, expected one number"
        )
    for step in recorder.iterations(STEP, range(lengths.pop())):
        recorder.record_values({name: np.take(array, step, axis) for name, array in arrays.items()})


FILE_ENDINGS = (".npy", ".npz", ".safetensors", ".pt", ".pth")
_MAX_BYTES = 1 << 34
"""Maximum size of a file."""
_MAX_HEADER = 1 << 26
_SAFETENSORS_TYPES: Mapping[str, ElementType] = {
    "F64": ElementType.F64,
    "F32": ElementType.F32,
    "F16": ElementType.F16,
    "BF16": ElementType.BF16,
    "F8_E4M3": ElementType.F8E4M3,
    "F8_E5M2": ElementType.F8E5M2,
    "I64": ElementType.I64,
    "I32": ElementType.I32,
    "I16": ElementType.I16,
    "I8": ElementType.I8,
    "U64": ElementType.U64,
    "U32": ElementType.U32,
    "U16": ElementType.U16,
    "U8": ElementType.U8,
    "BOOL": ElementType.BOOLEAN,
}
_TORCH_ENDINGS = (".pt", ".pth")
_TORCH_SECONDS, _SECONDS_PER_FILE = 120.0, 1.0
"""Time limit of the process of torch, and what each file adds to it."""


def dumped_arrays(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of a file with their names; the array of an .npy file has an empty name.

    No object is unpickled. ``InputError`` for a file that is damaged or too large.
    """
    try:
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise ValueError(f"it has {size:,} bytes, at most {_MAX_BYTES:,} are read")
        match path.suffix.lower():
            case ".npy":
                yield "", _known_type(np.load(path, allow_pickle=False))
            case ".npz":
                yield from _npz(path)
            case ".safetensors":
                yield from _safetensors(path)
            case _:
                raise ValueError(f"expected a file that ends with {', '.join(FILE_ENDINGS)}")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, EOFError, MemoryError) as error:
        raise InputError(f"{path} cannot be read: {shorten(str(error), 300)}") from None
    except Exception as error:  # zipfile raises many kinds of errors for a broken file
        raise InputError(f"{path} cannot be read: {type(error).__name__}") from None


def _npz(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    with np.load(path, allow_pickle=False) as archive:
        remaining = _MAX_BYTES
        for name in archive.files:
            array = archive[name]
            if not isinstance(array, np.ndarray):
                raise ValueError(f"its entry {shorten(repr(name))} is not an array")
            remaining -= array.nbytes
            if remaining < 0:
                raise ValueError(f"it unpacks to more than {_MAX_BYTES:,} bytes")
            yield name, _known_type(array)


def _known_type(array: np.ndarray) -> np.ndarray:
    """Return an array whose type numpy's format does not name with that type.

    numpy stores bf16 as two bytes without a meaning.
    """
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == 2:
        return array.view(ml_dtypes.bfloat16)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"it has the type {shorten(str(array.dtype), 40)}, expected numbers")
    return array


def _safetensors(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    data = np.memmap(path, np.uint8, "r")
    if data.size < 8 or (length := int(data[:8].view("<u8")[0])) > min(_MAX_HEADER, data.size - 8):
        raise ValueError("it does not begin like a .safetensors file")
    try:
        header = json.loads(data[8 : 8 + length].tobytes())
    except (ValueError, RecursionError):
        raise ValueError("its header is not JSON") from None
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    body = data[8 + length :]
    for name, entry in header.items():
        if name != "__metadata__":
            yield name, _safetensor(name, entry, body)


def _safetensor(name: str, entry: Any, body: np.ndarray) -> np.ndarray:
    match entry:
        case {"dtype": str(kind), "shape": list(shape), "data_offsets": [int(begin), int(end)]}:
            element_type = _SAFETENSORS_TYPES.get(kind)
            lengths = all(type(item) is int and 0 <= item < 2**48 for item in shape)
            if element_type is None or not lengths or len(shape) > 32:
                raise ValueError(f"its tensor {shorten(repr(name))} has the type {shorten(kind)}")
            size = math.prod(shape) * element_type.dtype.itemsize
            if not 0 <= begin <= end <= len(body) or end - begin != size:
                raise ValueError(f"its tensor {shorten(repr(name))} is outside of the file")
            raw = body[begin:end].tobytes()
            return np.frombuffer(raw, element_type.dtype).reshape(shape)
    raise ValueError(f"its tensor {shorten(repr(name))} is not described")


@contextmanager
def without_torch(paths: Sequence[Path]) -> Iterator[Mapping[Path, Path]]:
    """Yield a temporary .safetensors file for each file of torch among ``paths``.

    torch reads them with ``weights_only`` in one process of its own. ``InputError`` for a file that
    it does not read.
    """
    files = [path for path in paths if path.suffix.lower() in _TORCH_ENDINGS]
    if not files:
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        targets = {
            path: Path(folder) / f"{number}.safetensors" for number, path in enumerate(files)
        }
        pairs = Path(folder) / "pairs.json"
        pairs.write_text(
            json.dumps([[str(path.resolve()), str(target)] for path, target in targets.items()])
        )
        script = Path(__file__).with_name("torch_dump.py")
        seconds = _TORCH_SECONDS + _SECONDS_PER_FILE * len(files)
        try:
            ended = run_alone(script, str(pairs), seconds=seconds)
        except TimeoutError:
            raise InputError(
                f"torch did not read {len(files):,} files within {seconds:g} seconds"
            ) from None
        unread = next((path for path, target in targets.items() if not target.exists()), None)
        if ended.code or unread is not None:
            raise InputError(
                f"{unread or files[-1]} cannot be read: torch does not read it: "
                f"{ended.reason or 'it crashed'}"
            )
        yield targets
