"""Declaration of an operation: name and version, typed attributes, kernel, and the rule for shapes
and types.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, Protocol

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ir.shape import DYNAMIC, MOST_ELEMENTS, PartialShape, PartialValue
from loopscope.ops.attribute_text import ITEMS, KIND_WORDS, AttributeKind, parse
from loopscope.ops.derivative import Gradient

Array = np.ndarray
"""Argument and result type of kernels: arrays, or numpy scalars for rank 0 (both have ``dtype``,
``shape``, ``ndim``).
"""

Kernel = Callable[..., Any]
"""Function that computes an operation: arrays positional-only, attributes keyword-only and typed.

It returns one array, or a tuple of arrays when the operation declares several (or variadic)
outputs. It never writes into its inputs and reads no node, graph or global. It raises
``ValueError`` with the values that it met.
"""


class _Required(Enum):
    REQUIRED = "required"


REQUIRED = _Required.REQUIRED


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: its name in the XML, the kind that its text is parsed as, its default and its
    constraints.
    """

    name: str
    kind: AttributeKind
    default: object = REQUIRED
    """The typed default, or ``REQUIRED``."""
    allowed: tuple[object, ...] = ()
    """All allowed values (for lists: of each element); empty when every value of the kind is
    allowed.
    """
    least: float | None = None
    """Smallest allowed number (for lists: of each element)."""
    fewest: int = 0
    """Minimum number of elements of a list."""
    doc: str = ""
    """Meaning of the attribute, in one sentence."""

    @property
    def keyword(self) -> str:
        """Keyword of the kernel: ``-`` becomes ``_``, and a Python keyword gets a trailing ``_``.

        >>> Attribute("exclude-pad", "bool").keyword, Attribute("lambda", "float").keyword
        ('exclude_pad', 'lambda_')
        """
        return _keyword(self.name)


