"""Curves of columns with few levels, with Laplace noise: many draws from few passes over the rows.

The recipe is the library's own. What it asks is answered from draws of the vault's rehearsal, made once for each question:
the histograms and the sum of partial dependence are the same question every time, and the sum of accumulated effects is one
for each clip.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import vitrail as vt
from global_setup import DELTA, Case, mise, typical
from vitrail.accounting.releases import Release
from vitrail.explain.laplace_effects import is_better
from vitrail.explain.recipe import Ask, drive
from vitrail.explain.split import EPSILON, price_of_units
from vitrail.vault import LaplaceSum, PublicRows

BLOCK_ROWS = 4096
Row = dict[str, object]
EXPLAINERS = {"pdp": vt.PartialDependence, "ale": vt.AccumulatedEffects}


def few_levels(case: Case) -> tuple[str, ...]:
    """The columns for which the library says that Laplace noise is the better one."""
    return tuple(name for name in case.names if is_better(case.schema[name]))


class Pool:
    """Answers of the vault's mechanisms on a case's rows: every question's draws are made at once and handed out in turn."""

    def __init__(self, case: Case, draws: int) -> None:
        self.draws, self._made, self._next = draws, dict[object, list[Release]](), dict[object, int]()
        self._rows = PublicRows(
            case.given.data.frame, case.schema, case.m, None, neighbours="replace-one", block_rows=BLOCK_ROWS
        )

    def answer(self, ask: Ask, units: int, step: int) -> Release:
        question = ask.question
        assert isinstance(question, LaplaceSum)
        key = (step, question.size, question.bound, getattr(question.fn, "clips", ()), units)
        if key not in self._made:
            price = price_of_units(question, units)
            one = self._rows.ask(question, mu=price, delta=DELTA)
            flats = self._rows.draws(question, mu=price, draws=self.draws)
            self._made[key] = [_with(one, flat) for flat in flats]
        self._next[key] = self._next.get(key, -1) + 1
        return self._made[key][self._next[key] % self.draws]


def _with(release: Release, flat: np.ndarray) -> Release:
    return Release(flat, release.sigma, release.cost, release.guarantee, release.question, release.dataset)


def curves(case: Case, kind: str, name: str, epsilon: float, draws: int) -> Iterator[np.ndarray]:
    """Independent releases of one column's curve, levels in the order of the schema."""
    pool = Pool(case, draws)
    talk = EXPLAINERS[kind](case.private, case.model, columns=[name], noise="laplace").conversation()
    for _ in range(draws):
        yield np.asarray(drive(talk.begun(talk.terms(epsilon)), EPSILON.units(epsilon), pool.answer)[name].y)


def errors(case: Case, kind: str, name: str, epsilon: float) -> Row:
    """MISE of one column's curve, against the library's own convention, clipped and not."""
    draws = case.scale.marginal_draws * case.scale.noise_draws
    found = np.stack(list(curves(case, kind, name, epsilon, draws)))
    return {
        "ours": typical(mise(found, case.truth(kind, name, "ours", clip=False))),
        "ours_clipped_truth": typical(mise(found, case.truth(kind, name, "ours", clip=True))),
    }
