"""How coverage is counted, and how many draws of an explanation come from few passes over the rows.

    coverage = Coverage("pdp")
    coverage.add("adult", 1.0, "age", value=..., lower=..., upper=..., truth=..., noise=...)   # arrays of pairs
    coverage.part("what was run, and what the truth is")                                       # a Part of running.py

A pair is *held* if lower <= truth <= upper. Pairs of results that call themselves mostly noise are counted apart: they are
in no headline. *Overall*: the mean over columns, the least over data and epsilon. *Worst*: the worst column of all. *Width*:
mean half-width over that of an oracle, 1.96 root mean squared errors, mean over columns, median over data and epsilon. Only
columns with at least 200 pairs count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from bands_setup import BLOCK_ROWS, CHOSEN_ON, JUDGED_ON, Case
from local_setup import DELTA
from running import Part, Row
from vitrail.accounting import Cost
from vitrail.accounting.releases import Release
from vitrail.explain.recipe import Ask, Recipe, drive
from vitrail.explain.split import mu_of_units
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.results.verdict import Judgement, Verdict, judge_sizes
from vitrail.vault import PublicRows
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.questions.question import Question, SumPlan

LEAST_PAIRS = 200
EXACT_MU = 1e5
"""A price at which noise is too small to matter beside that of any question here."""
SEEN = {
    "ale": ("bike",),
    "shapley": ("bike",),
    "local_statistics": ("diabetes",),
    "local_moments": ("diabetes",),
    "local_cells": ("diabetes",),
    "local_cells_auto": ("diabetes",),
    "local_adaptive": ("acs", "bike", "diabetes"),
    "local_enhanced": ("acs", "bike", "diabetes"),
    "importance": ("diabetes",),
    "interactions": ("diabetes",),
    "shap_dependence": ("diabetes",),
    "any_curve": ("bike", "acs", "diabetes"),
    "reasons": ("acs", "bike", "diabetes"),
    "reasons_any": ("acs", "bike", "diabetes"),
}
"""Judged data that were looked at, now or before, while an explainer or its constants were chosen."""


LOCAL_CHANGES = (
    "the covariance without a prior and what other columns leave open, for COMPAS; the first was made wider by a quarter "
    "after diamonds (which held 95.7 % and 85.5 %)"
)
STREAM_CHANGES = "starts are no longer chosen, and steps the same at every price, for the protocol's own data"
EFFECT_CHANGES = (
    "where a clip may have taken something, for diamonds; noise of single values in the middle of curves, for light chains; "
    "bands wider by a twelfth, for Framingham"
)
PAIR_CHANGES = "what unlinked columns have in common, for light chains"
HIDDEN_CHANGES = "what noise hides of the difference to real rows, for computers"
LOOKED_AT = {
    "elsewhere": {
        "ale": "its clips, long before",
        "importance": "how much models remember (combined_scores), long before",
        "pdp": "how far a whole curve may be lifted, after it had failed there",
        "reasons": f"alike rows meet all points, after they had failed there; {HIDDEN_CHANGES} and for this",
        "reasons_any": "the noise of linked columns' tables, after they had failed there without it",
    },
    "unseen": {
        "local_statistics": LOCAL_CHANGES,
        "local_moments": LOCAL_CHANGES,
        "reasons": f"{PAIR_CHANGES}; the correction by real rows, with looks at diamonds; {HIDDEN_CHANGES}",
        "reasons_any": PAIR_CHANGES,
        "local_rows": f"{PAIR_CHANGES} and Bike",
        "local_enhanced": STREAM_CHANGES,
        "local_adaptive": STREAM_CHANGES,
        "ale": EFFECT_CHANGES,
    },
    "again": {
        "reasons": f"pairs of columns that noise hides, for insurance; {HIDDEN_CHANGES}",
        "reasons_any": "pairs of columns that noise hides, for insurance",
        "local_rows": "rows have weights for unlinked columns, for Bike and light chains; hidden pairs, for insurance",
    },
    "fresh": {"reasons": f"values are corrected by real rows, for loans and churn; {HIDDEN_CHANGES}"},
    "late": {"reasons": f"noise on what real rows say is smaller for small columns, for visits; {HIDDEN_CHANGES}"},
    "last": {"reasons": HIDDEN_CHANGES},
    "people": {"importance": "rows that are alike meet the same donors, for arrests"},
}
"""By the set of tables: for what an explainer was changed, or a constant chosen, after a look at one of them."""


def looked_at(tables: str, explainer: str) -> str:
    """Whether a set of tables outside the protocol judges an explainer."""
    what = LOOKED_AT.get(tables, {}).get(explainer)
    if what is None:
        return "nobody had looked at these data for this explainer"
    return f"measured again after a change: {what}"


def where_of(explainer: str) -> str:
    """On what constants were chosen, and what judges."""
    seen = SEEN.get(explainer, ())
    looks = ", ".join(("compas", "german", *seen))
    judges = ", ".join(name for name in JUDGED_ON if name not in seen)
    return f"constants were chosen on {', '.join(CHOSEN_ON)}, with looks at {looks}; judged on {judges or 'none of them'}"


# --- verdicts ------------------------------------------------------------------------------------------------------------


def judgements(values: np.ndarray, stds: np.ndarray) -> tuple[tuple[int, ...], list[Judgement]]:
    """The library's rule for the items of every result (last axis), and the shape of the other axes."""
    values, stds = np.broadcast_arrays(values, stds)
    flat = (numbers.reshape(-1, values.shape[-1]) for numbers in (values, stds))
    return values.shape[:-1], [judge_sizes(*result) for result in zip(*flat, strict=True)]


