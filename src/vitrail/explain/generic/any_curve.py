"""Any explainer that draws a curve, made private by subsample and aggregate.

Rows are dealt into l groups, each row by a draw of its own; the explainer runs on every group, in a process of its own; its
curve is put on k public places and clipped to the public range of width R; the mean over groups is released. Adding,
removing or replacing a row changes one group, whose clipped curve moves by at most R sqrt(k) in L2, so noise of sigma =
R sqrt(k)/mu on the sum, R sqrt(k)/(l mu) on the mean, is mu-GDP whatever the explainer does (the vault's GroupedSum has the
argument, and enforces the clip). Interpolation happens inside a group; what follows the release is post-processing. With
``retrain=`` the model itself is a function of the group's rows, so the promise is about those that trained it too.
Test: tests/explain/generic/test_any_curve.py; audit: tests/audit/test_generic_audit.py.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InvalidInput
from ...guarantee import Guarantee, question_mu
from ...model import Model
from ...model.contents import sketch
from ...results import Curve
from ...results.band_claim import TWO_SIDED_95, claim_of
from .curve_output import CurveReader, checked_default, checked_range, grid_of, level_text
from .price import SMALL_CURVE_NOISE, GenericQuote, checked_groups, choose_groups
from .task import Explainer, Retrain, group_task

if TYPE_CHECKING:
    from ...vault import GroupedSum, PrivateData

VERSION = 1


class AnyCurve:
    """The curve that any explainer draws, from private rows.

    Parameters
    ----------
    data : PrivateData
        The rows.
    explainer : callable
        ``explainer(model, X)``, or ``explainer(model, X, y)`` if it takes a third argument. ``X`` is a pandas data frame of
        one group's rows in original units, without the target, ``y`` the target. It returns ``(x, y)`` arrays of any length,
        a dictionary, a Series, a frame with a column ``eff`` (as PyALE does), or one number per place of ``x_grid``.
    x_grid : array, list of levels, or name of a column
        The public places of the curve. Curves over numbers are interpolated there; of levels, those that a group's curve
        leaves out say ``default``. A column's places come from the schema.
    y_range : (float, float)
        Between which every group's curve is clipped. Noise is proportional to its width.
    model : object, optional
        What the explainer gets: as it is, or if it is a ``vitrail.Model`` as an object with ``predict(frame)``.
    retrain : callable, optional
        Instead of a model: ``retrain(frame)`` trains one on a group's rows, the target included. Then the promise covers
        the rows that train the models; the curve explains those models, not one that was trained elsewhere.
    groups : int, optional
        How many groups. If not given, as many as make the noise 2 % of ``y_range``, while each has about 50 rows at least
        (200 to train on).
    default : float or array, optional
        What an empty, failing or late group says; the middle of ``y_range`` if not given.
    name : str, optional
        What the curve is about; the column if ``x_grid`` names one.
    y_label : str, optional
        What its values are.
    isolation, timeout_seconds
        As for :class:`~vitrail.GroupedSum`.
    key : str, optional
        A name for the explainer and the model; with it, asking again replays the stored answer, free.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "dose": vt.Numeric(0, 10)})
    >>> rows = {"age": np.tile(np.arange(100.0), 200), "dose": np.tile(np.arange(100.0) / 10, 200)}
    >>> data = vt.PrivateData(rows, schema, name="doses", n_rows_public=20_000, budget=vt.Budget(10, 1e-6))
    >>> def dose_by_age(model, X):
    ...     means = X.groupby(X["age"] // 25 * 25 + 12)["dose"].mean()
    ...     return means.index.to_numpy(), means.to_numpy()
    >>> mean_dose = vt.AnyCurve(data, dose_by_age, [12, 37, 62, 87], (0, 10), name="age", isolation="none")
    >>> curve = mean_dose(epsilon=9)
    >>> np.abs(curve.y - [1.2, 3.7, 6.2, 8.7]).max() < 1
    np.True_
    """

    def __init__(
        self,
        data: PrivateData,
        explainer: Explainer,
        x_grid: ArrayLike | str,
        y_range: tuple[float, float] | None = None,
        *,
        model: object = None,
        retrain: Retrain | None = None,
        groups: int | None = None,
        default: ArrayLike | None = None,
        name: str | None = None,
        y_label: str = "model output",
        isolation: Literal["process", "none"] = "process",
        timeout_seconds: float = 60.0,
        key: str | None = None,
    ) -> None:
        from ...vault import PrivateData  # here, so that curves can be read without loading the vault

        if not isinstance(data, PrivateData):
            raise InvalidInput(f"data is {type(data).__name__}; AnyCurve explains from the rows of a PrivateData")
        self._low, self._high = checked_range(y_range)
        self._grid, axis = grid_of(x_grid, data.schema)
        self._default = checked_default(default, self._low, self._high, len(self._grid))
        self._groups = checked_groups(groups, data.n_rows_public, "AnyCurve")
        self._data, self._key, self._trains = data, checked_key(key), retrain is not None
        self._name, self._y_label = axis if name is None else str(name), str(y_label)
        self._isolation, self._timeout_seconds = isolation, timeout_seconds
        self._model, self._functions = model, sketch((explainer, retrain))
        self._task = group_task(data, explainer, model, retrain, CurveReader(self._grid, self._default), "AnyCurve")
        self._question(1.0)  # what is wrong with the other options is said now

    def __repr__(self) -> str:
        return f"AnyCurve({self._data!r}, {self._name}, {len(self._grid)} places, y_range=({self._low:g}, {self._high:g}))"

    def __call__(self, *, epsilon: float | None = None, mu: float | None = None) -> Curve:
        """Draw the curve, in one release.

        Parameters
        ----------
        epsilon, mu : float
            The price, in one of the two currencies.

        Returns
        -------
        Curve
            With the band of its noise.

        Raises
        ------
        InvalidInput
            If the explainer fails on public rows, or says what does not fit. Nothing was charged.
        BudgetExceeded
            If too little is left. Nothing was charged, and a cheaper question may still fit.
        """
        question = self._question(question_mu(epsilon, mu, self._data.delta))
        release = self._data.ask(question, epsilon=epsilon, mu=mu)
        assert release.sigma is not None
        mean, std = release.parts["mean"], release.sigma / question.groups
        grid = self._grid
        # The mean of clipped curves lies in the range; what noise put outside is brought back, bands and all.
        y, lower, upper = (np.clip(mean + shift * TWO_SIDED_95 * std, self._low, self._high) for shift in (0, -1, 1))
        return Curve(
            name=self._name,
            kind="any curve",
            x=np.array(grid.numbers) if grid.levels is None else grid.levels,
            y=y,
            guarantee=self._guarantee(release.guarantee),
            cost=release.cost,
            band_claim=claim_of("any curve"),
            lower=lower,
            upper=upper,
            std=np.full(len(grid), std),
            x_label=self._name,
            y_label=self._y_label,
            notes=group_notes(question.groups, self._data.n_rows_public, trains=self._trains),
            categorical=grid.levels is not None,
        )

    def quote(self, *, epsilon: float | None = None, mu: float | None = None) -> GenericQuote:
        """How many groups and how much noise there would be at this price. Reads no row and charges nothing."""
        question = self._question(question_mu(epsilon, mu, self._data.delta))
        quote = self._data.quote(question, epsilon=epsilon, mu=mu)
        assert quote.sigma is not None
        std = quote.sigma / question.groups
        return GenericQuote(
            question.groups,
            self._data.n_rows_public / question.groups,
            std,
            TWO_SIDED_95 * std,
            quote.cost,
            self._guarantee(quote.guarantee),
            quote.fits,
            quote.remaining_epsilon,
        )

    def __vitrail_quote__(self, *, epsilon: float | None, mu: float | None) -> GenericQuote:
        return self.quote(epsilon=epsilon, mu=mu)

    def _guarantee(self, promise: Guarantee) -> Guarantee:
        return replace(promise, protects="training-data") if self._trains else promise

    def _question(self, mu: float) -> GroupedSum:
        from ...vault import GroupedSum

        size = len(self._grid)
        groups = self._groups or choose_groups(
            self._data.n_rows_public, math.sqrt(size), SMALL_CURVE_NOISE, mu, trains=self._trains
        )
        places = self._grid.numbers if self._grid.levels is None else [level_text(level) for level in self._grid.levels]
        return GroupedSum(
            self._task,
            size,
            low=self._low,
            high=self._high,
            groups=groups,
            default=np.array(self._default),
            isolation=self._isolation,
            timeout_seconds=self._timeout_seconds,
            key=identity(self._data, self._key, "any curve", list(places or ()), self._model, self._functions),
            label=f"any curve: {self._name}",
        )


def checked_key(key: str | None) -> str | None:
    """The caller's name for the explainer."""
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidInput(f"key is {key!r}; it must be a non-empty text that names the explainer and the model")
    return key


def identity(data: PrivateData, key: str | None, kind: str, places: object, model: object, functions: str) -> str | None:
    """What makes two questions the same, where the caller gave a name for what cannot be compared.

    The name never stands in for what can: the model (``Model.identity``; an object of another library by what can be known
    of it), and the code of the explainer and of ``retrain``.
    """
    if key is None:
        return None
    known = model.identity(data.feature_schema, key) if isinstance(model, Model) else sketch(model)
    parts = {"kind": kind, "version": VERSION, "key": key, "places": places, "model": known, "functions": functions}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def group_notes(groups: int, n_rows_public: int, *, trains: bool) -> tuple[str, ...]:
    """What a reader of a mean over groups should know."""
    rows = n_rows_public / groups
    notes = [
        f"The mean of {groups} explanations, each of a random group of about {rows:.0f} rows: where an explanation of few "
        "rows differs from one of all, this does too.",
        "Bands show the noise that was added; the choice of groups and what clipping took away are not in them.",
    ]
    if trains:
        notes.append(f"It explains {groups} models that were trained on about {rows:.0f} rows each, not one trained on all.")
    return tuple(notes)
