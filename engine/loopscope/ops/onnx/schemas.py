"""``Operation`` rows made from the schemas of the onnx package: what each declares, and which
kernel computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from onnx import AttributeProto, helper

from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ops.attribute_text import AttributeKind
from loopscope.ops.declare import REQUIRED, Attribute, Operation, Role
from loopscope.ops.onnx.casts import cast, cast_like
from loopscope.ops.onnx.derivatives import gradient_of
from loopscope.ops.onnx.direct import DIRECT, DRAWN
from loopscope.ops.onnx.losses import mean_of_what_counts
from loopscope.ops.onnx.machine_learning import DOMAIN as ML_DOMAIN
from loopscope.ops.onnx.machine_learning import MACHINE_LEARNING, TREE_MODELS
from loopscope.ops.onnx.machine_values import given, taken
from loopscope.ops.onnx.normalizing import batch_normalized, group_normalized
from loopscope.ops.onnx.older import Older, older
from loopscope.ops.onnx.output_types import ELEMENT_TYPES, TENSOR, output_types
from loopscope.ops.onnx.own import images_sampled, own
from loopscope.ops.onnx.reference import Kernel, Schema, implementation, prepared
from loopscope.ops.onnx.row import LAST

REGIONS = frozenset({"Loop", "If", "Scan", "SequenceMap"})
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
_FIRST_SCAN_WITHOUT_LENGTHS = 9
_MANY = 2**31 - 1

_KINDS: Mapping[int, AttributeKind] = {
    AttributeProto.INT: "int",
    AttributeProto.FLOAT: "float",
    AttributeProto.INTS: "ints",
    AttributeProto.FLOATS: "floats",
    AttributeProto.STRINGS: "strs",
}


def operation_of(schema: Schema) -> Operation | None:
    """The row of one version of an operation; None when nothing can compute it."""
    name, version = schema.name, int(schema.since_version)
    most = None if schema.max_input >= _MANY else int(schema.max_input)
    outputs = None if schema.max_output >= _MANY else int(schema.max_output)
    page = f"onnx_{schema.domain.replace('.', '')}_{name}"
    declared: dict[str, Any] = {
        "name": name,
        "version": version,
        "opsets": (version, LAST),
        "page": page,
        "outputs": outputs,
    }
    if not schema.domain and name in REGIONS:
        # What the bodies capture comes after the inputs of the schema.
        types = _types(schema)
        if name == "Scan" and version < _FIRST_SCAN_WITHOUT_LENGTHS:
            types = types[
                1:
            ]  # The reader moves the lengths of the sequences behind the other inputs.
        return Operation(
            **{**declared, "outputs": None},
            inputs=(0, None),
            types=(*types, ANY_TYPE),
            role=Role.REGION,
        )
    declared |= {"inputs": (int(schema.min_input), most), "attributes": tuple(_attributes(schema))}
    declared |= {
        "types": _types(schema),
        "alike": _alike(schema),
        "output_types": output_types(schema),
    }
    if not schema.domain:
        declared["gradient"] = gradient_of(name, version)
    declared["only_tensors"] = all(
        kind.startswith("tensor(")
        for one in (*schema.inputs, *schema.outputs)
        for kind in one.types
    )
    direct = DIRECT.get(name) if not schema.domain else None
    if direct is not None and direct.first <= version <= direct.last:
        one_of_any_form = None if direct.always_tensor else partial(_in_a_tuple, direct.kernel)
        return Operation(
            **declared,
            **direct.fields,
            kernel=_described(direct.kernel, schema),
            prepare=one_of_any_form,
        )
    if not schema.domain and name in DRAWN:
        return Operation(**declared, kernel=_described(DRAWN[name], schema), stateful=True)
    if schema.domain == ML_DOMAIN and name in TREE_MODELS:
        trees = partial(_prepare_trees, TREE_MODELS[name])
        return Operation(
            **declared, kernel=_described(partial(_call, trees), schema), prepare=trees
        )
    computed = _computed(schema.domain, name, version)
    if computed is not None:
        make = partial(_prepare_older, computed)
        return Operation(**declared, kernel=_described(partial(_call, make), schema), prepare=make)
    if not schema.domain and name in _CASTS:
        return Operation(
            **declared,
            kernel=_described(partial(_call, _CASTS[name]), schema),
            prepare=_CASTS[name],
        )
    computable = (
        implementation(schema.domain, name, version)
        or schema.has_function
        or schema.has_context_dependent_function
    )
    if not computable:
        return None
    if not schema.domain and name in _IN_PART:
        slow = partial(_prepare, schema, version, False)
        return Operation(
            **declared,
            kernel=_described(partial(_call, slow), schema),
            prepare=partial(_IN_PART[name], slow),
        )
    drawn = name in _RANDOM and (name != "Dropout" or version >= _FIRST_TRAINING_DROPOUT)
    make = partial(_prepare, schema, version, drawn)
    return Operation(
        **declared, kernel=_described(partial(_call, make), schema), prepare=make, stateful=drawn
    )


def _computed(domain: str, name: str, version: int) -> Older | None:
    """What computes an operation here from its arguments and attributes together."""
    if domain == ML_DOMAIN:
        return MACHINE_LEARNING.get(name)
    return None if domain else older(name, version) or own(name, version)


def _prepare_trees(
    make: Callable[..., Kernel], attributes: Mapping[str, Any], outputs: int
) -> Kernel:
    compute = make(
        {name: value for name, value in attributes.items() if value is not None}, outputs
    )
    return lambda data: tuple(given(one) for one in compute(data))


def _prepare_older(computed: Older, attributes: Mapping[str, Any], outputs: int) -> Kernel:
    present = {name: value for name, value in attributes.items() if value is not None}

    def compute(*values: Any) -> tuple[Any, ...]:
        made = computed([taken(value) for value in values], present, outputs)
        return tuple(given(one) for one in made[:outputs])

    return compute


_CASTS: Mapping[str, Callable[..., Kernel]] = {"Cast": cast, "CastLike": cast_like}
_IN_PART: Mapping[str, Any] = {
    "BatchNormalization": batch_normalized,
    "GroupNormalization": group_normalized,
    "GridSample": images_sampled,
    "NegativeLogLikelihoodLoss": mean_of_what_counts,
}
"""Operations of which a part is computed here; each is given what prepares the package's kernel
for the rest.
"""


def _in_a_tuple(kernel: Kernel, attributes: Mapping[str, Any], outputs: int) -> Kernel:
    return lambda *values: (kernel(*values),)


def _prepare(
    schema: Schema, version: int, drawn: bool, attributes: Mapping[str, Any], outputs: int
) -> Kernel:
    return prepared(schema, version, attributes, outputs, drawn=drawn)


def _call(make: Any, /, *arrays: Any, outputs: int = 1, **attributes: Any) -> Any:
    state = {"state": attributes.pop("state")} if "state" in attributes else {}
    return make(attributes, outputs)(*arrays, **state)


def _described(kernel: Kernel, schema: Schema) -> Kernel:
    """A kernel with the first sentence of ONNX's own words as its docstring."""
    described = partial(kernel)
    described.__doc__ = " ".join((schema.doc or "").split()).partition(". ")[0][:300]
    return described


