"""A public model is tried before the first charge; one that fails later all the same says what was charged.

Several explainers pay for histograms or private rows first and ask the model about public rows made from them. Nothing is
refunded, so a model that cannot be used has to be found out before: on probe rows of the schema, and on rows that have one
column at an end of its range, or at one of its levels, which is where curves begin and end. A model that fails on some rare
combination only can still pass. It is then said what was charged, and that it is not lost: the ledger replays a question
about rows alone when it is asked again, whatever the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ..accounting import Cost, epsilon_of, rounded_up
from ..errors import ModelError, VitrailError
from ..model import Model
from ..schema import FloatArray, Numeric, Schema

if TYPE_CHECKING:
    from ..vault import PrivateData

N_CORNERS = 3
"""Probe rows at the beginning that are no draws."""
MOST_SURROUNDINGS = 8
"""Draws that each end and each level is put into."""
MOST_ROWS = 2048


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
    edges = edges[:: -(-len(edges) // MOST_ROWS)]
    surroundings = min(MOST_SURROUNDINGS, MOST_ROWS // len(edges))
    rows = np.tile(schema.probe_rows(N_CORNERS + surroundings)[N_CORNERS:], (len(edges), 1))
    repeated = [edge for edge in edges for _ in range(surroundings)]
    rows[np.arange(len(rows)), [place for place, _, _ in repeated]] = [value for _, value, _ in repeated]
    return rows, [words for _, _, words in repeated]


@contextmanager
def after_charge(data: PrivateData, model: Model, charged: Cost) -> Iterator[None]:
    """Ask a model about public rows, after a charge: any failure is the model's, and says what was charged.

    Not for anything that reads private rows or the ledger, whose errors are no fault of the model.
    """
    with telling_charge(data, charged):
        try:
            yield
        except VitrailError:
            raise
        except Exception as error:
            raise ModelError(f"{model.name} fails on public rows: {_words(error)}") from error


@contextmanager
def telling_charge(data: PrivateData, charged: Cost) -> Iterator[None]:
    """Whatever is wrong with a model is said together with what was charged before, if anything was."""
    try:
        yield
    except ModelError as error:
        if charged == Cost():
            raise
        epsilon = epsilon_of(charged.mu, data.delta)
        raise ModelError(
            f"{error}. Epsilon {rounded_up(epsilon)} was charged before that, and stays charged. What was released about "
            "the rows alone is kept: asking again at the same price, with a model that answers, replays it free"
        ) from error


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
