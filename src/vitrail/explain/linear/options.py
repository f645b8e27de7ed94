"""The options of LocalLinear's methods and fits (``vt.linear``): one small class for each, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ... import _checks
from ...errors import InvalidInput
from ...solve.linear.descent import History
from ...solve.linear.labelled_rows import MOST_ROWS
from ...solve.linear.statistics import DRAWS, FEWEST_DRAWS


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """One release of sufficient statistics for each batch of points.

    Parameters
    ----------
    bands : bool
        Whether to compute them; without an intercept they take ``draws`` times as long as the explanation.
    draws : int
        Resamplings per band without an intercept; bands of a ridge regression need none.

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.linear.Statistics(draws=1)
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: draws is 1; it must be a whole number from 19 to 100000
    """

    bands: bool = True
    draws: int = DRAWS

    def __post_init__(self) -> None:
        _checks.flag("bands", self.bands)
        _checks.whole("draws", self.draws, least=FEWEST_DRAWS, most=10**5)


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Noisy gradients, for problems so wide that the square of their features hurts.

    Parameters
    ----------
    iterations : int, optional
        Gradients per point; from public numbers if not given. More of them take time; they cost neither privacy nor
        accuracy.
    """

    iterations: int | None = None

    def __post_init__(self) -> None:
        if self.iterations is not None:
            _checks.whole("iterations", self.iterations, least=2, most=10_000)


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    """A stream of points, each explained from what the earlier ones released.

    Parameters
    ----------
    enhanced : bool
        The paper's enhanced variant: as few steps as the start allows, without its theorem on the loss.
    iterations : int
        T, into how many shares the price of a point is cut; a descent takes a hundred steps at most.
    reuse_distance : float
        Hand on an explanation of a point this near, free. In units of x: features divided by the square root of the number
        of columns. The loss differs by O(d), not O(d^2) as the paper has it: on Adult by 2e-4 below the default of 0.1,
        2e-3 up to 0.2, and 1e-2 up to the paper's log(T)/sqrt(T), which is 0.33 at T = 300.
    history : History, optional
        Of earlier calls; it grows by this one. If not given it is the one that the ledger keeps for this problem and
        analyst, which is kept again after every point. ``vt.linear.History(explainer.problem)`` starts anew.
    """

    enhanced: bool = False
    iterations: int = 300
    reuse_distance: float = 0.1
    history: History | None = None

    def __post_init__(self) -> None:
        _checks.flag("enhanced", self.enhanced)
        _checks.whole("iterations", self.iterations, least=2, most=10_000)  # the first gradient, and a step
        _checks.number("reuse_distance", self.reuse_distance, low=0.0, high=1e9, hint=", in units of |x| <= 1")

    @property
    def name(self) -> Literal["adaptive", "enhanced"]:
        """What explanations call the method."""
        return "enhanced" if self.enhanced else "adaptive"


@dataclass(frozen=True, kw_only=True)
class FromHistory:
    """Points that were explained before, and no row at all: free.

    Parameters
    ----------
    history : History, optional
        That which the ledger keeps for this problem and analyst if not given.
    """

    history: History | None = None


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Moments of all rows: exact for the polynomial weight."""


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Moments of every cell of a partition of the rows: for any weight, approximately.

    Parameters
    ----------
    columns : tuple of str, optional
        The categorical columns to cut by. If not given they are chosen, by a survey where that can pay.
    """

    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.columns, str):
            raise InvalidInput(f"columns is {self.columns!r}; give a tuple of names, such as ({self.columns!r},)")


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Private rows, labelled by the model: for weights as sharp as one likes.

    Parameters
    ----------
    n_sampled : int
        How many rows to sample and label.
    """

    n_sampled: int = 40_000

    def __post_init__(self) -> None:
        _checks.whole("n_sampled", self.n_sampled, least=100, most=MOST_ROWS)


MethodName: TypeAlias = Literal["auto", "statistics", "descent", "adaptive", "enhanced", "history"]
Method: TypeAlias = Statistics | Descent | Adaptive | FromHistory
