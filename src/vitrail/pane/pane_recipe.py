"""The recipe of a pane: how one price becomes a file that explains a model for ever.

*Shares.* Costs add in mu squared, and the squared error of a noisy sum falls as one over what was paid for it. So a part
with share s of the price has 1/s times the squared error that it would have alone, and over parts of that sort the worst of
these ratios is least for equal shares. The two kinds of curves are of that sort: 5.5 for accumulated effects, 8 for partial
dependence, where a method that answers one question is hardest to beat. *Private rows* get 3. They are used three times:
for the reasons of any model, whose error hardly falls any more with the price, as what curves and importance are planned
from and combined with (``joint_sum``), and as the places where counterfactuals are sought. What they leave out of the
reasons of a pane's own model is measured once on the real rows, by column: *reasons*, with 0.75. Where n_rows_public * mu is
below some 1 000 both get more, up to 85 % of the price: reasons come first, and curves lean on rows there anyhow.
*Importance* is read as an order, so that more noise changes less: 0.75. The numbers were chosen with Adult's figures in
sight, that of reasons with Framingham's and Bike's, not on other data.

*By name only.* The *synopsis*, with 4.25, explains without a model, and worse than rows with one. The *picture of the
classes*, with 0.75, gives counterfactuals no nearer, no more plausible and of no fewer changes than private rows that the
public model puts into its classes itself, which costs nothing.

*What is possible* follows from public numbers as well. ``parts="all"`` leaves out private rows, and reasons with them, where
n_rows_public * mu of their share is below 100. Without rows there is nowhere to seek counterfactuals: then, and only then,
"all" buys the picture of the classes. Where columns are too many for curves of all of them, rows and reasons are all that it
buys, and rows alone where groups do not make few players of them. What is left out leaves its share to the others.

*Several models, or none.* Rows are about no model and bought once; what is left of the price is shared evenly between the
models. Without a model there are rows alone.

Each part is the recipe of an explainer that stands on its own and carries the argument for its bound beside its code. Rows
come before curves, because curves use their histograms. Tests: tests/pane, tests/audit/test_pane_audit.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date
from types import MappingProxyType
from typing import Literal, TypedDict, TypeVar, Unpack

from .. import __version__, _checks
from ..accounting import Cost, JsonValue, epsilon_of
from ..errors import InvalidInput
from ..explain.counterfactual import Counterfactual
from ..explain.elsewhere import elsewhere
from ..explain.global_report import GlobalReport
from ..explain.global_report import Part as ReportPart
from ..explain.joint_sum import MOST_EXPLAINED
from ..explain.linear.local_linear import LocalLinear
from ..explain.mean_reasons import mean_reasons_recipe
from ..explain.private_rows import MOST_COLUMNS, PrivateRowsExplainer
from ..explain.recipe import Conversation, Given, GlobalExplainer, Recipe, Terms, scaled
from ..explain.sampled import all_rows, checked_rate
from ..ledger import Statement
from ..ledger.statement import asked_text
from ..model import Model
from ..results.archive import MOST_BYTES, digest
from ..results.class_picture import ClassPicture
from ..results.codec import to_files
from ..results.marginals import Marginals
from ..results.mean_reasons import MeanReasons
from ..results.private_rows import PrivateRows
from ..results.report import Report
from ..results.synopsis import Synopsis
from ..show.page_words import PageWords
from ..solve.counterfactual.classes import Classes
from ..solve.linear.coordinates import Partition
from ..solve.shapley.on_rows import MOST_PLAYERS, check_players, players_of
from ..vault import PrivateData
from . import lifetime
from .manifest import KINDS, MODEL_FILE, MOST_FEATURES, Line, Manifest, Part, described, onnx_content, part_name
from .pane import Pane

WEIGHTS = MappingProxyType(
    {"rows": 3.0, "reasons": 0.75, "local": 4.25, "pdp": 8.0, "ale": 5.5, "importance": 0.75, "counterfactual": 0.75}
)
"""Weights of the parts in the price (of mu squared), among those that are bought; see the module docstring."""
PARTS = tuple(WEIGHTS)
CURVES: tuple[ReportPart, ...] = ("pdp", "ale", "importance")
"""Bought together, as one joint sum."""
ON_ROWS = ("rows", "reasons")
"""What reasons stand on."""
DEFAULT = (*ON_ROWS, *CURVES)
"""What ``parts="all"`` buys: counterfactuals need private rows and the model, nothing more."""
WITHOUT_ROWS = (*CURVES, "counterfactual")
"""What it buys where private rows are impossible."""
OF_ALL_ROWS = ("local", "counterfactual")
"""Parts that a sample of the rows cannot give: nothing released tells what it would add."""
ROW_BINS = 100
ROWS_ENOUGH = 1_000.0
"""Value of n_rows_public * mu of their share at which private rows give reasons nearly as well as real ones."""
MOST_ROWS_SHARE = 0.85
ROWS_FROM = 100.0
"""Value of n_rows_public * mu from which private rows are worth their share."""

R = TypeVar("R")
PartName = Literal["rows", "reasons", "local", "pdp", "ale", "effects", "importance", "counterfactual"]
Bought = PrivateRows | MeanReasons | Synopsis | Report | ClassPicture


@dataclass(eq=False, repr=False)
class PaneExplainer(GlobalExplainer[Pane]):
    """A pane before it is paid for, to be quoted or called.

    ``vt.release(data, model, epsilon=e)`` is ``vt.PaneExplainer(data, model)(epsilon=e)``, for a model, several, or none.

    Parameters
    ----------
    data, model, parts, weights, threshold, loss, loss_bound, embed_model, sampling_rate, key, version, expires, page
        As for :func:`release`.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema, nobody = vt.Schema({"age": vt.Numeric(0, 100), "hours": vt.Numeric(0, 80)}), {"age": [], "hours": []}
    >>> data = vt.PrivateData(nobody, schema, name="staff", n_rows_public=20_000, budget=vt.Budget(1, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.5 * x[:, 0], range=(0, 1), name="risk")
    >>> quote = data.quote(vt.PaneExplainer(data, model, parts=["rows", "pdp"]), epsilon=1.0)
    >>> quote.fits, quote.result.parts, data.budget.spent_epsilon
    (True, ('rows', 'pdp'), 0.0)
    """

    data: PrivateData
    model: Model | Sequence[Model] | None = None
    _: KW_ONLY
    parts: Literal["all"] | Sequence[PartName] = "all"
    weights: Mapping[str, float] | None = None
    threshold: float | None = None
    loss: str = "squared"
    loss_bound: float | None = None
    embed_model: bool = False
    sampling_rate: float = 1.0
    key: str | None = None
    version: str = lifetime.DEFAULT_VERSION
    expires: str | date | None = None
    page: lifetime.WordsGiven = None

    def __post_init__(self) -> None:
        data, parts = self.data, self.parts
        self._version, self._expires = lifetime.checked_version(self.version), lifetime.checked_expiry(self.expires)
        self._page = lifetime.checked_page(self.page)
        if self._page is not None:  # a pane whose words no page can use is refused before it is paid for
            PageWords.from_json(self._page).check([*data.feature_schema, *data.feature_schema.groups])
        self._models = _models_of(self.model)
        self.check_inputs(*self._models)
        names = [model.name for model in self._models]
        if twice := [name for name in names if names.count(name) > 1]:
            raise InvalidInput(f"two models are called {twice[0]!r}; give each a name of its own: vt.Model(..., name=...)")
        if data.feature_schema.n_features > MOST_FEATURES:
            raise InvalidInput(
                f"the schema has {data.feature_schema.n_features} encoded features, and a pane holds at most {MOST_FEATURES}"
            )
        everything = isinstance(parts, str) and parts == "all"
        # Without a model there is one part, and the owner has named it by leaving the model out.
        wanted = ["rows"] if everything and not self._models else parts
        self._asked = None if everything and self._models else _checked_parts(wanted, data, self._models)
        self._weights = _checked_weights(self.weights, self._asked)
        self.sampling_rate = checked_rate(self.sampling_rate)
        if unknown := [part for part in self._asked or () if part in OF_ALL_ROWS and self.sampling_rate < 1]:
            why = "what a sample adds to it is not released; leave the part out: private rows explain, and are sought on"
            all_rows(self.sampling_rate, f"the part {unknown[0]!r}", why)
        if self.embed_model and not self._models:
            raise InvalidInput("embed_model is True, and there is no model; give one, or leave embed_model out")
        if self.threshold is not None and not self._models:
            raise InvalidInput("threshold is of a model's output, and there is no model; give one, or leave threshold out")
        contents = [onnx_content(model) for model in self._models] if self.embed_model else []
        self._contents = {MODEL_FILE.format(part_name("model", n)): content for n, content in enumerate(contents)}
        if (size := sum(map(len, contents))) > MOST_BYTES // 2:
            raise InvalidInput(f"the model has {size >> 20} MiB, too much for a pane; leave embed_model out")
        wide = data.feature_schema.n_columns > MOST_EXPLAINED
        possible = self._asked if self._asked is not None else self._when_wide if wide else PARTS
        if self._asked is not None and "reasons" in self._asked:
            check_players(len(players_of(data.feature_schema)))
        curves = [part for part in CURVES if part in possible]
        for model in self._models:
            if self.threshold is not None:
                Classes.of(model, self.threshold)
            if curves:
                self._report(model, dict.fromkeys(curves, 1.0), None)
            if "counterfactual" in possible:
                self._counterfactual(model)
        if self._asked is not None and "local" in self._asked:
            Partition(data.feature_schema, ()).whole.check_size()

    # --- shares ------------------------------------------------------------------------------------------------------

    def shares(self, mu: float) -> dict[str, float]:
        """Each part's share of mu squared, at this price."""
        parts = self._parts(mu)
        rows = self._rows_share(parts, mu)
        together = [sum(self._weights[part] for part in parts if (part in ON_ROWS) == on_rows) for on_rows in (False, True)]
        shares = 1 - rows, rows
        return {name: shares[name in ON_ROWS] * self._weights[name] / together[name in ON_ROWS] for name in parts}

    def _parts(self, mu: float) -> tuple[str, ...]:
        """What is bought at this price."""
        if self._asked is not None:
            return self._asked
        enough = self._rows_for_noise * mu * math.sqrt(self._rows_share(DEFAULT, mu)) >= ROWS_FROM
        columns = self.data.feature_schema.n_columns
        if columns > MOST_EXPLAINED:
            return self._when_wide
        if enough and columns >= 2:
            return DEFAULT
        return WITHOUT_ROWS if self.sampling_rate == 1 else CURVES

    @property
    def _when_wide(self) -> tuple[str, ...]:
        """What "all" buys of columns too many for curves: reasons too, where groups of them make few players."""
        return ON_ROWS if len(players_of(self.data.feature_schema)) <= MOST_PLAYERS else ON_ROWS[:1]

    @property
    def _rows_for_noise(self) -> float:
        """The declared rows, over how many times larger noise is where a person has several, or a sample is looked at."""
        return self.data.n_rows_public * self.sampling_rate / self.data.rows_per_person

    def _rows_share(self, parts: Sequence[str], mu: float) -> float:
        """Of rows and reasons: by weight, or as much more as they need where rows are few and the price is low."""
        if "rows" not in parts:
            return 0.0
        weights = {part: self._weights[part] for part in parts}
        share = sum(weights[part] for part in ON_ROWS if part in weights) / sum(weights.values())
        if share == 1 or (self.weights is not None and "rows" in self.weights):
            return share
        return max(share, min(MOST_ROWS_SHARE, (ROWS_ENOUGH / (self._rows_for_noise * mu)) ** 2))

    # --- the conversation --------------------------------------------------------------------------------------------

    def conversation(self) -> Conversation[Pane]:
        """The recipes of all parts, one after the other."""
        models: list[JsonValue] = [model.identity(self.data.feature_schema, self.key) for model in self._models]
        # No question but that about the classes depends on the threshold.
        classes = self.threshold if self._asked is None or "counterfactual" in self._asked else None
        identity: dict[str, JsonValue] = {"kind": "pane", "version": 8, "models": models, "threshold": classes}
        identity |= {"parts": None if self._asked is None else list(self._asked), "weights": dict(self._weights)}
        identity["loss"] = [str(self.loss), self.loss_bound]
        label = f"a pane of {' and '.join(model.name for model in self._models) or 'private rows'}"
        given = self.data, self._recipe, label, None if None in models else identity, self._models
        return Conversation(*given, sampling_rate=self.sampling_rate)

    def _recipe(self, terms: Terms) -> Recipe[Pane]:
        shares, each = self.shares(terms.mu), 1 / max(1, len(self._models))
        bought: dict[str, Bought] = {}
        for number, model in enumerate(self._models):
            if share := shares.get("local"):
                fitting = LocalLinear(self.data, model, key=self.key).fitting("moments")
                moments = fitting.conversation().inside(terms, share * each)
                bought[part_name("local", number)] = yield from self._about(model, moments)
        rows = None
        if share := shares.get("rows"):
            columns = terms.feature_schema.names
            explainer = PrivateRowsExplainer(self.data, columns=columns, bins=ROW_BINS)
            rows = bought["rows"] = yield from explainer.conversation().inside(terms, share)
        if rows is not None and (share := shares.get("reasons", 0.0) * each):
            for number, model in enumerate(self._models):
                asked_once = mean_reasons_recipe(terms.scaled(share), model, rows)
                bought[part_name("reasons", number)] = yield from self._about(model, scaled(asked_once, share))
        standing_on: Marginals | PrivateRows | None = rows
        for number, model in enumerate(self._models):
            if curves := {name: shares[name] for name in CURVES if name in shares}:
                together = sum(curves.values()) * each
                asked = self._report(model, curves, standing_on).conversation().inside(terms, together)
                bought[part_name("global", number)] = report = yield from self._about(model, asked)
                standing_on = standing_on or report.marginals  # without rows the first report has bought them
            if share := shares.get("counterfactual"):
                picture = self._counterfactual(model).conversation().inside(terms, share * each)
                bought[part_name("counterfactual", number)] = yield from self._about(model, picture)
        return self._pane(terms, bought)

    def _about(self, model: Model, recipe: Recipe[R]) -> Recipe[R]:
        """The same questions; their lines on the bill say which of several models they are about."""
        several, of = len(self._models) > 1, f" of {model.name}"
        try:
            ask = next(recipe)
            while True:
                # A question with a key of its own (histograms) is about no model.
                named = not several or ask.label.endswith(of) or ask.question.key is not None
                label = ask.label if named else f"{ask.label},{of}"
                ask = recipe.send((yield replace(ask, label=label)))
        except StopIteration as stop:
            result: R = stop.value
            return result

    def _report(
        self, model: Model, weights: Mapping[ReportPart, float], marginals: Marginals | PrivateRows | None
    ) -> GlobalReport:
        return GlobalReport(
            self.data,
            model,
            parts=list(weights),
            weights=weights,
            loss=self.loss,
            loss_bound=self.loss_bound,
            marginals=marginals,
            key=self.key,
        )

    def _counterfactual(self, model: Model) -> Counterfactual:
        """The picture of the classes, without rows of its own: the pane's are lent to it."""
        threshold = (model.lo + model.hi) / 2 if self.threshold is None else self.threshold
        return Counterfactual(self.data, model, threshold=threshold, rows=False, key=self.key)

    def __call__(self, *, epsilon: Given = None, mu: Given = None) -> Pane:
        """Pay for the pane, all parts or none; the same again is free."""
        if elsewhere(self) is not None:  # a service puts the ledger's lines in itself
            return super().__call__(epsilon=epsilon, mu=mu)
        last = self.data.budget.n_entries
        made = super().__call__(epsilon=epsilon, mu=mu)
        lines = _ledger_lines(self.data.budget, last, made.cost)
        return made if not lines else made.with_bill(lines)

    # --- the file ----------------------------------------------------------------------------------------------------

    def _pane(self, terms: Terms, bought: Mapping[str, Bought]) -> Pane:
        files: dict[str, bytes] = dict(self._contents)
        total, day, parts = sum((part.cost for part in bought.values()), Cost()), lifetime.today().isoformat(), {}
        promise = terms.promise(*bought.values())
        names = (part_name(kind, number) for kind in KINDS for number in range(max(1, len(self._models))))
        for name in (name for name in names if name in bought):
            part = bought[name]
            # Rows that the pane holds anyhow are not written twice; a reader gives them back (``Pane.class_picture``).
            kept = replace(part, rows=None) if isinstance(part, ClassPicture) else part
            made = {f"{name}/{file}": content for file, content in sorted(to_files(kept).items())}
            files |= made
            share = round(part.cost.pico_mu_squared / total.pico_mu_squared, 6)
            parts[name] = Part(part.FORMAT, share, {file: digest(content) for file, content in made.items()})
        manifest = Manifest(
            tool=f"vitrail {__version__}",
            created=day,
            dataset=terms.dataset,
            n_rows_public=terms.n_rows_public,
            target=terms.target,
            schema=terms.schema,
            models=described(self._models, self._contents, self.threshold),
            guarantee=promise,
            # Parts of two models may stand on one release that is about neither: it was charged once.
            cost=promise.behind.cost,
            bill=(),
            parts=parts,
            version=self._version,
            expires=self._expires,
            page=self._page,
        )
        costs = {name: bought[name].cost for name in parts}
        lines = [Line(0, day, manifest.title(name), c, epsilon_of(c.mu, terms.delta)) for name, c in costs.items()]
        fields = replace(manifest, bill=tuple(lines)).to_fields()
        return Pane(Manifest.read(fields, files, "the pane"), files, self._models)


def _ledger_lines(statement: Statement, last: int, cost: Cost) -> tuple[Line, ...]:
    """The ledger's lines of this release, charges of replayed answers included; none if somebody else asked meanwhile."""
    recent = statement.since(last)
    seen = {entry.seq: entry for entry in recent if entry.kind == "charged"}
    again = {of for entry in recent if entry.kind == "replayed" and isinstance(of := entry.body.get("of"), int)}
    seen |= {seq: statement.chain.entry(seq) for seq in again - seen.keys()}
    if sum((entry.cost for entry in seen.values()), Cost()) != cost:
        return ()
    paid = [(seq, entry, entry.cost) for seq, entry in sorted(seen.items())]
    return tuple(Line(seq, e.time_utc[:10], asked_text(e), price, statement.epsilon(price)) for seq, e, price in paid)


class PaneOptions(TypedDict, total=False):
    """What :func:`release` takes besides data, model and price."""

    parts: Literal["all"] | Sequence[PartName]
    weights: Mapping[str, float] | None
    threshold: float | None
    loss: str
    loss_bound: float | None
    embed_model: bool
    sampling_rate: float
    key: str | None
    version: str
    expires: str | date | None
    page: lifetime.WordsGiven


def release(
    data: PrivateData,
    model: Model | Sequence[Model] | None = None,
    *,
    epsilon: Given = None,
    mu: Given = None,
    **options: Unpack[PaneOptions],
) -> Pane:
    """Pay once for everything that explains a model, or any model, as one file that may be published.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    model : Model or list of Model, optional
        What is explained. Rows are bought once for several models, the other parts for each of them, at equal prices.
        Without a model there are private rows alone, which explain any model that the reader has.
    parts : "all" or list of {"rows", "reasons", "local", "pdp", "ale", "effects", "importance", "counterfactual"}
        What to release; ``"effects"`` is pdp and ale. ``"reasons"`` goes with rows: what those leave out of the model's
        reasons, measured on the real rows. ``"all"``: rows, reasons, pdp, ale and importance; where the data does not
        allow private rows, the picture of the classes instead, because counterfactuals are sought on one of the two.
    weights : mapping of str to float, optional
        How the price is shared between the parts, where the default (``vitrail.pane.pane_recipe.WEIGHTS``) does not suit.
    threshold : float, optional
        From which output on a row is of class 1, for counterfactuals; the middle of the model's range if not given. The
        pane keeps it.
    loss, loss_bound
        Of permutation importance; see :class:`PermutationImportance`.
    embed_model : bool
        Write the model into the file. For ONNX models only, which can be read without running code.
    sampling_rate : float
        Below 1, every question looks at each row with this probability: a pane of very many rows in less time, at the same
        price, with more noise. What the choice of the rows adds is in all bands. Not for ``"local"`` and
        ``"counterfactual"``, whose bands could not know it; counterfactuals are sought on private rows.
    key : str, optional
        A name for a model that is a bare function, so that releasing again replays the stored releases.
    version : str
        What you call this pane among others of the same data, such as ``"2026-Q4"``.
    expires : str or date, optional
        The last day that it is meant to be used, as in ``"2027-06-30"``. Afterwards it still opens, with a warning.
    page : mapping, or object with ``to_json()``, optional
        Your words for a person's page. Version, day and words are part of no question: the same release with others is free.
    epsilon, mu : float
        The price of all of it, in one of the two currencies; ``data.quote(vt.pane.PaneExplainer(data, model), epsilon=1)``
        says beforehand what it would buy.

    Returns
    -------
    Pane
        With the models. ``pane.save("x.pane")`` writes the file.

    Raises
    ------
    BudgetExceeded
        If too little is left for all of it. Nothing was charged. Releasing the same again is free.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> rows = {"age": np.linspace(0, 100, 20_000), "smoker": np.tile(["no", "yes"], 10_000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=20_000, budget=vt.Budget(1, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.5 * x[:, 0] + 0.2 * x[:, 2], range=(0, 1), name="risk")
    >>> pane = vt.release(data, model, epsilon=1.0, parts=["rows", "local", "pdp"])
    >>> pane.parts, round(data.budget.spent_epsilon, 3)
    (('rows', 'local', 'pdp'), 1.0)
    >>> vt.Pane.from_bytes(pane.to_bytes()).local({"age": 80, "smoker": "yes"}).method  # no model at hand
    'synopsis'

    Without a model: private rows, for the reasons and counterfactuals of any model, also next year's.

    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=20_000, budget=vt.Budget(1, 1e-6))
    >>> pane = vt.release(data, epsilon=1.0)
    >>> pane
    Pane('patients': rows; epsilon=1 at delta=1e-06)
    >>> [share.column for share in pane.local({"age": 90, "smoker": "yes"}, model=model).top(1)]
    ['age']
    """
    return PaneExplainer(data, model, **options)(epsilon=epsilon, mu=mu)


def _models_of(given: Model | Sequence[Model] | None) -> tuple[Model, ...]:
    if given is None:
        return ()
    if isinstance(given, list | tuple) and not given:
        raise InvalidInput("model is an empty list; give models, or leave it out for private rows alone")
    return tuple(given) if isinstance(given, list | tuple) else (given,)  # type: ignore[return-value]  # checked by the caller


def _checked_parts(parts: object, data: PrivateData, models: Sequence[Model]) -> tuple[str, ...]:
    known = (*PARTS, "effects")
    named = _checks.names("parts", parts, known, "part")
    chosen = {part for name in named for part in (("pdp", "ale") if name == "effects" else (name,))}
    if not models and (about := [name for name in PARTS if name in chosen and name != "rows"]):
        raise InvalidInput(
            f"parts names {about[0]!r}, which is about a model, and none was given: vt.release(data, model, ...)"
        )
    if "reasons" in chosen and "rows" not in chosen:
        raise InvalidInput("parts names 'reasons', which are what private rows leave out; name 'rows' as well")
    columns = data.feature_schema.n_columns
    if "rows" in chosen and not 2 <= columns <= MOST_COLUMNS:
        raise InvalidInput(f"parts names 'rows', and private rows have 2 to {MOST_COLUMNS} columns, not {columns}")
    return tuple(name for name in PARTS if name in chosen)


def _checked_weights(weights: Mapping[str, float] | None, asked: tuple[str, ...] | None) -> dict[str, float]:
    if weights is None:
        return dict(WEIGHTS)
    if not isinstance(weights, Mapping):
        raise InvalidInput(f"weights is {type(weights).__name__}; give a mapping of parts to numbers: {{'local': 2}}")
    for name, weight in weights.items():
        if name not in PARTS:
            raise InvalidInput(f"weights names {name!r}; there are {', '.join(map(repr, PARTS))}")
        _checks.positive(repr(name), weight, of="weights")
        if asked is not None and name not in asked:
            raise InvalidInput(f"weights names {name!r}, which is not among the parts: {', '.join(map(repr, asked))}")
    return {**WEIGHTS, **{name: float(weight) for name, weight in weights.items()}}
