"""The rows of a sweep on disk: a stream that outlives a stop or a crash while it runs, Parquet
when it ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc, parquet

from loopscope.errors import InputError
from loopscope.replaced_file import naming, replaced_file

_GROUP = 1 << 16
"""Rows that stand together in the Parquet file, whatever chunks they came in."""
_KEY = b"loopscope sweep"


@dataclass(eq=False)
class KeptRows:
    """``runs.parquet`` and, until all rows are there, ``runs.parquet.part`` beside it."""

    path: Path
    schema: pa.Schema
    digest: str
    """Of the model, the inputs and the columns: what a sweep that goes on must have in common
    with the one that stopped.
    """
    first: int = 0
    """The first sample that has no row yet."""

    def __post_init__(self) -> None:
        if self.path.suffix != ".parquet":
            raise InputError(
                f"{self.path.name}: rows are written as Parquet, to a file that ends in .parquet"
            )
        if not self.path.parent.is_dir():
            raise InputError(
                f"{self.path}: there is no folder {str(self.path.parent)!r} for the rows"
            )
        self._marked = self.schema.with_metadata({_KEY: self.digest})

    @property
    def part(self) -> Path:
        """The rows so far."""
        return self.path.with_name(self.path.name + ".part")

    def begin(self, *, resume: bool) -> Iterator[pa.RecordBatch]:
        """Opens the stream; gives the rows that a sweep before has left, which are kept if it is
        to ``resume``.
        """
        before = self._rows(self.part) if resume and self.part.exists() else iter(())
        found = next(before, None)  # rows of another sweep are refused before anything is written
        fresh = self.part.with_name(self.part.name + ".new")
        self._file = fresh.open("wb")
        try:
            with naming(self.part):
                self._stream = ipc.new_stream(self._file, self._marked)
            while found is not None:
                self.add(found)
                yield found
                found = next(before, None)
            fresh.replace(self.part)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise

    def add(self, batch: pa.RecordBatch) -> None:
        """Some more rows, at once on disk."""
        with naming(self.part):
            self._stream.write_batch(batch, custom_metadata={_KEY: _digest_of(batch)})
            self._file.flush()
        self.first += len(batch)

    def finish(self, *, complete: bool) -> None:
        """Writes the Parquet file of all rows so far; the stream goes when they are
        ``complete``.
        """
        with naming(self.part):
            self._stream.close()
            self._file.close()
        with replaced_file(self.path) as file, parquet.ParquetWriter(file, self.schema) as writer:
            waiting = self.schema.empty_table()
            for batch in self._rows(self.part):
                waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
                while len(waiting) >= _GROUP:
                    writer.write_table(waiting.slice(0, _GROUP).combine_chunks())
                    waiting = waiting.slice(_GROUP)
            if len(waiting) or not self.first:
                writer.write_table(waiting.combine_chunks())
        if complete:
            self.part.unlink()

    def _rows(self, path: Path) -> Iterator[pa.RecordBatch]:
        """The whole batches of a stream up to where it breaks off, or where it is not what was
        written; ``InputError`` for one of another sweep.
        """
        with path.open("rb") as file:
            try:
                reader = ipc.open_stream(file)
                told = (reader.schema.metadata or {}).get(_KEY)
            except (pa.ArrowException, OSError, MemoryError):
                return
            if told != self.digest.encode() or not reader.schema.equals(self.schema):
                raise InputError(
                    f"{path} holds rows of another sweep: other inputs, columns or model; without --resume it begins anew"
                )
            while True:
                try:
                    batch, written = reader.read_next_batch_with_custom_metadata()
                    batch.validate(
                        full=True
                    )  # Arrow trusts a stream, and reads anywhere in memory where it lies
                except (
                    StopIteration,
                    pa.ArrowException,
                    OSError,
                    MemoryError,
                ):  # a length in it may be any
                    return
                if (written or {}).get(_KEY) != _digest_of(batch):
                    return
                yield batch.replace_schema_metadata(None)


def _digest_of(batch: pa.RecordBatch) -> bytes:
    """What tells a batch from one that was damaged on the disk."""
    return hashlib.blake2b(batch.serialize(), digest_size=16).hexdigest().encode()
