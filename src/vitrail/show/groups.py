"""What a model does by group: a dot and a band for every group and measure, and tables of the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from .._types import Axes, Figure
from ..results.group_table import GroupBands, GroupTable
from . import style
from .drawings import Drawing, dots_drawing
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
    kept, panels = _drawn(found), _panels(found)
    figure, axes = style.small_multiples([0.95 + 0.24 * max(1, len(kept))] * len(panels), ACROSS)
    for panel, (name, bands) in zip(axes, panels.items(), strict=True):
        _draw(panel, found, bands, kept)
        style.put_title(panel, WORDS[name], 44, bold=True)
    style.put_footnote(figure, f"{found.model} on {found.dataset}; {found.band_claim.bands}")
    return figure


def _panels(found: GroupTable) -> dict[str, GroupBands]:
    return {"rows": found.rows, **{name: found[name] for name in found.measures}}


def measure_cards(found: GroupTable) -> Iterator[tuple[str, Drawing, Table]]:
    """For a page, measure by measure: its name, a picture of every group that is shown, and the same as a table."""
    shown = [found.groups.index(name) for name in found.shown]
    kept = _drawn(found)
    for name, bands in _panels(found).items():
        seen = ([float(ends[i]) if bands.shown[i] else math.nan for i in kept] for ends in bands[:3])
        drawing = dots_drawing([found.groups[number] for number in kept], *map(np.array, seen))
        rows = tuple((found.groups[number], cell) for number, cell in zip(shown, _cells(bands, shown), strict=True))
        yield WORDS[name], drawing, Table(("group", f"value ({found.band_claim.column})"), rows, numeric=(1,))


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
    for panel, number in zip(axes, kept, strict=False):
        _draw_calibration(panel, found, number)
        style.put_title(panel, found.groups[number], 44, bold=True)
    if not kept:
        style.bare(axes[0], NOT_SHOWN)
    return figure


def _draw_calibration(axes: Axes, found: GroupTable, number: int) -> None:
    ends = found.layout.edges[0], found.layout.edges[-1]
    style.quiet(axes, "both")
    axes.plot(ends, ends, color=style.RULE, linewidth=1.2)
    for output, outcome in zip(found.calibration["mean_output"], found.calibration["mean_outcome"], strict=True):
        if outcome.shown[number]:
            at = float(output.value[number])
            axes.vlines(at, outcome.lower[number], outcome.upper[number], color=style.GLASS, alpha=0.45, linewidth=7)
            axes.plot(at, outcome.value[number], "o", color=style.INK, markersize=4)
    style.put_labels(axes, "mean output", "mean outcome")


def calibration_cards(found: GroupTable) -> Iterator[tuple[str, Figure, Table]]:
    """For a page, group by group: its name, a picture, and the same as a table."""
    table = calibration_table(found)
    for number in _drawn(found):
        figure, (axes,) = style.small_multiples([2.6], 1)
        _draw_calibration(axes, found, number)
        name = found.groups[number]
        rows = tuple(row[1:] for row in table.rows if row[0] == name)
        yield name, figure, Table(table.header[1:], rows, numeric=tuple(place - 1 for place in table.numeric))


# --- tables --------------------------------------------------------------------------------------------------------------


def groups_table(found: GroupTable) -> Table:
    """A line for every group that is shown, with the ends of every band behind the number."""
    kept, panels = [found.groups.index(name) for name in found.shown], _panels(found)
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
