"""A model's own reasons for what it says of somebody: Shapley values on private rows, as an explanation. Free.

The model is public, the point is the person's own, and the background is rows sampled from a release: everything here is
post-processing, for any model, also one that did not exist when the rows were paid for. Values add up to the model's
output, because they telescope from each row to the point (``on_rows``). Where real rows were asked about a model's reasons,
the values of that model are corrected by it (``real_rows``), and the mean output that they start from is by as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput, SchemaError
from ...model import Model
from ...results import Attribution
from ...results.band_claim import TWO_SIDED_95, BandClaim, claim_of
from ...results.checks import plain_value, shown_text
from ...results.mean_reasons import MeanReasons
from ...results.private_rows import PrivateRows
from ...schema import Schema
from ..rows.network import MOST_SURVEYED
from .on_rows import Method, Players, RowValues, Scale, players_of, shapley_of_outputs
from .real_rows import RealRows

BACKGROUND = 1_024
"""Stored rows that a point is compared with, unless more are asked for."""
MOST_SHOWN = 12
"""Values of a group that are written out."""
MANY_COLUMNS = (
    "Of more than {most} columns the private rows hold every column's own distribution and nothing of what columns have in "
    "common, at any price; what that changes in the reasons is in no band, and bands claim no 95 % for it."
)
NO_LINKS = (
    "At this price the private rows hold every column's own distribution and nothing of what columns have in common; what "
    "that changes in the reasons is in no band."
)
BY_HEART = (
    "A model that knows the rows it was trained on by heart says other things of them than of rows sampled from a release; "
    "what that changes in the reasons is in no band."
)
HELD_AGAINST_ROWS = (
    "Values were held against the real rows, on average and under the same promise, and corrected by the difference, "
    "{size}; bands are as wide as it says."
)
OF_ANOTHER = "For {model}, whose reasons were held against the real rows, all of that together was {size}."
EXACT = "Exact over all orders of the columns, tree by tree: the values have no error of random orders."
LINKS = (
    "Of what two columns have in common and the private rows leave out, bands hold the size that was seen, or that noise "
    "hides; of what more columns have, a guess of the size only."
)


def explain_on_rows(
    models: Sequence[Model],
    schema: Schema,
    raw: Floats,
    rows: PrivateRows,
    *,
    n_rows: int = BACKGROUND,
    bands: bool = True,
    players: Players | None = None,
    scale: Scale = "output",
    method: Method = "permutations",
    bought: Mapping[int, MeanReasons] | None = None,
) -> list[Attribution]:
    """Why each model, an output of one predictor, says what it says at public points.

    Parameters
    ----------
    models, schema, players, scale, method
        As for :func:`shapley_of_outputs`.
    raw : array (points, columns)
        As ``schema.read_points`` gives them.
    rows : PrivateRows
        With all columns that the models read.
    n_rows : int
        How many of the stored rows are the background.
    bands : bool
        Whether to compute noise bands.
    bought : mapping of int to MeanReasons, optional
        By the number of a model: about its output and the declared players.
    """
    if not len(raw):
        raise InvalidInput("there are no points to explain; give at least one")
    missing = [name for name in schema if name not in rows.schema or rows.schema[name] != schema[name]]
    if missing:
        raise SchemaError(f"column {missing[0]!r} of the model is not among the private rows, or is declared differently")
    for model in models:
        model.check(schema)
    background = rows.sampled[:n_rows, [rows.schema.column_index(name) for name in schema]]
    background = np.ascontiguousarray(background)
    found = shapley_of_outputs(models, schema, raw, background, players=players, scale=scale, method=method)
    groups = players_of(schema, players)
    about, points = list(groups.values()), shown_points(schema, raw, groups)
    # A bare function is known by its name alone, and another one may have the same.
    same = {n: means for n, means in (bought or {}).items() if means.is_about(found[n].row_outputs)}
    real = {number: RealRows(rows, means, about, len(background)) for number, means in same.items()}
    return [_attribution(each, points, rows, groups, real.get(n), bands=bands) for n, each in enumerate(found)]


def links_note(rows: PrivateRows) -> str:
    """What bands hold of what columns have in common, in words."""
    if len(rows.columns) > MOST_SURVEYED:
        return MANY_COLUMNS.format(most=MOST_SURVEYED)
    return LINKS if rows.noisy_tables else NO_LINKS


def largest_of(real: RealRows) -> str:
    """What real rows take off most, in words."""
    off = real.correction.taken_off
    largest = int(np.abs(off).argmax())
    return f"at most {abs(off[largest]):.2g} ({real.bought.players[largest]})"


def shown_points(schema: Schema, raw: Floats, players: Mapping[str, Sequence[str]]) -> tuple[dict[str, Any], ...]:
    """By player, the value of its column, or of all its columns in a row; of very many the first ones."""
    frame = schema.frame(raw)

    def together(columns: Sequence[str], row: int) -> str:
        shown = ", ".join(shown_text(plain_value(frame[name][row])) for name in columns[:MOST_SHOWN])
        return shown if len(columns) <= MOST_SHOWN else f"{shown}, ... ({len(columns)} columns)"

    return tuple(
        {
            player: frame[columns[0]][row] if len(columns) == 1 else together(columns, row)
            for player, columns in players.items()
        }
        for row in range(len(raw))
    )


def _attribution(
    found: RowValues,
    points: tuple[dict[str, Any], ...],
    rows: PrivateRows,
    players: Mapping[str, Sequence[str]],
    real: RealRows | None,
    *,
    bands: bool,
) -> Attribution:
    off = np.zeros(len(players)) if real is None else real.correction.taken_off
    errors = None
    if bands:
        about = list(players.values())
        errors = rows.standard_errors(found.per_row, about) if real is None else real.standard_errors(found.per_row)
    values, half = found.values - off, None if errors is None else TWO_SIDED_95 * errors
    kind = "private reasons of any model" if real is None else "private reasons"
    return Attribution(
        values=values,
        base_values=np.full(len(points), found.base + off.sum()),
        columns=found.players,
        points=points,
        outputs=found.outputs,
        guarantee=rows.guarantee if real is None else real.bought.guarantee,
        cost=rows.cost if real is None else rows.cost + real.bought.cost,
        method="shapley",
        band_claim=claim_of(kind) if rows.noisy_tables and rows.sampling_rate == 1 else BandClaim.NOT_CALIBRATED,
        lower=None if half is None else values - half,
        upper=None if half is None else values + half,
        notes=(
            links_note(rows),
            BY_HEART if real is None else HELD_AGAINST_ROWS.format(size=largest_of(real)),
            *([EXACT] if found.method == "tree" else []),
            *rows.notes,
        ),
        rows_counted=rows.rows_counted,
    )
