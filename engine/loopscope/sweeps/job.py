"""Job of a sweep, the same in every process: the model's plan, the columns, limits and seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from loopscope.executor.machine.limits import Limits
from loopscope.executor.plan.plan import Plan
from loopscope.executor.plan.planner import plan_of
from loopscope.ir.model import Model
from loopscope.sweeps.row_layout import RowLayout, column_of, layout_of


@dataclass(frozen=True, eq=False)
class SweepJob:
    """Work of one sweep, without its samples."""

    model: Model
    columns: Sequence[str] = ()
    """Expressions, one column each."""
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    first_nan: bool = True
    margins: bool = True
    seconds: bool = True
    lanes: bool = True
    """True if samples may run side by side when that gives the same rows."""

    @cached_property
    def plan(self) -> Plan:
        """The unpruned plan, as in a Debugger: a branch that no output needs is counted too."""
        return plan_of(self.model)

    @cached_property
    def layout(self) -> RowLayout:
        expressions = [(text, column_of(text)) for text in self.columns]
        return layout_of(
            self.plan,
            expressions,
            first_nan=self.first_nan,
            seconds=self.seconds,
            margins=self.margins,
        )

    @cached_property
    def schema(self) -> pa.Schema:
        return self.layout.schema()
