"""Cases: a part of a model with recorded values, and the smallest model that shows a fault."""

from __future__ import annotations

from loopscope.cases.case import Case, recorded_case
from loopscope.cases.case_folder import refuse_folder, write_case
from loopscope.cases.cut_folder import cut_folder

__all__ = ["Case", "cut_folder", "recorded_case", "refuse_folder", "write_case"]