def _attributes(schema: Schema) -> Iterable[Attribute]:
    for name, declared in schema.attributes.items():
        default: object = REQUIRED if declared.required else None
        if declared.default_value.type:
            default = helper.get_attribute_value(declared.default_value)
        yield Attribute(name, _KINDS.get(int(declared.type), "str"), _decoded(default))


def _types(schema: Schema) -> tuple[frozenset[ElementType], ...]:
    """The element types that each input may have; of a sequence or an optional, those of the
    tensors in it.
    """
    named = [TENSOR.findall(" ".join(one.types)) for one in schema.inputs]
    return tuple(
        frozenset(ELEMENT_TYPES[name] for name in names if name in ELEMENT_TYPES) or ANY_TYPE
        for names in named
    ) or (ANY_TYPE,)


def _alike(schema: Schema) -> tuple[str, ...]:
    """What ``Operation.alike`` says: a type that is written out, such as ``tensor(int64)``, is
    no name.
    """
    names = (
        one.type_str if one.is_homogeneous and "(" not in one.type_str else ""
        for one in schema.inputs
    )
    return tuple(names) if len(schema.inputs) else ()


def _decoded(default: object) -> object:
    if isinstance(default, list):
        return tuple(_decoded(one) for one in default)
    return default.decode() if isinstance(default, bytes) else default
