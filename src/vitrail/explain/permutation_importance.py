"""Permutation importance: columns by how much worse a model predicts the target with a column exchanged.

Without a target, outputs are compared with the model's own: the mean of (f(x') - f(x))^2. For squared losses and a model
that is right on average the two are the same number, which is why private rows, of which nobody knows the target, tell it
too. What they tell is combined with what was asked (``combined_scores``).

For a row with features x and target y, and d columns, with donors x'_j for each column, or all of its values where it has
few (``solve.curves.importance``):

    v_j = loss(y, f(x with x_j := x'_j)) - loss(y, f(x)) + g_j(x_j) - E g_j,  averaged over the donors of a column, or over
          its values with their shares
    base = loss(y, f(x)) - L/2 in [-L/2, L/2], L the largest loss
    flag = 1 where |v / s| exceeds the clip C, else 0

*Why g.* Donors come from a noisy histogram p, not from the column's own distribution q. To first order that changes the
mean loss by sum_k (p_k - q_k) loss_j(k), loss_j(k) being the mean loss with column j set to its k-th bin. Public reference
rows tell about what loss_j is: that is g_j, and E g_j its mean under p. The mean of g_j(x_j) over the rows is sum_k q_k
g_j(k), so adding the difference takes the error away, as far as g_j is loss_j, at no price: it is one more public function
of the row. Without, importances of skewed columns come out too large.

*Bound*: v (over s) is clipped to C in L2 norm, all columns together, base to L/2 and the flag to 1, by ``joint_sum`` on
every row and by the vault once more, so privacy rests on nothing that is said here. Without a clip |v / s| is at most
2 L sqrt(d) / min s.

*Why differences, and one clip for all columns.* Losses that are centred have norm (L/2) sqrt(d + 1) whatever the row; a
row's differences are zero for a column the model does not use, and small for most rows. One clip shortens a row as a whole,
so that it still speaks for its columns in proportion.

*Noise in proportion, and the clip.* v_j is sent as v_j / s_j, so that columns of little importance, which are the hardest to
tell apart, get less noise than those of much; sizes and clip come from public reference rows
(``solve.curves.importance_clip``). How many rows were clipped is released with the rest, for 2 % of the price, and says what
part of all differences the clip took, which is put back. Test: tests/explain/importance/test_importance_bound.py.

*What else moves a score* is in its band, in squares: what the clip may have taken besides; donors, of which every row meets
a few (how much others would change reference rows, over the number of rows; rows that are alike meet the same donors, and
private rows tell how many are); and the noise of the distribution that donors come from, which g takes away only as far as
it is loss_j: ``UNCORRECTED`` of what that noise does to the mean of g_j.

*A combined score's band* holds most of the measurement's own (``solve.guard``): how much more a model remembers of
one column than of another nobody knows beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import get_args

import numpy as np

from .. import _checks
from .._types import Floats
from ..accounting import JsonValue
from ..errors import ModelError
from ..model import Model
from ..results import Ranking
from ..results.band_claim import TWO_SIDED_95
from ..schema import Level
from ..solve.coalitions import row_hashes
from ..solve.curves.assemble import Receipt, measured_claim, ranking_of
from ..solve.curves.importance import Donor, Loss, LossFunction, combined_scores, loss_of
from ..solve.curves.importance_clip import CLASS_MEMORY, MEMORY, NUMBER_MEMORY, SMALLEST_SIZE, ClipPlan, Taken
from ..solve.curves.reference import Reference, WhatIf
from ..solve.guard import guarded_std
from ..vault import Block
from .joint_sum import BlockSpec, Estimate, JointExplainer, ask_joint, released_rows
from .recipe import Recipe, Terms

ENOUGH_DONORS = 50_000
MOST_REPEATS, MOST_OWN_REPEATS = 8, 1000
MANY_CLIPPED = 0.2
NAMED_WIDENING = 1.1
"""A band that is wider by more than this because of the guard is said to be."""
UNCORRECTED = 0.5
"""Of what the noise of a column's distribution does to the mean loss, how much the reference's g may leave."""
BASE_SHARE, FLAG_SHARE = 0.03, 0.02
MOST_PREDICTIONS, FEWEST_ROWS = 150_000, 200
MOST_PLACES = 64
"""Bins of a number at which the mean loss is looked at; between them it is a straight line."""
VERSION = 6
"""Of what rows contribute, in the name of the question: what was released before is not read as if it were this."""
SEED = 21
"""Of the reference's targets and of donors: public, and fixed so that a question is the same again."""


