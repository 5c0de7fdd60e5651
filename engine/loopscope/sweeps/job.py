"""What a sweep runs in every process alike: the model's plan, the columns of its rows, limits
and seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from loopscope.executor.machine.limits import Limits
from loopscope.executor.plan.plan import Plan
from loopscope.executor.plan.planner import plan_of
from loopscope.ir.model import Model
from loopscope.sweeps.row_layout import RowLayout, layout_of
from loopscope.sweeps.user_columns import column_of


@dataclass(frozen=True, eq=False)
class SweepJob:
    """One sweep's work, apart from its samples."""

    model: Model
    columns: Sequence[str] = ()
    """Expressions, a column each."""
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    first_nan: bool = True
    margins: bool = True
    seconds: bool = True
    lanes: bool = True
    """Whether samples may run side by side where that gives the same rows."""

    @cached_property
    def plan(self) -> Plan:
        """All of the model, as a Debugger runs it: a branch that no output needs is counted too."""
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
