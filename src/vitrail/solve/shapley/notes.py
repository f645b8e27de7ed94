"""What a reader of Shapley values should know, in sentences. Post-processing of the release."""

from __future__ import annotations

import numpy as np

from ...results.band_claim import TWO_SIDED_95
from .reconcile import Reconciled

GAP_TO_MENTION = 4.0
"""Standard deviations of the noise by which released numbers may fail to add up before the notes say so."""


def notes_of(found: Reconciled, clip: float, n_rows_public: int, *, bands: bool, sampled: bool) -> tuple[str, ...]:
    """The notes of one explanation."""
    clipped_noise = min(1.0, TWO_SIDED_95 * found.clipped_std)
    notes = [
        f"Averages are over the declared {n_rows_public} rows; if that count is off, contributions are off by the same "
        "factor.",
        f"About {found.clipped_share:.1%} (noise: +-{clipped_noise:.1%}) of the rows' vectors were longer than the clip of "
        f"{clip:.4g} and were scaled down to it.",
    ]
    if bands:
        error = "of the random permutations and of the sample of rows" if sampled else "of the random permutations"
        notes.append(f"Bands are those of the privacy noise; the error {error} and the clip's bias are not in them.")
    worst = int(np.abs(found.gaps).argmax())
    if abs(found.gaps[worst]) > GAP_TO_MENTION:
        notes.append(
            f"Before they were made to add up, base value and contributions missed the model's output at point {worst} by "
            f"{abs(found.gaps[worst]):.1f} standard deviations of the noise: the clip is too small, the declared row count "
            f"is off{', or the sample of rows is small' if sampled else ''}."
        )
    return tuple(notes)
