"""From a price to curves: marginals, reference rows, one joint sum, estimates. What the explainers of this room share.

Everything that can be wrong is found on public input before the marginals are paid for; the marginals and the joint sum are
refused together if they do not fit.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...accounting import Basis, Cost
from ...errors import InvalidInput
from ...guarantee import Guarantee
from ...model import Model
from ...results import Curve, Surface
from ...results.band_claim import claim_of
from ...results.curve import Density
from ...results.marginals import Marginals
from ...schema import Categorical, Schema
from ...solve.curves.axes import MOST_FINE, Axis, Floats, column_of, fine_axis
from ...solve.curves.kriging import informative_places
from ...solve.curves.reference import Along, reference_rows, rows_affordable
from ...solve.curves.smoothing import smoothed_marginal
from ...solve.curves.steps import Steps, noise_against_bias, steps_of, stretched
from ...vault import BoundedSum, PrivateData, Quote, Release
from ..marginals import marginals_bins, marginals_question
from ..promises import basis_of, check_same_neighbours, guarantee_of
from ..trying import try_model
from .accumulated import AccumulatedEffectsPart
from .clipping import SizeHistogram, choose_clip
from .joint import Joint, Part, per_unit_std
from .partial import EXPECTED_SCALE, PartialDependencePart
from .paying import refuse_what_does_not_fit, rest_of

MARGINALS_SHARE = 0.12
"""Of mu squared: the histogram of all columns needs little, and everything else leans on it."""
REFERENCE_SHARE = 0.06
"""The same where histograms make reference rows and nothing else: partial dependence."""
FOCUS_PART, FOCUS_BINS = 0.5, 400
"""Of the marginals' price, for a finer histogram of the columns asked about alone, where they are few: local effects are cut
by it, and noise grows with the number of columns counted."""
CLIPS_SHARE = 0.06
"""Of mu squared, for the histogram that sets the clips of local effects."""
EXPECTED_CLIP = 6.0
"""The clip of local effects, in units of their typical size among reference rows, before it is bought."""
MARGINALS_BINS = 100
LEAST_PLACES, MOST_PLACES = 6, 64
LEAST_FINE, FINE_PER_PLACE = 64, 4
"""At how many places a curve is drawn whose resolution is given, at least, and for each place where it is measured."""

CLIP_NOTE = (
    "Bands show the noise of the release and what the reference leaves open; sampling error of the rows and what clipping "
    "of unusual rows changes are not in them."
)
PLAIN_NOTE = "Values are the noisy means themselves; bands show the noise of the release alone."


def checked_features(schema: Schema, features: object) -> tuple[str, ...]:
    """Names of columns, all of them if None; an error names what is wrong."""
    if features is None:
        return schema.names
    if isinstance(features, str):
        column_of(schema, features)
        return (features,)
    if not isinstance(features, Sequence) or not features:
        raise InvalidInput(f"features is {features!r}; give a list of column names, or leave it out for all of them")
    for name in features:
        column_of(schema, name)
    if len(set(features)) < len(features):
        twice = next(name for name in features if list(features).count(name) > 1)
        raise InvalidInput(f"features names {twice!r} twice; each is explained once")
    return tuple(features)


def checked_features_and_pairs(schema: Schema, features: object) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Names of columns, and pairs of different ones; all columns and no pair if None."""
    if not isinstance(features, list | tuple) or all(isinstance(one, str) for one in features):
        return checked_features(schema, features), ()
    names = [one for one in features if isinstance(one, str)]
    pairs = []
    for one in features:
        if isinstance(one, str):
            continue
        if not isinstance(one, tuple | list) or len(one) != 2:
            raise InvalidInput(f"a feature is {one!r}; name a column, or a pair of columns such as ('age', 'sex')")
        first, second = one
        for name in (first, second):
            column_of(schema, name)
        if first == second:
            raise InvalidInput(f"a pair of features is ({first!r}, {second!r}); name two different columns")
        pairs.append((first, second))
    if len({frozenset(pair) for pair in pairs}) < len(pairs):
        raise InvalidInput("features names a pair twice; each is explained once")
    return checked_features(schema, names) if names else (), tuple(pairs)


