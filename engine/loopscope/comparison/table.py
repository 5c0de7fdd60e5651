"""Table of every value of every iteration of a drift, for other tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loopscope.comparison.drift import Drift
from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.explain.csv_table import write_csv
from loopscope.replaced_file import replaced_file

FORMATS = (".parquet", ".csv")


def write_table(result: Drift, run: Run, path: str | Path) -> int:
    """Write a row per matched value and iteration; return the number of rows.

    Columns: ``address`` in the first run, ``other`` (address in the second model), ``matched``
    (name, structure or shape), ``iteration`` of the innermost loop (empty outside loops),
    ``absolute``, ``relative``, ``cosine``. ``run`` is the first run. Raise ``EngineError`` unless
    the file's ending is .parquet or .csv.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        ending = target.suffix or "a file without ending"
        raise EngineError(f"a drift is written as {' or '.join(FORMATS)}, not as {ending}")
    import pandas as pd  # imported here: it takes half a second, and only tables need it

    columns = ("address", "other", "matched", "iteration", "absolute", "relative", "cosine")
    frame = pd.DataFrame(_rows(result, run), columns=list(columns)).astype({"iteration": "Int64"})
    if target.suffix.lower() == ".csv":
        write_csv(frame, target)
    else:
        with replaced_file(target) as file:
            frame.to_parquet(file, index=False)
    return len(frame)


def _rows(
    result: Drift, run: Run
) -> Iterator[tuple[str, str, str, int | None, float, float, float]]:
    for pair in result.pairs:
        name = pair.one.rpartition("/")[2]
        numbers = (pair.deviations.absolute, pair.deviations.relative, pair.deviations.cosine)
        places = zip(
            pair.rows.left.tolist(),
            pair.rows.iteration.tolist(),
            *(column.tolist() for column in numbers),
            strict=True,
        )
        for row, iteration, absolute, relative, cosine in places:
            address = f"{run.timeline.address(pair.program, row)}/{name}"
            yield (
                address,
                pair.other,
                pair.how,
                iteration if iteration >= 0 else None,
                absolute,
                relative,
                cosine,
            )
