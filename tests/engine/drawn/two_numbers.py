"""Models of two f32 numbers, drawn choice by choice, so that one that fails is made smaller:
arithmetic, loops and branches, three deep.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

import loopscope
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Port
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, branch, loop

OPERATIONS = ["Add", "Subtract", "Multiply", "Maximum"]


@dataclass
class Drawn(Draft):
    """A graph, and the two values that it gives."""

    outputs: tuple[Ref, ...] = ()


@st.composite
def bodies(draw: st.DrawFn, depth: int = 0) -> Drawn:
    """A graph with two f32 Parameters and Results, some arithmetic, perhaps a loop or an If
    inside. Layer 0 and 1 are its Parameters.
    """
    draft = Drawn()
    values = [draft.parameter("p", F32, ()), draft.parameter("q", F32, ())]
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(
            st.sampled_from(
                ["op", "op", "constant", "vector", "loop", "if"]
                if depth < 2
                else ["op", "constant", "vector"]
            )
        )
        pick = st.sampled_from(values)
        one, other = draw(pick), draw(pick)
        if kind == "op":
            values.append(draft.op(draw(st.sampled_from(OPERATIONS)), one, other))
        elif kind == "constant":
            numbers = st.sampled_from([-1.0, 0.25, 2.0])
            values.append(
                declared(
                    draft,
                    draw(st.sampled_from(OPERATIONS)),
                    draft.const(draw(numbers)),
                    draft.const(draw(numbers)),
                    F32,
                )
            )
        elif kind == "vector":
            wide = draft.op("Multiply", one, draft.const([0.5, -0.25, 1.0]))
            values.append(draft.op("ReduceSum", wide, draft.const([0], I64), keep_dims="false"))
        elif kind == "loop":
            values.append(add_loop(draw, draft, draw(bodies(depth + 1)), one, other))
        else:
            values.append(
                add_if(draw, draft, draw(bodies(depth + 1)), draw(bodies(depth + 1)), one, other)
            )
    draft.outputs = (values[-1], draw(st.sampled_from(values)))
    return draft


def declared(draft: Draft, type: str, one: Ref, other: Ref, element_type: ElementType) -> Ref:
    """An operation with the type and shape of its output: what it makes of constants can be
    kept.
    """
    made = draft.op(type, one, other)
    draft.nodes[made.layer] = replace(
        draft.nodes[made.layer], outputs=(Port(2, element_type, PartialShape.of(())),)
    )
    return made


def add_loop(draw: st.DrawFn, outer: Draft, body: Drawn, one: Ref, other: Ref) -> Ref:
    first, second = body.outputs
    # Values stay bounded, so that runs on different paths do not only compare infinities.
    small = body.op("Clamp", first, min="-2", max="2")
    again = body.result(
        body.op("Less", small, body.const(draw(st.sampled_from([-1.0, 0.5, 1.5, 9.0]))))
    )
    out, kept = body.result(small), body.result(second)
    trip = outer.const(draw(st.integers(0, 6)), I64)
    start = outer.const(draw(st.sampled_from([True, True, True, False])), BOOL)
    swapped = draw(st.booleans())
    carried = [(one, Ref(0), kept if swapped else out)]
    invariants = [(other, Ref(1))]
    made = loop(
        outer,
        body,
        trip,
        start,
        again=again,
        carried=carried,
        invariants=invariants,
        last=[out, kept],
        joined=[(out, {})],
    )
    total = outer.op("ReduceSum", Ref(made.layer, 2), outer.const([0], I64), keep_dims="false")
    return outer.op(
        "Add",
        outer.op("Clamp", made, min="-3", max="3"),
        outer.op("Clamp", total, min="-3", max="3"),
    )


def add_if(
    draw: st.DrawFn, outer: Draft, then: Drawn, otherwise: Drawn, one: Ref, other: Ref
) -> Ref:
    bound = outer.const(draw(st.sampled_from([-0.5, 0.0, 0.5])))
    condition = declared(
        outer, "Greater", draw(st.sampled_from([one, one, outer.const(0.25)])), bound, BOOL
    )
    results = [draft.result(draft.outputs[0]) for draft in (then, otherwise)]
    fed = [(1, Ref(0)), (2, Ref(1))]
    made = outer.region(
        "If",
        [condition, one, other],
        [branch("then", then, fed, results[:1]), branch("else", otherwise, fed, results[1:])],
        1,
        opset=8,
    )
    return outer.op("Clamp", made, min="-3", max="3")


def whole(draft: Drawn) -> loopscope.Model:
    for ref in draft.outputs:
        draft.result(ref)
    return draft.model()
