"""A sentence about what separates the runs above a threshold from the rest."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st

from loopscope.errors import EngineError
from loopscope.sweeps import features_of, numbers, separation
from loopscope_app.describe.sweep_columns import in_words
from loopscope_app.parts.widgets import markup
from loopscope_app.state.background_sweep import Sweeping
from loopscope_app.state.user_session import UserSession

_USUAL_SHARE = 0.9
"""Share of the runs at or below the threshold that is proposed."""
_sentences: WeakKeyDictionary[Sweeping, dict[tuple[str, float], str]] = WeakKeyDictionary()
"""Sentences by column and threshold, for each sweep."""


def show(session: UserSession, sweeping: Sweeping, column: str) -> None:
    """Show the threshold and the sentence for ``column``, the count that the pictures show."""
    values = numbers(sweeping.rows, column)
    values = values[np.isfinite(values)]
    if not len(values) or values.min() == values.max():
        return
    usual = int(min(np.quantile(values, _USUAL_SHARE), values.max() - 1))
    markup.show(markup.section("What separates the runs"))
    field, sentence_column = st.columns([1.2, 7], vertical_alignment="center", gap="small")
    key = f"many_more_than_{session.many.generation}_{column}"
    bound = field.number_input(
        "More than", min_value=0, value=max(0, usual), step=1, key=key, label_visibility="visible"
    )
    with sentence_column:
        markup.show(markup.sentence(_sentence(sweeping, column, float(bound))))


def _sentence(sweeping: Sweeping, column: str, bound: float) -> str:
    sentences = _sentences.setdefault(sweeping, {})
    if (column, bound) not in sentences:
        try:
            features = features_of(sweeping.model, sweeping.samples, sweeping.rows)
            sentences[column, bound] = in_words(
                separation(sweeping.rows, column, bound, features).sentence, sweeping.rows
            )
        except EngineError as error:
            return str(error)
    return sentences[column, bound]
