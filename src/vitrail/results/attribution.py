"""What an explainer returns: why the model says what it says at a few public points, how sure that is, and what it cost.

Everything here is post-processing of releases: it may be stored, published and drawn without limit. A band [lower, upper]
is for each number on its own, and ``band_claim`` says how often it holds the value that the explainer would have found
without noise. Whether a column stands out is read from the bands of all columns of the point together (``results.verdict``),
and a point that is mostly noise is not ranked: its columns come as they were declared. A band does not speak of sampling
error, nor of what clipping took away (``notes`` say so where it matters). Nor does it say how well the explanation fits the
model: ``gap`` does at the point itself, and ``fidelity`` around it. An explanation that misses the output by more than its
largest contribution says so in its first note.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from .band_claim import BandClaim
from .base import Banded, Frame, counted, show
from .checks import Floats, PlainValue, checked_names, plain_points, shown_text
from .row_count import RowCount
from .verdict import Judgement, Verdict, is_certain, judge, sentences, too_little, usual_verdict, what_helps

if TYPE_CHECKING:
    import shap

    from ..show import AttributionPlots

PER_POINT = ("values", "base_values", "outputs", "lower", "upper", "coefficients", "intercepts", "fidelity")
"""Fields with a line of numbers for each point."""
ROUNDING = 1e-9
"""Of the output: a smaller gap is no gap."""
NAMED_POINTS = 8
"""Points that a note names by their numbers."""


class NoSuchPoint(InvalidInput, IndexError):
    """A point that the explanation does not have."""


class Contribution(NamedTuple):
    """What one column contributed to one prediction.

    Attributes
    ----------
    column : str
        Which.
    value : float
        How much, in units of the model's output.
    lower, upper : float or None
        Ends of its noise band, where there is one.
    shown : str
        What the explained point has there, as text.
    among : int
        How many columns it is shown together with, itself included.

    Examples
    --------
    >>> Contribution("age", 0.2, 0.05, 0.35, "39").certain, Contribution("age", 0.2, 0.05, 0.35, "39", among=13).certain
    (True, False)
    """

    column: str
    value: float
    lower: float | None
    upper: float | None
    shown: str
    among: int = 1

    @property
    def certain(self) -> bool:
        """Whether the band excludes zero when those of all columns hold together; without a band nobody knows: False."""
        return self.lower is not None and self.upper is not None and is_certain(self.lower, self.upper, self.among)


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Banded, stored_as="attribution/2", of="values"):
    """Contributions of columns to a model's output at one or more points, with noise bands, promise and price.

    Attributes
    ----------
    values : array of shape (points, columns)
        What each original column contributed, in units of the model's output.
    base_values : array of shape (points,)
        What the explanation compares with. A base value and the point's contributions add up to ``predictions``.
    columns : tuple of str
        The names of the columns.
    points : tuple of dict
        The explained points in their own units.
    outputs : array of shape (points,)
        The model's own output at the points.
    method : str
        How it was found, such as ``"statistics"``, ``"synopsis"``, ``"descent"`` or ``"shapley"``.
    lower, upper : array of shape (points, columns), or None
        Ends of the noise bands of ``values``.
    coefficients : array of shape (points, features), or None
        Of the local linear model, for each encoded feature divided by the square root of the number of columns.
    intercepts : array of shape (points,), or None
        Of the local linear model.
    features : tuple of str
        The names of the encoded features.
    fidelity : array of shape (points,), or None
        How far the explanation is from the model on rows near the point: root mean squared difference, in units of the
        output, over the rows that it was fitted to and with their weights. Less is better.
    explains_output : bool
        Whether base value and contributions are meant to add up to the model's output. False without an intercept, with
        hard labels, and where no model was at hand: then there is no ``gap``.
    guarantee, cost, notes, band_claim
        As for all that has bands (:class:`Banded`).

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> e = vt.Attribution(
    ...     values=np.array([[0.2, -0.05]]), base_values=np.array([0.3]), columns=("age", "sex"),
    ...     points=({"age": 39, "sex": "Male"},), outputs=np.array([0.5]),
    ...     guarantee=vt.Guarantee.of_mu(0.2, 1e-6), cost=vt.Cost.of_mu(0.2), method="statistics",
    ...     lower=np.array([[0.1, -0.2]]), upper=np.array([[0.3, 0.1]]))
    >>> e
    Attribution(1 point, 2 columns, method='statistics', epsilon=0.8342 at delta=1e-06, bands not calibrated)
    >>> e.top(1)
    [Contribution(column='age', value=0.2, lower=0.1, upper=0.3, shown='39', among=2)]
    >>> e.certain(), e.gap.round(2).tolist()
    (('age',), [0.05])
    >>> str(e.verdict), str(e.verdict_of("sex")), round(e.signal, 1)
    ('clear', 'mostly noise', 2.2)
    >>> vt.Attribution.from_json(e.to_json()).values.tolist()
    [[0.2, -0.05]]
    """

    values: Floats
    base_values: Floats
    columns: tuple[str, ...]
    points: tuple[dict[str, PlainValue], ...]
    outputs: Floats
    guarantee: Guarantee
    cost: Cost
    method: str
    lower: Floats | None = None
    upper: Floats | None = None
    coefficients: Floats | None = None
    intercepts: Floats | None = None
    features: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED
    fidelity: Floats | None = None
    explains_output: bool = True
    rows_counted: RowCount | None = None

    def __post_init__(self) -> None:
        self._check_fields("an attribution")
        columns, features = checked_names(self.columns, "columns"), checked_names(self.features, "features")
        if not columns:
            raise InvalidInput("columns of an explanation are empty; it must explain by at least one column")
        points = plain_points(self.points, columns)
        if not points:
            raise InvalidInput("points of an explanation are empty; it must explain at least one point")
        self._fix(columns=columns, features=features, points=points)
        self._check_bands("an explanation")
        self._freeze((len(points), len(columns)), "values", "lower", "upper")
        self._freeze((len(points),), "base_values", "outputs", "intercepts", "fidelity")
        self._freeze((len(points), len(features)), "coefficients")
        if self.lower is not None and self.upper is not None and (self.lower > self.upper).any():
            row, column = (int(at) for at in np.argwhere(self.lower > self.upper)[0])
            raise InvalidInput(
                f"the band of column {columns[column]!r} at point {row} has its lower end above its upper end"
            )
        self._fix(notes=(*filter(None, [self.caution]), *self._other_notes))

    # --- points ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, point: int | slice | Sequence[int] | NDArray[np.generic]) -> Attribution:
        """The explanation of one point, or of several; promise and price remain those of the whole."""
        if isinstance(point, slice):
            rows = list(range(len(self))[point])
        elif isinstance(point, np.ndarray) and point.dtype == np.bool_ and point.shape == (len(self),):
            rows = np.flatnonzero(point).tolist()
        else:
            rows = [self._row(number) for number in (point if isinstance(point, list | tuple | np.ndarray) else [point])]
        if not rows:
            raise InvalidInput(f"{point!r} picks none of the {len(self)} points; pick at least one")
        numbers = {name: getattr(self, name) for name in PER_POINT}
        picked: dict[str, Any] = {name: None if given is None else given[rows] for name, given in numbers.items()}
        return replace(self, points=tuple(self.points[row] for row in rows), notes=self._other_notes, **picked)

    def __iter__(self) -> Iterator[Attribution]:
        return (self[row] for row in range(len(self)))

    def _row(self, point: object) -> int:
        """The number of a point, counted from the end where it is negative; an error if there is none."""
        if isinstance(point, bool) or not isinstance(point, int | np.integer) or not -len(self) <= point < len(self):
            raise NoSuchPoint(f"point is {point!r}; this explanation has {len(self)}, numbered from 0 to {len(self) - 1}")
        return int(point) % len(self)

    # --- numbers -----------------------------------------------------------------------------------------------------

    @property
    def predictions(self) -> Floats:
        """What the explanation says the model says: base values and contributions added up."""
        return np.asarray(self.base_values + self.values.sum(axis=1), dtype=np.float64)

    @property
    def gap(self) -> Floats | None:
        """The model's output minus ``predictions``, (points,); None where the one is not meant to be the other."""
        with np.errstate(all="ignore"):  # a file may hold numbers whose sums overflow
            return np.asarray(self.outputs - self.predictions) if self.explains_output else None

    @cached_property
    def caution(self) -> str:
        """A sentence where the gap is larger than every contribution, so that nobody takes the explanation for the model."""
        gaps, largest = np.abs(0.0 * self.outputs if self.gap is None else self.gap), np.abs(self.values).max(axis=1)
        missed = np.flatnonzero(gaps - largest > ROUNDING * np.maximum(1.0, np.abs(self.outputs)))
        if not len(missed):
            return ""
        if len(self) == 1:
            return (
                f"This explanation misses the model's output by {gaps[0]:.3g}, more than its largest contribution "
                f"({largest[0]:.3g}): do not read it as the model's reasons."
            )
        return (
            f"At {_numbered_points(missed.tolist(), len(self))} this explanation misses the model's output by more than its "
            "largest contribution: do not read it as the model's reasons there."
        )

    @property
    def _other_notes(self) -> tuple[str, ...]:
        return tuple(note for note in self.notes if note != self.caution)

    @property
    def base_value(self) -> float:
        """The base value, where there is one point only."""
        if len(self) > 1:
            raise InvalidInput(f"this explanation has {len(self)} base values, one per point; use base_values, or e[i]")
        return float(self.base_values[0])

    # --- too little to tell ------------------------------------------------------------------------------------------

    @cached_property
    def _judgements(self) -> tuple[Judgement, ...]:
        """Of each point, over its columns; empty without bands."""
        if self.lower is None or self.upper is None:
            return ()
        return tuple(map(judge, self.values, self.lower, self.upper))

    def _judge(self) -> Judgement | None:
        """All points together: the signal of all numbers, the verdict of most points."""
        if self.lower is None or self.upper is None:
            return None
        usual = usual_verdict(self.verdicts or ())
        assert usual is not None
        return replace(judge(self.values, self.lower, self.upper), verdict=usual)

    @property
    def signals(self) -> Floats | None:
        """Of each point, how many times larger than its noise its contributions are, (points,); None without bands."""
        return np.array([judged.signal for judged in self._judgements]) if self._judgements else None

    @property
    def verdicts(self) -> tuple[Verdict, ...] | None:
        """Of each point, whether its contributions stand out of their noise; None without bands.

        ``verdict`` is the usual one of them, and ``signal`` that of all points together; ``e[0].verdict`` is of one point.
        """
        return tuple(judged.verdict for judged in self._judgements) or None

    def verdict_of(self, column: str, point: int = 0) -> Verdict | None:
        """Whether a column's contribution stands out of the noise of all columns at a point; None without bands."""
        if column not in self.columns:
            raise InvalidInput(_checks.not_among(column, self.columns, "in this explanation"))
        row = self._row(point)
        return self._judgements[row].verdicts[self.columns.index(column)] if self._judgements else None

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """The verdict in words, and what would help: of the point, or of how many points it is true."""
        if len(self) == 1 or self.verdicts is None:
            return sentences(self._judgements[0], self.columns, self.guarantee) if self._judgements else ()
        noise = [row for row, verdict in enumerate(self.verdicts) if verdict is Verdict.MOSTLY_NOISE]
        weak = [row for row, verdict in enumerate(self.verdicts) if verdict is Verdict.WEAK]
        said = []
        if noise:
            worst = max((self._judgements[row] for row in noise), key=lambda judged: judged.missing)
            helps = what_helps(worst, self.guarantee)
            said.append(
                f"At {_numbered_points(noise, len(self))} there is too little data to tell at this price: no "
                f"column stands out of the noise, so nothing is ranked there. {helps}"
            )
        if weak:
            said.append(f"At {_numbered_points(weak, len(self))} the verdict is weak: single numbers may be noise.")
        return tuple(said)

    @property
    def read_first(self) -> tuple[str, ...]:
        """Rows that contradict the declared count, and points whose verdict is not clear."""
        counted = self.rows_counted
        return (*((counted.sentence,) if counted is not None and counted.contradicts else ()), *self.verdict_sentences)

    @property
    def too_little(self) -> str:
        """Where there is one point and it is mostly noise, that there is too little to tell, in a sentence."""
        is_noise = len(self) == 1 and self.verdict is Verdict.MOSTLY_NOISE
        return too_little(self._judgements[0]) if is_noise else ""

    # --- columns -----------------------------------------------------------------------------------------------------

    def top(self, k: int = 5, point: int = 0) -> list[Contribution]:
        """The ``k`` largest contributions at a point, by size; fewer where there are fewer columns.

        At a point that is mostly noise nothing is ranked: the first ``k`` columns, as they were declared.
        """
        row, width = self._row(point), len(self.columns)
        order = list(range(width))
        if not self._judgements or self._judgements[row].verdict is not Verdict.MOSTLY_NOISE:
            order.sort(key=lambda j: -abs(self.values[row, j]))
        ends = [[None] * width if band is None else band[row].tolist() for band in (self.lower, self.upper)]
        lines = zip(self.columns, self.values[row].tolist(), *ends, self._shown(row), [width] * width, strict=True)
        contributions = [Contribution(*line) for line in lines]
        return [contributions[j] for j in order[: _checks.whole("k", k)]]

    def _shown(self, row: int) -> list[str]:
        return [shown_text(self.points[row][name]) for name in self.columns]

    def certain(self, point: int = 0) -> tuple[str, ...]:
        """The columns that are clear, the largest contribution first; as sure as ``band_claim`` says.

        Their bands exclude 0 when those of all columns at the point hold together: wider ones than ``lower`` and ``upper``.
        """
        if self.lower is None:
            raise InvalidInput(
                f"this explanation (method {self.method!r}) has no noise bands, so nothing is known of its signs"
            )
        return tuple(top.column for top in self.top(len(self.columns), point) if top.certain)

    def frame(self) -> Frame:
        """One line per point and column, as columns that any data frame library takes: ``pandas.DataFrame(e.frame())``."""
        width = len(self.columns)
        return {
            "point": np.repeat(np.arange(len(self)), width),
            "column": np.tile(np.array(self.columns), len(self)),
            "shown": np.array([shown for row in range(len(self)) for shown in self._shown(row)]),
            "value": self._column("values"),
            "lower": self._column("lower"),
            "upper": self._column("upper"),
            "base_value": np.repeat(self.base_values, width),
            "output": np.repeat(self.outputs, width),
            "gap": np.repeat(np.full(len(self), np.nan) if self.gap is None else self.gap, width),
        }

    def to_shap(self) -> shap.Explanation:
        """The explanation as shap knows it, for ``shap.plots``; noise bands are its bounds.

        Columns of texts are numbered in ``data``, which serves to colour dots; ``display_data`` has what the points have.
        """
        given = [[point[name] for name in self.columns] for point in self.points]
        return show.shap_explanation(
            self.values,
            self.lower,
            self.upper,
            base_values=self.base_values.copy(),
            data=np.column_stack([_numbered(column) for column in zip(*given, strict=True)]),
            display_data=np.array(given, dtype=object),
            feature_names=list(self.columns),
        )

    # --- pictures and texts ------------------------------------------------------------------------------------------

    @property
    def plot(self) -> AttributionPlots:
        """Pictures: ``e.plot()`` or ``e.plot.bar()``, ``bars()``, ``waterfall()``, ``text()``, ``image()``."""
        return show.AttributionPlots(self)

    def summary(self, k: int = 8) -> str:
        """The largest contributions as text with bars, for terminals."""
        return show.summary(self, k)

    def __repr__(self) -> str:
        what = f"{counted(len(self.points), 'point')}, {counted(len(self.columns), 'column')}"
        return f"Attribution({what}, method={self.method!r}, {self._brief})"

    def __str__(self) -> str:
        return self.summary()


def _numbered_points(rows: Sequence[int], n_points: int) -> str:
    """How many of all points, and the numbers of the first ones."""
    named = ", ".join(map(str, rows[:NAMED_POINTS])) + (" and others" if len(rows) > NAMED_POINTS else "")
    return f"{len(rows)} of {n_points} points ({named})"


def _numbered(column: Sequence[PlainValue]) -> Floats:
    """The values of a column as numbers; where one is a text, their ranks among all of them."""
    if all(isinstance(value, int | float) for value in column):
        return np.array(column, dtype=np.float64)
    texts = list(map(str, column))
    return np.array([sorted(set(texts)).index(text) for text in texts], dtype=np.float64)