@dataclass(eq=False, kw_only=True)
class PermutationImportance(JointExplainer[Ranking]):
    """How much the mean loss grows when a column is exchanged for values from its released distribution.

    Parameters
    ----------
    columns : list of str, optional
        Which columns; all of them if not given.
    loss : {"squared", "absolute", "zero-one", "log"} or callable
        What a prediction costs. A categorical target counts as 1 where it is the level whose probability the model
        gives. A function gets targets and outputs, both of shape (rows,), and returns a loss for each row from it alone.
    loss_bound : float, optional
        The largest value of a loss of your own; losses are clipped to [0, loss_bound].
    n_repeats : int, optional
        How many donors each row gets for each column: more cost time, not privacy. By default more for fewer rows. A column
        of one value more than that, or fewer, needs none: rows are asked about at all of them.
    clip : float, optional
        Rows whose losses change by more than this, in L2 norm over all columns, are scaled down to it. By default from
        public rows; the result's notes say about how many rows were clipped.
    positive : level, optional
        Which level of a categorical target counts as 1, where the model does not say so itself.
    estimate : {"smooth", "plain"}
        "smooth" combines the noisy means with what private rows say, were targets as the model has them; "plain" shows the
        noisy means. In both, what the clip took off all columns alike is put back.
    data, model, marginals, sampling_rate, key
        As for :class:`PartialDependence`. Without a target outputs are compared with the model's own: the mean squared (or
        absolute) change of the output.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "sex": vt.Categorical(["f", "m"]), "risk": vt.Numeric(0, 1)})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 9000), "sex": generator.choice(["f", "m"], 9000)}
    >>> rows["risk"] = rows["age"] / 100
    >>> data = vt.PrivateData(rows, schema, name="patients", target="risk", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk")
    >>> importance = vt.PermutationImportance(data, model)(epsilon=1.0)
    >>> importance.order, bool(abs(importance.scores[0] - 1 / 6) < 0.02)  # two ages differ by 1/6 in the mean square
    (('age', 'sex'), True)
    """

    KIND = "permutation importance"
    columns: Sequence[str] | None = None
    loss: str | LossFunction = "squared"
    loss_bound: float | None = None
    n_repeats: int | None = None
    clip: float | None = None
    positive: Level | None = None
    estimate: Estimate = "smooth"

    def __post_init__(self) -> None:
        super().__post_init__()
        data = self.data
        self.columns = self._names = self.names_of(self.columns)
        self._loss = loss_of(self.loss, self.loss_bound, self.model, data.schema, data.target, self.positive)
        if self.n_repeats is not None:
            self.n_repeats = _checks.whole("n_repeats", self.n_repeats, most=MOST_OWN_REPEATS)
        self.clip = None if self.clip is None else _checks.positive("clip", self.clip)
        self.estimate = _checks.choice("estimate", self.estimate, get_args(Estimate))
        self.label += f" of {len(self._names)} columns"

    def options(self) -> dict[str, JsonValue] | None:
        """With the loss as it is known by, its bound and the positive level included."""
        loss = self._loss.identity(self.key)
        unnamed = dict.fromkeys(("loss_bound", "positive"))
        return None if loss is None else {**(super().options() or {}), **unnamed, "loss": loss, "version": VERSION}

    def recipe(self, terms: Terms) -> Recipe[Ranking]:
        """Histograms, then one joint sum."""
        ground = yield from released_rows(terms, self.model, self.marginals)
        noise = terms.noise_of_mean(share=1 - ground.spent)
        summand = plan_importance(ground.reference, self._names, self._loss, self.n_repeats, self.clip, noise=noise)
        (measured,), receipt = yield from ask_joint(ground, [summand], [1.0], self.label)
        return summand.ranking(*measured, receipt, self.estimate)


