"""What a GlobalReport returns: releases and what follows from them. Needs neither vault nor ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..accounting import Cost, JsonValue
from ..guarantee import Guarantee
from ..show.global_report import PARTS as SHOWN_PARTS
from . import Ranking, files, stored
from .band_claim import BandClaim
from .effects import Effects
from .marginals import Marginals

if TYPE_CHECKING:
    from ..show import Bill, Report, Section

KIND, VERSION = "vitrail-global-explanation", 1
PARTS = ("pdp", "ale", "importance", "shap")


@dataclass(frozen=True, eq=False, repr=False)
class GlobalExplanation:
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
    GlobalExplanation(risk on 'people': pdp, ale; epsilon=1 at delta=1e-06)
    >>> again = vt.GlobalExplanation.from_json(found.to_json())
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

    def __repr__(self) -> str:
        promise = self.guarantee.brief
        return f"GlobalExplanation({self.model} on {self.dataset!r}: {', '.join(self.parts)}; {promise})"

    @property
    def parts(self) -> tuple[str, ...]:
        """Which explanations are here."""
        return tuple(name for name in PARTS if getattr(self, name) is not None)

    def frame(self) -> dict[str, NDArray[np.generic]]:
        """All curves and importances as one tidy table of columns: ``pandas.DataFrame(found.frame())``.

        ``part`` says which explanation a line is of; importances have no ``x``, and their score is ``y``.
        """
        frames: list[dict[str, NDArray[np.generic]]] = []
        for part, effects in (("pdp", self.pdp), ("ale", self.ale)):
            if effects is not None:
                table = effects.frame()
                frames.append({"part": np.full(len(table["y"]), part), **table})
        for part, ranking in (("importance", self.importance), ("shap", self.shap)):
            if ranking is None:
                continue
            ranked = ranking.frame()
            none = np.full(len(ranking), None, dtype=object)
            table = {"name": ranked["item"], "x": none, "y": ranked["score"]}
            table |= {name: ranked[name] for name in ("lower", "upper", "std")}
            frames.append({"part": np.full(len(none), part), **table})
        return {name: np.concatenate([table[name] for table in frames]) for name in frames[0]}

    # --- files -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, JsonValue]:
        """All of it as plain JSON values; every number comes back exactly."""
        return {
            **stored.header(KIND, VERSION, self.guarantee, self.cost, ()),
            "dataset": self.dataset,
            "model": self.model,
            "n_rows_public": self.n_rows_public,
            "marginals": self.marginals.to_json(),
            "pdp": None if self.pdp is None else self.pdp.to_json(),
            "ale": None if self.ale is None else self.ale.to_json(),
            "importance": None if self.importance is None else self.importance.to_json(),
            "shap": None if self.shap is None else self.shap.to_json(),
            "shares": dict(self.shares),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, JsonValue]) -> GlobalExplanation:
        """Read back what ``to_json`` wrote."""
        return stored.read(KIND, VERSION, fields, _explanation)

    def save(self, path: str | Path) -> Path:
        """Write it as a JSON file; returns where."""
        return files.save(self.to_json(), path)

    @classmethod
    def load(cls, path: str | Path) -> GlobalExplanation:
        """Read a file that ``save`` wrote. It holds numbers and texts; nothing in it is run."""
        return cls.from_json(files.load(path))

    # --- pages -------------------------------------------------------------------------------------------------------

    def report(self, bill: Bill | None = None, *, title: str | None = None, before: Sequence[Section] = ()) -> Report:
        """The page, before it is written.

        Parameters
        ----------
        bill : Bill, optional
            ``vt.show.bill_of(data.budget)``: the label then states the promise for all that the account has released.
        title : str, optional
            What stands on top.
        before : sequence of Section, optional
            Sections of your own, between the label and what was found.
        """
        from ..show.global_report import GlobalShape, global_report

        shape = GlobalShape(
            dataset=self.dataset,
            model=self.model,
            pdp=None if self.pdp is None else {name: curve.shape() for name, curve in self.pdp.items()},
            ale=None if self.ale is None else {name: curve.shape() for name, curve in self.ale.items()},
            importance=None if self.importance is None else self.importance.shape(),
            shap=None if self.shap is None else self.shap.shape(),
            histograms=self.marginals.histograms(),
            total=self.marginals.total,
            total_sigma=self.marginals.total_sigma,
            shares=self.shares,
            mu=self.cost.mu,
            notes=self._notes(),
        )
        return global_report(shape, self.guarantee, bill=bill, title=title, before=tuple(before))

    def to_html(self, path: str | Path | None = None, bill: Bill | None = None) -> str:
        """One page that stands alone, for people; written to ``path`` if one is given. See :meth:`report`."""
        made = self.report(bill)
        return made.to_html() if path is None else made.save(path).read_text(encoding="utf-8")

    def _notes(self) -> tuple[str, ...]:
        """What a reader should know, each sentence once: every curve carries its own copy."""
        curves = [curve for effects in (self.pdp, self.ale) if effects is not None for curve in effects.values()]
        found = [note for curve in curves for note in curve.notes]
        rankings = [ranking for ranking in (self.importance, self.shap) if ranking is not None]
        return tuple(dict.fromkeys((*found, *(note for ranking in rankings for note in ranking.notes))))

    @property
    def band_claims(self) -> Mapping[str, BandClaim]:
        """What the bands of each part claim, by its name in ``parts``."""
        claims = {
            part: effects.band_claim for part, effects in (("pdp", self.pdp), ("ale", self.ale)) if effects is not None
        }
        rankings = (("importance", self.importance), ("shap", self.shap))
        return claims | {part: ranking.band_claim for part, ranking in rankings if ranking is not None}

    @property
    def half_widths(self) -> Mapping[str, float]:
        """The median half-width of the bands of each part, by its name in ``parts``: of outputs, losses, Shapley values."""
        return {part: getattr(self, part).half_width for part in self.parts}

    @property
    def half_width(self) -> float:
        """The median half-width of the curves' bands; of importances where there are no curves."""
        widths = self.half_widths
        return float(np.median([widths[part] for part in ("pdp", "ale") if part in widths] or list(widths.values())))

    def _repr_html_(self) -> str:
        from ..show import figure_image, html_text

        pictures = []
        for ranking in (self.importance, self.shap):
            if ranking is not None:
                pictures.append(figure_image(ranking.plot(), f"{ranking.kind}: {', '.join(ranking.top(20))}"))
        for effects in (self.pdp, self.ale):
            if effects is not None:
                pictures.append(figure_image(effects.plot(), repr(effects)))
        claims = (claim.sentence(SHOWN_PARTS[part]) for part, claim in self.band_claims.items())
        words = (self.guarantee.sentence, *claims, *self._notes())
        said = "".join(f"<p>{html_text(one)}</p>" for one in words)
        return f"<p><b>{html_text(repr(self))}</b></p>{''.join(pictures)}{said}"


