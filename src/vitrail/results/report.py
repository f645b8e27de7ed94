"""What a GlobalReport returns: releases and what follows from them. Needs neither vault nor ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from .._types import Figure
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from .band_claim import BandClaim
from .base import Frame, Result
from .effects import Effects
from .marginals import Marginals
from .ranking import Ranking
from .row_count import RowCount
from .verdict import Verdict, weakest_verdict

PARTS = ("pdp", "ale", "importance", "shap")
PART_NAMES = {
    "marginals": "histograms of all columns",
    "clips": "sizes of local effects, to set their clips",
    "pdp": "partial dependence",
    "ale": "accumulated effects",
    "importance": "permutation importance",
    "shap": "SHAP importance",
}


@dataclass(frozen=True, eq=False, repr=False)
class Report(Result, stored_as="report/1"):
    """Everything a global report found.

    Attributes
    ----------
    dataset, model : str
        Whose rows, and what was explained.
    n_rows_public : int
        The declared row count.
    marginals : Marginals
        Histograms of all columns.
    pdp, ale : Effects or None
        Partial dependence and accumulated effects, by column.
    importance : Ranking or None
        Columns by permutation importance.
    shap : Ranking or None
        Columns by the mean size of their Shapley values, where it was asked for.
    shares : mapping of str to float
        What share of the price (of mu squared) each part took.
    guarantee : Guarantee
        The promise for everything that is shown here: histograms that were paid for before are part of it.
    cost : Cost
        The price of what this report asked for.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> rows = {"age": np.linspace(0, 100, 4000), "smoker": np.array(["no", "yes"] * 2000)}
    >>> data = vt.PrivateData(rows, schema, name="people", n_rows_public=4000, budget=vt.Budget(2, 1e-6))
    >>> found = vt.GlobalReport(data, vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk"))(epsilon=1.0)
    >>> found
    Report(risk on 'people': pdp, ale, importance; epsilon=1 at delta=1e-06)
    >>> again = vt.Report.from_json(found.to_json())
    >>> bool((again.pdp["age"].y == found.pdp["age"].y).all()), "Privacy label" in found.to_html()
    (True, True)
    """

    dataset: str
    model: str
    n_rows_public: int
    marginals: Marginals
    pdp: Effects | None
    ale: Effects | None
    importance: Ranking | None
    shares: Mapping[str, float]
    guarantee: Guarantee
    cost: Cost
    shap: Ranking | None = None

    def __post_init__(self) -> None:
        self._check_fields("a report")
        if not self.parts:
            raise InvalidInput("a report has no explanation; give it at least one of pdp, ale, importance and shap")
        self._fix(shares=MappingProxyType(dict(self.shares)))
        for part in ("pdp", "ale"):  # the histograms under their curves are the report's own
            if (effects := getattr(self, part)) is not None:
                self._fix(**{part: replace(effects, marginals=None)})

    def __repr__(self) -> str:
        return f"Report({self.model} on {self.dataset!r}: {', '.join(self.parts)}; {self.guarantee.brief})"

    @property
    def parts(self) -> tuple[str, ...]:
        """Which explanations are here."""
        return tuple(name for name in PARTS if getattr(self, name) is not None)

    def frame(self) -> Frame:
        """All curves and importances as one tidy table of columns: ``pandas.DataFrame(found.frame())``.

        ``part`` says which explanation a line is of; importances have no ``x``, and their score is ``y``.
        """
        frames: list[Frame] = []
        for part in self.parts:
            table = getattr(self, part).frame()
            if part in self.rankings:
                table |= {"name": table["item"], "x": np.full(len(table["item"]), None, dtype=object), "y": table["score"]}
            frames.append({"part": np.full(len(table["y"]), part), **table})
        names = ("part", "name", "x", "y", "lower", "upper", "std")
        return {name: np.concatenate([table[name] for table in frames]) for name in names}

    @property
    def rankings(self) -> Mapping[str, Ranking]:
        """The rankings there are, by their names in ``parts``."""
        return {part: getattr(self, part) for part in ("importance", "shap") if part in self.parts}

    def plot(self) -> Figure:
        """The first of its explanations: ``report.pdp.plot()`` and the like draw each."""
        first: Effects | Ranking = getattr(self, self.parts[0])
        return first.plot()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know, each sentence once."""
        return tuple(dict.fromkeys(note for part in self.parts for note in getattr(self, part).notes))

    @property
    def band_claims(self) -> Mapping[str, BandClaim]:
        """What the bands of each part claim, by its name in ``parts``."""
        return {part: getattr(self, part).band_claim for part in self.parts}

    @property
    def band_sentences(self) -> tuple[str, ...]:
        """What the bands of each part claim."""
        return tuple(claim.sentence(PART_NAMES[part]) for part, claim in self.band_claims.items())

    @property
    def rows_counted(self) -> RowCount | None:
        """How many rows count: what a part says, or else the histograms."""
        own = (getattr(self, part).rows_counted for part in self.parts)
        return next((count for count in own if count is not None), self.marginals.rows_counted)

    @property
    def signals(self) -> Mapping[str, float]:
        """How many times larger than its noise each part is, by its name in ``parts``."""
        signals = {part: getattr(self, part).signal for part in self.parts}
        return {part: signal for part, signal in signals.items() if signal is not None}

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """Of each part, by its name in ``parts``; ``report.pdp.verdicts`` are those of its columns."""
        verdicts = {part: getattr(self, part).verdict for part in self.parts}
        return {part: verdict for part, verdict in verdicts.items() if verdict is not None}

    @property
    def signal(self) -> float | None:
        """That of the part which stands out least."""
        return min(self.signals.values(), default=None)

    @property
    def verdict(self) -> Verdict | None:
        """That of the part which stands out least: where it is clear, all are."""
        return weakest_verdict(self.verdicts.values())

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """Of each part, which columns are clear, or that there is too little to tell and what would help."""
        return self._said_of(self.parts)

    def _said_of(self, parts: Iterable[str]) -> tuple[str, ...]:
        titles = {part: PART_NAMES[part][:1].upper() + PART_NAMES[part][1:] for part in parts}
        return tuple(f"{title}: {said}" for part, title in titles.items() for said in getattr(self, part).verdict_sentences)

    @property
    def read_first(self) -> tuple[str, ...]:
        """Rows that contradict the declared count, and parts that are not clear."""
        counted = self.rows_counted
        unclear = self._said_of(part for part, verdict in self.verdicts.items() if verdict is not Verdict.CLEAR)
        return (*((counted.sentence,) if counted is not None and counted.contradicts else ()), *unclear)

    @property
    def half_widths(self) -> Mapping[str, float]:
        """The median half-width of the bands of each part, by its name in ``parts``: of outputs, losses, Shapley values."""
        widths = {part: getattr(self, part).half_width for part in self.parts}
        return {part: width for part, width in widths.items() if width is not None}

    @property
    def half_width(self) -> float | None:
        """The median half-width of the curves' bands; of importances where there are no curves."""
        widths = self.half_widths
        chosen = [widths[part] for part in ("pdp", "ale") if part in widths] or list(widths.values())
        return float(np.median(chosen)) if chosen else None
