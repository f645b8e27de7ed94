"""Curves, surfaces and rankings as results; the released histograms lie under the curves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..._types import Floats
from ...accounting import Cost
from ...accounting.guarantee import Guarantee
from ...results import Curve, Ranking, Surface
from ...results.band_claim import BandClaim, claim_of
from ...results.curve import Density
from ...results.effects import Effects
from ...results.row_count import RowCount
from ...schema import Categorical, Level, Schema
from ...schema.bins import wide_edges
from ..rows.network import MOST_SURVEYED
from .reference import Axis, Reference


class Drawn(NamedTuple):
    """Values along an axis, and the standard deviations behind their bands."""

    axis: Axis
    values: Floats
    stds: Floats


INDEPENDENT = (
    f"The private rows that this was planned from and combined with are of more than {MOST_SURVEYED} columns, taken as "
    "independent of each other; bands claim no 95 % for what dependence changes."
)


def measured_claim(kind: str, *, smooth: bool, on_rows: bool) -> BandClaim:
    """Of an explainer whose bands were measured where it leans on private rows, and not where it does not."""
    return claim_of(kind) if smooth and on_rows else BandClaim.NOT_CALIBRATED


class Receipt(NamedTuple):
    """What a result says of what it reveals and of what its call cost."""

    guarantee: Guarantee
    cost: Cost
    rows_counted: RowCount | None = None
    notes: tuple[str, ...] = ()
    """That all of it is from a sample of the rows, where that is so."""
    independent: bool = False
    """Whether private rows behind it are of so many columns that these were taken as independent of each other."""

    def said(self, notes: tuple[str, ...], claim: BandClaim) -> tuple[tuple[str, ...], BandClaim]:
        """The notes of a result and what its bands claim: nobody has measured those of samples, or of very many columns."""
        more = (*self.notes, INDEPENDENT) if self.independent else self.notes
        return (*notes, *more), BandClaim.NOT_CALIBRATED if more else claim


def effects_of(
    reference: Reference,
    drawn: Iterable[Drawn],
    receipt: Receipt,
    *,
    kind: str,
    label: str,
    notes: tuple[str, ...],
    claim: BandClaim | None = None,
) -> Effects:
    """The result of these curves (one column) and surfaces (two); ``claim`` of its curves, if not that of the kind."""
    notes, claim = receipt.said(notes, claim or claim_of(kind))
    curves: dict[str, Curve] = {}
    surfaces: dict[tuple[str, str], Surface] = {}
    for axis, values, stds in drawn:
        sides = [_side(reference.schema, name, column) for name, column in zip(axis.names, axis.values.T, strict=True)]
        if len(axis.names) == 2:
            first, second = axis.names
            shape = len(sides[0]), len(sides[1])
            surfaces[first, second] = Surface(
                (first, second),
                kind,
                (sides[0], sides[1]),
                values.reshape(shape),
                guarantee=receipt.guarantee,
                cost=receipt.cost,
                std=stds.reshape(shape),
                band_claim=receipt.said((), claim_of(f"{kind} of pairs"))[1],
                value_label=label,
                notes=notes,
                rows_counted=reference.rows_counted,
            )
            continue
        (name,) = axis.names
        curves[name] = Curve(
            name,
            kind,
            sides[0],
            values,
            guarantee=receipt.guarantee,
            cost=receipt.cost,
            std=stds,
            band_claim=claim,
            y_label=label,
            density=_density(reference, axis),
            notes=notes,
            categorical=isinstance(reference.schema[name], Categorical),
            rows_counted=reference.rows_counted,
        )
    return Effects(curves, reference.marginals, receipt.guarantee, receipt.cost, surfaces)


def ranking_of(
    items: Iterable[str],
    scores: Floats,
    stds: Floats,
    receipt: Receipt,
    *,
    kind: str,
    label: str,
    notes: tuple[str, ...],
    claim: BandClaim | None = None,
) -> Ranking:
    """The result of these scores, with the standard deviations of their noise; ``claim``: if not that of the kind."""
    notes, claim = receipt.said(notes, claim or claim_of(kind))
    common: Any = {"score_label": label, "notes": notes, "band_claim": claim, "rows_counted": receipt.rows_counted}
    return Ranking(tuple(items), scores, receipt.guarantee, receipt.cost, kind, stds, **common)


def _side(schema: Schema, name: str, values: Floats) -> Floats | tuple[Level, ...]:
    """The grid points of one column, each once, levels by their names in the order of the axis."""
    column = schema[name]
    order = list(dict.fromkeys(values.tolist()))
    return tuple(column.levels[int(index)] for index in order) if isinstance(column, Categorical) else np.array(order)


def _density(reference: Reference, axis: Axis) -> Density:
    (name,) = axis.names
    histogram = reference.histogram(name)
    shares = reference.shares(name)
    if isinstance(reference.schema[name], Categorical):
        return Density(None, shares[axis.numbers.astype(int)])
    edges = np.asarray(histogram.edges[name])
    keep = wide_edges(edges)
    return Density(edges[keep], np.add.reduceat(shares[: len(edges) - 1], np.flatnonzero(keep)[:-1]))