def plan_importance(
    reference: Reference,
    names: tuple[str, ...],
    loss: Loss,
    n_repeats: int | None = None,
    clip: float | None = None,
    *,
    noise: float,
) -> ImportanceSummand:
    """Donors from the histograms; the clip from reference rows, unless it is given.

    ``noise``: of the joint sum on the mean of a number of bound 1, for the share that importance will get.
    """
    model = reference.model
    repeats = n_repeats or max(1, min(MOST_REPEATS, round(ENOUGH_DONORS * (1 + reference.alike) / reference.n_rows)))
    donors = tuple(Donor.of(reference, name) for name in names)
    looks = sum(min(len(donor.middles), MOST_PLACES) if donor.ordered else len(donor.middles) for donor in donors)
    rows = reference.rows(looks, fewest=FEWEST_ROWS, budget=MOST_PREDICTIONS)
    outputs = reference.predict(rows)
    targets = _drawn_targets(outputs, loss, model)
    looked = [
        _expected(donor, targets, outputs, loss, partial(reference.what_if, rows, (name,)))
        for name, donor in zip(names, donors, strict=True)
    ]
    expected, reaches = tuple(mean for mean, _ in looked), np.array([reach for _, reach in looked])
    if not all(np.isfinite(losses).all() for losses in expected):
        raise ModelError(f"the {loss.name} loss of {model.name} is not finite on public rows drawn inside the schema")
    unclipped = ImportanceSummand(model, names, donors, loss, repeats, expected)
    # More rows than for means: the clip follows from the tails of differences.
    looks = 2 * sum(len(donor.weights(repeats)) for donor in donors)
    rows = reference.rows(looks, fewest=FEWEST_ROWS, budget=MOST_PREDICTIONS)
    outputs = reference.predict(rows)
    targets = _drawn_targets(outputs, loss, model)
    what_if = partial(reference.what_if, rows)
    exchanged, others = (unclipped.exchanged(rows, what_if, seed) for seed in (SEED, SEED + 1))
    differences, _ = unclipped.differences(rows, targets, outputs, exchanged)
    told, doubts = _told_scores(reference, replace(unclipped, n_repeats=1))
    memory = CLASS_MEMORY if loss.binary else NUMBER_MEMORY
    # Which donors a row meets; of rows that are alike, which of them all meet, whatever their targets are.
    apart = differences - unclipped.differences(rows, targets, outputs, others)[0]
    together = np.subtract(*(unclipped.expected_differences(rows, outputs, each) for each in (exchanged, others)))
    met = (MEMORY * np.square(apart).mean(axis=0) + reference.alike * np.square(together).mean(axis=0)) / 2
    at_rows = np.stack([g[donor.bins.index(rows[:, donor.column])] for donor, g in zip(donors, expected, strict=True)], 1)
    moved = UNCORRECTED**2 * np.square(reference.moves_of(at_rows)).sum(axis=0)
    beside = met / reference.n_rows + moved
    return replace(
        unclipped,
        clipped=ClipPlan.of(differences, reaches, noise, loss.largest, clip, memory),
        told=told,
        doubts=doubts,
        beside=np.sqrt(beside),
        count_error=reference.rows_counted.std / reference.n_rows,
        on_rows=reference.private is not None,
    )


def _told_scores(reference: Reference, summand: ImportanceSummand) -> tuple[Floats, Floats]:
    """What reference rows say about importances, were targets as the model has them; and their variances."""
    rows = reference.rows(len(summand.names), budget=MOST_PREDICTIONS)
    outputs = reference.predict(rows)
    found = summand.expected_differences(rows, outputs, summand.exchanged(rows, partial(reference.what_if, rows)))
    mean = found.mean(axis=0)
    return mean, reference.variances_of(found) + SMALLEST_SIZE**2 * float((mean**2).mean())


