"""Checks a whole model by all rules: gives a report, or the model as checked, which runs take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopscope.checks.diagnostic import EVERYBODY, Diagnostic, InvalidModel, Report, Runtime
from loopscope.checks.propagate import GraphAddress
from loopscope.checks.rule import ONNXRUNTIME, OPENVINO
from loopscope.checks.rules import RULES, onnx_conversion
from loopscope.checks.subject import Subject
from loopscope.ir.model import LayerId, Model, expect_model
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.dialect import catalogue_for


@dataclass(frozen=True, slots=True, eq=False)
class CheckedModel:
    """A model that has a meaning to run; the only thing that a plan is made from. ``checked``
    makes it.
    """

    model: Model
    mixed: frozenset[tuple[GraphAddress, LayerId]] = frozenset()
    """Nodes whose operands have several element types, as in ``Propagated``."""


def check(model: Model, catalogue: Catalogue = CATALOGUE) -> Report:
    """The findings of all rules about all runtimes; no content of a model makes it raise.

    ``print`` of the report gives its summary; ``report.ok`` says whether the model can be run.
    """
    expect_model(model, "loopscope.check")
    subject = Subject(model, catalogue_for(model.dialect, catalogue))
    return Report.of(
        _of_what_converts([diagnostic for rule in RULES for diagnostic in rule.apply(subject)])
    )


def _of_what_converts(diagnostics: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """Leave out how OpenVINO would run a model that its frontend does not convert."""
    if all(one.code != onnx_conversion.CODE for one in diagnostics):
        return diagnostics
    return [
        one for one in diagnostics if one.runtimes != OPENVINO or one.code == onnx_conversion.CODE
    ]


def own_runtimes(model: Model) -> frozenset[Runtime]:
    """The runtimes that a model is made for: OpenVINO for IR, ONNX Runtime for ONNX, none for a
    converted model.
    """
    if model.dialect == "onnx":
        return ONNXRUNTIME
    return EVERYBODY if model.converted_from else OPENVINO


def checked(model: Model, catalogue: Catalogue) -> CheckedModel:
    """The model, when it can be run; ``InvalidModel`` with a report of its errors when it cannot.

    Only the rules are asked whose faults nothing later would notice: a shape that contradicts its
    operation is left to the operation, which says so with the very values that it met.
    """
    subject = Subject(model, catalogue_for(model.dialect, catalogue))
    report = Report.of(diagnostic for rule in _BEFORE_RUNNING for diagnostic in rule.apply(subject))
    if not report.ok:
        raise InvalidModel(report)
    return CheckedModel(model, frozenset(subject.propagated.mixed))


_BEFORE_RUNNING = tuple(rule for rule in RULES if rule.before_running)
