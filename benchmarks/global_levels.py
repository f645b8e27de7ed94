"""Curves with Laplace noise, where the library takes that by itself: its own recipe, many times.

What it asks about levels is answered from draws of the vault's rehearsal, made once for each question: the histograms and
the sum of partial dependence are the same question every time, and the sum of accumulated effects is one for each clip.
About numbers every question depends on the answers before it: each draw there is a conversation of its own, and there are
ten, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import vitrail as vt
from global_setup import DELTA, Case, mise, typical
from vitrail.accounting.releases import Release
from vitrail.explain.recipe import Ask, drive
from vitrail.explain.split import EPSILON, price_of_units
from vitrail.vault import LaplaceSum, PublicRows

BLOCK_ROWS = 4096
Row = dict[str, object]
LEVELS_TIMES, NUMBERS_LESS = 4, 5
"""How many times more draws there are of curves over levels, and how many times fewer over numbers, than of others."""
EXPLAINERS = {"pdp": vt.PartialDependence, "ale": vt.AccumulatedEffects}


def explainer(case: Case, kind: str, name: str) -> vt.PartialDependence | vt.AccumulatedEffects:
    """What a user gets who asks for one column and says no more."""
    found = EXPLAINERS[kind](case.private, case.model, columns=[name])
    assert isinstance(found, vt.PartialDependence | vt.AccumulatedEffects)
    return found


def with_laplace(case: Case, kind: str, name: str) -> bool:
    """Whether the library takes Laplace noise for it."""
    return explainer(case, kind, name).noise == "laplace"


class Pool:
    """Answers of the vault's mechanisms on a case's rows: every question's draws are made at once and handed out in turn."""

    def __init__(self, case: Case, draws: int, *, again: bool) -> None:
        self._again, self.draws, self._made, self._next = again, draws, dict[object, list[Release]](), dict[object, int]()
        self._rows = PublicRows(
            case.given.data.frame, case.schema, case.m, None, neighbours="replace-one", block_rows=BLOCK_ROWS
        )

    def answer(self, ask: Ask, units: int, step: int) -> Release:
        question = ask.question
        assert isinstance(question, LaplaceSum)
        if not self._again:
            return self._rows.ask(question, mu=price_of_units(question, units), delta=DELTA)
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
    """Independent releases of one column's curve on the axis of the case, levels in the order of the schema."""
    pool = Pool(case, draws, again=case.categorical(name))
    talk = explainer(case, kind, name).conversation()
    for _ in range(draws):
        curve = drive(talk.begun(talk.terms(epsilon)), EPSILON.units(epsilon), pool.answer)[name]
        found = np.asarray(curve.y)
        yield found if case.categorical(name) else np.interp(case.axis(name), np.asarray(curve.x, dtype=np.float64), found)


def errors(case: Case, kind: str, name: str, epsilon: float) -> Row:
    """MISE of one column's curve, against the library's own convention, clipped and not, and the published one."""
    every = case.scale.marginal_draws * case.scale.noise_draws
    draws = LEVELS_TIMES * every if case.categorical(name) else every // NUMBERS_LESS
    found = np.stack(list(curves(case, kind, name, epsilon, max(draws, 1))))
    return {
        "ours": typical(mise(found, case.truth(kind, name, "ours", clip=False))),
        "ours_clipped_truth": typical(mise(found, case.truth(kind, name, "ours", clip=True))),
        "ours_published_truth": typical(mise(found, case.truth(kind, name, "published", clip=False))),
        "noise": "laplace",
    }
