"""Storage of a sweep's rows: a stream on disk that survives a stop or a crash, and Parquet at the
end.
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
