"""How an operation is declared: its name and version, its typed attributes, its kernel, and the
rule for shapes and types.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np

from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ir.partial_value import MOST_ELEMENTS, PartialValue
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.attribute_text import ITEMS, KIND_WORDS, AttributeKind, parse
from loopscope.ops.derivative import Gradient

Array = np.ndarray
"""What kernels take and give: arrays, or numpy scalars for rank 0 (both have ``dtype``,
``shape``, ``ndim``).
"""

Kernel = Callable[..., Any]
"""Arrays positional-only, attributes keyword-only and typed.

Gives one array, or a tuple of arrays when the operation declares several (or variadic) outputs.
Never writes into its inputs; raises ``ValueError`` with the values it met. No node, no graph, no
globals.
"""


class _Required(Enum):
    REQUIRED = "required"


REQUIRED = _Required.REQUIRED


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: name as the XML spells it, the type its text becomes, default, and what
    values it may have.
    """

    name: str
    kind: AttributeKind
    default: object = REQUIRED
    """The typed default, or ``REQUIRED``."""
    allowed: tuple[object, ...] = ()
    """All values it may have (for lists: each element); empty when any value of its kind will
    do.
    """
    least: float | None = None
    """The smallest number it (or each element) may be."""
    fewest: int = 0
    """The least number of elements of a list."""
    doc: str = ""
    """What it means, in a sentence."""

    @property
    def keyword(self) -> str:
        """The kernel's keyword: ``-`` becomes ``_``, a Python keyword gets ``_`` after it.

        >>> Attribute("exclude-pad", "bool").keyword, Attribute("lambda", "float").keyword
        ('exclude_pad', 'lambda_')
        """
        name = self.name.replace("-", "_")
        return f"{name}_" if keyword.iskeyword(name) else name


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of a tensor before it is computed; ``value`` where it is a known constant
    (small ones only).
    """

    element_type: ElementType | None = None
    shape: PartialShape = DYNAMIC
    value: Array | None = None
    partial: PartialValue | None = None
    """Of a small tensor without a known value: an interval for each element, where there is one
    for some.
    """

    @property
    def elements(self) -> PartialValue | None:
        """An interval for each element, of a known value too; None where nothing is known or the
        tensor is not small.
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
        """Everything is known of an array at hand."""
        array = np.asarray(array)
        return Known(ElementType.of(array), PartialShape.of(array.shape), array)


NOTHING_KNOWN = Known()


class KeepingKernel(Protocol):
    """A kernel of one node that keeps what it makes of a constant: at most so many bytes."""

    most_bytes: int

    def __call__(self, *arrays: Any) -> Any: ...


class Infer(Protocol):
    """What is known of the outputs, given what is known of the inputs.

    Raises ``ValueError`` where the inputs contradict the operation. Missing trailing inputs are
    absent from ``inputs``.
    """

    def __call__(
        self, inputs: Sequence[Known], attributes: Mapping[str, Any], /
    ) -> tuple[Known, ...]: ...