@cache
def _keyword(name: str) -> str:
    name = name.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Facts about a tensor before it is computed; ``value`` is set only for small constants."""

    element_type: ElementType | None = None
    shape: PartialShape = DYNAMIC
    value: Array | None = None
    partial: PartialValue | None = None
    """Interval for each element of a small tensor without a known value; None if no element is
    bounded.
    """

    @property
    def elements(self) -> PartialValue | None:
        """Interval for each element, also of a known value; None if nothing is known or the tensor
        is not small.
        """
        if self.value is None:
            return self.partial
        return (
            PartialValue.of_array(self.value)
            if self.value.dtype.kind in "biuf" and self.value.size <= MOST_ELEMENTS
            else None
        )

    @staticmethod
    def of(array: Array | np.generic) -> Known:
        """Return the facts about an array at hand: type, shape and value."""
        array = np.asarray(array)
        return Known(ElementType.of(array), PartialShape.of(array.shape), array)


NOTHING_KNOWN = Known()


class KeepingKernel(Protocol):
    """A kernel of one node that caches what it derives from a constant input, up to ``most_bytes``
    bytes.
    """

    most_bytes: int

    def __call__(self, *arrays: Any) -> Any: ...


class Infer(Protocol):
    """A shape function: computes what is known of the outputs from what is known of the inputs.

    It raises ``ValueError`` if the inputs contradict the operation. Missing trailing inputs are
    absent from ``inputs``.
    """

    def __call__(
        self, inputs: Sequence[Known], attributes: Mapping[str, Any], /
    ) -> tuple[Known, ...]: ...


class Role(Enum):
    """Action of the machine for a node of this operation."""

    COMPUTE = "compute"
    """Call its kernel."""
    PARAMETER = "parameter"
    RESULT = "result"
    CONSTANT = "constant"
    REGION = "region"
    """Loop, TensorIterator, If: run bodies."""
    READ_VALUE = "read_value"
    ASSIGN = "assign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A row of a category's table: an operation of one version."""

    name: str
    """Name in the XML: ``Const``, ``ReLU``, ``SoftMax``, ``Add``."""
    version: int
    """The version in the spec's versioned name: 8 in Gather-8."""
    opsets: tuple[int, int]
    """First and last opset that contain this version; a layer may carry any of them."""
    page: str
    """Spec page: folder and file, such as ``movement/gather-8``."""
    kernel: Kernel | None = None
    """None for roles other than COMPUTE."""
    infer: Infer | None = None
    """Shape function; None if nothing is known of the outputs before they are computed."""
    opset: str = ""
    """Exact text of a layer's ``version`` (``extension``) for operations of users; empty for
    OpenVINO's opsets.
    """
    inputs: tuple[int, int | None] = (1, 1)
    """Minimum and maximum number of inputs; None for no upper bound."""
    optional_inputs: frozenset[int] = frozenset()
    """Positions below the minimum that a node may omit by an empty name, because later inputs
    follow.
    """
    outputs: int | None = 1
    """Number of outputs; None when it depends on the node (the kernel then returns a tuple)."""
    attributes: tuple[Attribute, ...] = ()
    types: tuple[frozenset[ElementType], ...] = (ANY_TYPE,)
    """Allowed element types of each input; the last entry applies to all further inputs."""
    alike: tuple[str, ...] = ()
    """Type variable of each input in the specification: inputs with the same name share an element
    type. Empty text means an independent type. The last entry applies to all further inputs.
    """
    output_types: (
        Callable[[Sequence[Known], Mapping[str, Any]], Sequence[ElementType | None]] | None
    ) = None
    """ONNX: function that returns the element type of each output from the known inputs and
    attributes. It returns None where the specification leaves the type open. The last type applies
    to all further outputs.
    """
    broadcasts: bool = False
    """ONNX: True if the inputs are broadcast against each other, which may enlarge the output."""
    symbol: str = ""
    """A Python expression over ``{0}``, ``{1}``, ... that equals the kernel bit for bit, such as
    ``{0} + {1}``. It works on numpy scalars and on arrays with numpy broadcasting, for every type
    in ``types``. Empty if no such expression exists.
    """
    float_symbol: str = ""
    """An elementwise expression like ``symbol`` that is valid for f32 and f64 only. It may call
    functions of numpy, such as ``np.tanh({0})``.
    """
    integer_symbol: str = ""
    """An expression like ``symbol`` that is valid only for rank 0 and one integer type of numpy. An
    expression that divides is valid for divisors other than 0.
    """
    integer_symbol_when: Mapping[str, object] = field(default_factory=dict[str, object])
    """Attribute values required for ``integer_symbol``, in addition to those of ``symbol_when``."""
    identity: bool = False
    """True if the output always equals the input."""
    symbol_when: Mapping[str, object] = field(default_factory=dict[str, object])
    """Attribute values (by keyword) required for ``symbol`` and ``float_symbol``; empty if they
    always apply.
    """
    stateful: bool = False
    """True for random operations: the kernel also takes ``state=`` and returns ``(outputs,
    next_state)``. The first state is an ``int``, the run's entropy; later states are those that the
    kernel returned. A state is immutable, so that a run can be rewound.
    """
    pure: bool = True
    """True if the kernel only computes and returns the same outputs for the same inputs (and
    state). Only pure operations are shared between equal nodes and folded when their inputs are
    constants.
    """
    counts_outputs: bool = False
    """True for variadic operations whose kernel also takes ``outputs=``, the number of outputs of
    the node.
    """
    by_constant: Callable[..., KeepingKernel | None] | None = None
    """Function that builds the kernel of one node whose input ``kept_input`` is the same in all
    runs. Its arguments are what is ``Known`` of that input, and the attributes; it returns None if
    no faster kernel exists. The kernel returns the same bits on every call.
    """
    kept_input: int = 1
    only_tensors: bool = True
    """True if all inputs and outputs are tensors; some of ONNX's are sequences, maps or
    optionals.
    """
    gradient: Gradient | None = None
    """Rule that builds the adjoints of the inputs from those of the outputs; None if no derivative
    is available.
    """
    role: Role = Role.COMPUTE
    shows: Callable[..., str] | None = None
    """Function that returns the line that an execution prints for the user; takes inputs and
    keyword attributes. It is called each time the run is displayed. An attribute ``first_n`` limits
    it to the first executions.
    """
    prepare: Callable[[Mapping[str, Any], int], Kernel] | None = None
    """ONNX: function that builds the kernel of one node from its attributes and its number of
    outputs. The kernel always returns a tuple, of settled values (numpy scalars for rank 0) or of
    values that are not tensors.
    """
    doc: str = ""
    """Description, if the kernel's docstring does not provide one; the first line is the
    summary.
    """
    input_docs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Description of each input, by its name."""
    output_docs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of the outputs in order, each with its description."""
    spec_inputs: tuple[str, ...] = ()
    """Names of the inputs in the specification; empty if they are the kernel's parameters."""

    @property
    def title(self) -> str:
        """The spec's versioned name, such as ``Gather-8``."""
        return f"{self.name}-{self.version}"

    @property
    def summary(self) -> str:
        """First paragraph of the description, on one line."""
        return " ".join(self.description.partition("\n\n")[0].split())

    @property
    def description(self) -> str:
        """Description of the operation: ``doc``, or else the kernel's docstring."""
        return inspect.cleandoc(
            self.doc or (self.kernel.__doc__ if self.kernel else "") or ""
        ).strip()


