"""All operations of the domain com.microsoft that are computed here, by name."""

from __future__ import annotations

from collections.abc import Mapping

from engine.ops.declare import Operation
from engine.ops.microsoft import activation

DOMAIN = "com.microsoft"

MICROSOFT: Mapping[str, Operation] = {row.name: row for rows in (activation.OPERATIONS,) for row in rows}
