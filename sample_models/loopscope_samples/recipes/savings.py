"""One savings account, five loops: the patterns of the Loop specification over the same body."""

from __future__ import annotations

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import Collected, Graph, Tensor, ops
from loopscope_samples.recipes.recipe import InputSet, Recipe


def recipes() -> list[Recipe]:
    return [
        Recipe(
            "for_loop",
            _for_loop(),
            {
                "ten_years": _inputs(1000, 1.05, years=10),
                "three_years": _inputs(1000, 1.05, years=3),
                "no_years": _inputs(1000, 1.05, years=0),
            },
        ),
        Recipe(
            "while_loop",
            _while_loop(),
            {
                "double_at_7_percent": _inputs(1000, 1.07, goal=2000),
                "double_at_20_percent": _inputs(1000, 1.20, goal=2000),
                "already_there": _inputs(2500, 1.07, goal=2000),
            },
        ),
        Recipe(
            "do_while_loop",
            _do_while_loop(),
            {
                "double_at_7_percent": _inputs(1000, 1.07, goal=2000),
                "already_there": _inputs(2500, 1.07, goal=2000),
            },
        ),
        Recipe(
            "for_loop_with_condition",
            _for_loop_with_condition(),
            {
                "goal_first": _inputs(1000, 1.07, years=30, goal=1500),
                "years_first": _inputs(1000, 1.07, years=4, goal=1500),
                "already_there": _inputs(2500, 1.07, years=30, goal=1500),
                "no_years": _inputs(1000, 1.07, years=0, goal=1500),
            },
        ),
        Recipe(
            "infinite_loop",
            _infinite_loop(),
            {
                "guard_of_5": _inputs(1000, 1.07, guard=5),
                "guard_of_12": _inputs(1000, 1.07, guard=12),
                "no_guard": _inputs(1000, 1.07, guard=-1),
            },
        ),
    ]


def _for_loop() -> loopscope.Model:
    account = _Account("for_loop", years="i64")
    years = account.inputs["years"]
    return account.model(
        builder.for_loop(
            years,
            lambda year, balance: account.grow(balance),
            [account.balance],
            name="for_each_year",
        )
    )


def _while_loop() -> loopscope.Model:
    account = _Account("while_loop", goal="f32")
    return account.model(
        builder.while_loop(
            account.is_below_goal, account.grow, [account.balance], name="while_below_goal"
        )
    )


def _do_while_loop() -> loopscope.Model:
    account = _Account("do_while_loop", goal="f32")
    return account.model(
        builder.do_while(
            account.is_below_goal, account.grow, [account.balance], name="do_while_below_goal"
        )
    )


def _for_loop_with_condition() -> loopscope.Model:
    account = _Account("for_loop_with_condition", years="i64", goal="f32")
    years, name = account.inputs["years"], "for_each_year_below_goal"
    return account.model(
        builder.while_loop(
            account.is_below_goal,
            account.grow,
            [account.balance],
            maximum_iterations=years,
            name=name,
        )
    )


def _infinite_loop() -> loopscope.Model:
    account = _Account("infinite_loop", guard="i64")
    guard = account.inputs["guard"]
    return account.model(
        builder.while_loop(
            lambda _: True,
            account.grow,
            [account.balance],
            maximum_iterations=guard,
            name="forever",
        )
    )


class _Account:
    """What the five loops share: a balance that grows, and is written down after each iteration."""

    def __init__(self, name: str, **inputs: str) -> None:
        self.graph = Graph(name)
        self.balance, self.growth = (
            self.graph.parameter("balance", "f32", []),
            self.graph.parameter("growth", "f32", []),
        )
        self.inputs = {
            name: self.graph.parameter(name, element_type, [])
            for name, element_type in inputs.items()
        }
        self.balances = Collected("balances")

    def grow(self, balance: Tensor) -> Tensor:
        """The body of every loop."""
        next_balance = ops.multiply(balance, self.growth, name="next_balance")
        self.balances.append(next_balance)
        return next_balance

    def is_below_goal(self, balance: Tensor) -> Tensor:
        """The condition of those that have one."""
        return ops.less(balance, self.inputs["goal"], name="keep_going")

    def model(self, last: list[Tensor]) -> loopscope.Model:
        return self.graph.model({"final_balance": last[0], "balances": self.balances.tensor})


def _inputs(balance: float, growth: float, **others: float) -> InputSet:
    floats = {"balance": np.float32(balance), "growth": np.float32(growth)}
    return floats | {
        name: np.float32(value) if name == "goal" else np.int64(value)
        for name, value in others.items()
    }
