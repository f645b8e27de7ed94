"""Two panes of the same columns, compared: where histograms and curves differ by more than noise explains. No vault, free.

The mathematics, and which null hypothesis is tested, are in ``solve.drift``. Histograms are of columns that both panes cut
at the same places, curves of models that are the same in both by content: another model has other curves, and that is no
drift of rows. Of accumulated effects no bound on the error of sampling is known, so they are not tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import _checks
from .._types import Figure, Floats
from ..accounting import Cost, JsonValue
from ..accounting.guarantee import Guarantee
from ..accounting.neighbours import rows_per_person_of
from ..errors import InvalidInput
from ..results.band_claim import BandClaim
from ..results.base import Drawn, Frame
from ..show import Table
from ..show.pages import Content, Picture, fragment, fragment_html, page_content
from ..solve.drift import Counted, Drift, curve_drift, histogram_drift, holm

if TYPE_CHECKING:
    from ..results import Curve
    from ..results.effects import Effects
    from ..results.marginals import Marginals
    from .pane import Pane

FORMAT = "vitrail-pane-comparison/1"
HISTOGRAM, CURVE = "histogram", "partial dependence"
MOST_DRAWN = 40
LEVEL = 0.05
CLAIM = BandClaim.NOT_CALIBRATED
"""Of the bands of sizes: no benchmark has measured them."""
NULL = (
    "Tested is whether both panes can be of samples from one population, with noise and the choice of rows taken into "
    "account. Rows that are in both make the tests more careful, not less."
)
SIZES = (
    "Sizes of histograms are total variation distances (the share of rows that would have to move), of curves the largest "
    "difference of outputs; both come out above 0 by noise alone, and their bands say how far."
)


@dataclass(frozen=True)
class DriftLine:
    """One histogram or curve, compared.

    Attributes
    ----------
    column : str
        The column.
    what, model : str
        ``"histogram"`` or ``"partial dependence"``; of which model, for a curve.
    statistic, degrees
        Chi-square and its degrees of freedom; of a curve the largest number of standard deviations and the points.
    p_value, adjusted : float
        By itself, and by Holm's correction for all that was compared.
    size, lower, upper : float
        How large the difference is, with a band.
    """

    column: str
    what: str
    model: str
    statistic: float
    degrees: int
    p_value: float
    adjusted: float
    size: float
    lower: float
    upper: float

    @property
    def label(self) -> str:
        """What was compared, in a few words."""
        return f"{self.column}, {self.what}" + (f" of {self.model}" if self.model else "")


@dataclass(frozen=True, eq=False, repr=False)
class PaneComparison(Drawn):
    """Which histograms and curves of two panes differ by more than noise explains; made by :func:`compare`.

    Attributes
    ----------
    old, new : str
        Dataset and version of the panes.
    lines : tuple of DriftLine
        All that was compared.
    level : float
        The chance that anything is flagged where nothing has changed is at most this.
    only_old, only_new : tuple of str
        Columns that one of the panes lacks.
    guarantee, cost
        The promise and the price of both panes together, each release counted once.
    notes : tuple of str
        What could not be compared, and why; what is tested.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> def pane(version, share):
    ...     rows = {"age": np.linspace(0, 100, 9000), "smoker": np.where(np.arange(9000) < 9000 * share, "yes", "no")}
    ...     facts = {"name": "patients", "n_rows_public": 9000, "budget": vt.Budget(1, 1e-6), "ledger": "memory"}
    ...     data = vt.PrivateData(rows, schema, **facts)
    ...     return vt.release(data, epsilon=1.0, version=version)
    >>> drift = vt.pane.compare(pane("2025", 0.2), pane("2026", 0.6))
    >>> [line.column for line in drift.flagged], drift.frame()["what"].tolist()
    (['smoker'], ['histogram', 'histogram'])
    """

    old: str
    new: str
    lines: tuple[DriftLine, ...]
    level: float
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    guarantee: Guarantee
    cost: Cost
    notes: tuple[str, ...]

    @property
    def flagged(self) -> tuple[DriftLine, ...]:
        """What differs by more than noise explains, the most certain first."""
        return tuple(sorted((line for line in self.lines if line.adjusted <= self.level), key=lambda line: line.adjusted))

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        if not self.flagged:
            return (
                f"Nothing differs by more than noise explains, among {len(self.lines)} histograms and curves. A drift "
                "that is smaller than the noise is not seen."
            )
        names = ", ".join(line.label for line in self.flagged)
        return f"{len(self.flagged)} of {len(self.lines)} differ by more than noise explains: {names}."

    def __repr__(self) -> str:
        found = f"{len(self.flagged)} of {len(self.lines)} differ"
        return f"PaneComparison({self.old} and {self.new}: {found}; {self.guarantee.brief})"

    def frame(self) -> Frame:
        """One line for each histogram and curve, as columns that any data frame library takes."""
        names = ("column", "what", "model", "statistic", "degrees", "p_value", "adjusted", "size", "lower", "upper")
        frame: Frame = {name: np.array([getattr(line, name) for line in self.lines]) for name in names}
        frame["differs"] = np.array([line.adjusted <= self.level for line in self.lines])
        return frame

    def to_json(self) -> dict[str, JsonValue]:
        """All of it as plain JSON values."""
        frame = {name: values.tolist() for name, values in self.frame().items()}
        lines: list[JsonValue] = [{name: values[i] for name, values in frame.items()} for i in range(len(self.lines))]
        told: dict[str, JsonValue] = {"format": FORMAT, "old": self.old, "new": self.new, "level": self.level}
        told |= {"only_old": list(self.only_old), "only_new": list(self.only_new), "lines": lines}
        return told | {"guarantee": self.guarantee.to_json(), "notes": [self.sentence, *self.notes]}

    def table(self) -> Table:
        """The same as texts; what differs is marked."""
        rows = [
            (line.label, f"{line.size:.3g}", f"{line.lower:.3g} to {line.upper:.3g}", f"{line.adjusted:.2g}", differs)
            for line in self._ordered
            for differs in ["yes" if line.adjusted <= self.level else "not seen"]
        ]
        marked = frozenset((i, 4) for i, row in enumerate(rows) if row[4] == "yes")
        return Table(("what", "size", CLAIM.column, "adjusted p", "differs"), tuple(rows), numeric=(1, 2, 3), marked=marked)

    @property
    def _ordered(self) -> list[DriftLine]:
        return sorted(self.lines, key=lambda line: (line.adjusted, line.p_value))

    def plot(self) -> Figure:
        """The sizes with their bands, histograms and curves apart; the most certain on top."""
        from ..show import style  # matplotlib is imported when something is drawn

        kinds = [(w, [line for line in self._ordered if line.what == w][:MOST_DRAWN]) for w in (HISTOGRAM, CURVE)]
        shown = [(what, lines) for what, lines in kinds if lines]
        figure, every = style.small_multiples([0.6 + 0.3 * len(lines) for _, lines in shown], 1, 6.5)
        for axes, (what, lines) in zip(every, shown, strict=False):
            names = [line.column + ("*" if line.adjusted <= self.level else "") for line in lines]
            style.dots(axes, names, *([getattr(line, end) for line in lines] for end in ("size", "lower", "upper")))
            style.put_title(axes, f"{what}: size of the difference (* differs)")
        return figure


def compare(old: Pane, new: Pane, *, level: float = LEVEL) -> PaneComparison:
    """Which histograms and curves of two panes differ by more than noise explains. Free: both are public.

    Parameters
    ----------
    old, new : Pane
        Of the same columns, or some of them.
    level : float
        The chance, at most, that anything is flagged where nothing has changed.

    Returns
    -------
    PaneComparison

    Raises
    ------
    InvalidInput
        If the panes have no column in common, or their promises are about different units.
    """
    _checks.fraction("level", level)
    common = [name for name in old.schema.names if name in new.schema]
    if not common:
        raise InvalidInput(
            f"the panes have no column in common: {', '.join(old.schema.names)}, and {', '.join(new.schema.names)}; "
            "compare panes of the same data"
        )
    notes: list[str] = []
    found = [*_histograms(old, new, common, notes), *_curves(old, new, common, notes)]
    if not found:
        raise InvalidInput(f"nothing in these panes can be compared. {' '.join(notes)}".strip())
    adjusted = holm([drift.p_value for *_, drift in found])
    lines = tuple(
        DriftLine(column, what, model, drift.statistic, drift.degrees, drift.p_value, float(p), *drift[3:])
        for (column, what, model, drift), p in zip(found, adjusted, strict=True)
    )
    delta, neighbours = max(old.guarantee.delta, new.guarantee.delta), old.guarantee.neighbours
    promise = Guarantee.together([old.guarantee, new.guarantee], delta, neighbours)
    return PaneComparison(
        _called(old),
        _called(new),
        lines,
        float(level),
        tuple(name for name in old.schema.names if name not in common),
        tuple(name for name in new.schema.names if name not in common),
        promise,
        promise.behind.cost,
        (NULL, SIZES, *notes, *_one_sided(old, new), _together(old, new, promise)),
    )


Found = tuple[str, str, str, Drift]


def _histograms(old: Pane, new: Pane, common: list[str], notes: list[str]) -> Iterator[Found]:
    if old.rows_counted is None or new.rows_counted is None:
        notes.append("There are no histograms in one of the panes.")
        return
    sides = [(pane, pane.marginals) for pane in (old, new)]
    for name in common:
        if any(name not in histograms.columns for _, histograms in sides):
            continue
        first, second = (histograms.bins_of(name) for _, histograms in sides)
        if (first.labels, first.edges) != (second.labels, second.edges):
            notes.append(f"The histograms of {name} are not compared: it is declared, and so cut, differently.")
            continue
        yield name, HISTOGRAM, "", histogram_drift(*(_counted(*side, name) for side in sides))


def _counted(pane: Pane, histograms: Marginals, name: str) -> Counted:
    rows = max(histograms.rows_counted.denominator, 1.0)
    # Of a sample at rate q a row stands for 1/q: a person's r rows vary as r/q rows would.
    together = rows_per_person_of(pane.guarantee.neighbours) / histograms.sampling_rate
    return Counted(histograms.counts[name], histograms.sigma, rows, together)


def _curves(old: Pane, new: Pane, common: list[str], notes: list[str]) -> Iterator[Found]:
    for number, made_for in enumerate(old.manifest.models):
        name = made_for.name
        if name not in new.models:
            continue
        other = new.manifest.models[new.models.index(name)]
        if made_for.digest != other.digest:
            notes.append(f"The curves of {name} are not compared: it is another model in the new pane.")
            continue
        pair = _dependence(old, name), _dependence(new, name)
        if pair[0] is None or pair[1] is None:
            continue
        units = max(rows_per_person_of(pane.guarantee.neighbours) for pane in (old, new))
        n_rows = tuple(_rows_of(pane) for pane in (old, new))
        for column in common:
            if column in pair[0] and column in pair[1]:
                sides = _at_common_points(pair[0][column], pair[1][column])
                if sides is not None:
                    reach = old.manifest.models[number].range
                    yield column, CURVE, name, curve_drift(*sides, (n_rows[0], n_rows[1]), reach, units)


def _dependence(pane: Pane, model: str) -> Effects | None:
    about = pane.about(model)
    return about.report.pdp if "global" in about.manifest.known else None


def _rows_of(pane: Pane) -> float:
    counted = pane.rows_counted
    return float(pane.n_rows_public) if counted is None else max(counted.denominator, 1.0)


Side = tuple[Floats, Floats]


def _at_common_points(old: Curve, new: Curve) -> tuple[Side, Side] | None:
    """Values and standard deviations of both at the points that both curves have; None without any.

    Not in between: two panes choose some points by what was released, and a model's step that lies between other points in
    each of them would be taken for a difference.
    """
    if old.std is None or new.std is None or old.categorical != new.categorical:
        return None
    places = {value: place for place, value in enumerate(new.x)}
    pairs = [(place, places[value]) for place, value in enumerate(old.x) if value in places]
    mine, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    return ((old.y[mine], old.std[mine]), (new.y[theirs], new.std[theirs])) if pairs else None


def _called(pane: Pane) -> str:
    return f"{pane.dataset}, version {pane.version}"


def _one_sided(old: Pane, new: Pane) -> Iterator[str]:
    for one, other, which in ((old, new, "old"), (new, old, "new")):
        if spare := [name for name in one.schema.names if name not in other.schema]:
            yield f"Only the {which} pane has the columns {', '.join(spare)}; they are not compared."


def _together(old: Pane, new: Pane, promise: Guarantee) -> str:
    shared = len(old.guarantee.basis.paid & new.guarantee.basis.paid)
    common = f" {shared} releases are in both and count once." if shared else ""
    return (
        f"Who is in the rows of both panes has the promise of both together, {promise.brief}; who is in one of them has the "
        f"promise of that one.{common}"
    )


def comparison_content(comparison: PaneComparison) -> Content:
    """The page of a comparison."""
    described = f"Sizes of the differences between {comparison.old} and {comparison.new}; the numbers follow."
    picture = Picture(comparison.plot(), described, comparison.table(), "How large the differences are")
    heading = f"{comparison.old}, against {comparison.new}"
    sentences = (comparison.sentence, *comparison.notes, comparison.guarantee.sentence)
    return "result.html", {"pictures": (picture,), "heading": heading, "sentences": sentences}


@fragment.register
def _(comparison: PaneComparison) -> str:
    told = (comparison.sentence, *comparison.notes)
    return fragment_html(repr(comparison), told, tables=[("", comparison.table(), "")])


page_content.register(PaneComparison, comparison_content)