class Role(Enum):
    """What the machine does with a node of this operation."""

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
    """One row of a category's table: an operation of one version."""

    name: str
    """As the XML spells it: ``Const``, ``ReLU``, ``SoftMax``, ``Add``."""
    version: int
    """The version in the spec's versioned name: 8 in Gather-8."""
    opsets: tuple[int, int]
    """First and last opset that hold this version; a layer may carry any of them."""
    page: str
    """Spec page: folder and file, such as ``movement/gather-8``."""
    kernel: Kernel | None = None
    """None for roles other than COMPUTE."""
    infer: Infer | None = None
    """None: nothing is known of the outputs before they are computed."""
    opset: str = ""
    """Operations of users: the very text that a layer's ``version`` has (``extension``); empty
    for those of OpenVINO's opsets.
    """
    inputs: tuple[int, int | None] = (1, 1)
    """Least and greatest number of inputs; None without an upper bound."""
    optional_inputs: frozenset[int] = frozenset()
    """Those among the least number that a node may leave out by an empty name, because others
    come after them.
    """
    outputs: int | None = 1
    """Number of outputs; None when it depends on the node (the kernel then gives a tuple)."""
    attributes: tuple[Attribute, ...] = ()
    types: tuple[frozenset[ElementType], ...] = (ANY_TYPE,)
    """Element types that each input may have; the last entry holds for the inputs after it."""
    alike: tuple[str, ...] = ()
    """Of each input, what its specification calls its element type: those of one name have one
    type. Empty where it may have one of its own; the last entry holds for the inputs after it.
    """
    output_types: (
        Callable[[Sequence[Known], Mapping[str, Any]], Sequence[ElementType | None]] | None
    ) = None
    """ONNX: the element type of each output by what is known of the inputs and the attributes; None
    where its specification does not settle it. The last one holds for the outputs after it.
    """
    symbol: str = ""
    """A Python expression over ``{0}``, ``{1}``, ... that gives the kernel's very result on numpy
    scalars and on arrays with numpy broadcasting, such as ``{0} + {1}``; empty when there is none.
    It must hold for every type in ``types``.
    """
    float_symbol: str = ""
    """As ``symbol``, but it holds for f32 and f64 only; functions of numpy may be called as
    ``np.tanh({0})``. Elementwise, as that is.
    """
    integer_symbol: str = ""
    """As ``symbol``, for numbers (rank 0) of one integer type of numpy only; one that divides
    holds for divisors other than 0.
    """
    integer_symbol_when: Mapping[str, object] = field(default_factory=dict[str, object])
    """Attribute values under which ``integer_symbol`` holds, beside those of ``symbol_when``."""
    identity: bool = False
    """Whether its output is its input, always."""
    symbol_when: Mapping[str, object] = field(default_factory=dict[str, object])
    """Attribute values (by keyword) under which ``symbol`` and ``float_symbol`` hold; empty:
    always.
    """
    stateful: bool = False
    """Random operations: the kernel also takes ``state=`` and gives ``(outputs, next_state)``. Its
    first state is an ``int``, the run's entropy; later ones are whatever it gave. A state is
    immutable, so that a run can be rewound.
    """
    pure: bool = True
    """Whether it does nothing but compute, and gives the same outputs for the same inputs (random
    operations apart, whose state says so). Only then is it computed once where a model asks for the
    same twice, and not again where its inputs are constants.
    """
    counts_outputs: bool = False
    """Variadic operations: the kernel also takes ``outputs=``, the number of outputs that the
    node has.
    """
    by_constant: Callable[..., KeepingKernel | None] | None = None
    """Makes the kernel of one node whose input ``kept_input`` is the same in all runs, from what is
    ``Known`` of that and the attributes; None where it has no better one. It gives the same bits
    however often it has run.
    """
    kept_input: int = 1
    only_tensors: bool = True
    """Whether all its inputs and outputs are tensors; some of ONNX's are sequences, maps or
    optionals.
    """
    gradient: Gradient | None = None
    """From the adjoints of its outputs to those of its inputs, in operations; None when it has
    no derivative here.
    """
    role: Role = Role.COMPUTE
    shows: Callable[..., str] | None = None
    """The line that an execution shows to the person who runs the model: takes the inputs, and the
    attributes by keyword. Called when somebody looks at the run, as often as that happens. Only the
    first executions show one where an attribute ``first_n`` says how many.
    """
    prepare: Callable[[Mapping[str, Any], int], Kernel] | None = None
    """ONNX: makes the kernel of one node, once, from its attributes and its number of outputs. What
    it makes always gives a tuple, of values that are settled (numpy scalars for rank 0) or no
    tensors at all.
    """
    doc: str = ""
    """What it computes, where the kernel's docstring does not say it; the first line is its
    summary.
    """
    input_docs: Mapping[str, str] = field(default_factory=dict[str, str])
    """What each input is, by the name that the kernel gives it."""
    output_docs: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names of the outputs in their order, and what each is."""

    @property
    def title(self) -> str:
        """The spec's versioned name, such as ``Gather-8``."""
        return f"{self.name}-{self.version}"

    @property
    def summary(self) -> str:
        """First line of what is said of it."""
        return self.description.partition("\n")[0]

    @property
    def description(self) -> str:
        """What is said of it: ``doc``, or else the kernel's docstring."""
        return inspect.cleandoc(
            self.doc or (self.kernel.__doc__ if self.kernel else "") or ""
        ).strip()


