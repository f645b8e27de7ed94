"""Explanations from a sample of the rows (``sampling_rate=``): what it saves, and which explainers take it.

Each row (or person) is in the sample of a question with probability q, by a coin of its own, and the answer is divided by q,
noise and all: less time, more noise, the same price (``vault.rows.sampling``). What the choice of the rows adds is in the
bands (``solve.sampling``). An explainer whose bands could not know it refuses to look at a sample.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from .. import _checks
from ..errors import InvalidInput

if TYPE_CHECKING:
    from ..vault import Question

Q = TypeVar("Q", bound="Question")


def sampled_question(question: Q, rate: float) -> Q:
    """The same question about a sample of the rows; one that has a smaller rate already keeps it."""
    own = getattr(question, "rate", None)
    if rate == 1 or (own is not None and own <= rate):
        return question
    return replace(question, rate=rate)  # type: ignore[type-var]  # questions are dataclasses


def checked_rate(given: float) -> float:
    """A sampling rate in (0, 1]."""
    return _checks.fraction("sampling_rate", given)


def all_rows(given: float, explainer: str, why: str) -> float:
    """The rate of an explainer that looks at all rows: 1, or an error that says why."""
    if (rate := checked_rate(given)) < 1:
        raise InvalidInput(f"sampling_rate is {rate:g}, and {explainer} looks at all rows: {why}. Leave sampling_rate out")
    return rate
