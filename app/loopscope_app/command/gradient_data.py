"""JSON answer of ``loopscope gradients``: gradients, their way back through loops, and the
check.
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


def gradient_data(model: Model, first: int, run: loopscope.Debugger | None) -> Data:
    """Return the answer for a model whose outputs from ``first`` on are gradients.

    ``run`` is a run of that model, or None if it did not run.
    """
    finished = run is not None and run.state == "finished"
    outputs: Sequence[Any] = (
        run.result.outputs[first:]
        if run is not None and finished
        else [None] * (len(model.outputs) - first)
    )
    answer: Data = {
        "gradients": [
            _gradient(item, value)
            for item, value in zip(model.outputs[first:], outputs, strict=True)
        ]
    }
    if run is None:
        return {"state": "made", **answer}
    outcome = outcome_of(run)
    return {
        "state": outcome.state,
        **answer,
        "loops": [_walk(item) for item in walks_of(run)],
        "branches": [_branch(item) for item in branches_of(run)],
        "run": json.loads("".join(as_json(outcome, model))),
    }


def compared(
    model: Model,
    inputs: Mapping[str | int, object],
    of: Sequence[str],
    with_respect_to: Sequence[str],
) -> tuple[bool, str, Data]:
    """Return whether the gradient equals that of central differences, a sentence, and the JSON
    data.
    """
    result = loopscope.check_gradient(model, inputs, of, with_respect_to)
    wrong = [
        {
            "name": element.name,
            "place": list(element.place),
            "gradient": strict(element.gradient),
            "by_differences": strict(element.by_differences),
        }
        for element in result.wrong
    ]
    return (
        result.ok,
        str(result),
        {
            "ok": result.ok,
            "compared": result.compared,
            "largest": strict(result.largest),
            "wrong": wrong,
        },
    )


def _gradient(signature: Signature, value: Any) -> Data:
    data: Data = {
        "name": signature.names[-1],
        "element_type": str(signature.element_type),
        "shape": str(signature.shape),
    }
    if value is None:
        return data
    norm = float(np.linalg.norm(values(np.asarray(value)).astype(np.float64)))
    return {**data, "norm": strict(norm), "value": value_data(value)}


def _walk(walk: WalkedBack) -> Data:
    return {
        "forward": walk.forward,
        "backward": walk.backward,
        "iterations": walk.count,
        "walked": walk.walked,
        "sentence": walk.sentence,
        "adjoints": [_adjoint(history) for history in walk.adjoints],
        "contributions": [_contribution(part) for part in walk.contributions],
    }


def _adjoint(history: AdjointHistory) -> Data:
    return {
        "name": history.name,
        "address": history.address,
        "iterations": history.places.tolist(),
        "norms": strict(history.norms.tolist()),
        "verdict": history.fate.kind,
        "factor": None if history.fate.factor is None else strict(history.fate.factor),
        "sentence": history.sentence,
    }


def _contribution(contribution: Contribution) -> Data:
    return {
        "name": contribution.name,
        "iterations": contribution.iterations.tolist(),
        "norms": strict(contribution.norms.tolist()),
        "shares": strict(contribution.shares.tolist()),
        "sentence": contribution.sentence,
    }


def _branch(branch: BranchWalkedBack) -> Data:
    return {"forward": branch.forward, "backward": branch.backward, "sentence": branch.sentence}
