"""Storage of a sweep's rows: a stream on disk that survives a stop or a crash, and Parquet at the
end. The branches and iteration counts that all runs took are read back from the Parquet file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc, parquet

from loopscope.errors import InputError, shorten
from loopscope.replaced_file import naming, replaced_file
from loopscope.sweeps.row_layout import ERROR, SAMPLE
from loopscope.transform.specialise.known_facts import TakenPaths

_GROUP_ROWS = 1 << 16
"""Number of rows in a row group of the Parquet file, independent of the chunks."""
_METADATA_KEY = b"loopscope sweep"


@dataclass(eq=False)
class KeptRows:
    """``runs.parquet`` and, until it has all rows, ``runs.parquet.part`` beside it."""

    path: Path
    schema: pa.Schema
    digest: str
    """Digest of the model, the inputs and the columns, which must be equal for a sweep to be
    resumed.
    """
    first: int = 0
    """Number of the first sample without a row."""

    def __post_init__(self) -> None:
        if self.path.suffix != ".parquet":
            raise InputError(
                f"{self.path.name}: rows are written as Parquet, to a file that ends in .parquet"
            )
        if not self.path.parent.is_dir():
            raise InputError(
                f"{self.path}: there is no folder {str(self.path.parent)!r} for the rows"
            )
        self._marked = self.schema.with_metadata({_METADATA_KEY: self.digest})

    @property
    def part(self) -> Path:
        """Path of the rows so far."""
        return self.path.with_name(self.path.name + ".part")

    def begin(self, *, resume: bool) -> Iterator[pa.RecordBatch]:
        """Open the stream, and yield the rows of an earlier sweep, which are stored again if
        ``resume`` is true.
        """
        earlier = self._rows(self.part) if resume and self.part.exists() else iter(())
        batch = next(earlier, None)  # rows of another sweep are rejected before anything is written
        fresh = self.part.with_name(self.part.name + ".new")
        self._file = fresh.open("wb")
        try:
            with naming(self.part):
                self._stream = ipc.new_stream(self._file, self._marked)
            while batch is not None:
                self.add(batch)
                yield batch
                batch = next(earlier, None)
            fresh.replace(self.part)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows, and flush them to disk."""
        with naming(self.part):
            self._stream.write_batch(batch, custom_metadata={_METADATA_KEY: _checksum(batch)})
            self._file.flush()
        self.first += len(batch)

    def finish(self, *, complete: bool) -> None:
        """Write the Parquet file of all rows so far; the stream is deleted if they are
        ``complete``.
        """
        with naming(self.part):
            self._stream.close()
            self._file.close()
        with replaced_file(self.path) as file, parquet.ParquetWriter(file, self.schema) as writer:
            waiting = self.schema.empty_table()
            for batch in self._rows(self.part):
                waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
                while len(waiting) >= _GROUP_ROWS:
                    writer.write_table(waiting.slice(0, _GROUP_ROWS).combine_chunks())
                    waiting = waiting.slice(_GROUP_ROWS)
            if len(waiting) or not self.first:
                writer.write_table(waiting.combine_chunks())
        if complete:
            self.part.unlink()

    def _rows(self, path: Path) -> Iterator[pa.RecordBatch]:
        """Yield the valid batches of a stream up to its end or a damaged batch; ``InputError`` for
        the stream of another sweep.
        """
        with path.open("rb") as file:
            try:
                reader = ipc.open_stream(file)
                stored_digest = (reader.schema.metadata or {}).get(_METADATA_KEY)
            except (pa.ArrowException, OSError, MemoryError):
                return
            if stored_digest != self.digest.encode() or not reader.schema.equals(self.schema):
                raise InputError(
                    f"{path} holds rows of another sweep: other inputs, columns or model; "
                    "without --resume it begins anew"
                )
            while True:
                try:
                    batch, written = reader.read_next_batch_with_custom_metadata()
                    # Arrow trusts a stream, and reads outside its memory if the stream is damaged.
                    batch.validate(full=True)
                except (
                    StopIteration,
                    pa.ArrowException,
                    OSError,
                    MemoryError,
                ):
                    # A damaged stream may contain any length.
                    return
                if (written or {}).get(_METADATA_KEY) != _checksum(batch):
                    return
                yield batch.replace_schema_metadata(None)


def _checksum(batch: pa.RecordBatch) -> bytes:
    """Return a checksum that detects a batch damaged on disk."""
    return hashlib.blake2b(batch.serialize(), digest_size=16).hexdigest().encode()


def table_paths(path: Path, values: Mapping[str, Any]) -> TakenPaths:
    """Return each branch and count that was the same in all finished runs of a sweep.

    Only runs count whose inputs have these ``values``, if the file has a column of the input.
    ``InputError`` for a file that is not the result of a sweep, and if no run is left.
    """
    table = _matching(_read(path), values)
    if not len(table):
        raise InputError(f"{path}: no run finished with these values of the inputs")
    branches: dict[str, bool] = {}
    counts: dict[str, int] = {}
    varying: set[str] = set()
    for name in table.column_names:
        kind, _, address = name.partition(" ")
        if kind == "then" and f"else {address}" in table.column_names:
            then, otherwise = _total(table, name), _total(table, f"else {address}")
            if then and otherwise:
                varying.add(address)
            elif then or otherwise:
                branches[address] = bool(then)
        elif kind == "iterations":
            _add_count(table, name, address, counts, varying)
    return TakenPaths(len(table), branches, counts, frozenset(varying))


def _read(path: Path) -> pa.Table:
    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: it cannot be read as Parquet: {shorten(str(error), 200)}"
        ) from None
    if not {SAMPLE, ERROR} <= {*table.column_names}:
        raise InputError(
            f"{path}: expected the file of a sweep (`loopscope sweep MODEL --out runs.parquet`)"
        )
    return table.filter(pc.is_null(table[ERROR]))


def _matching(table: pa.Table, values: Mapping[str, Any]) -> pa.Table:
    for name, value in values.items():
        scalar = np.asarray(value)
        if name in table.column_names and scalar.size == 1:
            table = table.filter(pc.equal(table[name], scalar.reshape(-1)[0].item()))
    return table


def _total(table: pa.Table, name: str) -> int:
    return int(pc.sum(table[name]).as_py() or 0)


def _add_count(
    table: pa.Table, name: str, address: str, counts: dict[str, int], varying: set[str]
) -> None:
    """Add the count of a loop, whose columns are a count, or a minimum and maximum."""
    if address.endswith((" sum", " max")):
        return
    is_nested = address.endswith(" min") and f"{name[:-4]} max" in table.column_names
    largest = f"{name[:-4]} max" if is_nested else name
    address = address[:-4] if is_nested else address
    bounds = pc.min(table[name]).as_py(), pc.max(table[largest]).as_py()
    if bounds[0] is None or bounds[1] is None:
        return
    if bounds[0] == bounds[1]:
        counts[address] = int(bounds[0])
    else:
        varying.add(address)