def _explanation(fields: Mapping[str, JsonValue]) -> GlobalExplanation:
    guarantee, cost, _ = stored.promise(fields)
    marginals, pdp, ale, importance, shares = (fields[name] for name in ("marginals", "pdp", "ale", "importance", "shares"))
    shap = fields.get("shap")  # files written before there was such a part have none
    if not isinstance(marginals, Mapping) or not isinstance(shares, Mapping):
        raise TypeError("'marginals' and 'shares' must be objects")
    rows = fields["n_rows_public"]
    if isinstance(rows, bool) or not isinstance(rows, int):
        raise TypeError("'n_rows_public' must be a whole number")
    histograms = Marginals.from_json(marginals)
    checked = {name: float(share) for name, share in shares.items() if isinstance(share, int | float)}
    if len(checked) < len(shares):
        raise TypeError("'shares' must be numbers")

    def effects(part: JsonValue) -> Effects | None:
        return None if part is None else Effects.from_json(part, histograms)  # type: ignore[arg-type]

    return GlobalExplanation(
        dataset=stored.text(fields, "dataset"),
        model=stored.text(fields, "model"),
        n_rows_public=rows,
        marginals=histograms,
        pdp=effects(pdp),
        ale=effects(ale),
        importance=None if importance is None else Ranking.from_json(importance),  # type: ignore[arg-type]
        shares=MappingProxyType(checked),
        guarantee=guarantee,
        cost=cost,
        shap=None if shap is None else Ranking.from_json(shap),  # type: ignore[arg-type]
    )
