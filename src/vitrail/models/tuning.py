"""Choosing settings on private rows, with the looks paid for.

*The looks.* Every row tosses a coin of its own and is put among the training rows or the judging rows. All k candidates
are trained on the training rows with the same sampling rate, steps and noise: together k times as many Poisson-sampled
Gaussian sums, one fixed block, priced as such (noise grows with sqrt(k), not k). The winner is drawn by the exponential
mechanism on how many judging rows each candidate gets right: a row moves every count by at most 1, so P ~ exp(epsilon
count / 2) is epsilon-DP.

*Why the two do not add up.* Fix a row and the coins. If it is a training row, the models are (epsilon, delta)-DP in it and
the choice is a function of them and of other rows. If it is a judging row, the models do not depend on it, and the choice
is epsilon-DP. Either way the looks are (epsilon, delta)-DP, and mixing over the row's coin keeps that.

*The last run* trains the winner's settings on all rows with the rest of the budget; the two add up (basic composition), to
the epsilon and delta that were given.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from ..errors import InvalidInput
from ..guarantee import Guarantee
from ..vault import noise_for, on_device, train_maps
from .explaining import weighed
from .inputs import classes_of, scaled_to_length
from .locally_linear import LocallyLinearClassifier
from .promise import TrainingGuarantee

JUDGING_SHARE = 0.2
_FIXED = (
    "epsilon",
    "delta",
    "steps",
    "epochs",
    "batch_size",
    "random_state",
    "n_rows_public",
    "classes",
    "bounds",
    "schema",
)


@dataclass(frozen=True, eq=False)
class TunedMaps:
    """A tuned model and what was paid for it.

    Attributes
    ----------
    model : LocallyLinearClassifier
        Trained on all rows with the chosen settings. Its ``guarantee_`` covers the looks too.
    chosen : dict
        The winning settings.
    guarantee : TrainingGuarantee
        The promise for the looks and the last run together.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> X = np.random.default_rng(0).uniform(0, 1, (500, 2)); y = (X[:, 0] > 0.5).astype(int)
    >>> base = vt.LocallyLinearClassifier(epsilon=2.0, steps=10, batch_size=500)
    >>> vt.tune_locally_linear(base, X, y, [{"clip": 0.1}, {"clip": 1.0}]).guarantee.epsilon
    2.0
    """

    model: LocallyLinearClassifier
    chosen: dict[str, object]
    guarantee: TrainingGuarantee


def tune_locally_linear(
    model: LocallyLinearClassifier,
    X: object,
    y: object,
    candidates: Sequence[Mapping[str, object]],
    *,
    share: float = 0.3,
) -> TunedMaps:
    """Choose among candidate settings on private rows, within the model's own epsilon.

    Parameters
    ----------
    model : LocallyLinearClassifier
        Its epsilon and delta are for everything: looks and last run.
    X, y : arrays
        As for ``fit``.
    candidates : sequence of dict
        Settings to try, such as ``{"n_maps": 10, "learning_rate": 0.1}``. Steps and batches are the model's for all.
    share : float
        Part of epsilon and delta that pays for the looks.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (2000, 2)); y = (X[:, 0] > 0.5).astype(int)
    >>> base = vt.LocallyLinearClassifier(epsilon=4.0, steps=40, bounds=(0, 1))
    >>> tuned = vt.tune_locally_linear(base, X, y, [{"n_maps": 1}, {"n_maps": 4}])
    >>> tuned.guarantee.epsilon, tuned.chosen["n_maps"] in (1, 4)
    (4.0, True)
    """
    _check(model, candidates, share)
    base = clone(model)
    features, labels = base._training_arrays(X, y)
    classes = classes_of(base.classes, labels)
    numbers = np.searchsorted(classes, labels).astype(np.int64)
    n_rows = len(features) if base.n_rows_public is None else int(base.n_rows_public)
    epsilon, delta = share * base.epsilon, share * base.delta
    generator = np.random.default_rng(secrets.randbits(256))
    judging = generator.random(len(features)) < JUDGING_SHARE
    expected = max(1, round(n_rows * (1 - JUDGING_SHARE)))
    noise: float | None = None
    right = np.zeros(len(candidates))
    for place, candidate in enumerate(candidates):
        settings = clone(base).set_params(**candidate, epsilon=epsilon, delta=delta)._settings()
        settings.check()
        training = settings.training(features.shape[1], len(classes), expected, noise_multiplier=noise or 1.0)
        if noise is None:  # the same rate, steps and noise for all: k runs are one block of k times the steps
            noise = noise_for(epsilon, delta, training.sampling_rate, len(candidates) * training.steps)
            training = settings.training(features.shape[1], len(classes), expected, noise_multiplier=noise)
        rows = on_device(np.ascontiguousarray(features[~judging], np.float32), numbers[~judging], base.device)
        found = train_maps(training, *rows)
        judged = scaled_to_length(features[judging], training.row_length)
        said = np.argmax(weighed(judged, found.maps, found.biases, training.beta).scores, axis=1)
        right[place] = np.count_nonzero(said == numbers[judging])
    logits = epsilon * right / 2
    chances = np.exp(logits - logits.max())
    winner = int(generator.choice(len(candidates), p=chances / chances.sum()))
    chosen = dict(candidates[winner])
    final = clone(base).set_params(**chosen, epsilon=base.epsilon - epsilon, delta=base.delta - delta).fit(X, y)
    run = final.guarantee_
    promise = Guarantee(base.epsilon, base.delta, 0.0, "add-remove", "training-data")
    facts = (*run.taken_as_public, f"the {len(candidates)} candidate settings, whose comparison is part of the price")
    final.guarantee_ = TrainingGuarantee(promise, facts, run.noise_multiplier, run.sampling_rate, run.steps)
    return TunedMaps(final, chosen, final.guarantee_)


def _check(model: LocallyLinearClassifier, candidates: Sequence[Mapping[str, object]], share: float) -> None:
    if not isinstance(model, LocallyLinearClassifier) or not math.isfinite(model.epsilon):
        raise InvalidInput(
            "model must be a LocallyLinearClassifier with a finite epsilon; without privacy use scikit-learn's search"
        )
    model._settings().check()
    if len(candidates) < 2:
        raise InvalidInput(f"there are {len(candidates)} candidates; give two or more to choose from")
    for candidate in candidates:
        fixed = [name for name in candidate if name in _FIXED]
        if fixed:
            raise InvalidInput(f"a candidate sets {fixed[0]!r}, which is the same for all candidates; set it on the model")
    if not 0 < share < 1:
        raise InvalidInput(f"share is {share!r}; it must lie strictly between 0 and 1")
