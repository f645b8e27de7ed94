"""An audit of a whole explainer, end to end: its conversation with two neighbouring sets of rows, many times each.

Every draw runs the recipe from its first question to its result, on rows of the auditor's own and without a ledger: the
questions that are planned from earlier answers, the split of the price, the real sums and the real noise. The output of a
draw is every number of every release, and on request of the result. Both samples go to :func:`vitrail.audit.mechanism`, so
the verdict is about the price of the whole conversation. A mechanism of the vault by itself is audited faster by
``vitrail.vault.rehearse``, which draws many outputs at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from .._types import Floats
from ..accounting.guarantee import Guarantee
from ..accounting.neighbours import check_neighbours
from ..accounting.releases import Release
from ..errors import InvalidInput
from ..explain.recipe import Conversation, GlobalExplainer
from ..progress import progress
from ..vault import PublicRows
from .draws import PROBE_DRAWS
from .mechanism import check_confidence, check_draws, mechanism
from .outcomes import Audit


def explainer(
    audited: GlobalExplainer[Any] | Conversation[Any],
    rows: object,
    neighbour: object,
    *,
    epsilon: float | None = None,
    mu: float | None = None,
    draws: int = 2000,
    confidence: float = 0.999,
    result: bool = False,
) -> Audit:
    """Test the privacy promise of a whole explainer on two neighbouring sets of rows.

    Parameters
    ----------
    audited : explainer, or its conversation
        An explainer of the whole model, or ``explainer.conversation(points)``. Of the data it was made with, public facts
        are used (schema, target, declared row count, neighbour relation, delta); its rows are not read.
    rows, neighbour : dictionary, data frame, Arrow table
        Rows of the auditor's own, twice, in the schema's columns: with and without a person, or with another one in their
        place. Choose the worst pair you can think of. A few rows will do, and are fast.
    epsilon, mu : float
        The price of each conversation; the claim under test.
    draws : int
        Conversations on either side, at least 1 000.
    confidence : float
        Probability that a bound is right; a sound explainer is refuted with at most one minus that.
    result : bool
        Whether the numbers of the result (``result.frame()``) are looked at too. They follow from the releases, so that an
        explainer which is what it says shows nothing new in them.

    Returns
    -------
    Audit
        Bounds, verdict and the event they rest on, as from ``vitrail.audit.mechanism``.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema = vt.Schema({"x": vt.Numeric(0, 1)})
    >>> data = vt.PrivateData({"x": []}, schema, name="nobody", n_rows_public=2, budget=vt.Budget(9, 1e-6), ledger="memory")
    >>> vt.audit.explainer(vt.MarginalsExplainer(data, bins=2), {"x": [0.2]}, {"x": [0.2, 0.9]}, mu=2.0, draws=1000).verdict
    'not refuted'
    """
    talk = audited.conversation() if isinstance(audited, GlobalExplainer) else audited
    if not isinstance(talk, Conversation):
        raise InvalidInput(
            f"audited is {type(audited).__name__}; give an explainer of the whole model, or explainer.conversation(points)"
        )
    check_draws(draws)
    check_confidence(confidence)
    data = talk.data
    price, in_epsilon = talk.currency.price(epsilon, mu, data.delta), talk.currency.in_epsilon
    paid = {"epsilon": price} if in_epsilon else {"mu": price}
    samples: list[list[list[Floats]]] = [[], []]
    with progress("having conversations", 2 * draws) as advance:
        for side, sample in zip((rows, neighbour), samples, strict=True):
            public = PublicRows(side, data.schema, data.n_rows_public, data.target, data.neighbours, person=data.person)
            for _ in range(draws + 2 * PROBE_DRAWS):
                answer, releases = talk.on(public, **paid)
                sample.append([*map(_numbers, releases), *([_frame_numbers(answer)] if result else [])])
                advance(1)
    neighbours = check_neighbours(data.neighbours)
    claim = Guarantee(price, 0.0, 0.0, neighbours) if in_epsilon else Guarantee.of_mu(price, data.delta, neighbours)
    return mechanism(
        lambda table, count: np.stack(list(islice(table, count))),
        _tables(samples),
        claim,
        draws=draws,
        confidence=confidence,
    )


def _numbers(release: Release) -> Floats:
    """Every number of a release."""
    return np.concatenate([array.ravel() for array in release.parts.values()] or [release.value.ravel()])


def _frame_numbers(result: Any) -> Floats:
    """Every number of a result's frame."""
    columns = (np.asarray(column) for column in result.frame().values())
    return np.concatenate([np.zeros(0), *(column.astype(np.float64) for column in columns if column.dtype.kind in "biuf")])


def _tables(samples: list[list[list[Floats]]]) -> tuple[Iterator[Floats], Iterator[Floats]]:
    """The rows of both samples, of one width.

    What is asked, and how often, may depend on the answers. Every step gets the widest room that it ever needed; what stays
    empty is NaN, an output like any other.
    """
    everything = [draw for sample in samples for draw in sample]
    nothing = np.zeros(0)
    widths = [max(map(len, step)) for step in zip_longest(*everything, fillvalue=nothing)]
    starts = np.cumsum([0, *widths])
    table = np.full((len(everything), int(starts[-1])), np.nan)
    for row, draw in zip(table, everything, strict=True):
        for start, numbers in zip(starts, draw, strict=False):
            row[start : start + len(numbers)] = numbers
    return iter(table[: len(samples[0])]), iter(table[len(samples[0]) :])