class AttributeProblem(ValueError):
    """Error for an attribute that is missing or whose value is not allowed."""


def typed(operation: Operation, texts: Mapping[str, object]) -> dict[str, Any]:
    """Return the kernel's keyword arguments from a layer's attributes; unknown attributes are
    ignored, as in OpenVINO.

    Values that are not text (graphs built in Python) are used unchanged. Raise ``AttributeProblem``
    for the first attribute that is missing or not allowed.
    """
    values: dict[str, Any] = {}
    for attribute in operation.attributes:
        if attribute.name in texts:
            values[attribute.keyword] = value_of(attribute, texts[attribute.name])
        elif attribute.default is REQUIRED:
            raise AttributeProblem(
                f"attribute '{attribute.name}' ({_expectation(attribute)}) is missing"
            )
        else:
            values[attribute.keyword] = attribute.default
    return values


_NUMBERS = frozenset({"int", "float", "bool"})


def value_of(attribute: Attribute, raw: Any) -> Any:
    """Return the typed value of an attribute from its text or a value.

    Raise ``AttributeProblem`` if its kind or its constraints do not allow the value.
    """
    try:
        value = parse(attribute.kind, raw) if isinstance(raw, str) else raw
    except ValueError:
        raise AttributeProblem(
            f"attribute '{attribute.name}' is {_shorten_repr(raw)}, expected "
            f"{_expectation(attribute)}"
        ) from None
    # ONNX attributes carry a type of their own, which may be that of a tensor.
    if isinstance(value, np.ndarray) and attribute.kind in _NUMBERS:
        raise AttributeProblem(
            f"attribute '{attribute.name}' is a tensor, expected {_expectation(attribute)}"
        )
    if isinstance(value, (tuple, list)) is not (attribute.kind in ITEMS):
        raise AttributeProblem(
            f"attribute '{attribute.name}' is {_shorten_repr(raw)}, expected "
            f"{_expectation(attribute)}"
        )
    if attribute.kind in ITEMS and attribute.fewest and len(value) < attribute.fewest:
        raise AttributeProblem(
            f"attribute '{attribute.name}' is {_shorten_repr(raw)}, expected "
            f"{_expectation(attribute)}"
        )
    each = value if isinstance(value, tuple) else (value,)
    if attribute.allowed and not set(each) <= set(attribute.allowed):
        lowered = tuple(item.lower() if isinstance(item, str) else item for item in each)
        by_lower = {
            item.lower() if isinstance(item, str) else item: item for item in attribute.allowed
        }
        if not set(lowered) <= set(by_lower):
            raise AttributeProblem(
                f"attribute '{attribute.name}' is {_shorten_repr(raw)}, expected "
                f"{_expectation(attribute)}"
            )
        each = tuple(by_lower[item] for item in lowered)
        value = each if isinstance(value, tuple) else each[0]
    if attribute.least is not None and any(item < attribute.least for item in each):
        raise AttributeProblem(
            f"attribute '{attribute.name}' is {_shorten_repr(raw)}, expected "
            f"{_expectation(attribute)}"
        )
    return value


def _expectation(attribute: Attribute) -> str:
    few = f"at least {attribute.fewest} of: " if attribute.fewest else ""
    if attribute.allowed:
        return (few or "one of ") + ", ".join(str(value) for value in attribute.allowed)
    words = few + KIND_WORDS[attribute.kind]
    return words if attribute.least is None else f"{words} of at least {attribute.least:g}"


def _shorten_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
