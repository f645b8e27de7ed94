"""Paying for the picture: which questions, at which prices, and what is made of the answers.

The questions and the argument for each bound are in ``moments``, ``prototypes`` and ``rows``. Prices are whole units of the
ledger that add up to no more than the price of all; the code of the second question is a function of the first release, so
asking in turn is adaptive composition, which the ledger's filter is made for.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, get_args

import numpy as np

from ...accounting import Cost, rounded_up
from ...errors import InvalidInput
from ...guarantee import question_mu
from ...model import Model
from ...results.class_picture import ClassPicture, Latent, code_of
from ...schema import Schema
from ...schema.bins import Bins
from ...solve.counterfactual.codes import MOST_FEATURES, AnyCode, IdentityCode
from ...solve.rows.cuts import fine_bins
from ..effects.paying import refuse_what_does_not_fit
from ..private_rows import MOST_COLUMNS, private_rows
from ..promises import basis_of, guarantee_of
from .classes import Classes, Indices
from .moments import moments_question
from .network import mean_price, mean_question, trained
from .prototypes import ClassSums

if TYPE_CHECKING:
    from ...vault import Block, BoundedSum, PrivateData, Quote, Release

LATENTS = ("auto", "none", "linear", "sigmoid", "network")
SHARES = {
    "moments": Fraction(15, 100),
    "network": Fraction(25, 100),
    "classes": Fraction(25, 100),
    "rows": Fraction(60, 100),
}
"""Of mu squared; what is not asked for leaves its share to the others."""
MOST_MOMENTS = 1_500
"""Features up to which moments are released: their number is squared."""
NO_CODE_BELOW = 16
"""Features up to which ``latent="auto"`` needs no code."""
CLASS_BINS = 20
MOST_CLASS_BINS = 20_000
ROWS_FROM = 100.0
"""Value of n_rows_public * mu from which ``rows="auto"`` pays for private rows."""


@dataclass(frozen=True, eq=False)
class Asking:
    """What to ask of which data, decided before anything is asked; the parameters are those of ``Counterfactual``."""

    data: PrivateData
    schema: Schema
    classes: Classes
    by: str
    latent: Latent
    rows: bool | str
    scale: float
    key: str | None
    levels: Indices | None

    @classmethod
    def of(
        cls,
        data: PrivateData,
        model: Model | Sequence[Model],
        *,
        threshold: float,
        by: str,
        latent: str,
        rows: bool | str,
        clip: float | None,
        key: str | None,
    ) -> Asking:
        """Everything checked, on public rows where rows are needed."""
        if not hasattr(data, "feature_schema") or not hasattr(data, "ask"):
            raise InvalidInput(
                f"data is {type(data).__name__}; give vt.PrivateData, or load a stored one: Counterfactual.load"
            )
        if latent not in LATENTS:
            raise InvalidInput(f"latent is {latent!r}; choose one of {', '.join(map(repr, LATENTS))}")
        if by not in ("predictions", "labels"):
            raise InvalidInput(f"by is {by!r}; choose 'predictions' (the model's classes) or 'labels' (the target's)")
        if not isinstance(rows, bool) and rows != "auto":
            raise InvalidInput(f"rows is {rows!r}; choose True, False or 'auto'")
        schema = data.feature_schema
        classes = Classes.of(model, threshold)
        for one in classes.models:
            one.check(schema)
        levels = _label_classes(data, classes) if by == "labels" else None
        return cls(data, schema, classes, by, _latent(latent, schema), rows, _scale(clip, schema), key, levels)

    def paid(self, *, epsilon: float | None = None, mu: float | None = None) -> ClassPicture:
        """Ask; refused as a whole, before anything is charged, if too little is left."""
        data = self.data
        whole = question_mu(epsilon, mu, data.delta)
        with_rows = self.with_rows(whole)
        bins = self.bins()
        of_code = {"none": (), "network": ("network",)}.get(self.latent, ("moments",))
        asked = [*of_code, "classes", *(("rows",) if with_rows else ())]
        prices = _prices(whole, asked)
        moments_asked = moments_question(self.schema, self.scale)
        first: object = moments_asked if "moments" in asked else self.sums(None, bins)[1]
        first_price = prices[asked[0]]
        if "network" in asked:
            first, first_price = mean_question(self.schema.n_features, self.scale), mean_price(prices["network"])
        refuse_what_does_not_fit(data, first, first_price, whole, "This picture of the classes")  # type: ignore[arg-type]

        releases: list[Release] = []
        gram, gram_sigma = None, 0.0
        if of_code:
            self._rehearse(bins, prices["classes"])
        if "moments" in asked:
            release = data.ask(moments_asked, mu=prices["moments"])
            gram, gram_sigma = release.value, release.sigma or 0.0
            releases.append(release)
        code: AnyCode = code_of(self.latent, self.schema, gram, gram_sigma, data.n_rows_public)
        if "network" in asked:
            code, releases = trained(
                lambda question, mu: data.ask(question, mu=mu),
                self.schema.n_features,
                self.scale,
                data.n_rows_public,
                prices["network"],
            )
        sums, question = self.sums(code, bins)
        release = data.ask(question, mu=prices["classes"])
        releases.append(release)
        cost = sum((one.cost for one in releases), Cost())
        rows = private_rows(data, mu=prices["rows"], columns=self.schema.names) if with_rows else None
        cost = cost if rows is None else cost + rows.cost
        return ClassPicture(
            dataset=data.name,
            schema=self.schema,
            labels=self.classes.labels,
            threshold=self.classes.threshold,
            latent=self.latent,
            scale=self.scale,
            moments=gram,
            moments_sigma=gram_sigma,
            code=code,
            sums=release.value.reshape(len(self.classes), sums.width),
            sums_sigma=release.sigma or 0.0,
            bins=bins,
            rows=rows,
            n_rows_public=data.n_rows_public,
            cost=cost,
            guarantee=guarantee_of(data, basis_of(releases if rows is None else (*releases, rows))),
            by=self.by,
            models=tuple(one.digest() for one in self.classes.models),
        )

    def quote(self, *, epsilon: float | None = None, mu: float | None = None) -> Quote:
        """What it would cost. Reads no row and charges nothing."""
        return self.data.quote(self.sums(None, self.bins())[1], mu=question_mu(epsilon, mu, self.data.delta))

    def _rehearse(self, bins: tuple[Bins, ...], mu: float) -> None:
        """Ask the second question of no rows, before the first is paid: a model that cannot be used is found out here."""
        from ...vault import rehearse

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to warn of is said when the question is asked
            rehearse(
                self.sums(None, bins)[1],
                {name: [] for name in self.data.schema},
                self.data.schema,
                mu=mu,
                n_rows_public=self.data.n_rows_public,
                draws=1,
                target=self.data.target,
                neighbours=self.data.neighbours,
            )

    def with_rows(self, mu: float) -> bool:
        """Whether private rows are paid for: a function of public numbers."""
        possible = 2 <= self.schema.n_columns <= MOST_COLUMNS
        if self.rows is True and not possible:
            raise InvalidInput(
                f"rows is True, but private rows have 2 to {MOST_COLUMNS} columns, not {self.schema.n_columns}"
            )
        return possible and (self.rows is True or (self.rows == "auto" and self.data.n_rows_public * mu >= ROWS_FROM))

    def bins(self) -> tuple[Bins, ...]:
        """The public bins of every column; none where classes and bins are too many to count."""
        made = tuple(fine_bins(name, column, CLASS_BINS) for name, column in self.schema.items())
        return made if len(self.classes) * sum(map(len, made)) <= MOST_CLASS_BINS else ()

    def sums(self, code: AnyCode | None, bins: tuple[Bins, ...]) -> tuple[ClassSums, BoundedSum]:
        """What rows contribute to the question about the classes, and the question; without a code, of x itself."""
        made = IdentityCode(self.schema.n_features) if code is None else code
        classes, levels = self.classes, self.levels

        def of(block: Block) -> Indices:
            return classes.of_block(block) if levels is None else levels[block.target.astype(np.intp)]

        sums = ClassSums(of, len(classes), made, self.scale, bins)
        models = [one.identity(self.schema, self.key) for one in classes.models] if levels is None else None
        identity = {
            "by": self.by,
            "models": models,
            "threshold": classes.threshold,
            "levels": None if levels is None else levels.tolist(),
            "key": self.key,
        }
        return sums, sums.question(identity, models is None or None not in models)


def _label_classes(data: PrivateData, classes: Classes) -> Indices:
    if data.target is None:
        raise InvalidInput("by='labels' needs data with a target=; use by='predictions', the model's classes")
    return classes.levels_of(data.target, data.schema[data.target])


def _latent(given: str, schema: Schema) -> Latent:
    if given == "network" and schema.n_features > MOST_FEATURES:
        raise InvalidInput(
            f"latent is 'network', and the rows have {schema.n_features} features; a network is trained on at most "
            f"{MOST_FEATURES}, use latent='none'"
        )
    if given in ("linear", "sigmoid") and schema.n_features > MOST_MOMENTS:
        raise InvalidInput(
            f"latent is {given!r}, and the rows have {schema.n_features} features; moments are released of at most "
            f"{MOST_MOMENTS}, use latent='none'"
        )
    for known in get_args(Latent):
        if given == known:
            return known  # type: ignore[no-any-return]
    return "linear" if NO_CODE_BELOW < schema.n_features <= MOST_MOMENTS else "none"


def _scale(clip: float | None, schema: Schema) -> float:
    if clip is None:
        return math.sqrt(schema.n_columns)
    if isinstance(clip, bool) or not isinstance(clip, int | float) or not 0 < clip < math.inf:
        raise InvalidInput(
            f"clip is {clip!r}; it must be a positive length, at most {math.sqrt(schema.n_columns):.4g} is useful"
        )
    return min(float(clip), math.sqrt(schema.n_columns))


def _prices(mu: float, asked: Sequence[str]) -> dict[str, float]:
    """The price of each question: whole units of the ledger that add up to no more than the price of all."""
    units = math.floor(Fraction(mu) ** 2 * 10**12)
    total = sum(SHARES[name] for name in asked)
    parts = {name: math.floor(SHARES[name] / total * units) for name in asked}
    if min(parts.values()) < 10:
        raise InvalidInput(f"the price of this picture is mu = {rounded_up(mu)}, too small to buy anything; ask for more")
    if len(asked) == 1:
        return {asked[0]: mu}
    return {name: math.sqrt(part / 10**12) * (1 - 2e-15) for name, part in parts.items()}
