"""Pane: a file of releases, read. Explains anybody, anywhere, without the data. Imports neither vault nor ledger.

Everything here is post-processing of what lies in the file, and of the public model where one is given: free, for ever.

*Which explanation of a person.* The model's own reasons where there are private rows and a model: Shapley values with the
stored rows as background, which add up to the model's output. They need no part but the rows, and serve any model. A linear
picture around the person (LIME's question) on the same rows is asked for by name, and so is the synopsis, which needs no
model and is bought by name too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from ..model import Model
from ..results import Attribution, Ranking, archive
from ..results.base import Drawn, Frame
from ..results.class_picture import ClassPicture
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..results.report import Report
from ..results.synopsis import Synopsis
from ..schema import Level, Numeric
from ..show.pages import fragment, page_content
from ..solve.counterfactual.classes import OPPOSITE, Desired
from ..solve.counterfactual.fitted import FittedCounterfactual
from ..solve.linear.labelled_rows import RowsExplainer, explain_on
from ..solve.linear.problem import LocalProblem
from ..solve.linear.weights import polynomial
from ..solve.shapley.on_rows import Players, Scale
from ..solve.shapley.reasons import BACKGROUND, explain_on_rows
from .manifest import KINDS, Line, Manifest, opened, read_part
from .pages import NEEDS_MODEL, Person, Standing, pane_content, pane_fragment, standing_on

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..results.effects import Effects

T = TypeVar("T")
Method = Literal["auto", "shapley", "linear", "moments"]
METHODS: tuple[Method, ...] = ("auto", "shapley", "linear", "moments")
SAMPLED = 20_000
"""Private rows that a sharp kernel works on."""
REPLICATES = 5
"""Samples from re-noised tables, for the bands of a sharp kernel."""
NO_BANDS = "No bands were computed; ask for bands=True to get them."


class Pane(Drawn):
    """Releases that explain a model for ever, without the data.

    Made by :func:`vitrail.release` or :meth:`load`. The parts are read when they are first used.

    Attributes
    ----------
    manifest : Manifest
        What the file says about itself.
    model : Model or None
        The model that it explains with, if one was given; ``made_for`` is what is known of the one that it was made with.
    dataset, n_rows_public, schema
        Whose rows, the declared row count, and the columns that the model reads: what a point has.
    guarantee, cost, bill
        The promise for everything in it and everything ever computed from it, what was charged once, and the questions.
    created, tool : str
        The day of its last charge; what made it.

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
    Pane('patients', risk: rows, pdp, ale, counterfactual; epsilon=1 at delta=1e-06)
    >>> pane.local({"age": 90, "smoker": "yes"}, bands=True).certain()  # any person, as often as you like, for nothing
    ('age', 'smoker')
    >>> bool(abs(pane.effects["age"](50) - 0.5) < 0.03), pane.rows(3).shape
    (True, (3, 2))
    >>> pane.counterfactual({"age": 10, "smoker": "no"}, desired_class=1).validity.tolist()
    [[True]]
    """

    guarantee: Guarantee

    def __init__(self, manifest: Manifest, files: Mapping[str, bytes], model: Model | None = None) -> None:
        self.manifest, self._files, self.model = manifest, dict(files), model
        self.dataset, self.schema, self.made_for = manifest.dataset, manifest.feature_schema, manifest.model
        self.guarantee, self.cost, self.bill = manifest.guarantee, manifest.cost, manifest.bill
        self.n_rows_public, self.created, self.tool = manifest.n_rows_public, manifest.created, manifest.tool
        self._read: dict[str, Any] = {}
        self._sharp_with: dict[int, RowsExplainer] = {}

    # --- files -------------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path, model: Model | str | Path | None = None) -> Pane:
        """Read a file that ``save`` wrote. Nothing in it is run; whatever is wrong with it is one kind of error.

        Parameters
        ----------
        path : path
            Of the pane.
        model : Model, path of an ONNX file, or "embedded", optional
            The model to explain with. Curves, importance, the local synopsis and rows work without. Another model than the
            one that the pane was made with gives a warning. A model that lies in the pane is opened on request only.

        Raises
        ------
        InvalidInput
            If the file is no pane, is damaged, or is of a later version.
        """
        content = archive.read_bytes(path)
        return cls.from_bytes(content, model, what=f"the pane {str(path)!r}")

    @classmethod
    def from_bytes(cls, content: bytes, model: Model | str | Path | None = None, *, what: str = "the pane") -> Pane:
        """Read the bytes of a pane; see :meth:`load`."""
        fields, files = archive.unpack(content, what)
        manifest = Manifest.read(fields, files, what)
        made = cls(manifest, files, None if model is None else opened(model, manifest, files, what))
        for name in made._known:  # a damaged part is found out now, not in the middle of somebody's work
            made._part(name)
        return made

    def with_model(self, model: Model | str | Path) -> Pane:
        """The same pane with a model to explain with."""
        return Pane(self.manifest, self._files, opened(model, self.manifest, self._files, "the pane"))

    def with_bill(self, lines: tuple[Line, ...]) -> Pane:
        """The same pane with the ledger's own lines on its bill."""
        bill = replace(self.manifest, bill=lines, created=max(line.date for line in lines))
        return Pane(Manifest.read(bill.to_fields(), self._files, "the pane"), self._files, self.model)

    def to_bytes(self) -> bytes:
        """The file; the same pane gives the same bytes. Parts that this version does not know are in it unchanged."""
        return archive.pack(self.manifest.fields, self._files)

    def save(self, path: str | Path) -> Path:
        """Write the file; returns where."""
        return archive.write_bytes(path, self.to_bytes())

    # --- what it is --------------------------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[str, ...]:
        """What there is: rows, local, pdp, ale, importance, counterfactual, and parts of a later version by their names."""
        names: list[str] = []
        for name in self.manifest.parts:
            curves = ("pdp", "ale", "importance") if name == "global" else ()
            names += [curve for curve in curves if getattr(self.report, curve) is not None] if curves else [name]
        return tuple(names)

    @property
    def unknown_parts(self) -> tuple[str, ...]:
        """Parts that this version of Vitrail cannot read. They are kept when the pane is saved."""
        return tuple(name for name in self.manifest.parts if name not in self._known)

    @property
    def _known(self) -> tuple[str, ...]:
        return tuple(n for n, part in self.manifest.parts.items() if n in KINDS and part.format == KINDS[n].holds.FORMAT)

    def accuracy(self) -> dict[str, str]:
        """For each part, under its title, how accurate it is: a sentence from what was released."""
        parts = {name: self._picture if name == "counterfactual" else self._part(name) for name in self._known}
        return {KINDS[name].title: KINDS[name].accuracy(part) for name, part in parts.items()}

    def shares(self) -> dict[str, float]:
        """Each part's share of the price, of mu squared."""
        return {name: part.share for name, part in self.manifest.parts.items()}

    def __repr__(self) -> str:
        known = ", ".join(name for name in self.parts if name not in self.unknown_parts)
        unknown = f"; not readable by this version: {', '.join(self.unknown_parts)}" if self.unknown_parts else ""
        return f"Pane({self.dataset!r}, {self.made_for.name}: {known}{unknown}; {self.guarantee.brief})"

    def frame(self) -> Frame:
        """Curves and importance as columns of one length, or the histograms where there are none."""
        return self.report.frame() if "global" in self._known else self.marginals.frame()

    @property
    def half_width(self) -> float | None:
        """The median half-width of the bands of curves and importance, or of the histograms where there are none."""
        return self.report.half_width if "global" in self._known else self.marginals.half_width

    def plot(self) -> Figure:
        """Curves and importance, or the histograms where there are none."""
        return self.report.plot() if "global" in self._known else self.marginals.plot()

    # --- releases ----------------------------------------------------------------------------------------------------

    def _part(self, name: str) -> Any:
        if name in self._known and name not in self._read:
            self._read[name] = read_part(name, self.manifest, self._files, "the pane")
        return self._released(name, self._read.get(name))

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
    def report(self) -> Report:
        """Curves and importance together."""
        report: Report = self._part("global")
        return report

    @property
    def marginals(self) -> Marginals:
        """Histograms of the columns."""
        return self.report.marginals if "global" in self.manifest.parts else self.private_rows.marginals

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
    def _picture(self) -> ClassPicture:
        picture: ClassPicture = self._part("counterfactual")
        rows = self.private_rows if picture.rows is None and "rows" in self.manifest.parts else picture.rows
        return replace(picture, rows=rows, guarantee=self.guarantee, cost=self.cost)

    # --- explanations ------------------------------------------------------------------------------------------------

    def local(
        self,
        points: object,
        *,
        method: Method = "auto",
        bands: bool = False,
        model: Model | None = None,
        scale: Scale = "output",
        players: Players | None = None,
        background: int = BACKGROUND,
    ) -> Attribution:
        """Why the model says what it says at these points, by column. Free.

        Parameters
        ----------
        points : object
            A dictionary, a data frame, a list of dictionaries.
        method : {"auto", "shapley", "linear", "moments"}
            ``"shapley"``: the model's own reasons, Shapley values with the pane's stored rows as background, which add up
            to its output. ``"linear"``: a linear picture of the model around each point, on private rows that it labels.
            ``"moments"``: the released synopsis, without a model. ``"auto"``: Shapley values where there are rows and a
            model, else moments.
        bands : bool
            Whether to compute noise bands.
        model : Model, optional
            Another model than the pane's: private rows are about no model. For Shapley values and linear pictures.
        scale : {"output", "log-odds"}
            Of Shapley values: the output (a probability, a regression value), or the log-odds of a probability.
        players : mapping from names to columns, or sequence of groups of columns, optional
            Columns that have one Shapley value together.
        background : int
            How many of the stored rows a Shapley value averages over.

        Returns
        -------
        Attribution
        """
        chosen = _checks.choice("method", method, METHODS)
        if chosen == "auto":
            has_rows = "rows" in self.manifest.parts and (self.model is not None or model is not None)
            chosen = "shapley" if has_rows or "local" not in self.manifest.parts else "moments"
        if chosen == "shapley":
            asked = self._needed_model("an explanation by Shapley values", model)
            return self._reasons([asked], points, bands, scale, players, background)[0]
        if chosen == "linear":
            explanation = self._sharp(REPLICATES if bands else 0, model)(points)
        else:
            explanation = self.synopsis(points, bands=bands)
            if not bands:
                explanation = replace(explanation, notes=(*explanation.notes, NO_BANDS))
        return self._promised(explanation)

    def classes(self, points: object, *, bands: bool = False, model: Model | None = None) -> dict[Level, Attribution]:
        """Shapley values of every class of a classifier, by class, from the same calls of it. Free.

        Parameters
        ----------
        points, bands, model
            As for :meth:`local`.
        """
        each = self._needed_model("an explanation of classes", model).each_class()
        found = self._reasons(each, points, bands, "output", None, BACKGROUND)
        return {one.output: about for one, about in zip(each, found, strict=True) if one.output is not None}

    def _reasons(
        self, models: Sequence[Model], points: object, bands: bool, scale: Scale, players: Players | None, background: int
    ) -> list[Attribution]:
        raw = self.schema.read_points(points)
        rows = self.private_rows
        n_rows = _checks.whole("background", background, most=len(rows.sampled))
        found = explain_on_rows(models, self.schema, raw, rows, n_rows=n_rows, bands=bands, players=players, scale=scale)
        return [self._promised(about) for about in found]

    def _promised(self, explanation: Attribution) -> Attribution:
        # With the promise of the whole pane, rather than that of the part: who has the one has the other.
        return replace(explanation, guarantee=self.guarantee, cost=self.cost)

    def _sharp(self, replicates: int, model: Model | None = None) -> RowsExplainer:
        if model is not None or replicates not in self._sharp_with:
            problem = LocalProblem(self.schema, self._needed_model("method 'linear'", model), polynomial())
            made = explain_on(problem, self.private_rows, n_sampled=SAMPLED, replicates=replicates)
            if model is not None:
                return made
            self._sharp_with[replicates] = made
        return self._sharp_with[replicates]

    def _needed_model(self, what: str, given: Model | None = None) -> Model:
        if given is not None:
            return given
        if self.model is None:
            raise InvalidInput(f"{what} asks the model, and none was given: Pane.load(path, model=vt.Model(...))")
        return self.model

    @cached_property
    def counterfactual(self) -> FittedCounterfactual:
        """What would have led the model to another class: ``pane.counterfactual(points, desired_class=1)``. Free."""
        return FittedCounterfactual(self._picture, self._needed_model("a counterfactual"))

    def rows(self, n: int, seed: int | None = 0) -> pd.DataFrame:
        """``n`` rows sampled from the private tables, in original units and levels. Free, and any number of them."""
        return self.private_rows.pandas(n, seed)

    def background(self, n: int = 100, seed: int | None = 0, *, encoded: bool = False) -> pd.DataFrame | NDArray[np.float64]:
        """Sampled rows as background data for shap, lime, DiCE or any other library.

        Parameters
        ----------
        n, seed : int
            How many, and which.
        encoded : bool
            As an array of features, numbers in [0, 1] and categories one-hot, for a model that reads those.
        """
        rows = self.private_rows
        return rows.features(n, seed) if encoded else rows.background(n, seed)

    def explain(
        self,
        point: object,
        *,
        desired_class: Level = OPPOSITE,
        desired: Desired | None = None,
        total_CFs: int = 3,
        method: Method = "auto",
        bands: bool = True,
        model: Model | None = None,
    ) -> Person:
        """All that the pane knows about one person: reasons, counterfactuals, where they stand on each curve.

        ``model=`` gives the reasons of another model than the pane's; counterfactuals and curves, which are about the
        pane's, are left out.

        Curves run over numbers: nobody with a code in a column stands on its curve.

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
        raw, parts = self.schema.read_points(point), self.parts
        if len(raw) != 1:
            raise InvalidInput(f"{len(raw)} points were given; a page is about one person, give one (pane.local takes many)")
        shown = {name: values.tolist()[0] for name, values in self.schema.frame(raw).items()}
        asked = self.model if model is None else model
        explanation = changes = None
        notes: list[str] = []
        if ("rows" in parts and asked is not None) or ("local" in parts and model is None):
            explanation = self.local(shown, method=method, bands=bands, model=model)
        elif "rows" in parts:
            notes.append(NEEDS_MODEL)
        if "counterfactual" in parts and self.model is not None:
            try:
                fitted = self.counterfactual
                if model is not None:
                    raise InvalidInput(
                        f"they are sought near the classes of {self.made_for.name}, and {model.name} was asked"
                    )
            except InvalidInput as error:  # the model has other classes than the pane's: the rest can still be said
                notes.append(f"No counterfactuals: {error}.")
            else:
                changes = fitted(shown, desired_class=desired_class, desired=desired, total_CFs=total_CFs)
        standings: tuple[Standing, ...] = ()
        if "pdp" in parts or "ale" in parts:
            if model is None:
                effects = self.effects
                order = effects if explanation is None else [share.column for share in explanation.top(len(shown))]
                codes = {name: column.codes for name, column in self.schema.items() if isinstance(column, Numeric)}
                there = [name for name in order if name in effects and shown[name] not in codes.get(name, ())]
                standings = tuple(standing_on(effects[name], shown[name]) for name in there)
            else:
                notes.append(f"Curves are left out: they are about {self.made_for.name}, and {model.name} was asked.")
        if explanation is None and changes is None and not standings:
            raise InvalidInput(
                f"this pane says nothing about single people without its model; it has {', '.join(map(repr, parts))}. Load "
                "it with model="
            )
        return Person(shown, explanation, changes, standings, self, tuple(notes), asked)


page_content.register(Pane, pane_content)
fragment.register(Pane, pane_fragment)
