"""What people type where a place is asked for: any form of an address, also alone in place of an
expression.
"""

from __future__ import annotations

from loopscope.debug import names_in
from loopscope.errors import ExpressionError
from loopscope.ir import Model, addresses_ending, full_address


def place(model: Model, text: str) -> str:
    """The exact address that a text means; the text itself where no node has such an end.
    ``AddressError`` when several have.
    """
    return full_address(model, text) if text.strip() else text


def expression(model: Model, text: str) -> str:
    """An expression as its language wants it: an address that stands alone gets backticks.

    ``a/b`` stays a quotient where the model has nodes of both names.
    """
    text = text.strip()
    if "`" in text or not addresses_ending(model, text) or _is_of_names(model, text):
        return text
    return f"`{text}`"


def _is_of_names(model: Model, text: str) -> bool:
    try:
        return all(addresses_ending(model, name) for name in names_in(text))
    except ExpressionError:
        return False
