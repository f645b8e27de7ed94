"""What pairs of columns have in common that the model of the rows leaves out. Post-processing only.

All pairs of columns were measured coarsely, to choose which to link (``explain.private_rows``), and a column hangs on three
others at most. So some pairs stand out of the noise and are not linked; the rows give them only what they have by way of
others. Measured tables say how far that is from what private rows have, and this tells how far a mean over the rows is off.

*Weights.* Let u be a row's contrasts of all those pairs side by side, D what was measured of their mean less that of the
stored rows. Rows are given weights 1 + w, w = (u - mean).l linear in the contrasts, so that the mean of u moves to what was
measured: G l = D, G the covariance of u. There are many pairs, they say much the same again and again, and D has noise of
known size: in the eigenbasis of G each entry of D has the variance g^2 s^2 + v, where l has the variance s^2; s is the one
of the largest evidence, and l the posterior mean. The mean of any number h over private rows then differs from that over the
stored ones by the mean of w h, to first order.

It is not taken off (rows may be published, sampled again and used anywhere, and are what they are): it is an error of known
size, squared and added to the others (``replicates``), less what chance makes of it in so many rows. Shrinking makes it
rather too small: on serum light chains, where sex and age are often not linked, it is most of the error of what age
contributes, and not all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..._types import Floats, Indices
from .tables import Pair, contrasts

MOST_CONTRASTS = 1_000
"""Of all pairs together, those first that differ most: their number is cubed."""
LOG_VARIANCES = np.linspace(-12.0, 8.0, 81)
RANK, DIGITS = 1e-9, 6
"""Eigenvalues below this share of the largest are rounding; last bits that differ between machines do not travel."""


def tilted(tables: Mapping[Pair, Floats], groups: Sequence[Indices], noise: float) -> Floats:
    """w of every row, 0 where nothing is left out.

    Parameters
    ----------
    tables : mapping
        By pair of columns the measured distribution over their groups.
    groups : list of array (rows,)
        By column the group of every row.
    noise : float
        Standard deviation of a measured contrast, as a share of all rows.

    Examples
    --------
    Half of the rows have two columns alike; by the table most have:

    >>> groups = [np.tile([0, 0, 1, 1], 500), np.tile([0, 1, 0, 1], 500)]
    >>> tilted({(0, 1): np.array([[0.4, 0.1], [0.1, 0.4]])}, groups, noise=0.001)[:4].round(1).tolist()
    [0.6, -0.6, -0.6, 0.6]
    """
    n_rows = len(groups[0])
    found = [(_contrasts(groups, pair, table.shape), _measured(table)) for pair, table in tables.items()]
    differs = sorted(found, key=lambda one: -float(np.square(one[1] - one[0].mean(axis=0)).sum()))
    taken = [
        one for one, size in zip(differs, np.cumsum([len(d) for _, d in differs]), strict=True) if size <= MOST_CONTRASTS
    ]
    if not taken:
        return np.zeros(n_rows)
    u = np.concatenate([of_rows for of_rows, _ in taken], axis=1)
    mean = u.mean(axis=0)
    u -= mean
    sizes, axes = np.linalg.eigh(u.T @ u / n_rows)
    kept = sizes > RANK * max(float(sizes[-1]), 1e-300)
    sizes, axes = sizes[kept], axes[:, kept]
    d = axes.T @ (np.concatenate([measured for _, measured in taken]) - mean)
    variance = noise**2 + float(np.square(u).mean()) / n_rows
    spreads = np.exp(LOG_VARIANCES)[:, None] * sizes**2 + variance
    prior = float(np.exp(LOG_VARIANCES[np.argmin((np.log(spreads) + d**2 / spreads).sum(axis=1))]))
    return np.asarray(np.round(u @ (axes @ (sizes * prior / (sizes**2 * prior + variance) * d)), DIGITS))


def _contrasts(groups: Sequence[Indices], pair: Pair, sizes: tuple[int, ...]) -> Floats:
    """Products of both columns' contrasts, by row."""
    one, other = (contrasts(size)[groups[column]] for column, size in zip(pair, sizes, strict=True))
    return (one[:, :, None] * other[:, None, :]).reshape(len(one), -1)


def _measured(table: Floats) -> Floats:
    return np.asarray(contrasts(len(table)).T @ table @ contrasts(table.shape[1])).ravel()


def left_out_squares(per_row: Floats, tilt: Floats) -> Floats:
    """Squared errors (points, numbers) of means over rows of (points, rows, numbers); chance is taken off."""
    if not tilt.any():
        return np.zeros((per_row.shape[0], per_row.shape[2]))
    weights = tilt / len(tilt)
    apart = per_row - per_row.mean(axis=1, keepdims=True)
    moved, chance = np.einsum("r,prj->pj", weights, apart), np.einsum("r,prj->pj", weights**2, apart**2)
    return np.asarray(np.maximum(moved**2 - chance, 0.0))
