"""Fallback to the onnx package's reference kernels, prepared once for a node's attributes and
called without the package's graph machinery.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import RuntimeContextError, RuntimeImplementationError
from onnx.reference.ops import aionnx_preview, aionnx_preview_training, load_op

from loopscope.native.onnx_functions import function_of
from loopscope.ops.onnx.conditions import check_inputs
from loopscope.ops.onnx.output_sizes import check_size
from loopscope.ops.values import NO_VALUE, given, taken

Kernel = Callable[..., Any]
Schema = Any
"""``onnx.defs.OpSchema``, whose type hints are incomplete."""

_LOADERS: Mapping[str, Callable[..., Any]] = {
    "": load_op,
    "ai.onnx.preview": aionnx_preview.load_op,
    "ai.onnx.preview.training": aionnx_preview_training.load_op,
}
_FAULTS = (
    RuntimeImplementationError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    AttributeError,
    KeyError,
)
"""Exceptions with which the onnx package refuses an operation that it does not compute."""

_LATER: Mapping[tuple[str, int], int] = {("Clip", 1): 6, ("RNN", 1): 7}
"""Versions with the meaning of a later version, which the onnx package computes."""
_RANDOM = frozenset(
    {
        "RandomNormal",
        "RandomUniform",
        "RandomNormalLike",
        "RandomUniformLike",
        "Bernoulli",
        "Dropout",
    }
)
_FIRST_TRAINING_DROPOUT = 12


def fallback(schema: Schema) -> Callable[[Mapping[str, Any], int], Kernel] | None:
    """Return a function that prepares the onnx package's kernel of a node; None if the package does
    not compute the operation.
    """
    version = int(schema.since_version)
    computes = (
        implementation(schema.domain, schema.name, version)
        or schema.has_function
        or schema.has_context_dependent_function
    )
    return partial(_prepare, schema, version, is_random(schema)) if computes else None


def is_random(schema: Schema) -> bool:
    """Return True for an operation that draws random numbers in the onnx package's kernel."""
    return schema.name in _RANDOM and (
        schema.name != "Dropout" or int(schema.since_version) >= _FIRST_TRAINING_DROPOUT
    )


def _prepare(
    schema: Schema, version: int, drawn: bool, attributes: Mapping[str, Any], outputs: int
) -> Kernel:
    return prepared(schema, version, attributes, outputs, drawn=drawn)


@lru_cache(maxsize=4096)
def implementation(domain: str, type: str, version: int) -> Any:
    """Return the class of a reference kernel; None if the package does not have one."""
    loader = _LOADERS.get(domain)
    if loader is None:
        return None
    try:
        kernel = loader(domain, type, version if domain else _LATER.get((type, version), version))
    except (RuntimeContextError, *_FAULTS, AssertionError):
        return None
    return kernel if inspect.isclass(kernel) else None


def prepared(
    schema: Schema, version: int, attributes: Mapping[str, Any], outputs: int, *, drawn: bool
) -> Kernel:
    """Return a kernel for a node with these attributes and this number of outputs. The kernel
    returns a tuple of values of the machine.

    ``drawn``: the kernel also takes ``state=``, draws its random numbers from it, and returns
    ``(outputs, next state)``. An attribute that the kernel cannot take raises an error when the
    kernel is called.
    """
    present = {name: value for name, value in attributes.items() if value is not None}
    if not schema.domain:
        present = _current_spelling(schema.name, version, present)
    if implementation(schema.domain, schema.name, version) is None:
        return _FunctionCall(schema, version, present, outputs)
    return (
        _RandomCall(schema, version, present, outputs)
        if drawn
        else _ReferenceCall(schema, version, present, outputs)
    )


