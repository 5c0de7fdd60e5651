"""Derivatives to be checked, a file for each category of operations."""

from tests.engine.ops.gradient_rows import (
    activation,
    arithmetic,
    condition,
    conversion,
    fourier,
    images,
    matrix,
    movement,
    normalization,
    others,
    places,
    reduction,
    sequence,
    shape,
    windows,
)
from tests.engine.ops.gradient_rows.row import Row

ROWS: tuple[Row, ...] = (
    *activation.ROWS,
    *arithmetic.ROWS,
    *condition.ROWS,
    *fourier.ROWS,
    *images.ROWS,
    *matrix.ROWS,
    *movement.ROWS,
    *normalization.ROWS,
    *others.ROWS,
    *places.ROWS,
    *reduction.ROWS,
    *sequence.ROWS,
    *shape.ROWS,
    *windows.ROWS,
    *conversion.ROWS,
)