def checked_inputs(data: object, model: object) -> None:
    """The kinds of the two arguments that every explainer takes."""
    if not isinstance(data, PrivateData):
        raise InvalidInput(f"data is {type(data).__name__}; give the vt.PrivateData that holds the rows")
    if not isinstance(model, Model):
        raise InvalidInput(f"model is {type(model).__name__}; wrap it: vt.Model(your_model)")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A dataset with its marginals paid for, what is left of the price, and the releases used so far."""

    data: PrivateData
    model: Model
    marginals: Marginals
    mu: float
    spent: Cost
    basis: Basis
    focus: Marginals | None = None
    rehearsed: bool = False
    """Whether the marginals are a stand-in for those to be paid."""

    def histogram(self, name: str) -> Marginals:
        """The marginals that know a column best."""
        return self.focus if self.focus is not None and name in self.focus.columns else self.marginals

    @property
    def schema(self) -> Schema:
        """The columns that the model sees."""
        return self.data.feature_schema

    def paid(self, asked: Release | Quote) -> Prepared:
        """The same after another question, or after its rehearsal."""
        used = basis_of([asked]) if isinstance(asked, Release) else Basis()
        return replace(self, mu=rest_of(self.mu, asked.cost), spent=self.spent + asked.cost, basis=self.basis | used)

    @property
    def n_rows(self) -> float:
        """What sums are divided by."""
        return float(self.data.n_rows_public)


def prepare(
    data: PrivateData,
    model: Model,
    total_mu: float,
    marginals: Marginals | None,
    what: str,
    *,
    share: float = MARGINALS_SHARE,
    focus: Sequence[str] = (),
) -> Prepared:
    """Pay for the marginals, unless they are given; ``focus``: columns whose histogram matters more than the others'."""
    try_model(model, data.feature_schema)
    if marginals is not None:
        if not isinstance(marginals, Marginals):
            raise InvalidInput(f"marginals is {type(marginals).__name__}; give what vt.marginals(data, ...) returned")
        check_same_neighbours(data, marginals, "marginals")
        return Prepared(data, model, marginals, total_mu, Cost(), basis_of([marginals]))
    wanted = histograms_wanted(data, share, focus)
    refuse_what_does_not_fit(data, wanted[0].question(data), wanted[0].price * total_mu, total_mu, what)
    found, spent = [], Cost()
    for one in wanted:
        release = data.ask(one.question(data), mu=one.price * total_mu)
        found.append(Marginals.of_release(release, marginals_bins(data.schema, one.columns, one.bins), data.n_rows_public))
        spent += release.cost
    focused = found[1] if len(found) > 1 else None
    return Prepared(data, model, found[0], rest_of(total_mu, spent), spent, basis_of(found), focused)


@dataclass(frozen=True)
class WantedHistogram:
    """Columns to count, into how many bins, and for which part of mu."""

    columns: tuple[str, ...] | None
    bins: int
    price: float

    def question(self, data: PrivateData) -> BoundedSum:
        """What to ask for."""
        return marginals_question(data.schema, self.columns, self.bins)


def histograms_wanted(data: PrivateData, share: float, focus: Sequence[str]) -> tuple[WantedHistogram, ...]:
    """Of all columns, and once more, finer, of those in focus if they are at most half of them."""
    if not focus or 2 * len(focus) > len(data.schema.names):
        return (WantedHistogram(None, MARGINALS_BINS, math.sqrt(share)),)
    return (
        WantedHistogram(None, MARGINALS_BINS, math.sqrt(share * (1 - FOCUS_PART))),
        WantedHistogram(tuple(focus), FOCUS_BINS, math.sqrt(share * FOCUS_PART)),
    )


