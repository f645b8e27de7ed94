"""Coverage of the local linear explanations that bands_local.py leaves out.

Descents, streams of points, cells, private rows, the paper's form without an intercept.

A truth is what the same explainer, with its public settings, finds from the same rows without noise. Cells are taken as
they were chosen: the line they stand for is nearly the same. How far the truth is from ridge regression on the same rows,
which ``method="statistics"`` is about, stands beside the coverage as ``left_out_*``, the same in all columns.

Gradients and weighted means of a point are linear in its exact statistics (exact.py), so a descent is answered from those,
with noise of every plan's own law: no pass over the rows. Once per case the sums are compared with the vault's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np

import exact
import vitrail as vt
from bands_local import BLOCK_ROWS, MODELS, MOST_COORDINATES, coordinates, true_values
from bands_others import add_attribution, coverage_of
from bands_setup import Bench, Case
from bands_tools import EXACT_MU, Coverage, Redrawn, nobody
from local_setup import DELTA
from running import Part, Row
from vitrail.accounting import Cost, mu_of
from vitrail.accounting.releases import Release
from vitrail.explain.linear import descent
from vitrail.explain.linear.local_linear import statistics_question
from vitrail.explain.recipe import Ask, Recipe, drive
from vitrail.explain.split import mu_of_units
from vitrail.solve.linear.descent import INTERCEPT_UNIT, Gradients, History
from vitrail.solve.linear.labelled_rows import RowsExplainer, explain_on
from vitrail.solve.linear.problem import LocalProblem, by_column
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.questions.question import Question

POINTS, DRAWS = 20, 20
BALL_DRAWS, RELEASES = 10, 12
"""Bands in a ball take 59 solutions each; a release of private rows takes seconds."""
COPIES_OF = 200_000
"""So many rows, real ones again and again, stand for private rows that were sampled."""
CHECKED = 1e-6
R = TypeVar("R")


# --- exact sums and their noise ------------------------------------------------------------------------------------------


class Answered:
    """Runs recipes of any number of questions on exact sums that are known, with noise of each plan's own law or without.

    ``sums`` gives the flat exact sums of a question. Price and promise of releases are not what they would be.
    """

    def __init__(self, case: Case, mu: float, sums: Callable[[Question], np.ndarray], *, noisy: bool = True) -> None:
        self._case, self._mu, self._sums, self._noisy = case, mu, sums, noisy
        self._generator = np.random.default_rng()
        self._release: Release | None = None
        vault = case.vault
        self._facts = PublicFacts(vault.schema, vault.target, len(case.rows), "add-remove", BLOCK_ROWS)

    def run(self, recipe: Recipe[R]) -> R:
        """The finished result of one draw."""
        return drive(recipe, Cost.of_mu(self._mu).pico_mu_squared, self._answer)

    def _answer(self, ask: Ask, units: int, step: int) -> Release:
        question, sums = ask.question, self._sums(ask.question)
        if self._release is None:
            self._release = nobody(self._case).ask(question, mu=mu_of_units(units), delta=DELTA)
        plan = question.plan(mu_of_units(units), self._facts)
        flat = sums + plan.stds * self._generator.normal(size=sums.shape) if self._noisy else np.array(sums)
        answer = plan.shape(flat)
        return replace(self._release, value=answer.value, parts=MappingProxyType(answer.parts), sigma=plan.sigma)


@dataclass(frozen=True)
class Local:
    """Points of a case, and exact statistics (A, b) of u = (1, x - z) per row, or of u = x - z without an intercept."""

    case: Case
    problem: LocalProblem
    raw: np.ndarray
    a: np.ndarray = field(repr=False)
    b: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, bench: Bench, case: Case, problem: LocalProblem, raw: np.ndarray) -> Local:
        """Computed once and kept in the cache."""

        def make() -> dict[str, np.ndarray]:
            x, f, affine = problem.encode(case.rows), problem.at(case.rows), problem.intercept
            ((a, b),) = exact.statistics(x, f, problem.encode(raw), [problem.weight], affine=affine, block_rows=BLOCK_ROWS)
            return {"a": a, "b": b}

        form = "affine" if problem.intercept else "centred"
        kept = bench.cache.arrays(f"bands-linear-{case.name}-{form}-{len(case.rows)}-{len(raw)}", make)
        return cls(case, problem, raw, kept["a"], kept["b"])

    @property
    def half(self) -> float:
        """Of the model's range: f is in units of it."""
        return self.problem.model.width / 2

    @property
    def means(self) -> np.ndarray:
        """Weighted means of x - z, (points, n_features)."""
        return self.a[:, 0, 1:] / self.a[:, 0, :1]

    def values(self, slopes: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Contributions by column, in units of the output."""
        return self.half * by_column(self.problem.schema, -slopes * means)

    def ridge(self) -> np.ndarray:
        """What ``method="statistics"`` is about."""
        return self.half * true_values(self.problem, self.raw, self.a, self.b)

    def gradient(self, point: int, phi: np.ndarray) -> np.ndarray:
        """Of the mean loss."""
        return 2 * (self.a[point] @ phi - self.b[point])

    def sums(self, question: Question) -> np.ndarray:
        """Of gradients, or of weights and weighted x - z."""
        rows = vars(question)["fn"]
        if not isinstance(rows, descent.GradientRows):
            point = self._point(inspect.getclosurevars(rows).nonlocals["centres"])
            weight, *of_x = self.a[point, 0]
            return len(self.case.rows) * np.array([weight, self.b[point, 0], *of_x])
        point = self._point(rows.centres)
        found = len(self.case.rows) * self.gradient(point, rows.phi[0])
        if self.problem.intercept:
            found[0] *= INTERCEPT_UNIT
        return found

    def _point(self, centres: np.ndarray) -> int:
        (centre,) = centres
        return int(np.flatnonzero((self.problem.encode(self.raw) == centre).all(axis=1))[0])

    def check(self, gradients: Gradients) -> None:
        """Compare with the vault's own sums, at a price at which noise is nothing."""
        centres = self.problem.encode(self.raw[:1])
        phi = gradients.project(np.random.default_rng(0).normal(size=(1, self.problem.size)) / 2)
        asked = [descent.gradient_question(gradients, centres, phi)]
        asked += [descent.means_question(gradients, centres)] if self.problem.intercept else []
        for question in asked:
            mine = self.sums(question)
            vaults = self.case.public_rows().draws(question, mu=EXACT_MU, draws=1)[0]
            assert np.abs(mine - vaults).max() <= CHECKED * len(self.case.rows), f"{self.case.name}: sums differ"


def local_of(bench: Bench, name: str, **options: object) -> tuple[vt.LocalLinear, Local]:
    """The explainer of a case, and the points that it explains."""
    case = bench.case(name)
    explainer = vt.LocalLinear(case.vault, case.model, **options)
    return explainer, Local.of(bench, case, explainer.problem, case.people[: 4 if bench.quick else POINTS])


def left_out(explainer: str, data: str, epsilon: float | None, found: np.ndarray, ridge: np.ndarray) -> Row:
    """How far values without noise (points, columns) are from those of ridge regression."""
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(ridge, axis=1)
    return {
        "data": data, "explainer": explainer, "epsilon": epsilon,
        "left_out_ratio": float((np.abs(found).sum(axis=1) / np.abs(ridge).sum(axis=1)).mean()),
        "left_out_cosine": float(((found * ridge).sum(axis=1) / np.maximum(lengths, 1e-300)).mean()),
        "left_out_rms": float(np.sqrt(np.square(found - ridge).mean())),
    }  # fmt: skip


def with_rows(part: Part, sizes: list[Row], *others: Coverage) -> Part:
    """The part with sizes in every row of the same explainer, data and price (None: all), and the rows of other truths."""

    def sized(row: Row) -> Row:
        found = dict(row)
        for size in sizes:
            if all(size[key] in (None, row[key]) for key in ("data", "explainer", "epsilon")):
                found |= {key: value for key, value in size.items() if key not in row}
        return found

    return replace(part, rows=[*map(sized, part.rows), *(row for other in others for row in other.rows())])


# --- descents ------------------------------------------------------------------------------------------------------------


def local_descent(bench: Bench) -> Part:
    """``method="descent"``, one point per question."""
    coverage, sizes = coverage_of(bench, "local_descent"), list[Row]()
    for name in bench.data:
        explainer, local = local_of(bench, name, method="descent")
        local.check(Gradients(local.problem))
        case, ridge = local.case, local.ridge()
        for epsilon in bench.epsilons:
            mu, truths = mu_of(epsilon, DELTA), []
            silent, side = Answered(case, mu, local.sums, noisy=False), Answered(case, mu, local.sums)
            for index in range(len(local.raw)):
                conversation = explainer.conversation(case.schema.pandas(local.raw[index : index + 1]))
                truths.append(silent.run(conversation.recipe(case.terms(mu))).values)
                for _ in range(2 if bench.quick else DRAWS):
                    found = side.run(conversation.recipe(case.terms(mu)))
                    add_attribution(coverage, name, epsilon, found, truths[-1])
            sizes.append(left_out("local_descent", name, epsilon, np.concatenate(truths), ridge))
    how = (
        f"vt.LocalLinear, descent, stable weight: {POINTS} points, each from gradients of its own, {DRAWS} draws; truth: "
        f"the same steps with exact gradients and exact means; left_out_*: how far that is from ridge regression; {MODELS}"
    )
    return with_rows(coverage.part(how), sizes)


def _stream(bench: Bench, part: str, *, enhanced: bool) -> Part:
    coverage, sizes = coverage_of(bench, part), list[Row]()
    for name in bench.data:
        options = vt.linear.Adaptive(enhanced=enhanced, history=History(local_of(bench, name)[0].problem))
        explainer, local = local_of(bench, name, method=options)
        case, ridge = local.case, local.ridge()
        conversation = explainer.conversation(case.schema.pandas(local.raw))
        for epsilon in bench.epsilons:
            mu = mu_of(epsilon, DELTA) * np.sqrt(len(local.raw))
            silent, side = Answered(case, mu, local.sums, noisy=False), Answered(case, mu, local.sums)
            truth = silent.run(conversation.recipe(case.terms(mu))).values
            sizes.append(left_out(part, name, epsilon, truth, ridge))
            for _ in range(2 if bench.quick else DRAWS):
                found = side.run(conversation.recipe(case.terms(mu)))
                add_attribution(coverage, name, epsilon, found, truth)
    how = (
        f"vt.LocalLinear, {options.name}, stable weight: {DRAWS} streams of {POINTS} points from an empty history, every "
        f"point at the price named; truth: the stream without noise; left_out_*: how far the truth is from ridge "
        f"regression; {MODELS}"
    )
    return with_rows(coverage.part(how), sizes)


def local_adaptive(bench: Bench) -> Part:
    """``method="adaptive"``, a stream from an empty history."""
    return _stream(bench, "local_adaptive", enhanced=False)


def local_enhanced(bench: Bench) -> Part:
    """``method="enhanced"``, the same."""
    return _stream(bench, "local_enhanced", enhanced=True)


# --- cells ---------------------------------------------------------------------------------------------------------------


class CellSums:
    """Exact sums of surveys and moments, made once for every set of columns that rows are cut by."""

    def __init__(self, case: Case) -> None:
        self._case, self._known = case, dict[object, np.ndarray]()

    def __call__(self, question: Question) -> np.ndarray:
        partition = getattr(vars(question)["fn"], "_cells", None)  # a survey has none
        cut = None if partition is None else partition.columns
        if cut not in self._known:
            self._known[cut] = self._case.public_rows().draws(question, mu=EXACT_MU, draws=1)[0]
        return self._known[cut]


def _cells(bench: Bench, part: str, kind_of: Callable[[str], vt.linear.Cells], what: str) -> Part:
    coverage, sizes, skipped = coverage_of(bench, part), list[Row](), []
    for name in bench.data:
        explainer, local = local_of(bench, name)
        case = local.case
        if coordinates(case.schema) > MOST_COORDINATES:
            skipped.append(name)
            continue
        points, ridge, sums = case.schema.pandas(local.raw), local.ridge(), CellSums(case)
        conversation, truths = explainer.fitting(kind_of(name)).conversation(), dict[tuple[str, ...], np.ndarray]()
        for epsilon in bench.epsilons:
            side, seen = Answered(case, mu_of(epsilon, DELTA), sums), []
            for _ in range(2 if bench.quick else DRAWS):
                released = side.run(conversation.recipe(case.terms(mu_of(epsilon, DELTA))))
                if released.cells not in truths:
                    same = explainer.fitting(vt.linear.Cells(columns=released.cells)).conversation()
                    silent = Answered(case, EXACT_MU, sums, noisy=False).run(same.recipe(case.terms(EXACT_MU)))
                    truths[released.cells] = local.half * true_values(local.problem, local.raw, *silent.statistics(points))
                seen.append(released.cells)
                add_attribution(coverage, name, epsilon, released(points), truths[released.cells])
            found = np.concatenate([truths[cut] for cut in seen])
            row = left_out(part, name, epsilon, found, np.tile(ridge, (len(seen), 1)))
            sizes.append({**row, "cells": [list(cut) for cut in sorted(set(seen))]})
    how = (
        f"vt.LocalLinear.fit, {what}, stable weight: {POINTS} points, all from each of {DRAWS} releases; truth: ridge "
        "regression from the same cells' sums without noise, the weight a line in the squared distance in each; left_out_*: "
        f"how far that is from ridge regression with the weight itself; {MODELS}"
    )
    if skipped:
        how += f"; left out, with more than {MOST_COORDINATES} coordinates: {', '.join(skipped)}"
    return with_rows(coverage.part(how), sizes)


def local_cells(bench: Bench) -> Part:
    """Cells of the categorical column with the fewest levels."""

    def kind(name: str) -> vt.linear.Cells:
        columns = bench.case(name).schema.items()
        levels = {column: len(about.levels) for column, about in columns if isinstance(about, vt.Categorical)}
        return vt.linear.Cells(columns=(min(levels, key=levels.__getitem__),) if levels else ())

    return _cells(bench, "local_cells", kind, "cells of the categorical column with the fewest levels")


def local_cells_auto(bench: Bench) -> Part:
    """Cells as they are chosen: by a survey where that can pay, else one."""
    return _cells(bench, "local_cells_auto", lambda name: vt.linear.Cells(), "cells chosen by a survey, or one cell")


# --- private rows --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RealRows:
    """Stands for private rows: the real ones, as often as they fit into what is sampled, shuffled."""

    case: Case
    guarantee: object
    cost: Cost = field(default_factory=Cost)
    notes: tuple[str, ...] = ()

    @property
    def schema(self) -> vt.Schema:
        return self.case.schema

    def raw(self, n: int, seed: int) -> np.ndarray:
        """``n`` rows."""
        order = np.arange(n) % len(self.case.rows)
        return self.case.rows[np.random.default_rng(seed).permutation(order)]

    @staticmethod
    def weights(raw: np.ndarray) -> np.ndarray:
        """All count the same."""
        return np.ones(len(raw))


def local_rows(bench: Bench) -> Part:
    """``fit(kind="rows")``, the kernel that it chooses."""
    coverage, sizes = coverage_of(bench, "local_rows"), list[Row]()
    for name in bench.data:
        explainer, local = local_of(bench, name)
        case, points = local.case, local.case.schema.pandas(local.raw)
        copies = max(1, COPIES_OF // len(case.rows))
        conversation, truth = explainer.fitting("rows").conversation(), None
        for epsilon in bench.epsilons:
            mu = mu_of(epsilon, DELTA)
            for _ in range(2 if bench.quick else RELEASES):
                released = case.run(conversation.recipe(case.terms(mu)), mu)
                assert isinstance(released, RowsExplainer)
                if truth is None:
                    real = RealRows(case, released.guarantee)
                    whole = explain_on(explainer.problem, real, n_sampled=copies * len(case.rows))  # type: ignore[arg-type]
                    truth = whole(points, bands=False).values
                    sizes.append(left_out("local_rows", name, None, truth, local.ridge()))
                add_attribution(coverage, name, epsilon, released(points), truth)
    how = (
        f"vt.LocalLinear.fit(kind='rows'), its own kernel: {POINTS} points, all from each of {RELEASES} releases; truth: "
        f"the same computation with the real rows, {COPIES_OF} with their copies, in place of sampled ones; left_out_*: how "
        f"far that is from ridge regression with the stable weight; {MODELS}"
    )
    return with_rows(coverage.part(how), sizes)


# --- no intercept --------------------------------------------------------------------------------------------------------


def _drawn(bench: Bench, explainer: vt.LocalLinear, local: Local, draws: int) -> Iterator[tuple[int, float, vt.Attribution]]:
    """Explanations of each point alone from released statistics: (point, epsilon, explanation)."""
    case = local.case
    asked = statistics_question(local.problem, local.raw)
    sums = case.public_rows().draws(asked, mu=EXACT_MU, draws=1)[0].reshape(len(local.raw), -1)
    for point, exact_sums in enumerate(sums):
        conversation = explainer.conversation(case.schema.pandas(local.raw[point : point + 1]))
        for epsilon in bench.epsilons:
            mu = mu_of(epsilon, DELTA)
            side = Redrawn(case, mu)
            side.exact = exact_sums
            for _ in range(2 if bench.quick else draws):
                found = side.run(conversation.recipe(case.terms(mu)))
                assert isinstance(found, vt.Attribution)
                yield point, epsilon, found


def local_centred(bench: Bench) -> Part:
    """Without an intercept: the paper's form, in the unit ball."""
    coverage = coverage_of(bench, "local_centred")
    for name in bench.data:
        explainer, local = local_of(bench, name, intercept=False)
        truth = local.ridge()  # true_values solves in the unit ball where there is no intercept
        for point, epsilon, found in _drawn(bench, explainer, local, BALL_DRAWS):
            add_attribution(coverage, name, epsilon, found, truth[point : point + 1])
    how = (
        f"vt.LocalLinear, statistics, intercept=False: {POINTS} points, each from releases of its own, {BALL_DRAWS} of "
        f"them; truth: the best slope in the unit ball without noise; {MODELS}"
    )
    return coverage.part(how)
