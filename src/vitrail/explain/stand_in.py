"""A stand-in for private rows: rows drawn from the schema, or from histograms this analyst has already bought.

It answers a recipe's questions with sums scaled to the declared row count and noise at its real size, so that what comes
out is a result like the one that would be paid for, from nobody's rows. Nothing here reads a private row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import ModelError
from ..model import Model
from ..releases import Release
from ..results.marginals import Marginals
from ..schema import FloatArray, Numeric, Schema
from ..solve.curves.reference import reference_rows
from ..vault import PublicRows
from .recipe import Ask, Terms

SEED = 22
"""Of the noise of a stand-in: it hides nothing, and a quote is the same again."""
BLOCK_ROWS = 256
N_CORNERS = 3
"""Probe rows at the beginning that are no draws."""
MOST_SURROUNDINGS = 8
"""Draws that each end and each level is put into."""
MOST_EDGE_ROWS = 2048


@dataclass(frozen=True)
class StandIn:
    """Rows that are nobody's, in the place of the vault.

    Attributes
    ----------
    rows : PublicRows
        At most 2 000.
    terms : Terms
        The facts of the data that they stand for.
    noise : Generator
        Seeded.
    """

    rows: PublicRows
    terms: Terms
    noise: np.random.Generator

    def answer(self, ask: Ask, units: int, mu: float, step: int) -> Release:
        """What the vault might answer."""
        terms = self.terms
        return self.rows.scaled(ask.question, mu=mu, delta=terms.delta, n_rows=terms.n_rows_public, noise=self.noise)


def stand_in(terms: Terms, n_rows: int, marginals: Marginals | None = None) -> StandIn:
    """A stand-in of so many rows: draws over the schema, or from released histograms, column by column."""
    raw = reference_rows(terms.schema, marginals, n_rows, SEED, by_magnitude=True)
    rows = PublicRows(terms.schema.frame(raw), terms.schema, n_rows, terms.target, terms.neighbours, BLOCK_ROWS)
    return StandIn(rows, terms, np.random.default_rng(SEED))


def try_model(model: Model, schema: Schema) -> None:
    """Raise ``ModelError`` if the model fails on public rows inside the schema. Free; to be called before the first charge.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> try_model(vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk"), schema)
    >>> gap = vt.Model(lambda x: np.where((x[:, 0] == 0) & (x[:, 2] == 1), np.nan, 0.5), range=(0, 1), name="gap")
    >>> try_model(gap, schema)
    Traceback (most recent call last):
        ...
    vitrail.errors.ModelError: gap returns no finite number on a public row with 'age' at 0; it must inside the schema
    """
    model.check(schema)
    rows, names = edge_rows(schema)
    try:
        outputs = model.predict_points(schema, rows)
    except Exception as error:
        raise ModelError(
            f"{model.name} fails on public rows with a column at an end of its range, or at a level: {_words(error)}"
        ) from error
    if not (finite := np.isfinite(outputs)).all():
        raise ModelError(
            f"{model.name} returns no finite number on a public row with {names[int(np.argmin(finite))]}; it must inside "
            "the schema"
        )


def edge_rows(schema: Schema) -> tuple[FloatArray, list[str]]:
    """Public draws with one column set to an end or a level, and in words to which.

    Examples
    --------
    >>> import vitrail as vt
    >>> rows, names = edge_rows(vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])}))
    >>> rows.shape, names[0], names[-1]
    ((32, 2), "'age' at 0", "'smoker' at 'yes'")
    """
    edges: list[tuple[int, float, str]] = []
    for place, (name, column) in enumerate(schema.items()):
        if isinstance(column, Numeric):
            edges += [(place, end, f"{name!r} at {end:g}") for end in (column.low, column.high)]
        else:
            edges += [(place, float(index), f"{name!r} at {level!r}") for index, level in enumerate(column.levels)]
    edges = edges[:: -(-len(edges) // MOST_EDGE_ROWS)]
    surroundings = min(MOST_SURROUNDINGS, MOST_EDGE_ROWS // len(edges))
    rows = np.tile(schema.probe_rows(N_CORNERS + surroundings)[N_CORNERS:], (len(edges), 1))
    repeated = [edge for edge in edges for _ in range(surroundings)]
    rows[np.arange(len(rows)), [place for place, _, _ in repeated]] = [value for _, value, _ in repeated]
    return rows, [words for _, _, words in repeated]


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
