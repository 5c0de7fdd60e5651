"""Port maps and back edges for the bodies of Loop, If, Scan, SequenceMap and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from onnx import AttributeProto

from loopscope.ir.model import BackEdge, InputMap, LayerId, OutputMap


class Bound(Struct, frozen=True):
    """The port map of one body."""

    inputs: tuple[InputMap, ...] = ()
    outputs: tuple[OutputMap, ...] = ()
    back_edges: tuple[BackEdge, ...] = ()


def bound(
    kind: str,
    attributes: Mapping[str, AttributeProto],
    inputs: int,
    parameters: Sequence[LayerId],
    results: Sequence[LayerId],
) -> Bound:
    """Return the port map of a body in a node with ``inputs`` inputs.

    ``parameters`` and ``results`` do not include captures. ``ValueError`` if a Scan's attributes
    contradict its inputs.
    """
    match kind:
        case "Loop":
            return _loop(parameters, results)
        case "Scan":
            return _scan(attributes, inputs, parameters, results)
        case "SequenceMap":
            entries = tuple(
                InputMap(number, layer, axis=0) for number, layer in enumerate(parameters)
            )
            return Bound(
                entries,
                tuple(
                    OutputMap(number, layer, axis=0, stacked=True)
                    for number, layer in enumerate(results)
                ),
            )
        case "If":
            return Bound((), _plain_outputs(results))
        case _:
            return Bound(
                tuple(InputMap(number, layer) for number, layer in enumerate(parameters)),
                _plain_outputs(results),
            )


def _plain_outputs(results: Sequence[LayerId]) -> tuple[OutputMap, ...]:
    return tuple(OutputMap(number, layer) for number, layer in enumerate(results))


def _loop(parameters: Sequence[LayerId], results: Sequence[LayerId]) -> Bound:
    """Bind a Loop's body.

    Body inputs: iteration number, condition, carried values. Body outputs: condition, carried
    values, scan outputs.
    """
    inputs = [InputMap(number, layer) for number, layer in enumerate(parameters)]
    if parameters:
        inputs[0] = InputMap(-1, parameters[0], purpose="current_iteration")
    carried = max(len(parameters) - 2, 0)
    condition = [OutputMap(-1, layer, purpose="execution_condition") for layer in results[:1]]
    values = [
        OutputMap(number, layer)
        if number < carried
        else OutputMap(number, layer, axis=0, stacked=True)
        for number, layer in enumerate(results[1:])
    ]
    back_edges = [
        BackEdge(result, parameter)
        for parameter, result in zip(parameters[1:], results, strict=False)
    ]
    return Bound(tuple(inputs), (*condition, *values), tuple(back_edges))


def _scan(
    attributes: Mapping[str, AttributeProto],
    inputs: int,
    parameters: Sequence[LayerId],
    results: Sequence[LayerId],
) -> Bound:
    """Bind a Scan's body: state variables, then scan inputs and outputs, each with axis and
    direction.
    """
    scans = int(attributes["num_scan_inputs"].i) if "num_scan_inputs" in attributes else 0
    states = inputs - scans
    if scans < 1 or states < 0:
        raise ValueError(f"num_scan_inputs is {scans}, and there are {inputs} inputs")
    axes, backwards, output_axes, output_backwards = (
        list(attributes[name].ints) if name in attributes else []
        for name in (
            "scan_input_axes",
            "scan_input_directions",
            "scan_output_axes",
            "scan_output_directions",
        )
    )
    entries = [InputMap(number, layer) for number, layer in enumerate(parameters[:states])]
    for number, layer in enumerate(parameters[states:]):
        entries.append(
            InputMap(
                states + number,
                layer,
                axis=_value_or_zero(axes, number),
                stride=-1 if _value_or_zero(backwards, number) else 1,
            )
        )
    outputs = [OutputMap(number, layer) for number, layer in enumerate(results[:states])]
    for number, layer in enumerate(results[states:]):
        axis = _value_or_zero(output_axes, number)
        stride = -1 if _value_or_zero(output_backwards, number) else 1
        outputs.append(OutputMap(states + number, layer, axis=axis, stride=stride, stacked=True))
    back_edges = tuple(
        BackEdge(result, parameter)
        for parameter, result in zip(parameters[:states], results, strict=False)
    )
    return Bound(tuple(entries), tuple(outputs), back_edges)


def _value_or_zero(values: Sequence[int], number: int) -> int:
    return values[number] if number < len(values) else 0
