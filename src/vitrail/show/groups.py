"""What a model does by group: a dot and a band for every group and measure, and tables of the same."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .._types import Axes, Figure
from ..results.group_table import GroupBands, GroupTable
from . import style
from .text_tables import Table, aligned_numbers

MOST_DRAWN = 24
"""Groups in a picture: those with the most rows."""
ACROSS = 3
NOT_SHOWN = "too few rows"
WORDS = {
    "rows": "rows",
    "selection_rate": "selection rate",
    "mean_output": "mean output",
    "base_rate": "base rate",
    "true_positive_rate": "true positive rate",
    "false_positive_rate": "false positive rate",
    "precision": "precision",
    "accuracy": "accuracy",
    "calibration_gap": "mean output less base rate",
    "mean_outcome": "mean outcome",
    "mean_error": "mean output less mean outcome",
    "mean_absolute_error": "mean absolute error",
    "demographic_parity_difference": "demographic parity difference",
    "demographic_parity_ratio": "demographic parity ratio",
    "equal_opportunity_difference": "equal opportunity difference",
    "equalized_odds_difference": "equalized odds difference",
    "accuracy_difference": "accuracy difference",
}
"""Names of measures, as a reader reads them."""
MEANS = {
    "demographic_parity_difference": "largest difference of selection rates",
    "demographic_parity_ratio": "smallest selection rate over the largest",
    "equal_opportunity_difference": "largest difference of true positive rates",
    "equalized_odds_difference": "largest difference of true or of false positive rates",
    "accuracy_difference": "largest difference of accuracies",
}


def groups_figure(found: GroupTable) -> Figure:
    """A panel for every measure, with a row for each group that is shown; of many, those with the most rows.

    Parameters
    ----------
    found : GroupTable
        What was released.
    """
    kept = _drawn(found)
    panels = {"rows": found.rows, **{name: found[name] for name in found.measures}}
    figure, axes = style.small_multiples([0.95 + 0.24 * max(1, len(kept))] * len(panels), ACROSS)
    for panel, (name, bands) in zip(axes, panels.items(), strict=True):
        _draw(panel, found, bands, kept)
        style.put_title(panel, WORDS[name], 44, bold=True)
    style.put_footnote(figure, f"{found.model} on {found.dataset}; {found.band_claim.bands}")
    return figure


def _drawn(found: GroupTable) -> list[int]:
    shown = [found.groups.index(name) for name in found.shown]
    most = sorted(shown, key=lambda number: -found.rows.value[number])[:MOST_DRAWN]
    return sorted(most)


def _draw(axes: Axes, found: GroupTable, bands: GroupBands, kept: list[int]) -> None:
    """Dots of the groups that have a number here; the others keep their row, empty."""
    names = [found.groups[number] for number in kept]
    if not names:
        style.bare(axes, NOT_SHOWN)
        return
    value, lower, upper = ([float(ends[i]) if bands.shown[i] else math.nan for i in kept] for ends in bands[:3])
    style.dots(axes, names, value, lower, upper)


def calibration_figure(found: GroupTable) -> Figure:
    """A panel for each group that is shown: the mean outcome against the mean output, bin by bin."""
    kept = _drawn(found)
    figure, axes = style.small_multiples([2.4] * max(1, len(kept)), ACROSS)
    ends = found.layout.edges[0], found.layout.edges[-1]
    for panel, number in zip(axes, kept, strict=False):
        style.quiet(panel, "both")
        panel.plot(ends, ends, color=style.RULE, linewidth=1.2)
        for output, outcome in zip(found.calibration["mean_output"], found.calibration["mean_outcome"], strict=True):
            if outcome.shown[number]:
                at = float(output.value[number])
                panel.vlines(at, outcome.lower[number], outcome.upper[number], color=style.GLASS, alpha=0.45, linewidth=7)
                panel.plot(at, outcome.value[number], "o", color=style.INK, markersize=4)
        style.put_title(panel, found.groups[number], 44, bold=True)
        style.put_labels(panel, "mean output", "mean outcome")
    if not kept:
        style.bare(axes[0], NOT_SHOWN)
    return figure


# --- tables --------------------------------------------------------------------------------------------------------------


def groups_table(found: GroupTable) -> Table:
    """A line for every group that is shown, with the ends of every band behind the number."""
    kept = [found.groups.index(name) for name in found.shown]
    panels = {"rows": found.rows, **{name: found[name] for name in found.measures}}
    columns = [_cells(bands, kept) for bands in panels.values()]
    rows = tuple((found.groups[number], *cells) for number, *cells in zip(kept, *columns, strict=True))
    return Table(("group", *(WORDS[name] for name in panels)), rows, numeric=tuple(range(1, len(panels) + 1)))


def _cells(bands: GroupBands, kept: list[int]) -> list[str]:
    """Numbers and bands of some groups, all with as many decimals."""
    seen = [i for i in kept if bands.shown[i]]
    texts = iter(_texts(float(ends[i]) for i in seen for ends in bands[:3]))
    return [f"{next(texts)} ({next(texts)} to {next(texts)})" if bands.shown[i] else NOT_SHOWN for i in kept]


def _texts(numbers: Iterable[float]) -> list[str]:
    """Rates with three decimals; counts and other numbers with as many as the largest needs."""
    given = list(numbers)
    small = max(map(abs, given), default=0.0) <= 1
    return [f"{number + 0.0:.3f}" for number in given] if small else aligned_numbers(given)


def between_table(found: GroupTable) -> Table:
    """A line for every comparison of all groups."""
    texts = iter(_texts(float(number) for bands in found.between.values() for number in bands))
    rows = tuple((WORDS[name], MEANS[name], f"{next(texts)} ({next(texts)} to {next(texts)})") for name in found.between)
    return Table(("measure", "what it is", f"value ({found.band_claim.column})"), rows, numeric=(2,))


def calibration_table(found: GroupTable) -> Table:
    """A line for every group that is shown and every bin of outputs."""
    kept = [found.groups.index(name) for name in found.shown]
    names = list(found.calibration)
    columns = {name: [_cells(bands, kept) for bands in found.calibration[name]] for name in names}
    rows = [
        (found.groups[number], label, *(columns[name][place][line] for name in names))
        for line, number in enumerate(kept)
        for place, label in enumerate(found.bin_labels)
    ]
    return Table(("group", "outputs", *(WORDS[name] for name in names)), tuple(rows), numeric=(2, 3)[: len(names)])