def _current_spelling(type: str, version: int, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a version with the names and values of the version whose kernel
    computes it.
    """
    current = {name: value for name, value in attributes.items() if name != "consumed_inputs"}
    match type:
        case "GridSample" if version == 16:
            current["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(
                current["mode"], current["mode"]
            )
        case "RoiAlign" if version == 10:
            current["coordinate_transformation_mode"] = "output_half_pixel"
        case "TfIdfVectorizer" if not current.get("weights"):
            current["weights"] = (1.0,) * len(current.get("ngram_indexes") or ())
        case "GRU" if current.get("direction") == "foward":
            current["direction"] = "forward"  # misspelt in the default of the first versions
        case _:
            pass
    return current


@dataclass(eq=False)
class _ReferenceCall:
    """Call of the reference kernel."""

    schema: Schema
    version: int
    attributes: Mapping[str, Any]
    outputs: int
    _cached: Any = None

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        arguments = [taken(value) for value in values]
        if not self.schema.domain:
            check_inputs(self.schema.name, arguments, self.attributes)
        check_size(self.schema.name, arguments, self.attributes)
        if self._cached is None:
            self._cached = _make_operation(
                self.schema, self.version, self.attributes, len(arguments), self.outputs
            )
        return _run_operation(self._cached, arguments, self.outputs)


@dataclass(eq=False)
class _RandomCall:
    """Call of a random reference kernel, with a seed from the state unless the file has one."""

    schema: Schema
    version: int
    attributes: Mapping[str, Any]
    outputs: int

    def __call__(self, *values: Any, state: int) -> tuple[tuple[Any, ...], int]:
        arguments = [taken(value) for value in values]
        check_size(self.schema.name, arguments, self.attributes)
        seed = state % 2**32
        following = int(np.random.RandomState(seed).randint(2**31))
        chosen = {"seed": seed % 2**24, **self.attributes}
        operation = _make_operation(self.schema, self.version, chosen, len(arguments), self.outputs)
        scalar = bool(arguments) and arguments[0].ndim == 0
        if scalar:
            # The package's kernels draw a Python number for a scalar, and then read its dtype.
            arguments[0] = arguments[0].reshape(1)
        results = _run_operation(operation, arguments, self.outputs)
        if scalar:
            results = tuple(
                given(result.reshape(())) if isinstance(result, np.ndarray) else result
                for result in results
            )
        return results, following


@dataclass(eq=False)
class _FunctionCall:
    """Call of the function by which ONNX defines the operation, as one kernel."""

    schema: Schema
    version: int
    attributes: Mapping[str, Any]
    outputs: int
    _cached: dict[tuple[object, ...], Any] = field(default_factory=dict[tuple[object, ...], Any])

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        arguments = [taken(value) for value in values]
        key = tuple(
            (value.dtype, value.shape) if isinstance(value, np.ndarray) else type(value)
            for value in arguments
        )
        if key not in self._cached:
            self._cached.clear()
            self._cached[key] = ReferenceEvaluator(self._function(arguments))
        evaluator = self._cached[key]
        inputs = dict(zip(evaluator.input_names, arguments, strict=False))
        attributes = {name: _as_reference_value(value) for name, value in self.attributes.items()}
        return tuple(given(value) for value in evaluator.run(None, inputs, attributes=attributes))

    def _function(self, arguments: list[Any]) -> FunctionProto:
        if self.schema.has_function:
            return self.schema.function_body
        node = _make_node(self.schema, self.attributes, len(arguments), self.outputs)
        types = [
            helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for array in arguments
        ]
        function = function_of(node, self.schema.since_version, types)
        if function is None:
            raise ValueError(
                f"ONNX does not define what {self.schema.name} computes "
                "with these attributes and inputs"
            )
        return function


def _run_operation(operation: Any, arguments: list[Any], outputs: int) -> tuple[Any, ...]:
    try:
        results = operation.run(*arguments)
    except TypeError as error:
        # The package's message lists Python types; the cause holds the real reason.
        raise ValueError(str(error.__cause__ or error)) from error
    missing = [NO_VALUE] * (outputs - len(results))
    return (*(given(result) for result in results[:outputs]), *missing)


def _make_operation(
    schema: Schema, version: int, attributes: Mapping[str, Any], inputs: int, outputs: int
) -> Any:
    kind = implementation(schema.domain, schema.name, version)
    accepted = _accepted_attributes(kind)
    taken_attributes = {
        name: value
        for name, value in attributes.items()
        if accepted is None or name in accepted or not _is_default(name, value, schema)
    }
    node = _make_node(schema, taken_attributes, inputs, outputs)
    settings = {
        "log": _discard,
        "opsets": {schema.domain: version},
        "verbose": 0,
        "new_ops": {},
        "evaluator_cls": ReferenceEvaluator,
    }
    try:
        return kind(node, settings)
    except TypeError as error:
        raise ValueError(str(error)) from error


@lru_cache(maxsize=4096)
def _accepted_attributes(kind: Any) -> frozenset[str] | None:
    """Return the attributes that a kernel takes; None for all. Attributes of old versions that have
    lost their meaning are left out.
    """
    parameters = inspect.signature(kind._run).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)


def _is_default(name: str, value: Any, schema: Schema) -> bool:
    declared = schema.attributes.get(name)
    if declared is None:
        return True
    if declared.required or not declared.default_value.type:
        return False
    default = helper.get_attribute_value(declared.default_value)
    return bool(value == (default.decode() if isinstance(default, bytes) else default))


def _make_node(
    schema: Schema, attributes: Mapping[str, Any], inputs: int, outputs: int
) -> NodeProto:
    node = NodeProto(op_type=schema.name, domain=schema.domain)
    node.input.extend(f"x{number}" for number in range(inputs))
    node.output.extend(f"y{number}" for number in range(outputs))
    for name, value in attributes.items():
        node.attribute.append(_make_attribute(name, value, schema))
    return node


def _make_attribute(name: str, value: Any, schema: Schema) -> AttributeProto:
    declared = schema.attributes.get(name)
    kind = int(declared.type) if declared is not None else None
    if kind == AttributeProto.FLOAT and isinstance(value, int):
        value = float(value)
    content = (
        numpy_helper.from_array(np.asarray(value), name)
        if isinstance(value, (np.ndarray, np.generic))
        else value
    )
    return helper.make_attribute(
        name, list(content) if isinstance(content, tuple) else content, attr_type=kind
    )


def _as_reference_value(value: Any) -> Any:
    return (
        np.float32(value)
        if isinstance(value, float)
        else list(value)
        if isinstance(value, tuple)
        else value
    )


def _discard(pattern: str, *values: Any) -> None:
    """Discard the reports that the package's kernels print."""


def since(domain: str, type: str, version: int) -> Any:
    """Return the schema of an operation in an opset, also a deprecated one; None if the opset does
    not have it.
    """
    try:
        return onnx.defs.get_schema(type, version, domain)
    except onnx.defs.SchemaError:
        return None