@dataclass(frozen=True, eq=False)
class ImportanceSummand:
    """What permutation importance wants of every row."""

    model: Model
    names: tuple[str, ...]
    donors: tuple[Donor, ...]
    loss: Loss
    n_repeats: int
    expected: tuple[Floats, ...]
    clipped: ClipPlan | None = None
    """None while it is planned from reference rows: differences are then as they are."""
    told: Floats = field(default_factory=lambda: np.zeros(0))
    doubts: Floats = field(default_factory=lambda: np.zeros(0))
    beside: Floats = field(default_factory=lambda: np.zeros(0))
    """By column, standard deviation of what moves a score besides the noise of the sum and the clip."""
    count_error: float = 0.0
    """Of the count that sums are divided by, relative to it."""
    on_rows: bool = False
    """Whether private rows were there to plan from and to combine with, not histograms alone."""

    @property
    def clip(self) -> float:
        """Of a row's differences over their sizes, in L2 norm."""
        return math.inf if self.clipped is None else self.clipped.clip

    @property
    def sizes(self) -> Floats:
        """What differences are divided by."""
        return np.ones(len(self.names)) if self.clipped is None else self.clipped.sizes

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """The differences of all columns, the base loss, the flag."""
        base = BlockSpec(1, self.loss.largest / 2, BASE_SHARE)
        squares = None if self.clipped is None else tuple(self.clipped.squares.tolist())
        differences = BlockSpec(len(self.names), self.clip, 1.0 - BASE_SHARE - FLAG_SHARE, squares)
        return (differences, *(() if self.loss.itself else (base,)), BlockSpec(1, 1.0, FLAG_SHARE))

    def contributions(self, block: Block) -> Floats:
        """(rows, d + 2): differences over their sizes, base loss (if there is a target), flag."""
        outputs, loss = block.predictions(self.model), self.loss
        target = outputs if loss.itself else loss.numbers(block.target)
        exchanged = self.exchanged(block.values, partial(block.what_if, self.model))
        differences, base = self.differences(block.values, target, outputs, exchanged)
        over = np.sqrt((differences**2).sum(axis=1)) > self.clip
        bases = [] if loss.itself else [(base - loss.largest / 2)[:, None]]
        return np.concatenate([differences, *bases, over[:, None]], axis=1)

    def exchanged(self, rows: Floats, what_if: WhatIf, seed: int = SEED) -> tuple[Floats, ...]:
        """By column, outputs (rows, values) with it exchanged for a donor's value, or for every one that it has."""
        hashes = row_hashes(rows, seed)
        return tuple(
            what_if((name,), donor.values(hashes, self.n_repeats))
            for name, donor in zip(self.names, self.donors, strict=True)
        )

    def differences(
        self, rows: Floats, target: Floats, outputs: Floats, exchanged: Sequence[Floats]
    ) -> tuple[Floats, Floats]:
        """v / s of rows, (rows, d), and their base losses."""
        base = self.loss(target, outputs)
        found = np.empty((len(rows), len(self.names)))
        for index, (donor, expected) in enumerate(zip(self.donors, self.expected, strict=True)):
            correction = expected - donor.shares @ expected
            found[:, index] = correction[donor.bins.index(rows[:, donor.column])]
            for weight, altered in zip(donor.weights(self.n_repeats), exchanged[index].T, strict=True):
                found[:, index] += weight * self.loss(target, altered)
        return (found - base[:, None]) / self.sizes, base

    def expected_differences(self, rows: Floats, outputs: Floats, exchanged: Sequence[Floats]) -> Floats:
        """v / s of rows on average, were targets as the model has them."""
        if not self.loss.binary:
            return self.differences(rows, outputs, outputs, exchanged)[0]
        chance = ((outputs - self.model.lo) / self.model.width)[:, None]
        no, yes = (self.differences(rows, np.full(len(rows), target), outputs, exchanged)[0] for target in (0.0, 1.0))
        return np.asarray((1 - chance) * no + chance * yes)

    def scores(self, means: Floats, stds: Floats, estimate: Estimate) -> tuple[Floats, Floats]:
        """Increases of the loss and their standard deviations, from the released means and theirs."""
        scores, own, common = self._measured(means, stds)
        spread = np.hypot(own, common)
        if estimate == "plain":
            return scores, spread
        combined, doubt = self._combined(scores, own, common)
        return combined, guarded_std(combined, doubt, scores, spread)

    def _measured(self, means: Floats, stds: Floats) -> tuple[Floats, Floats, Floats]:
        """Scores; how far each may be off by itself, and how far by what columns have in common or the clip took."""
        taken = self._taken(means, stds)
        scores, noise = (numbers[: len(self.names)] * self.sizes for numbers in (means, stds))
        own = np.sqrt((taken.factor * noise) ** 2 + self.beside**2 + taken.own(scores) ** 2)
        common = np.hypot(taken.common(scores), self.count_error * taken.factor * scores)
        return taken.factor * scores, own, common

    def _taken(self, means: Floats, stds: Floats) -> Taken:
        assert self.clipped is not None
        return self.clipped.taken(float(means[-1]), float(stds[-1]))

    def _combined(self, scores: Floats, own: Floats, common: Floats) -> tuple[Floats, Floats]:
        """Combined by what is each column's own: what all have in common says nothing of their order."""
        combined, doubt = combined_scores(scores, own, self.told, self.doubts, remembers=not self.loss.itself)
        return combined, np.hypot(doubt, common)

    def ranking(self, means: Floats, stds: Floats, receipt: Receipt, estimate: Estimate) -> Ranking:
        """The finished ranking from the means of the sum and their noise."""
        loss, d = self.loss, len(self.names)
        clipped, clipped_half = min(max(float(means[-1]), 0.0), 1.0), TWO_SIDED_95 * float(stds[-1])
        notes = []
        if not loss.itself:
            base, base_half = float(means[d]) + loss.largest / 2, TWO_SIDED_95 * float(stds[d])
            notes.append(f"Without any exchange the mean {loss.name} loss is {base:.4g} ± {base_half:.2g}.")
        taken = self._taken(means, stds)
        notes += [
            f"About {100 * clipped:.0f} % (± {100 * clipped_half:.0f}) of the rows changed their losses by more than the "
            f"clip {self.clip:.4g} and were scaled down to it; by public rows that took "
            f"{100 * (1 - 1 / taken.factor):.2g} % off all scores, which was put back, and at most {taken.losses.max():.2g} "
            "off one, which bands hold.",
        ]
        if clipped - clipped_half > MANY_CLIPPED:
            notes.append(
                "So many clipped rows make importances uncertain, and may leave them too small; a larger clip= avoids it, "
                "at the price of more noise."
            )
        scores, spread = self.scores(means, stds, estimate)
        if estimate == "smooth":
            wider = spread / np.maximum(self._combined(*self._measured(means, stds))[1], 1e-300)
            if (several := int((wider > NAMED_WIDENING).sum())) > 0:
                notes.append(
                    f"Bands of {several} of {d} columns are up to {wider.max():.1f} times as wide as private rows and the "
                    "measurement together would have them: they hold what was measured, should private rows mislead."
                )
        label = (
            f"mean {loss.name.split()[0]} change of the output" if loss.itself else f"increase of the mean {loss.name} loss"
        )
        kind = PermutationImportance.KIND
        claim = measured_claim(kind, smooth=estimate == "smooth", on_rows=self.on_rows)
        return ranking_of(self.names, scores, spread, receipt, kind=kind, label=label, notes=tuple(notes), claim=claim)


