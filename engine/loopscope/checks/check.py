"""Functions that apply all rules to a model and return a report or a checked model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopscope.checks.diagnostic import EVERYBODY, Diagnostic, InvalidModel, Report, Runtime
from loopscope.checks.propagate import Propagated
from loopscope.checks.rule import ONNXRUNTIME, OPENVINO, Subject
from loopscope.checks.rules import ADVICE, RULES, onnx_conversion
from loopscope.ir.model import Model, expect_model
from loopscope.ir.recorded_rows import is_trace
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.dialect import catalogue_for


@dataclass(frozen=True, slots=True, eq=False)
class CheckedModel:
    """A model that passed the checks required for running; plans are made only from it. Created by
    ``checked``.
    """

    model: Model
    propagated: Propagated
    """Shape inference of the whole model."""


def check(model: Model, catalogue: Catalogue = CATALOGUE) -> Report:
    """Return a report of the findings of all rules, for all runtimes. No model content makes it
    raise.

    Print the report for its summary. ``report.ok`` is True if the model can be run.
    """
    expect_model(model, "loopscope.check")
    subject = Subject(model, catalogue_for(model.dialect, catalogue))
    # A trace has no operations that a runtime could run or an exporter could have written.
    rules = _BEFORE_RUNNING if is_trace(model) else RULES
    return Report.of(
        _drop_unreachable([diagnostic for rule in rules for diagnostic in rule.apply(subject)])
    )


def advice(model: Model, catalogue: Catalogue = CATALOGUE) -> Report:
    """Return advice on loops that a runtime executes slowly, or that a device refuses; all of it
    has severity note.

    A model that cannot be run gets no advice.
    """
    expect_model(model, "loopscope.checks.advice")
    subject = Subject(model, catalogue_for(model.dialect, catalogue))
    if not Report.of(each for rule in _BEFORE_RUNNING for each in rule.apply(subject)).ok:
        return Report()
    return Report.of(diagnostic for rule in ADVICE for diagnostic in rule.apply(subject))


def _drop_unreachable(diagnostics: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """Drop OpenVINO findings about running if OpenVINO's frontend does not convert the model."""
    if all(diagnostic.code != onnx_conversion.CODE for diagnostic in diagnostics):
        return diagnostics
    return [
        diagnostic
        for diagnostic in diagnostics
        if diagnostic.runtimes != OPENVINO or diagnostic.code == onnx_conversion.CODE
    ]


def own_runtimes(model: Model) -> frozenset[Runtime]:
    """Return the runtimes a model is made for: OpenVINO for IR, ONNX Runtime for ONNX, none for a
    converted model.
    """
    if model.dialect == "onnx":
        return ONNXRUNTIME
    return EVERYBODY if model.converted_from else OPENVINO


def checked(model: Model, catalogue: Catalogue) -> CheckedModel:
    """Return the model if it can be run.

    Only the rules are applied whose faults nothing later would notice. A shape that contradicts its
    operation is reported by the operation at run time, with the values that it received.

    Raises:
        InvalidModel: The model has errors; the exception contains the report.
    """
    subject = Subject(model, catalogue_for(model.dialect, catalogue))
    report = Report.of(diagnostic for rule in _BEFORE_RUNNING for diagnostic in rule.apply(subject))
    if not report.ok:
        raise InvalidModel(report)
    return CheckedModel(model, subject.propagated)


_BEFORE_RUNNING = tuple(rule for rule in RULES if rule.before_running)
