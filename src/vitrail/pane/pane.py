"""Pane: a file of releases, read. Explains anybody, anywhere, without the data. Imports neither vault nor ledger.

Everything here is post-processing of what lies in the file, and of the public model where one is given: free, for ever.

*Which local explanation.* The synopsis needs no model and is unbiased for a mild weight; a sharp kernel on private rows
needs the model and looks closer (on Adult at epsilon 1 its error on nearby real rows is some 0.077 where even the exact mild
weight has 0.087). It is only as good as the rows: where not even a table of two by two cells stands out of the released
noise, ``method="auto"`` takes the synopsis.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from ..schema import Level
from ..show.pages import fragment, page_content
from ..solve.counterfactual.classes import OPPOSITE, Desired
from ..solve.counterfactual.fitted import FittedCounterfactual
from ..solve.linear.labelled_rows import RowsExplainer, explain_on
from ..solve.linear.problem import LocalProblem
from ..solve.linear.weights import polynomial
from .manifest import KINDS, Line, Manifest, opened, read_part
from .pages import Person, Standing, marginals_of, pane_content, pane_fragment, standing_on

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..results.effects import Effects

T = TypeVar("T")
Method = Literal["auto", "moments", "rows"]
METHODS: tuple[Method, ...] = ("auto", "moments", "rows")
SAMPLED = 20_000
"""Private rows that a sharp kernel works on."""
REPLICATES = 5
"""Samples from re-noised tables, for the bands of a sharp kernel."""
CELL_OVER_NOISE = 3.0
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
    Pane('patients', risk: rows, local, pdp, ale, counterfactual; epsilon=1 at delta=1e-06)
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
        return self.report.marginals if "global" in self.manifest.parts else marginals_of(self.private_rows)

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

    def local(self, points: object, *, method: Method = "auto", bands: bool = False) -> Attribution:
        """Why the model says what it says at these points, by column. Free.

        Parameters
        ----------
        points : object
            A dictionary, a data frame, a list of dictionaries.
        method : {"auto", "moments", "rows"}
            ``"moments"``: the released synopsis, without a model. ``"rows"``: a sharp kernel on private rows that the model
            labels. ``"auto"``: rows where there are a model and rows that stand out of the noise, else moments.
        bands : bool
            Whether to compute noise bands, which takes several times as long.

        Returns
        -------
        Attribution
        """
        chosen = _checks.choice("method", method, METHODS)
        if chosen == "auto":
            chosen = self._local_method()
        if chosen == "rows":
            explanation = self._sharp(REPLICATES if bands else 0)(points)
        else:
            explanation = self.synopsis(points, bands=bands)
            if not bands:
                explanation = replace(explanation, notes=(*explanation.notes, NO_BANDS))
        # With the promise of the whole pane, rather than that of the part: who has the one has the other.
        return replace(explanation, guarantee=self.guarantee, cost=self.cost)

    def _local_method(self) -> Method:
        parts = self.manifest.parts
        if "rows" not in parts:
            return "moments"
        if "local" not in parts:
            return "rows"
        rows = self.private_rows
        stands_out = rows.n_rows_public / 4 >= CELL_OVER_NOISE * rows.tables_sigma
        return "rows" if self.model is not None and stands_out else "moments"

    def _sharp(self, replicates: int) -> RowsExplainer:
        if replicates not in self._sharp_with:
            problem, rows = LocalProblem(self.schema, self._needed_model("method 'rows'"), polynomial()), self.private_rows
            self._sharp_with[replicates] = explain_on(problem, rows, n_sampled=SAMPLED, replicates=replicates)
        return self._sharp_with[replicates]

    def _needed_model(self, what: str) -> Model:
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
    ) -> Person:
        """All that the pane knows about one person: contributions, counterfactuals, where they stand on each curve.

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
        explanation = changes = None
        if "local" in parts or ("rows" in parts and self.model is not None):
            explanation = self.local(shown, method=method, bands=bands)
        notes: tuple[str, ...] = ()
        if "counterfactual" in parts and self.model is not None:
            try:
                fitted = self.counterfactual
            except InvalidInput as error:  # the model has other classes than the pane's: the rest can still be said
                notes = (f"No counterfactuals: {error}.",)
            else:
                changes = fitted(shown, desired_class=desired_class, desired=desired, total_CFs=total_CFs)
        standings: tuple[Standing, ...] = ()
        if "pdp" in parts or "ale" in parts:
            effects = self.effects
            order = effects if explanation is None else [share.column for share in explanation.top(len(shown))]
            standings = tuple(standing_on(effects[name], shown[name]) for name in order if name in effects)
        if explanation is None and changes is None and not standings:
            raise InvalidInput(
                f"this pane says nothing about single people without its model; it has {', '.join(map(repr, parts))}. Load "
                "it with model="
            )
        return Person(shown, explanation, changes, standings, self, notes)


page_content.register(Pane, pane_content)
fragment.register(Pane, pane_fragment)