@dataclass(frozen=True, eq=False)
class PartialPlan:
    """Partial dependence of several axes: where to look, and the part of the joint sum."""

    along: Along
    places: tuple[NDArray[np.intp], ...]
    part: PartialDependencePart

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        features: Sequence[str],
        mu: float,
        *,
        resolution: int | None = None,
        pairs: Sequence[Axis] = (),
    ) -> PartialPlan:
        """Choose the places so that what interpolation leaves open is about as small as the noise."""
        schema = prepared.schema
        drawn = MOST_FINE if resolution is None else min(MOST_FINE, max(LEAST_FINE, FINE_PER_PLACE * resolution))
        axes = [fine_axis(schema, name, prepared.marginals, drawn) for name in features]
        count = rows_affordable(sum(map(len, (*axes, *pairs))))
        rows = reference_rows(schema, prepared.marginals, count)
        along = Along.of(prepared.model, schema, rows, (*axes, *pairs))
        noise = per_unit_std(prepared.data, mu) * math.sqrt(max(len(features), 1)) * prepared.model.width
        places = []
        for axis, curve in zip(axes, along.curves, strict=False):
            if isinstance(schema[axis.names[0]], Categorical):
                places.append(np.arange(len(axis)))
            elif resolution is not None:
                places.append(_evenly(axis, resolution))
            else:
                places.append(informative_places(curve, LEAST_PLACES, MOST_PLACES, noise**2 / EXPECTED_SCALE))
        places.extend(np.arange(len(axis)) for axis in pairs)
        part = PartialDependencePart.of(prepared.model, along, tuple(places), per_unit_std(prepared.data, mu))
        return cls(along, tuple(places), part)

    def curves(
        self, prepared: Prepared, means: Floats, stds: Floats, *, plain: bool
    ) -> dict[tuple[str, ...], tuple[Axis, Floats, Floats]]:
        """Per axis: the places, values and standard deviations."""
        if plain:
            values, noise = self.part.measurements(means, stds)
            cut = np.cumsum([len(value) for value in values])[:-1]
            deviations = np.split(np.sqrt(np.diag(noise)), cut)
            return {
                axis.names: (axis, value, std) for axis, value, std in zip(self.part.axes, values, deviations, strict=True)
            }
        found, deviations, _ = self.part.posterior(means, stds, self.along, self.places, prepared.n_rows)
        return {axis.names: (axis, value, std) for axis, value, std in zip(self.along.axes, found, deviations, strict=True)}


def _evenly(axis: Axis, resolution: int) -> NDArray[np.intp]:
    """Of the fine places those nearest to an even spread over the range."""
    values = axis.values[:, 0]
    wanted = np.linspace(values[0], values[-1], resolution)
    return np.unique(np.abs(values[None, :] - wanted[:, None]).argmin(axis=1))


@dataclass(frozen=True, eq=False)
class AccumulatedPlan:
    """Accumulated effects of several columns."""

    along: Along
    part: AccumulatedEffectsPart
    clipped_share: float = 0.0

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        features: Sequence[str],
        orders: Mapping[str, Sequence[object]] | None = None,
        weight: float = 1.0,
    ) -> AccumulatedPlan:
        """Cut the columns by the marginals; ``weight``: the share of the joint sum that effects get."""
        schema = prepared.schema
        steps: tuple[Steps, ...] = tuple(
            steps_of(schema, name, prepared.histogram(name), order=(orders or {}).get(name), rehearsed=prepared.rehearsed)
            for name in features
        )
        rows = reference_rows(schema, prepared.marginals, rows_affordable(sum(len(one.axis) for one in steps)))
        along = Along.of(prepared.model, schema, rows, [one.axis for one in steps])
        noise = EXPECTED_CLIP * per_unit_std(prepared.data, prepared.mu * math.sqrt(weight)) * math.sqrt(len(steps))
        steps = tuple(stretched(one, curve, noise, prepared.n_rows) for one, curve in zip(steps, along.curves, strict=True))
        return cls(along, AccumulatedEffectsPart.of(prepared.model, along, steps))

    def clipped(
        self, prepared: Prepared, total_mu: float, weight: float, key: str | None
    ) -> tuple[AccumulatedPlan, Prepared]:
        """Pay for the histogram of sizes and choose the clips; ``weight``: the share of the joint sum that effects get."""
        columns = len(self.part.steps)
        histogram = SizeHistogram(self.part.sizes, columns, prepared.model.width)
        release = prepared.data.ask(
            histogram.question(identity_of(prepared, key, ["sizes", self.part.identity()])),
            mu=math.sqrt(CLIPS_SHARE) * total_mu,
        )
        assert release.sigma is not None
        paid = prepared.paid(release)
        return self.with_clips(paid, weight, histogram.edges, release.value.reshape(columns, -1), release.sigma), paid

    def with_clips(self, paid: Prepared, weight: float, edges: Floats, counts: Floats, sigma: float) -> AccumulatedPlan:
        """The same with clips chosen from counts of sizes, (columns, bins), that have noise ``sigma``."""
        unit = per_unit_std(paid.data, paid.mu * math.sqrt(weight)) * math.sqrt(len(self.part.steps))
        clips = [
            choose_clip(of_column, sigma, edges, paid.n_rows, noise_against_bias(one, size, unit, paid.n_rows), np.abs(rest))
            for of_column, one, size, rest in zip(
                counts, self.part.steps, self.part.sizes_of_rests, self.part.reference_rest(self.along), strict=True
            )
        ]
        part = self.part.clipped([clip.bound for clip in clips], [clip.bias for clip in clips])
        return replace(self, part=part, clipped_share=max(clip.share for clip in clips))

    def curves(
        self, prepared: Prepared, means: Floats, stds: Floats, *, plain: bool
    ) -> dict[tuple[str, ...], tuple[Axis, Floats, Floats]]:
        """Per column: the places, values and standard deviations."""
        if plain:
            found = self.part.plain(means, stds, prepared.n_rows)
        else:
            found = [(mean, std) for mean, std, _ in self.part.posterior(means, stds, self.along, prepared.n_rows)]
        return {one.axis.names: (one.axis, *pair) for one, pair in zip(self.part.steps, found, strict=True)}


