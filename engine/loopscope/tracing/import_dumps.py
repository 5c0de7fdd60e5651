"""Import of dumped arrays as a trace: the names of the files are the format."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from loopscope.errors import InputError, elided, listed, shorten
from loopscope.tracing.dump_files import dumped_arrays, without_torch
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
