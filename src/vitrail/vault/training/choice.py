"""Choosing among training runs on private rows: all the looks are one fixed block, charged before a row is read.

*What happens.* Every row tosses a coin of its own: it is a training row, or, with probability ``HELD_OUT_SHARE``, a
held-out row. All k runs train on the training rows, with the same noise, sampling rate and number of steps. Then one of
them is drawn by the exponential mechanism on how many held-out rows each gets right. Only its number is released.

*What a row does.* A held-out row moves each count by 0 or 1. Added or removed, it moves all of them one way, so P(j) ~
exp(epsilon count_j) is epsilon-DP: the weight of j and the sum of the weights both change by a factor between 1 and
e^epsilon. Exchanged for another (replace-one), it moves them by -1, 0 or 1, and P(j) ~ exp(epsilon count_j / 2) is. A
training row enters k times as many Poisson-sampled Gaussian sums as one run has, priced as one block of k times the
steps (noise grows with sqrt(k), not k), and the choice is a function of their result and of other rows.

*Why the two do not add up.* Fix a row and everybody's coins. If it is a training row, the choice is (epsilon, delta)-DP
in it by the price of the block; if a held-out row, the runs do not depend on it, and the choice is epsilon-DP. A row's
coin knows nothing of the row, and mixing over it keeps (epsilon, delta). A row that is exchanged hands its coin on.
Rows that the schema lets count zero are left out, each by its own values: such a row is a row that moves nothing.

*Whether a row is got right depends on that row alone*, bit for bit; otherwise one row could move many counts. Rows are
judged by the arithmetic they are trained with (``row_vectors``, ``map_gradients.exact_responses``), in which a row
has the same bits whatever stands beside it. Counts are integers, and the draw is that of ``questions.select``, whose
distance from the true law (below 2^-240) delta has room for.

Tests: tests/maps/test_map_choice.py, test_a_neighbour_moves_the_odds_by_epsilon and
test_a_row_is_judged_by_its_own_bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...accounting import FixedBlock, JsonValue
from ...accounting.neighbours import check_unit_counts_once, is_exchange
from ...errors import InvalidInput
from ...schema import Categorical
from ..noise.sampler import bernoulli, random_integer_below
from ..public_facts import PublicFacts
from ..questions.question import Answer
from ..questions.select import UNIFORM_BITS, drawn, selection_weights
from .feature_curves import FeatureCurves
from .map_gradients import exact_responses, scores_of
from .plan import COINS, MapTraining, check_paid
from .row_vectors import PublicMatrices, training_vectors
from .run import People, TrainedMaps, on_device, train_maps

HELD_OUT_SHARE = 0.2
ROWS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class MapChoice:
    """A choice among training runs, fixed before it starts. Nothing in it comes from rows.

    Parameters
    ----------
    runs : tuple of MapTraining
        The candidates. Noise multiplier, sampling rate, steps and classes are the same for all.
    epsilon, delta : float
        The price of all runs and of the choice together.

    Examples
    --------
    >>> from vitrail.vault import MapChoice, MapTraining, noise_for
    >>> noise = noise_for(1.0, 1e-5, 1.0, 2 * 50)  # two runs of 50 steps
    >>> runs = [MapTraining(n_classes=2, n_maps=maps, noise_multiplier=noise, sampling_rate=1.0, steps=50, epsilon=1.0,
    ...                     delta=1e-5, expected_rows=800) for maps in (1, 4)]
    >>> choice = MapChoice(tuple(runs), 1.0, 1e-5)
    >>> choice.event.steps, choice.event.cost().block_epsilon
    (100, 1.0)
    """

    sigma: ClassVar[None] = None
    runs: tuple[MapTraining, ...]
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        shared = {
            (run.noise_multiplier, run.sampling_rate, run.steps, run.n_classes, run.curves and run.curves.digest())
            for run in self.runs
        }
        if len(self.runs) < 2 or len(shared) != 1:
            raise InvalidInput(
                "a MapChoice needs two runs or more with the same noise multiplier, sampling rate, steps, classes and "
                "curves: together they are priced as one block, and rows are read once"
            )

    @property
    def private(self) -> bool:
        """Whether there is a promise."""
        return math.isfinite(self.epsilon) and all(run.private for run in self.runs)

    @property
    def n_classes(self) -> int:
        """Classes of every run."""
        return self.runs[0].n_classes

    @property
    def curves(self) -> FeatureCurves | None:
        """Of every run."""
        return self.runs[0].curves

    @property
    def event(self) -> FixedBlock:
        """What the ledger records: the sums of all runs, as one block."""
        run = self.runs[0]
        return FixedBlock(self.epsilon, self.delta, run.noise_multiplier, run.sampling_rate, len(self.runs) * run.steps)

    def describe(self) -> dict[str, JsonValue]:
        """The public parameters."""
        return {"question": "map-choice", "held_out_share": HELD_OUT_SHARE, "runs": [run.describe() for run in self.runs]}

    def check_fits(self, n_features: int, neighbours: str) -> None:
        """Refuse what does not fit the data, or whose noise does not pay for its epsilon."""
        for run in self.runs:
            run.check_width(n_features)
        check_paid(self.event, neighbours, f"these {len(self.runs)} runs")


def check_training(training: object, facts: PublicFacts) -> None:
    """Refuse, before anything is charged, what cannot be trained on these data."""
    if not isinstance(training, MapTraining | MapChoice) or not training.private:
        raise InvalidInput("train needs a MapTraining with a finite epsilon; private rows are never used without noise")
    target = None if facts.target is None else facts.schema[facts.target]
    if not isinstance(target, Categorical) or len(target.levels) != training.n_classes:
        raise InvalidInput(
            f"training needs a target of {training.n_classes} levels; declare it: target=..., a vt.Categorical"
        )
    training.check_fits(facts.feature_schema.n_features, facts.neighbours)


def trained(
    plan: MapTraining | MapChoice,
    features: NDArray[np.float32],
    labels: NDArray[np.int64],
    people: People | None = None,
    *,
    device: str,
    neighbours: str,
    advance: Callable[[int], None] | None = None,
) -> Answer:
    """What a plan releases: trained maps, or the number of the chosen run. The caller has charged for it."""
    if isinstance(plan, MapChoice):
        chosen = choose_run(plan, features, labels, people, device=device, neighbours=neighbours, advance=advance)
        return Answer(np.array([float(chosen)]))
    result = train_maps(plan, *on_device(features, labels, device), advance=advance, people=people)
    return Answer(result.maps.ravel(), {"maps": result.maps, "biases": result.biases})


def choose_run(
    choice: MapChoice,
    features: NDArray[np.float32],
    labels: NDArray[np.int64],
    people: People | None = None,
    *,
    device: str = "cpu",
    neighbours: str = "add-remove",
    advance: Callable[[int], None] | None = None,
) -> int:
    """The number of the chosen run. The rows are read here; the caller has charged for it, or holds the rows anyway.

    Where rows carry their persons, the coin is a person's, and who is held out counts by one of their rows, drawn once.
    """
    uniform = random_integer_below(1 << UNIFORM_BITS)
    held_out = bernoulli(HELD_OUT_SHARE, len(features) if people is None else len(people.counts))
    seen, judges, others = ~held_out, np.flatnonzero(held_out), None
    if people is not None:
        judges = people.one_row_each(judges)
        seen, others = people.of_rows(seen)
    rows = on_device(np.ascontiguousarray(features[seen]), labels[seen], device)
    counts = [
        count_right(run, train_maps(run, *rows, advance=advance, people=others), features[judges], labels[judges])
        for run in choice.runs
    ]
    return drawn(np.cumsum(choice_weights(counts, choice.epsilon, neighbours)), uniform)


def choice_weights(counts: list[int], epsilon: float, neighbours: str) -> NDArray[np.object_]:
    """The odds of the exponential mechanism on counts, as integers: exp(epsilon count), or exp(epsilon count / 2)."""
    check_unit_counts_once(neighbours, COINS)
    rate = 1 if is_exchange(neighbours) else 2
    return selection_weights(counts, rate * epsilon, 1)


def count_right(run: MapTraining, result: TrainedMaps, features: NDArray[np.float32], labels: NDArray[np.int64]) -> int:
    """How many rows the maps get right: each row by its own bits alone."""
    if not (np.isfinite(result.maps).all() and np.isfinite(result.biases).all()):
        return 0
    nothing = PublicMatrices.of(None, None, features.shape[1])
    rows = training_vectors(features, labels, run.n_classes, nothing, run.row_length)
    weights = np.concatenate([result.maps, result.biases[:, :, None]], axis=2)
    right = 0
    with np.errstate(all="ignore"):
        for start in range(0, rows.n_rows, ROWS_AT_ONCE):
            some = rows.at(slice(start, start + ROWS_AT_ONCE))
            predicted = np.argmax(scores_of(exact_responses(some, weights), run.beta).scores, axis=1)
            right += int(np.count_nonzero((predicted == some.labels) & (some.counted > 0)))
    return right