def _expected(
    donor: Donor, targets: Floats, outputs: Floats, loss: Loss, at_values: Callable[[Floats], Floats]
) -> tuple[Floats, float]:
    """g_j, the reference's mean loss with a column set to each of its bins; and the column's reach."""
    middles = donor.middles
    some = np.unique(np.linspace(0, len(middles) - 1, MOST_PLACES).astype(int)) if donor.ordered else np.arange(len(middles))
    found = at_values(middles[some, None])

    def losses(target: Floats) -> Floats:
        return loss(np.repeat(target, len(some)), found.ravel()).reshape(found.shape)

    either = [np.zeros(len(found)), np.ones(len(found))] if loss.binary else [targets]
    reach = max(float(np.abs(losses(target) - loss(target, outputs)[:, None]).max()) for target in either)
    if not (loss.binary or loss.itself):  # how far targets lie from outputs nobody knows
        reach *= MEMORY
    mean = losses(targets).mean(axis=0)
    return np.asarray(np.interp(np.arange(len(middles)), some, mean)), reach


def _drawn_targets(outputs: Floats, loss: Loss, model: Model) -> Floats:
    """Targets as the model would have them: drawn with its probabilities, or its outputs themselves."""
    if not loss.binary:
        return outputs
    draws = np.random.default_rng(SEED).random(len(outputs))
    return (draws < (outputs - model.lo) / model.width).astype(np.float64)
