"""Choosing settings on private rows, with the looks paid for.

*The looks* are one fixed block: k candidates trained on some rows, the winner drawn by how many of the others each gets
right (``training/choice.py`` has the argument and the price). They cost ``share`` of the model's epsilon and delta.

*The last run* trains the winner's settings on all rows with the rest. The two add up (basic composition) to the epsilon and
delta that were given. Both prices are numbers of the plan: candidates differ in nothing that a price depends on.

*From a PrivateData* the looks and the last run are two charges to its training purse, each before its rows are read. All
candidates' looks and last runs are planned and checked, and the purse is looked at for both, before the first charge: what
is refused costs nothing. (Should somebody else empty the purse in between, the last run is refused, the looks are spent.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import ROUND_FLOOR, Decimal

import numpy as np
from sklearn.base import clone

from ..accounting import Cost, rounded_down, rounded_up
from ..accounting.guarantee import Guarantee
from ..errors import BudgetExceeded, InvalidInput
from ..schema import Schema
from ..vault import HELD_OUT_SHARE, MapChoice, MapTraining, PrivateData, check_device, choose_run, noise_for
from .explaining import TrainingGuarantee
from .locally_linear import LocallyLinearClassifier
from .settings import check_settings, classes_of, plan_training

_TUNABLE = {"projection", *(known.name for known in fields(MapTraining))} - {"epsilon", "delta", "steps", "curves"}
"""What candidates may differ in: what one run is told, and no price depends on."""


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
    y: object = None,
    candidates: Sequence[Mapping[str, object]] = (),
    *,
    share: float = 0.3,
) -> TunedMaps:
    """Choose among candidate settings on private rows, within the model's own epsilon.

    Parameters
    ----------
    model : LocallyLinearClassifier
        Its epsilon and delta are for everything: looks and last run.
    X, y : arrays, or PrivateData
        As for ``fit``. A ``vt.PrivateData`` stands alone, ``tune_locally_linear(model, data, candidates=[...])``, and pays
        the model's epsilon and delta from its training purse.
    candidates : sequence of dict
        Settings to try, such as ``{"n_maps": 10, "learning_rate": 0.1}``. Steps and batches are the model's for all.
    share : float
        Part of epsilon and delta that pays for the looks.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (2000, 2)); y = (X[:, 0] > 0.5).astype(int)
    >>> base = vt.LocallyLinearClassifier(epsilon=4.0, steps=40, batch_size=2000)
    >>> tuned = vt.tune_locally_linear(base, X, y, [{"n_maps": 1}, {"n_maps": 4}])
    >>> tuned.guarantee.epsilon, tuned.chosen["n_maps"] in (1, 4)
    (4.0, True)

    From rows in a vault, whose ledger is charged:

    >>> schema = vt.Schema({"x": vt.Numeric(0, 1), "side": vt.Categorical(["left", "right"])})
    >>> rows = {"x": X[:, 0], "side": np.where(y, "right", "left")}
    >>> budget = vt.Budget(epsilon=5.0, delta=2e-5, training=(4.0, 1e-5))
    >>> data = vt.PrivateData(rows, schema, name="sides", n_rows_public=2000, target="side", budget=budget)
    >>> tuned = vt.tune_locally_linear(base, data, candidates=[{"clip": 1e-6}, {"clip": 0.3}])
    >>> data.budget.training_spent
    (4.0, 1e-05)
    """
    if isinstance(X, PrivateData) and y is not None:
        raise InvalidInput(
            "y is given together with a PrivateData, which has its labels already: "
            "tune_locally_linear(model, data, candidates=[...])"
        )
    _check(model, candidates, share)
    epsilons, deltas = _split(model.epsilon, share, 12), _split(model.delta, share, 30)
    looks, last = zip(epsilons, deltas, strict=True)
    tried, finals = (
        [clone(model).set_params(**settings, epsilon=epsilon, delta=delta) for settings in candidates]
        for epsilon, delta in (looks, last)
    )
    winner = _chosen_in_the_vault(tried, finals, X) if isinstance(X, PrivateData) else _chosen_on_arrays(tried, X, y)
    final = finals[winner].fit(X, y)
    run = final.guarantee_
    promise = Guarantee(model.epsilon, model.delta, 0.0, run.promise.neighbours, "training-data")
    facts = (*run.taken_as_public, f"the {len(candidates)} candidate settings, whose comparison is part of the price")
    final.guarantee_ = TrainingGuarantee(promise, facts, run.noise_multiplier, run.sampling_rate, run.steps)
    return TunedMaps(final, dict(candidates[winner]), final.guarantee_)


def _chosen_on_arrays(tried: Sequence[LocallyLinearClassifier], X: object, y: object) -> int:
    base = tried[0]  # candidates differ in nothing that rows are read by
    features, labels = base._training_arrays(X, y)
    classes = classes_of(base.classes, labels)
    n_rows = len(features) if base.n_rows_public is None else int(base.n_rows_public)
    choice = _planned_looks(tried, features.shape[1], len(classes), n_rows, schema=base.schema_)
    numbers = np.searchsorted(classes, labels).astype(np.int64)
    return choose_run(choice, np.ascontiguousarray(features, np.float32), numbers, device=base.device)


def _chosen_in_the_vault(
    tried: Sequence[LocallyLinearClassifier], finals: Sequence[LocallyLinearClassifier], data: PrivateData
) -> int:
    n_classes, schema = len(tried[0]._classes_of_private_data(data)), data.feature_schema
    n_features = schema.n_features
    choice = _planned_looks(tried, n_features, n_classes, data.n_rows_public, data.neighbours, schema=schema)
    for final in finals:  # whichever wins, its last run must be fit to be accepted
        last = plan_training(final, n_features, n_classes, data.n_rows_public, data.neighbours, schema=schema)
        last.check_fits(n_features, data.neighbours)
    _refuse_what_does_not_fit(data, choice.event.cost() + last.event.cost())
    return int(data.train(choice, device=tried[0].device).value[0])


def _planned_looks(
    tried: Sequence[LocallyLinearClassifier],
    n_features: int,
    n_classes: int,
    n_rows: int,
    neighbours: str = "add-remove",
    *,
    schema: Schema | None = None,
) -> MapChoice:
    """All the looks, with the noise that makes k runs cost what the looks may."""
    sizes = n_features, n_classes, max(1, round(n_rows * (1 - HELD_OUT_SHARE)))
    price = tried[0].epsilon, tried[0].delta
    first = plan_training(tried[0], *sizes, noise_multiplier=1.0, schema=schema)
    noise = noise_for(*price, first.sampling_rate, len(tried) * first.steps, neighbours)
    return MapChoice(tuple(plan_training(model, *sizes, noise_multiplier=noise, schema=schema) for model in tried), *price)


def _split(whole: float, share: float, decimals: int) -> tuple[float, float]:
    """``share`` of a number and the rest, which add up to it as they are *written*: a ledger adds decimals, and rounds up.

    The share is rounded down to 12 digits, and to the ``decimals`` in which the ledger counts; the rest is what is left, or
    the float below it. So the two cost what the whole does, and never more.

    >>> _split(1.1, 0.1, 12), _split(1e-05, 0.3, 30)
    ((0.11, 0.99), (3e-06, 7e-06))
    """
    total = Decimal(repr(float(whole)))
    exact = total * Decimal(repr(float(share)))
    part = exact.quantize(Decimal(1).scaleb(max(exact.adjusted() - 11, -decimals)), rounding=ROUND_FLOOR)
    rest = float(total - part)
    return float(part), rest if Decimal(repr(rest)) <= total - part else math.nextafter(rest, 0)


def _refuse_what_does_not_fit(data: PrivateData, needed: Cost) -> None:
    """Raise before the first charge if the account's purse, or the analyst's own, cannot pay for all of it."""
    statement = data.budget
    spent = statement.spent if data.part is None else statement.of_part(data.part).exposed
    own = next((line for line in statement.analysts if line.analyst == data.analyst), None)
    purses = [(f"account {statement.account!r}", "dataset", spent, statement.capacity)]
    if own is not None and own.capacity is not None and data.part is None:  # for a part the ledger decides alone
        purses.append((f"the cap of analyst {data.analyst!r}", f"analyst {data.analyst}", own.spent, own.capacity))
    for whose, cap, gone, capacity in purses:
        left = gone.left_of(capacity)
        if needed.pico_epsilon > left.pico_epsilon or needed.quecto_delta > left.quecto_delta:
            raise BudgetExceeded(
                f"The looks and the last run cost epsilon {rounded_up(needed.block_epsilon)} and delta "
                f"{rounded_up(needed.block_delta)} together, and epsilon {rounded_down(left.block_epsilon)} and delta "
                f"{rounded_down(left.block_delta)} are left of the training "
                f"purse of {whose}. Nothing was charged.",
                requested_epsilon=needed.block_epsilon,
                remaining_epsilon=left.block_epsilon,
                cap=cap,
            )


def _check(model: LocallyLinearClassifier, candidates: Sequence[Mapping[str, object]], share: float) -> None:
    if not isinstance(model, LocallyLinearClassifier) or not math.isfinite(model.epsilon):
        raise InvalidInput(
            "model must be a LocallyLinearClassifier with a finite epsilon; without privacy use scikit-learn's search"
        )
    check_settings(model)
    check_device(model.device)
    if len(candidates) < 2:
        raise InvalidInput(f"there are {len(candidates)} candidates; give two or more to choose from")
    tunable = sorted(_TUNABLE & model.get_params(deep=False).keys())
    for name in (name for candidate in candidates for name in candidate if name not in tunable):
        raise InvalidInput(f"a candidate sets {name!r}; candidates differ in {', '.join(tunable)} alone")
    if not 0 < share < 1:
        raise InvalidInput(f"share is {share!r}; it must lie strictly between 0 and 1")
