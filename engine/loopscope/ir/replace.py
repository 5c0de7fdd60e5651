"""``replace`` for the records of a Model, dataclasses and Structs alike: from Python 3.13 on
``copy.replace`` is this.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

if TYPE_CHECKING:
    from dataclasses import replace  # which lets the names and types of fields be checked
else:

    def replace(record: Any, /, **changes: Any) -> Any:
        """A copy with other values of these fields; ``TypeError`` for a name that is none."""
        return (structs if isinstance(record, Struct) else dataclasses).replace(record, **changes)


__all__ = ["replace"]
