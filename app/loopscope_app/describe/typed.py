"""Places that users type: any form of an address, also alone instead of an expression."""

from __future__ import annotations

from loopscope.debug import names_in
from loopscope.errors import ExpressionError
from loopscope.ir import Model, addresses_ending, full_address


def place(model: Model, text: str) -> str:
    """Return the exact address that a text means, or the text itself if no node has such an end.

    Raise ``AddressError`` if several nodes have.
    """
    return full_address(model, text) if text.strip() else text


def expression(model: Model, text: str) -> str:
    """Return an expression in the expression language: a single address gets backticks.

    ``a/b`` remains a quotient if the model has nodes of both names.
    """
    text = text.strip()
    if "`" in text or not addresses_ending(model, text) or _names_exist(model, text):
        return text
    return f"`{text}`"


def _names_exist(model: Model, text: str) -> bool:
    try:
        return all(addresses_ending(model, name) for name in names_in(text))
    except ExpressionError:
        return False
