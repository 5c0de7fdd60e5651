"""The worked example of README: an operation of one's own."""

import numpy as np

from loopscope.ops.declare import Attribute, Operation
from loopscope.ops.infer import same


def zero_out(values: np.ndarray, /, *, keep: int) -> np.ndarray:
    """Keeps the first elements and zeroes the rest."""
    flat = np.zeros(values.size, values.dtype)
    flat[:keep] = values.reshape(-1)[:keep]
    return flat.reshape(values.shape)


OPERATIONS = (
    Operation(
        name="ZeroOut",
        version=1,
        opsets=(1, 17),
        opset="extension",
        page="",
        kernel=zero_out,
        infer=same,
        attributes=(Attribute("keep", "int", default=1, least=0, doc="How many elements stay."),),
        input_docs={"values": "A tensor of any shape."},
    ),
)