@dataclass(frozen=True)
class Promise:
    """What a result says about what it reveals (``guarantee``) and about what its call cost (``cost``)."""

    guarantee: Guarantee
    cost: Cost
    notes: tuple[str, ...]

    @classmethod
    def of(cls, prepared: Prepared, release: Release, *, plain: bool) -> Promise:
        """The promise of everything that was used, histograms that were given included; the price of what was asked."""
        guarantee = guarantee_of(prepared.data, prepared.basis | basis_of([release]))
        return cls(guarantee, prepared.spent + release.cost, (PLAIN_NOTE if plain else CLIP_NOTE,))


def curve_of(
    schema: Schema, axis: Axis, values: Floats, stds: Floats, kind: str, y_label: str, promise: Promise, marginals: Marginals
) -> Curve:
    """A finished curve of one column, with the released histogram under it, smoothed."""
    (name,) = axis.names
    column = schema[name]
    places = axis.values[:, 0]
    shares = smoothed_marginal(marginals, name).shares
    if isinstance(column, Categorical):
        order = places.astype(int)
        x: object = tuple(column.levels[index] for index in order)
        density = Density(None, shares[order])
    else:
        x, density = places, Density(np.asarray(marginals.edges[name]), shares)
    return Curve(
        name,
        kind,
        x,  # type: ignore[arg-type]
        values,
        promise.guarantee,
        promise.cost,
        std=stds,
        band_claim=claim_of(kind),
        y_label=y_label,
        density=density,
        notes=promise.notes,
        categorical=isinstance(column, Categorical),
    )


def surface_of(schema: Schema, axis: Axis, values: Floats, stds: Floats, kind: str, label: str, promise: Promise) -> Surface:
    """A finished surface of two columns."""
    first, second = axis.names
    places = [np.unique(axis.values[:, side]) for side in (0, 1)]
    shape = len(places[0]), len(places[1])
    sides = []
    for name, values_there in zip(axis.names, places, strict=True):
        column = schema[name]
        levels = column.levels if isinstance(column, Categorical) else None
        sides.append(values_there if levels is None else tuple(levels[int(index)] for index in values_there))
    return Surface(
        (first, second),
        kind,
        (sides[0], sides[1]),
        values.reshape(shape),
        promise.guarantee,
        promise.cost,
        std=stds.reshape(shape),
        band_claim=claim_of(f"{kind} of pairs"),
        value_label=label,
        notes=promise.notes,
    )


def ask_joint(
    prepared: Prepared, parts: Sequence[Part], weights: Sequence[float], label: str, *, rate: float = 1.0, key: str | None
) -> tuple[Release, tuple[tuple[Floats, Floats], ...]]:
    """Ask for all parts in one question; returns the release and per part its means and their noise."""
    joint = Joint(tuple(parts), tuple(weights))
    identity = identity_of(prepared, key, [[part.identity() for part in parts], list(weights)])
    release = prepared.data.ask(joint.question(identity, label, rate), mu=prepared.mu)
    return release, joint.split(release, prepared.n_rows)


def identity_of(prepared: Prepared, key: str | None, content: object) -> str | None:
    """A name for a question about a model, or None where the model has no stable one."""
    model = prepared.model.identity(prepared.schema, key)
    if model is None:
        return None
    parts = [model, content]
    return "effects " + hashlib.sha256(json.dumps(parts).encode()).hexdigest()
