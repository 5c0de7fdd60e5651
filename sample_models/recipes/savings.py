"""One savings account, five loops: the patterns of the Loop specification over the same body."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from sample_models.recipes.blocks import Iteration, Value, called, constant, model, parameter
from sample_models.recipes.recipe import InputSet, Recipe


def recipes() -> list[Recipe]:
    return [
        Recipe(
            "for_loop",
            _savings("for_each_year", trip="years", checks_before=False, checks_after=False),
            {
                "ten_years": _inputs(1000, 1.05, years=10),
                "three_years": _inputs(1000, 1.05, years=3),
                "no_years": _inputs(1000, 1.05, years=0),
            },
        ),
        Recipe(
            "while_loop",
            _savings("while_below_goal", trip="", checks_before=True, checks_after=True),
            {
                "double_at_7_percent": _inputs(1000, 1.07, goal=2000),
                "double_at_20_percent": _inputs(1000, 1.20, goal=2000),
                "already_there": _inputs(2500, 1.07, goal=2000),
            },
        ),
        Recipe(
            "do_while_loop",
            _savings("do_while_below_goal", trip="", checks_before=False, checks_after=True),
            {"double_at_7_percent": _inputs(1000, 1.07, goal=2000), "already_there": _inputs(2500, 1.07, goal=2000)},
        ),
        Recipe(
            "for_loop_with_condition",
            _savings("for_each_year_below_goal", trip="years", checks_before=True, checks_after=True),
            {
                "goal_first": _inputs(1000, 1.07, years=30, goal=1500),
                "years_first": _inputs(1000, 1.07, years=4, goal=1500),
                "already_there": _inputs(2500, 1.07, years=30, goal=1500),
                "no_years": _inputs(1000, 1.07, years=0, goal=1500),
            },
        ),
        Recipe(
            "infinite_loop",
            _savings("forever", trip="guard", checks_before=False, checks_after=False),
            {
                "guard_of_5": _inputs(1000, 1.07, guard=5),
                "guard_of_12": _inputs(1000, 1.07, guard=12),
                "no_guard": _inputs(1000, 1.07, guard=-1),
            },
        ),
    ]


def _savings(name: str, *, trip: str, checks_before: bool, checks_after: bool) -> ov.Model:
    """The trip count is an input (or -1); the condition is true, or compares with the goal before the loop, in the body, or both."""
    balance, growth = parameter("balance", "f32"), parameter("growth", "f32")
    years = parameter(trip, "i64") if trip else constant("no_limit", -1, np.int64)
    goal = parameter("goal", "f32")
    before: Value = called("below_goal_at_start", ops.less(balance, goal)) if checks_before else constant("start", True)
    loop = Iteration(name, years, before)
    held, factor = loop.carried("balance", balance), loop.invariant("growth", growth)
    after: Value = constant("keep_going", True)
    next_balance = called("next_balance", ops.multiply(held, factor))
    if checks_after:
        after = called("keep_going", ops.less(next_balance, loop.invariant("goal", goal)))
    row = called("balance_as_row", ops.unsqueeze(next_balance, constant("new_axis", 0, np.int64)))
    loop.body(after, {"balance": next_balance}, {"balances": row})
    inputs = [balance, growth] + ([years] if trip else []) + ([goal] if checks_before or checks_after else [])
    return model(name, {"final_balance": loop.last("next_balance"), "balances": loop.concatenated("balances")}, inputs)


def _inputs(balance: float, growth: float, **others: float) -> InputSet:
    floats = {"balance": np.float32(balance), "growth": np.float32(growth)}
    return floats | {name: np.float32(value) if name == "goal" else np.int64(value) for name, value in others.items()}