class AttributeProblem(ValueError):
    """An attribute that is missing or has a value that the operation does not allow."""


def typed(operation: Operation, texts: Mapping[str, object]) -> dict[str, Any]:
    """The kernel's keyword arguments from a layer's verbatim attributes; unknown attributes are
    ignored, as OpenVINO does.

    Values that are not text are taken as they are (graphs built in Python). ``AttributeProblem``
    names the first that is wrong.
    """
    values: dict[str, Any] = {}
    for attribute in operation.attributes:
        if attribute.name in texts:
            values[attribute.keyword] = value_of(attribute, texts[attribute.name])
        elif attribute.default is REQUIRED:
            raise AttributeProblem(
                f"attribute '{attribute.name}' ({_expected(attribute)}) is missing"
            )
        else:
            values[attribute.keyword] = attribute.default
    return values


_NUMBERS = frozenset({"int", "float", "bool"})


def value_of(attribute: Attribute, given: Any) -> Any:
    """The typed value of one attribute, from its text or a value; ``AttributeProblem`` when its
    kind or constraints refuse it.
    """
    try:
        value = parse(attribute.kind, given) if isinstance(given, str) else given
    except ValueError:
        raise AttributeProblem(
            f"attribute '{attribute.name}' is {_short(given)}, expected {_expected(attribute)}"
        ) from None
    if (
        isinstance(value, np.ndarray) and attribute.kind in _NUMBERS
    ):  # ONNX attributes say themselves what they are
        raise AttributeProblem(
            f"attribute '{attribute.name}' is a tensor, expected {_expected(attribute)}"
        )
    if isinstance(value, (tuple, list)) is not (attribute.kind in ITEMS):
        raise AttributeProblem(
            f"attribute '{attribute.name}' is {_short(given)}, expected {_expected(attribute)}"
        )
    if attribute.kind in ITEMS and attribute.fewest and len(value) < attribute.fewest:
        raise AttributeProblem(
            f"attribute '{attribute.name}' is {_short(given)}, expected {_expected(attribute)}"
        )
    each = value if isinstance(value, tuple) else (value,)
    if attribute.allowed and not set(each) <= set(attribute.allowed):
        lowered = tuple(item.lower() if isinstance(item, str) else item for item in each)
        by_lower = {
            item.lower() if isinstance(item, str) else item: item for item in attribute.allowed
        }
        if not set(lowered) <= set(by_lower):
            raise AttributeProblem(
                f"attribute '{attribute.name}' is {_short(given)}, expected {_expected(attribute)}"
            )
        each = tuple(by_lower[item] for item in lowered)
        value = each if isinstance(value, tuple) else each[0]
    if attribute.least is not None and any(item < attribute.least for item in each):
        raise AttributeProblem(
            f"attribute '{attribute.name}' is {_short(given)}, expected {_expected(attribute)}"
        )
    return value


def _expected(attribute: Attribute) -> str:
    few = f"at least {attribute.fewest} of: " if attribute.fewest else ""
    if attribute.allowed:
        return (few or "one of ") + ", ".join(str(value) for value in attribute.allowed)
    words = few + KIND_WORDS[attribute.kind]
    return words if attribute.least is None else f"{words} of at least {attribute.least:g}"


def _short(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 80 else text[:77] + "..."
