"""Execution of one operation over the slots, and the precompiled steps of a graph.

Kernels take and return tensors, and one value for each output. A failure is described in one
sentence. A step has the arguments, kernel and output of an operation, resolved once for all runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from loopscope.errors import MOST_OF_A_SENTENCE, NotKept, elided, shorten
from loopscope.executor.machine.error_messages import in_plain_words
from loopscope.executor.plan.plan import ABSENT, Instruction, Program
from loopscope.executor.plan.slots import Slot, settle
from loopscope.ir.element_type import ElementType
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.values import NO_VALUE, NOT_KEPT, WEIGHTS_NOT_KEPT, described, is_tensor


def returned(instruction: Instruction, value: Any) -> Any:
    """Return one value of a kernel in the machine's representation; ``ValueError`` for a value of
    another kind.
    """
    if isinstance(value, np.ndarray):
        # Rank-0 numbers become numpy scalars, which compute ten times faster than 0-d arrays.
        return (
            value[()]
            if value.ndim == 0 and value.dtype.names is None and value.dtype != object
            else value
        )
    if isinstance(value, np.generic) or (not instruction.only_tensors and _is_onnx_value(value)):
        return value
    raise ValueError(f"its kernel returned {described(value)}, expected an array")


def all_returned(instruction: Instruction, results: Any) -> list[Any]:
    """Return one value per output from a kernel that returns a tuple; surplus values are
    dropped.
    """
    count = len(instruction.outputs)
    _check_count(results, count)
    return [returned(instruction, result) for result in results[:count]]


def first_of(results: Any) -> Any:
    """Return the value of an operation with one output whose kernel returns a tuple, unchanged."""
    if type(results) is not tuple or not results:
        _check_count(results, 1)
    return results[0]


def _check_count(results: Any, count: int) -> None:
    if not isinstance(results, (tuple, list)) or len(results) < count:
        description = (
            f"a tuple of {len(results)}" if isinstance(results, tuple) else described(results)
        )
        raise ValueError(f"its kernel returned {description}, expected a tuple of {count}")


def _is_onnx_value(value: Any) -> bool:
    """Return True for the other values of ONNX in the machine's representation: a sequence, a map,
    or an empty optional.
    """
    if isinstance(value, tuple):
        return all(
            isinstance(item, (np.ndarray, np.generic)) or _is_onnx_value(item) for item in value
        )
    return value is NO_VALUE or isinstance(value, Mapping)


def check_tensors(instruction: Instruction, arguments: Sequence[Any]) -> None:
    """Raise ``ValueError`` if an operation on tensors gets another kind of value, or a weight that
    was not stored.
    """
    for value in arguments:
        if value is NOT_KEPT:
            raise NotKept(f"not kept: it {WEIGHTS_NOT_KEPT}")
    if instruction.only_tensors:
        for number, value in enumerate(arguments):
            if not is_tensor(value):
                raise ValueError(f"input {number} is {described(value)}, expected a tensor")


SMALL = 1 << 24
"""Number of elements up to which a result size is not checked."""
LARGE = 1 << 22
"""Bytes of the outputs of one operation from which the memory of the whole run is checked."""
_BUFFER_ELEMENTS = 512
"""Size of numpy's buffers in elements.

