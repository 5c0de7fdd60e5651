"""Copies of the records of a Model (dataclasses and msgspec Structs) with changed fields.

Python 3.13 offers the same as ``copy.replace``.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

if TYPE_CHECKING:
    from dataclasses import replace  # a type checker then checks the names and types of fields
else:

    def replace(record: Any, /, **changes: Any) -> Any:
        """Return a copy with these fields changed; ``TypeError`` for an unknown field name."""
        return (structs if isinstance(record, Struct) else dataclasses).replace(record, **changes)


__all__ = ["replace"]
