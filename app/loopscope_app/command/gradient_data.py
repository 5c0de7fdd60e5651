"""What ``loopscope gradients --json`` says: the gradients, how they came back through loops and
branches, and the check.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import loopscope
from loopscope.explain import (
    AdjointHistory,
    BranchWalkedBack,
    Contribution,
    WalkedBack,
    branches_of,
    walks_of,
)
from loopscope.ir import Model, Signature
from loopscope_app.command.report import as_json
from loopscope_app.command.run import outcome_of
from loopscope_app.command.value_data import strict, value_data, values

Data = dict[str, Any]


def gradient_data(made: Model, first: int, run: loopscope.Debugger | None) -> Data:
    """Of a model whose outputs from ``first`` on are gradients, and a run of it, where it was
    run.
    """
    finished = run is not None and run.state == "finished"
    found: Sequence[Any] = (
        run.result.outputs[first:]
        if run is not None and finished
        else [None] * (len(made.outputs) - first)
    )
    told: Data = {
        "gradients": [
            _gradient(one, value) for one, value in zip(made.outputs[first:], found, strict=True)
        ]
    }
    if run is None:
        return {"state": "made", **told}
    outcome = outcome_of(run)
    return {
        "state": outcome.state,
        **told,
        "loops": [_walk(one) for one in walks_of(run)],
        "branches": [_branch(one) for one in branches_of(run)],
        "run": json.loads("".join(as_json(outcome, made))),
    }


def compared(
    model: Model,
    inputs: Mapping[str | int, object],
    of: Sequence[str],
    with_respect_to: Sequence[str],
) -> tuple[bool, str, Data]:
    """Whether the gradient is that of central differences, in words, and as data."""
    found = loopscope.check_gradient(model, inputs, of, with_respect_to)
    wrong = [
        {
            "name": one.name,
            "place": list(one.place),
            "gradient": strict(one.gradient),
            "by_differences": strict(one.by_differences),
        }
        for one in found.wrong
    ]
    return (
        found.ok,
        str(found),
        {
            "ok": found.ok,
            "compared": found.compared,
            "largest": strict(found.largest),
            "wrong": wrong,
        },
    )


def _gradient(one: Signature, value: Any) -> Data:
    told: Data = {
        "name": one.names[-1],
        "element_type": str(one.element_type),
        "shape": str(one.shape),
    }
    if value is None:
        return told
    norm = float(np.linalg.norm(values(np.asarray(value)).astype(np.float64)))
    return {**told, "norm": strict(norm), "value": value_data(value)}


def _walk(one: WalkedBack) -> Data:
    return {
        "forward": one.forward,
        "backward": one.backward,
        "iterations": one.count,
        "walked": one.walked,
        "sentence": one.sentence,
        "adjoints": [_adjoint(history) for history in one.adjoints],
        "contributions": [_contribution(part) for part in one.contributions],
    }


def _adjoint(one: AdjointHistory) -> Data:
    return {
        "name": one.name,
        "address": one.address,
        "iterations": one.places.tolist(),
        "norms": strict(one.norms.tolist()),
        "verdict": one.fate.kind,
        "factor": None if one.fate.factor is None else strict(one.fate.factor),
        "sentence": one.sentence,
    }


def _contribution(one: Contribution) -> Data:
    return {
        "name": one.name,
        "iterations": one.iterations.tolist(),
        "norms": strict(one.norms.tolist()),
        "shares": strict(one.shares.tolist()),
        "sentence": one.sentence,
    }


def _branch(one: BranchWalkedBack) -> Data:
    return {"forward": one.forward, "backward": one.backward, "sentence": one.sentence}
