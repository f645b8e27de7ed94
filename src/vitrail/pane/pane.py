"""Pane: a file of releases, read. Explains anybody, anywhere, without the data. Imports neither vault nor ledger.

Everything here is post-processing of what lies in the file, and of the public model where one is given: free, for ever.

*Which explanation of a person.* The model's own reasons where there are private rows and a model: Shapley values with the
stored rows as background, which add up to the model's output. They need no part but the rows, and serve any model. So do
counterfactuals: the model puts the same rows into its classes. A picture of the classes is bought by name, and serves where
there are no rows. A linear picture around the person (LIME's question) on the same rows is asked for by name, and so is the
synopsis, which needs no model and is bought by name too.

*Which model.* A pane of several models is as many panes of one, with the same rows (:meth:`Pane.about`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from ..model import Model
from ..model.contents import read_once
from ..results import Attribution, Ranking, archive
from ..results.base import Drawn, Frame
from ..results.class_picture import ClassPicture
from ..results.marginals import Marginals
from ..results.mean_reasons import MeanReasons
from ..results.private_rows import PrivateRows
from ..results.report import Report
from ..results.row_count import RowCount
from ..results.synopsis import Synopsis
from ..results.verdict import Verdict, weakest_verdict
from ..schema import Level
from ..show.pages import fragment, page_content
from ..solve.counterfactual.classes import OPPOSITE, Desired
from ..solve.counterfactual.fitted import FittedCounterfactual
from ..solve.shapley.on_rows import Players, Scale
from ..solve.shapley.reasons import BACKGROUND
from .explored import in_notebook
from .lifetime import WordsGiven, expiry_sentence, is_over
from .local_ways import METHODS as METHODS
from .local_ways import Method as Method
from .local_ways import linear_on, local_explanation
from .manifest import KINDS, REASONS, ROWS, Line, Manifest, opened, read_part
from .pages import pane_content, pane_fragment
from .person import Person, counterfactual_on, explained, needed, reasons_on_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..results.effects import Effects
    from ..solve.linear.labelled_rows import RowsExplainer

T = TypeVar("T")
Models: TypeAlias = Model | str | Path | Sequence[Model | str | Path] | None
CURVES = ("pdp", "ale", "importance")


class Pane(Drawn):
    """Releases that explain a model for ever, without the data.

    Made by :func:`vitrail.release` or :meth:`load`. The parts are read when they are first used.

    Attributes
    ----------
    manifest : Manifest
        What the file says about itself.
    model : Model or None
        The model that it explains with, if one was given and the pane is about one, or none.
    models : tuple of str
        The names of the models that it was made with; none where it holds private rows alone.
    made_for : MadeFor or None
        What is known of the model that it was made with, where that is one.
    dataset, n_rows_public, schema
        Whose rows, the declared row count, and the columns that the model reads: what a point has.
    guarantee, cost, bill
        The promise for all of it and all that is ever computed from it, what was charged once, and the questions.
    created, tool : str
        The day of its last charge; what made it.
    version, expires : str, str or None
        What its owner calls it; the last day that it is meant to be used, as in 2027-06-30.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 20_000), "smoker": generator.choice(["no", "yes"], 20_000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=20_000, budget=vt.Budget(1, 1e-6))
    >>> model = vt.Model(lambda x: 0.1 + 0.5 * x[:, 0] + 0.3 * x[:, 2], range=(0, 1), name="risk")
    >>> pane = vt.release(data, model, epsilon=1.0)
    >>> pane
    Pane('patients', risk: rows, reasons, pdp, ale, importance; epsilon=1 at delta=1e-06)
    >>> pane.local({"age": 90, "smoker": "yes"}, bands=True).certain()  # any person, as often as you like, for nothing
    ('age', 'smoker')
    >>> bool(abs(pane.effects["age"](50) - 0.5) < 0.03), pane.rows(3).shape
    (True, (3, 2))
    >>> pane.counterfactual({"age": 10, "smoker": "no"}, desired_class=1).validity.tolist()
    [[True]]
    """

    guarantee: Guarantee
    explore = in_notebook

    def __init__(self, manifest: Manifest, files: Mapping[str, bytes], models: Sequence[Model] = ()) -> None:
        self.manifest, self._files, self._models = manifest, dict(files), tuple(models)
        self.models = tuple(made_for.name for made_for in manifest.models)
        self.model = models[0] if models and len(self.models) < 2 else None
        self.made_for = manifest.models[0] if len(self.models) == 1 else None
        self.dataset, self.schema = manifest.dataset, manifest.feature_schema
        self.guarantee, self.cost, self.bill = manifest.guarantee, manifest.cost, manifest.bill
        self.n_rows_public, self.created, self.tool = manifest.n_rows_public, manifest.created, manifest.tool
        self.version, self.expires = manifest.version, manifest.expires
        self._read: dict[str, Any] = {}
        self._about: dict[int, Pane] = {}

    # --- files -------------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path, model: Models = None) -> Pane:
        """Read a file that ``save`` wrote. Nothing in it is run; whatever is wrong with it is an :class:`InvalidInput`.

        Parameters
        ----------
        path : path
            Of the pane.
        model : Model, path of a model's file, a list of these, or "embedded", optional
            The model to explain with, or those of several. Curves, importance, the local synopsis and rows work without.
            Another model than the pane's gives a warning. A model in the pane is opened on request.
        """
        content = archive.read_bytes(path)
        return cls.from_bytes(content, model, what=f"the pane {str(path)!r}")

    @classmethod
    def from_bytes(cls, content: bytes, model: Models = None, *, what: str = "the pane") -> Pane:
        """Read the bytes of a pane; see :meth:`load`."""
        fields, files = archive.unpack(content, what)
        manifest = Manifest.read(fields, files, what)
        made = cls(manifest, files, opened(model, manifest, files, what))
        for name in manifest.known:  # a damaged part is found out now, not in the middle of somebody's work
            made._stored(name)
        if made.expired:
            warnings.warn(made.expiry_sentence, UserWarning, stacklevel=2)
        return made

    def with_model(self, model: Models) -> Pane:
        """The same pane with a model to explain with, or several."""
        return Pane(self.manifest, self._files, opened(model, self.manifest, self._files, "the pane"))

    def with_bill(self, lines: tuple[Line, ...]) -> Pane:
        """The same pane with the ledger's own lines on its bill."""
        bill = replace(self.manifest, bill=lines, created=max(line.date for line in lines))
        return Pane(Manifest.read(bill.to_fields(), self._files, "the pane"), self._files, self._models)

    def with_page(self, page: WordsGiven) -> Pane:
        """The same pane with the owner's words for a person's page: a mapping, or an object with ``to_json()``. Free."""
        return Pane(self.manifest.with_page(page, self._files), self._files, self._models)

    def to_bytes(self) -> bytes:
        """The file; the same pane gives the same bytes. Parts that this version does not know are in it unchanged."""
        return archive.pack(self.manifest.fields, self._files)

    def save(self, path: str | Path) -> Path:
        """Write the file; returns where."""
        return archive.write_bytes(path, self.to_bytes())

    # --- what it is --------------------------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[str, ...]:
        """What there is: rows, reasons, local, pdp, ale, importance, counterfactual; parts of a later version by name."""
        known, names = self.manifest.known, dict[str, None]()
        for name in self.manifest.parts:
            kind, _ = known.get(name, (name, 0))
            found = [c for c in CURVES if getattr(self._stored(name), c) is not None] if kind == "global" else [kind]
            names |= dict.fromkeys(found)
        return tuple(names)

    @property
    def expired(self) -> bool:
        """Whether the last day that it was meant to be used has passed. It works as before."""
        return is_over(self.expires)

    @property
    def expiry_sentence(self) -> str:
        """What pages say first of an expired pane; empty for others."""
        return expiry_sentence(self.expires, self.version)

    @property
    def unknown_parts(self) -> tuple[str, ...]:
        """Parts that this version of Vitrail cannot read. They are kept when the pane is saved."""
        return tuple(name for name in self.manifest.parts if name not in self.manifest.known)

    def accuracy(self) -> dict[str, str]:
        """For each part, under its title, how accurate it is: a sentence from what was released."""
        return {
            self.manifest.title(name): KINDS[kind].accuracy(self._lent(self._stored(name)))
            for name, (kind, _) in self.manifest.known.items()
        }

    def shares(self) -> dict[str, float]:
        """Each part's share of the price, of mu squared."""
        return {name: part.share for name, part in self.manifest.parts.items()}

    def __repr__(self) -> str:
        known = ", ".join(name for name in self.parts if name not in self.unknown_parts)
        unknown = f"; not readable by this version: {', '.join(self.unknown_parts)}" if self.unknown_parts else ""
        models = "".join(f", {name}" for name in self.models)
        return f"Pane({self.dataset!r}{models}: {known}{unknown}; {self.guarantee.brief})"

    def frame(self) -> Frame:
        """Curves and importance as columns of one length, or the histograms where there are none."""
        return self.report.frame() if "global" in self.manifest.known else self.marginals.frame()

    @property
    def half_width(self) -> float | None:
        """The median half-width of curves and importance, the largest of several models; of histograms without curves."""
        return max(filter(None, (part.half_width for part in self._shown)), default=None)

    @property
    def verdict(self) -> Verdict | None:
        """Whether curves and importance stand out of their noise, the weakest; of histograms without curves."""
        return weakest_verdict(part.verdict for part in self._shown if part.verdict is not None)

    @property
    def _shown(self) -> list[Report] | list[Marginals]:
        known = self.manifest.known
        return [self._stored(name) for name in known if known[name][0] == "global"] or [self.marginals]

    def plot(self) -> Figure:
        """Curves and importance, or the histograms where there are none."""
        return self.report.plot() if "global" in self.manifest.known else self.marginals.plot()

    # --- models ------------------------------------------------------------------------------------------------------

    def about(self, name: str) -> Pane:
        """The pane of one of its models: curves, importance and counterfactuals of that one.

        Rows are about no model, and in each of them; promise and price stay those of the whole pane.

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "height": vt.Numeric(0, 200)})
        >>> rows = {"age": np.linspace(0, 100, 9000), "height": np.tile(np.linspace(150, 190, 9), 1000)}
        >>> data = vt.PrivateData(rows, schema, name="people", n_rows_public=9000, budget=vt.Budget(1, 1e-6))
        >>> old, new = (vt.Model(lambda x, b=b: b * x[:, 0], range=(0, 1), name=f"x{b}") for b in (0.5, 0.9))
        >>> pane = vt.release(data, [old, new], epsilon=1.0, parts=["rows", "pdp"])
        >>> pane.models, bool(pane.about("x0.9").pdp["age"](100) > 0.8)
        (('x0.5', 'x0.9'), True)
        >>> pane.local({"age": 80, "height": 170})
        Traceback (most recent call last):
            ...
        vitrail.errors.InvalidInput: this pane is about several models; choose one of 'x0.5', 'x0.9': model='x0.5'
        """
        if not self.models:
            raise InvalidInput(f"model is {name!r}, and this pane was made without one; give the model itself")
        number = self.models.index(_checks.choice("model", name, self.models))
        if len(self.models) == 1:
            return self
        if number not in self._about:
            own = [model for model in self._models if self.manifest.number_of(model) == number]
            self._about[number] = Pane(*self.manifest.about(number, self._files), own)
        return self._about[number]

    def _asked(self, model: Model | str | None) -> tuple[Pane, Model | None]:
        """The pane of the model that is asked about, and the model: one of the pane's, or another, which rows serve too."""
        if model is None and len(self.models) > 1:
            if len(self._models) != 1:
                raise self._several(f"model={self.models[0]!r}")
            model = self._models[0]  # the only one at hand
        number = self.manifest.number_of(model) if isinstance(model, Model) else None
        name = model if number is None else self.models[number]
        pane = self.about(name) if isinstance(name, str) else self
        return pane, model if isinstance(model, Model) else pane.model

    def _several(self, how: str) -> InvalidInput:
        return InvalidInput(f"this pane is about several models; choose one of {', '.join(map(repr, self.models))}: {how}")

    # --- releases ----------------------------------------------------------------------------------------------------

    def _stored(self, name: str) -> Any:
        if name in self.manifest.known and name not in self._read:
            self._read[name] = read_part(name, self.manifest, self._files, "the pane")
        return self._released(name, self._read.get(name))

    def _part(self, kind: str) -> Any:
        """What was bought about the only model, or about none."""
        if kind != ROWS and len(self.models) > 1:
            raise self._several(f"pane.about({self.models[0]!r})")
        return self._stored(kind)

    def _lent(self, part: Any) -> Any:
        """A picture of the classes with the pane's rows and promise; other parts as they are."""
        if not isinstance(part, ClassPicture):
            return part
        rows = self.private_rows if part.rows is None and ROWS in self.manifest.parts else part.rows
        return replace(part, rows=rows, guarantee=self.guarantee, cost=self.cost)

    def _released(self, name: str, part: T | None) -> T:
        if part is None:
            have = ", ".join(map(repr, self.parts))
            raise InvalidInput(f"this pane has no part {name!r}; it has {have}. Its owner chose what to release")
        return part

    @property
    def synopsis(self) -> Synopsis:
        """The released moments, with the pane's model."""
        made: Synopsis = self._part("local")
        return replace(made, model=self.model)

    @property
    def private_rows(self) -> PrivateRows:
        """The released tables that rows are sampled from."""
        rows: PrivateRows = self._part("rows")
        return rows

    @property
    def mean_reasons(self) -> MeanReasons:
        """What real rows say of the model's reasons, on average."""
        means: MeanReasons = self._part(REASONS)
        return means

    @property
    def report(self) -> Report:
        """Curves and importance together."""
        report: Report = self._part("global")
        return report

    @property
    def marginals(self) -> Marginals:
        """Histograms of the columns."""
        # Reports of several models have them in common.
        return self._stored("global").marginals if "global" in self.manifest.known else self.private_rows.marginals

    @property
    def rows_counted(self) -> RowCount | None:
        """How many rows count, by the private rows or the histograms, against the declared number; None without either."""
        return self.marginals.rows_counted if {ROWS, "global"} & self.manifest.known.keys() else None

    def missing_rows(self) -> tuple[str, ...]:
        """What missing values did, in sentences with numbers and noise, by the histograms; empty without them."""
        return () if self.rows_counted is None else self.marginals.missing_rows(self.manifest.schema)

    @property
    def pdp(self) -> Effects:
        """Partial dependence, by column."""
        return self._released("pdp", self.report.pdp)

    @property
    def ale(self) -> Effects:
        """Accumulated effects, by column."""
        return self._released("ale", self.report.ale)

    @property
    def effects(self) -> Effects:
        """Curves by column: partial dependence, or accumulated effects where there is none."""
        return self._released("pdp", self.report.pdp if self.report.pdp is not None else self.report.ale)

    @property
    def importance(self) -> Ranking:
        """Columns by permutation importance."""
        return self._released("importance", self.report.importance)

    @property
    def class_picture(self) -> ClassPicture:
        """The picture of the model's classes, with the pane's rows."""
        picture: ClassPicture = self._lent(self._part("counterfactual"))
        return picture

    # --- explanations ------------------------------------------------------------------------------------------------

    def local(
        self,
        points: object,
        *,
        method: Method = "auto",
        bands: bool = False,
        model: Model | str | None = None,
        scale: Scale = "output",
        players: Players | None = None,
        background: int = BACKGROUND,
    ) -> Attribution:
        """Why the model says what it says at these points, by column. Free.

        Parameters
        ----------
        points : object
            A dictionary, a data frame, a list of dictionaries.
        method : {"auto", "shapley", "tree", "linear", "moments"}
            ``"shapley"``: the model's own reasons, Shapley values with the pane's stored rows as background, which add up
            to its output. ``"tree"``: the same without the error of random orders, where the model is a sum of trees on its
            scale (forests; boosted trees on log-odds); slower, and needs shap. ``"linear"``: a linear picture of the model
            around each point, on private rows that it labels. ``"moments"``: the released synopsis, without a model.
            ``"auto"``: Shapley values where there are rows and a model, else moments.
        bands : bool
            Whether to compute noise bands.
        model : Model or str, optional
            Of several models one, by its name; or any other model: private rows are about none. For Shapley values and
            linear pictures.
        scale : {"output", "log-odds"}
            Of Shapley values: the output (a probability, a regression value), or the log-odds of a probability.
        players : mapping from names to columns, or sequence of groups of columns, optional
            Columns that have one Shapley value together; the groups that the schema declares if not given.
        background : int
            How many of the stored rows a Shapley value averages over.

        Returns
        -------
        Attribution
        """
        pane, asked = self._asked(model)
        how: Any = {"bands": bands, "scale": scale, "players": players, "background": background}
        return self._promised(local_explanation(pane, asked, points, method, **how))

    def classes(self, points: object, *, bands: bool = False, model: Model | str | None = None) -> dict[Level, Attribution]:
        """Shapley values of every class of a classifier, by class, from the same calls of it. Free.

        Parameters
        ----------
        points, bands, model
            As for :meth:`local`.
        """
        pane, asked = self._asked(model)
        each = needed("an explanation of classes", asked).each_class()
        found = map(self._promised, reasons_on_rows(pane, each, points, bands=bands))
        return {one.output: about for one, about in zip(each, found, strict=True) if one.output is not None}

    def _promised(self, explanation: Attribution) -> Attribution:
        # With the promise of the whole pane, rather than that of the part: who has the one has the other.
        return replace(explanation, guarantee=self.guarantee, cost=self.cost)

    @cached_property
    def linear(self) -> RowsExplainer:
        """Linear pictures of the pane's own model around points, on private rows that it labels: ``method="linear"``."""
        return linear_on(self, self._asked(None)[1])

    @cached_property
    def counterfactual(self) -> FittedCounterfactual:
        """What would have led the model to another class: ``pane.counterfactual(points, desired_class=1)``. Free.

        From private rows, which the model puts into its classes; with the picture of these where one was bought.
        """
        return counterfactual_on(*self._asked(None))

    def rows(self, n: int, seed: int | None = 0) -> pd.DataFrame:
        """``n`` rows sampled from the private tables, in original units and levels. Free, and any number of them."""
        return self.private_rows.pandas(n, seed)

    def background(self, n: int = 100, seed: int | None = 0, *, encoded: bool = False) -> pd.DataFrame | NDArray[np.float64]:
        """Sampled rows as background data for shap, lime, DiCE or any other library.

        ``encoded`` gives features, numbers in [0, 1] and categories one-hot, for a model that reads those.
        """
        return self.private_rows.features(n, seed) if encoded else self.private_rows.background(n, seed)

    @read_once()
    def explain(
        self,
        point: object,
        *,
        desired_class: Level = OPPOSITE,
        desired: Desired | None = None,
        total_CFs: int = 3,
        method: Method = "auto",
        bands: bool = True,
        model: Model | str | None = None,
    ) -> Person:
        """All that the pane knows about one person: reasons, counterfactuals, where they stand on each curve.

        ``model=`` names one of several models; or it is another model than the pane's, with its own reasons and
        counterfactuals from private rows, and without curves, which are about the pane's. Curves run over numbers: nobody
        with a code in a column stands on its curve.

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "height": vt.Numeric(0, 200)})
        >>> rows = {"age": np.linspace(0, 100, 9000), "height": np.tile(np.linspace(150, 190, 9), 1000)}
        >>> data = vt.PrivateData(rows, schema, name="people", n_rows_public=9000, budget=vt.Budget(1, 1e-6))
        >>> pane = vt.release(data, vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk"), epsilon=1.0)
        >>> person = pane.explain({"age": 80, "height": 170})
        >>> [place.column for place in person.standings], "Privacy label" in person.to_html()
        (['age', 'height'], True)
        """
        how: Any = {"desired_class": desired_class, "desired": desired, "total_CFs": total_CFs}
        return explained(*self._asked(model), point, **how, method=method, bands=bands)


page_content.register(Pane, pane_content)
fragment.register(Pane, pane_fragment)