def mostly_noise(values: np.ndarray, stds: np.ndarray) -> np.ndarray:
    """Whether items shown together (last axis) are mostly noise."""
    shape, found = judgements(values, stds)
    return np.array([judged.verdict is Verdict.MOSTLY_NOISE for judged in found]).reshape(shape)


def clear(values: np.ndarray, stds: np.ndarray) -> np.ndarray:
    """Which items (last axis) are clear among those they are shown with."""
    _, found = judgements(values, stds)
    return np.array([[verdict is Verdict.CLEAR for verdict in judged.verdicts] for judged in found]).reshape(values.shape)


# --- coverage ------------------------------------------------------------------------------------------------------------


@dataclass
class _Counts:
    """Pairs of one column: held or not, half-widths and errors; those of mostly noise apart."""

    held: list[np.ndarray] = field(default_factory=list)
    half: list[np.ndarray] = field(default_factory=list)
    error: list[np.ndarray] = field(default_factory=list)
    noise: list[np.ndarray] = field(default_factory=list)


@dataclass
class Coverage:
    """Counts of one explainer by data, epsilon and column."""

    explainer: str
    least_pairs: int = LEAST_PAIRS
    _counts: dict[tuple[str, float, str], _Counts] = field(default_factory=lambda: defaultdict(_Counts))

    def add(
        self,
        data: str,
        epsilon: float,
        column: str,
        *,
        value: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        truth: np.ndarray,
        noise: np.ndarray | bool = False,
    ) -> None:
        """Pairs of a column, in arrays that go together; ``noise``: which belong to a result that is mostly noise."""
        value, lower, upper, truth = np.broadcast_arrays(*map(np.atleast_1d, (value, lower, upper, truth)))
        room = 1e-9 * (np.abs(value) + np.abs(truth))  # of rounding, where a band has no width
        counts = self._counts[data, epsilon, column]
        counts.held.append(((lower <= truth + room) & (truth <= upper + room)).ravel())
        counts.half.append(((upper - lower) / 2).ravel())
        counts.error.append((value - truth).ravel())
        counts.noise.append(np.broadcast_to(noise, value.shape).ravel())

    def rows(self) -> list[Row]:
        """One for every data, epsilon and column."""
        found: list[Row] = []
        for (data, epsilon, column), counts in self._counts.items():
            held, half, error, noise = map(np.concatenate, (counts.held, counts.half, counts.error, counts.noise))
            row: Row = {"data": data, "explainer": self.explainer, "epsilon": epsilon, "column": column}
            told = ~noise
            row |= {"coverage": None, "width": None, "pairs": int(told.sum()), "mostly_noise": float(noise.mean())}
            if told.any():
                row["coverage"] = float(held[told].mean())
                oracle = TWO_SIDED_95 * float(np.sqrt((error[told] ** 2).mean()))
                row["width"] = float(half[told].mean()) / oracle if oracle > 0 else None
            if noise.any():
                row["noise_coverage"] = float(held[noise].mean())
            found.append(row)
        return found

    def part(self, how: str) -> Part:
        """The finished part."""
        rows = self.rows()
        return Part(headline_of(self.explainer, rows, self.least_pairs), rows, f"{how}; {where_of(self.explainer)}")