With buffers larger than a row, numpy first copies a value that is broadcast along rows, and adding
a bias takes twice the time.
"""

_COLUMN_BUFFER_ELEMENTS = 8192


class _Computing:
    """A state of numpy for kernels: warnings are off, and buffers have a fixed size."""

    __slots__ = ("_buffer_elements", "_warnings")

    def __init__(self, buffer_elements: int) -> None:
        self._buffer_elements = buffer_elements

    def __enter__(self) -> None:
        self._warnings = np.errstate(all="ignore")
        self._warnings.__enter__()
        np.setbufsize(self._buffer_elements)  # until errstate ends

    def __exit__(self, *_: object) -> None:
        self._warnings.__exit__(None, None, None)


def computing() -> _Computing:
    """Set the numpy state in which kernels run in every run and replay, so that results are equal
    bit for bit.
    """
    return _Computing(_BUFFER_ELEMENTS)


def computing_columns() -> _Computing:
    """Set the numpy state for elementwise operations over columns of many rows: large buffers,
    which do not change results.
    """
    return _Computing(_COLUMN_BUFFER_ELEMENTS)


def execute(instruction: Instruction, values: list[Any], *, anew: bool = False) -> None:
    """Run one operation over the slots. ``anew`` computes it even if an equal operation has run."""
    if instruction.variable is not None:
        _access_variable(instruction, values)
        return
    if instruction.same_as and not anew:
        for slot, same in zip(instruction.outputs, instruction.same_as, strict=True):
            values[slot] = values[same]
        return
    call = instruction.call
    assert call is not None
    arguments = [values[slot] for slot in instruction.inputs]
    if instruction.checked:
        check_tensors(instruction, arguments)
    if instruction.broadcasts:
        check_broadcast(arguments)
    if instruction.state is not None:
        results, values[instruction.state] = call(*arguments, state=values[instruction.state])
    else:
        results = call(*arguments)
    if instruction.several:
        for slot, value in zip(
            instruction.outputs, all_returned(instruction, results), strict=True
        ):
            values[slot] = value
    else:
        values[instruction.outputs[0]] = returned(instruction, results)


def check_broadcast(arguments: Sequence[Any]) -> None:
    """Raise ``ValueError`` if the inputs of an elementwise operation broadcast to more elements
    than allowed.
    """
    pairs = 1
    for argument in arguments:
        if argument is not None:
            pairs *= argument.size
    if pairs > SMALL:
        shapes = [
            argument.shape for argument in arguments if argument is not None and argument.ndim
        ]
        check_elements(math.prod(np.broadcast_shapes(*shapes)), "the result")


def check_held(
    instruction: Instruction,
    values: list[Any],
    constants: Container[int],
    limit: int,
    recorded: Callable[[], int],
) -> None:
    """Raise ``ValueError`` and drop the outputs if a large output raises the total of all values
    over the limit in bytes.

    Constants do not count. ``recorded`` returns the bytes that the run has collected and recorded
    in addition.
    """
    output_bytes = 0
    for output in instruction.outputs:
        output_bytes += getattr(values[output], "nbytes", 0)
    if output_bytes < LARGE:
        return
    total = held_bytes(values, constants) + recorded()
    if total > limit:
        for output in instruction.outputs:
            values[output] = None
    expect_room(total, limit)


def held_bytes(values: list[Any], constants: Container[int]) -> int:
    """Return the bytes of all values except constants. Arrays that share memory count once."""
    sizes: dict[int, int] = {}
    for slot, value in enumerate(values):
        if isinstance(value, np.ndarray) and slot not in constants:
            while isinstance(value.base, np.ndarray):
                value = value.base
            sizes[id(value)] = value.nbytes
    return sum(sizes.values())


def expect_room(total: int, limit: int) -> None:
    """Raise ``ValueError`` if all values of a run take more bytes than the limit."""
    if total > limit:
        raise ValueError(
            f"all values of the run together would take {total:,} bytes, "
            f"more than the limit of {limit:,}"
        )


def _access_variable(instruction: Instruction, values: list[Any]) -> None:
    variable = instruction.variable
    assert variable is not None
    if instruction.assigns:
        values[variable] = values[instruction.inputs[0]]
        for slot in instruction.outputs:
            values[slot] = values[variable]
    else:
        stored = values[variable]
        if stored is None:
            stored = (
                settle(instruction.call())
                if instruction.call is not None
                else values[instruction.inputs[0]]
            )
        values[instruction.outputs[0]] = stored


def cause_of(error: BaseException) -> str:
    """Return the cause of an error outside an operation. numpy's message about memory does not help
    a user.
    """
    return (
        "out of memory"
        if isinstance(error, MemoryError)
        else elided(str(error), MOST_OF_A_SENTENCE)
    )


def describe(instruction: Instruction, values: list[Any], error: BaseException) -> str:
    """Return one sentence for a failed instruction: the operation, the cause, and the inputs."""
    inputs = "; ".join(_describe_value(values[slot]) for slot in instruction.inputs)
    cause = (
        "out of memory"
        if isinstance(error, MemoryError)
        else in_plain_words(str(error).strip().rstrip(".")) or "the inputs do not fit the operation"
    )
    cause = elided(cause, MOST_OF_A_SENTENCE)
    return f"{instruction.title} failed: {cause} (inputs: {inputs or 'none'})"


def _describe_value(value: Any) -> str:
    if value is None:
        return "absent"
    if not is_tensor(value):
        return f"sequence of {len(value)}" if isinstance(value, tuple) else shorten(repr(value), 60)
    array = np.asarray(value)
    try:
        kind = ElementType.of(array).value
    except (KeyError, TypeError):
        kind = str(array.dtype)
    shape = ",".join(str(length) for length in array.shape)
    text = f"{kind}[{shape}]"
    return (
        f"{text} = {shorten(str(array.tolist()), 60)}"
        if array.size <= 8 and max(array.shape, default=0) <= 8
        else text
    )


class PlannedStep(NamedTuple):
    """One operation with its resolved kernel, arguments and output."""

    instruction: Instruction
    call: Callable[..., Any] | None
    """Kernel, if the step only stores its result in ``output``; None if ``execute`` must run the
    operation.
    """
    gives_a_tuple: bool
    """True if the kernel returns a tuple whose first value is the output."""
    takes: Callable[[list[Any]], Sequence[Any]]
    """Function from the slot values to the arguments; ``ValueError`` if the arguments broadcast to
    too many elements.
    """
    output: Slot
    done: tuple[Slot, ...]
    """Slots of the outermost graph that nothing reads after this step."""


_STEPS: WeakKeyDictionary[Program, tuple[PlannedStep | None, ...]] = WeakKeyDictionary()


def steps(program: Program) -> tuple[PlannedStep | None, ...]:
    """Return a step for each instruction, and None for regions."""
    table = _STEPS.get(program)
    if table is None:
        done = program.done_with if program.parent is None else ((),) * len(program.instructions)
        pairs = zip(program.instructions, done, strict=True)
        table = _STEPS[program] = tuple(
            None if instruction.region is not None else _step(instruction, slots)
            for instruction, slots in pairs
        )
    return table


def _step(instruction: Instruction, done: tuple[Slot, ...]) -> PlannedStep:
    call = instruction.call if _is_plain_call(instruction) else None
    takes = (
        _checked_getter(instruction)
        if instruction.broadcasts
        else _argument_getter(instruction.inputs)
    )
    return PlannedStep(
        instruction,
        call,
        instruction.several,
        takes,
        instruction.outputs[0] if instruction.outputs else ABSENT,
        done,
    )


def _is_plain_call(instruction: Instruction) -> bool:
    return (
        len(instruction.outputs) == 1
        and instruction.state is None
        and instruction.variable is None
        and not instruction.same_as
        and not instruction.checked
    )


def _argument_getter(slots: Sequence[Slot]) -> Callable[[list[Any]], Sequence[Any]]:
    if len(slots) > 1:
        return itemgetter(*slots)  # with several slots itemgetter returns a tuple
    return lambda values: [values[slot] for slot in slots]


def _checked_getter(instruction: Instruction) -> Callable[[list[Any]], Sequence[Any]]:
    get_arguments = _argument_getter(instruction.inputs)

    def get_checked(values: list[Any]) -> Sequence[Any]:
        arguments = get_arguments(values)
        check_broadcast(arguments)
        return arguments

    return get_checked