def headline_of(explainer: str, rows: Sequence[Row], least_pairs: int = LEAST_PAIRS) -> dict[str, float | None]:
    """Overall, worst and width of an explainer's rows."""
    cells: dict[tuple[str, float], list[Row]] = defaultdict(list)
    for row in rows:
        if row["pairs"] >= least_pairs:
            cells[row["data"], row["epsilon"]].append(row)
    overall = [float(np.mean([row["coverage"] for row in cell])) for cell in cells.values()]
    widths = [[row["width"] for row in cell if row["width"] is not None] for cell in cells.values()]
    mean_widths = [float(np.mean(cell)) for cell in widths if cell]
    return {
        f"{explainer}_overall": min(overall, default=None),
        f"{explainer}_worst": min((row["coverage"] for cell in cells.values() for row in cell), default=None),
        f"{explainer}_width": float(np.median(mean_widths)) if mean_widths else None,
    }


def keys_of(explainer: str) -> tuple[str, ...]:
    return tuple(f"{explainer}_{what}" for what in ("overall", "worst", "width"))


# --- draws ---------------------------------------------------------------------------------------------------------------


def nobody(case: Case) -> PublicRows:
    """No rows under the case's public facts: what is asked of it is the noise of a plan, by its own law."""
    vault = case.vault
    empty = {name: [] for name in vault.schema}
    return PublicRows(empty, vault.schema, len(case.rows), vault.target, block_rows=8, watches=False)


class Redrawn:
    """Runs a recipe of one question many times: exact sums once (of a GroupedSum: of one deal), noise anew every time.

    Attributes
    ----------
    exact : array
        The flat sums without noise, once the recipe ran.
    question : Question
        The last that was asked.
    """

    def __init__(self, case: Case, mu: float) -> None:
        self._mu, self._case = mu, case
        self._generator = np.random.default_rng()
        self._release: Release | None = None
        self.exact: np.ndarray | None = None
        self.question: Question | None = None

    def run(self, recipe: Recipe) -> object:
        """The finished result of one draw."""
        return drive(recipe, Cost.of_mu(self._mu).pico_mu_squared, self._answer)

    def _answer(self, ask: Ask, units: int, step: int) -> Release:
        assert step == 0, "a recipe of one question only: later ones would follow from the noise of the first"
        question, case = ask.question, self._case
        self.question = question
        if self.exact is None:
            self.exact = case.public_rows().draws(question, mu=EXACT_MU, draws=1)[0]
        if self._release is None:  # of nobody: price and promise are those of the question
            self._release = nobody(case).ask(question, mu=mu_of_units(units), delta=DELTA)
            facts = PublicFacts(case.vault.schema, case.vault.target, len(case.rows), "add-remove", BLOCK_ROWS)
            self._plan = question.plan(mu_of_units(units), facts)
            assert isinstance(self._plan, SumPlan)
        answer = self._plan.shape(self.exact + self._plan.stds * self._generator.normal(size=self.exact.shape))
        return replace(self._release, value=answer.value, parts=MappingProxyType(answer.parts))


def noise_of(case: Case, question: Question, mu: float, draws: int) -> tuple[np.ndarray, float]:
    """(draws, width) of a question's noise alone, by its plan's own law; and its standard deviation."""
    sigma = case.vault.quote(question, mu=mu).sigma
    assert sigma is not None
    return nobody(case).draws(question, mu=mu, draws=draws), sigma
