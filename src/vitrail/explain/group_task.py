"""What runs on one group of rows, and how many groups there are: shared by ``any_curve`` and ``any_ranking``.

A task may train a model, then explains, then reads what the explainer returned. It is sent to other processes, so it holds
public things only: functions, a model, the schema.

*How many groups*, from public quantities alone. The mean over l groups has noise of standard deviation D/(l mu), D being how
far apart two groups' results can be: twice as many groups, half the noise. But each group then has half the rows, and an
explainer of few rows may say something else than one of many. So: as many groups as make the noise small (2 % of ``y_range``
at each point of a curve; a quarter of a rank in a ranking), and never so many that a group has fewer than 50 rows, or 200
where it trains a model. A ranking is a vote: many voters who each know little agree better than few who know more, so there
are at least 200 of them, unless they would have fewer than 25 rows each; down to 18 if that is what makes the noise small.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from .. import _checks
from .._types import Floats
from ..accounting import JsonValue
from ..accounting.guarantee import Guarantee
from ..accounting.releases import Release
from ..errors import InvalidInput
from ..model import Model
from ..model.contents import sketch
from ..schema import Schema
from ..vault import Block, GroupedSum, PrivateData
from .recipe import Ask, GlobalExplainer, Recipe, Terms, sigma_of
from .sampled import all_rows

if TYPE_CHECKING:
    import pandas as pd

R = TypeVar("R")
VERSION = 1
FEWEST_ROWS = 50
FEWEST_ROWS_TO_TRAIN = 200
ENOUGH_VOTERS = 200
ROWS_TO_VOTE, FEWEST_ROWS_TO_VOTE = 25, 18

GroupExplainer: TypeAlias = Callable[..., object]
"""``explainer(model, X)``, or ``explainer(model, X, y)`` where it asks for a third argument: the target."""
Retrain: TypeAlias = Callable[["pd.DataFrame"], object]
Isolation: TypeAlias = Literal["process", "none"]
GroupMean: TypeAlias = tuple[Floats, float, Release]
"""The mean over groups, the standard deviation of the noise on it, and the release."""


class FrameModel:
    """A ``vitrail.Model`` as explainers of other libraries call models: on data frames in original units.

    Parameters
    ----------
    model : Model
        What to ask.
    schema : Schema
        The columns of the frames.

    Examples
    --------
    >>> import pandas as pd, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> half = FrameModel(vt.Model(lambda x: x[:, 0] / 2, range=(0, 1)), schema)
    >>> half.predict(pd.DataFrame({"age": [50.0, 100.0]})).tolist()
    [0.25, 0.5]
    """

    def __init__(self, model: Model, schema: Schema) -> None:
        self.model, self.schema = model, schema

    def predict(self, frame: object) -> Floats:
        """The model's outputs, clipped to its declared range."""
        return self.model.predict(self.schema, self.schema.complete(self.schema.read(frame))[0])

    __call__ = predict


@dataclass(frozen=True)
class GroupTask:
    """The function of a grouped sum."""

    explainer: GroupExplainer
    model: object
    retrain: Retrain | None
    target: str | None
    wants_target: bool
    read: Callable[[object], Floats]

    def __call__(self, block: Block) -> Floats:
        """What the explainer returns for one group, as numbers."""
        frame = block.frame()
        model = self.model if self.retrain is None else self.retrain(frame.copy())
        columns = frame if self.target is None else frame.drop(columns=self.target)
        if self.wants_target:
            return self.read(self.explainer(model, columns, frame[self.target]))
        return self.read(self.explainer(model, columns))


@dataclass(eq=False)
class OnGroups(GlobalExplainer[R]):
    """An explainer of other libraries, run on groups of rows: the arguments that curves and rankings have in common.

    Parameters
    ----------
    data : PrivateData
        The rows.
    explainer : callable
        ``explainer(model, X)``, or ``explainer(model, X, y)`` if it takes a third argument. ``X`` is a pandas data frame of
        one group's rows in original units, without the target, ``y`` the target.
    model : object, optional
        What the explainer gets: as it is, or if it is a ``vitrail.Model`` as an object with ``predict(frame)``.
    retrain : callable, optional
        Instead of a model: ``retrain(frame)`` trains one on a group's rows, the target included. Then the promise covers
        the rows that train the models; those models are explained, not one that was trained elsewhere.
    groups : int, optional
        How many groups. If not given, as many as make the noise small, while each has about 50 rows at least (200 to
        train on).
    isolation, timeout_seconds
        As for :class:`~vitrail.GroupedSum`.
    sampling_rate : float
        1: all rows are looked at.
    key : str, optional
        A name for the explainer and the model; with it, asking again replays the stored answer, free.
    """

    data: PrivateData
    explainer: GroupExplainer
    _: KW_ONLY
    model: object = None
    retrain: Retrain | None = None
    groups: int | None = None
    isolation: Isolation = "process"
    timeout_seconds: float = 60.0
    sampling_rate: float = 1.0
    key: str | None = None

    def __post_init__(self) -> None:
        self.check_inputs()
        owner, data = type(self).__name__, self.data
        all_rows(self.sampling_rate, owner, "every group is a random sample of them already; give groups= for smaller ones")
        if not callable(self.explainer):
            raise InvalidInput(f"the explainer of {owner} is {self.explainer!r}; it must be a function explainer(model, X)")
        if self.retrain is not None and self.model is not None:
            raise InvalidInput(f"{owner} was given both model= and retrain=; with retrain= every group trains its own model")
        if self.retrain is not None and not callable(self.retrain):
            raise InvalidInput(
                f"retrain of {owner} is {self.retrain!r}; it must be a function of a data frame that returns a model"
            )
        if _required_arguments(self.explainer) >= 3 and data.target is None:
            raise InvalidInput(
                f"the explainer of {owner} takes three arguments (model, X, y), but this dataset declares no target; give "
                "PrivateData target="
            )
        if self.groups is not None:
            self.groups = _checks.whole("groups", self.groups, least=2, most=max(2, data.n_rows_public), of=owner)
        _checks.choice("isolation", self.isolation, ("process", "none"), of=owner)
        _checks.positive("timeout_seconds", self.timeout_seconds, of=owner)
        for model in self.models:
            model.check(data.feature_schema)
        self._functions = sketch((self.explainer, self.retrain))  # as they are now

    @property
    def models(self) -> tuple[Model, ...]:
        """The model, where it is one of ours, to be tried before a charge."""
        return (self.model,) if isinstance(self.model, Model) else ()

    def ask(self, read: Callable[[object], Floats], size: int, groups: int, **limits: Any) -> Recipe[GroupMean]:
        """Ask all groups, for the whole price; ``read`` makes numbers of what it returns, ``limits`` clip them."""
        ours, schema = self.model, self.data.feature_schema
        model = FrameModel(ours, schema) if isinstance(ours, Model) else ours
        wants_target = _required_arguments(self.explainer) >= 3
        task = GroupTask(self.explainer, model, self.retrain, self.data.target, wants_target, read)
        run: dict[str, Any] = {"isolation": self.isolation, "timeout_seconds": self.timeout_seconds}
        release = yield Ask(GroupedSum(task, size, groups=groups, **run, **limits), share=1.0)
        return release.parts["mean"], sigma_of(release) / groups, release

    def count(self, terms: Terms, distance: float, small_noise: float, *, votes: bool = False) -> int:
        """How many groups there will be at this price."""
        trains, n_rows = self.retrain is not None, terms.n_rows_public
        return self.groups or choose_groups(n_rows, distance, small_noise, terms.mu, trains=trains, votes=votes)

    def identity(self, kind: str, **options: JsonValue) -> dict[str, JsonValue] | None:
        """What makes two conversations the same, where the caller gave a name for what cannot be compared.

        The name never stands in for what can: the model (``Model.identity``; an object of another library by what can be
        known of it), and the code of the explainer and of ``retrain``.
        """
        if self.key is None:
            return None
        ours = isinstance(self.model, Model)
        known = self.model.identity(self.data.feature_schema, self.key) if ours else sketch(self.model)  # type: ignore[attr-defined]
        named: dict[str, JsonValue] = {"kind": kind, "version": VERSION, "key": self.key, "model": known}
        return {**named, "functions": self._functions, "groups": self.groups, "isolation": self.isolation, **options}

    def promise(self, terms: Terms, release: Release) -> Guarantee:
        """With ``retrain`` the models are functions of the rows too, so the promise covers those who trained them."""
        promise = terms.promise(release)
        return promise if self.retrain is None else replace(promise, protects="training-data")

    def notes(self, terms: Terms, groups: int) -> tuple[str, ...]:
        """What a reader of a mean over groups should know."""
        rows = terms.n_rows_public / groups
        notes = [
            f"The mean of {groups} explanations, each of a random group of about {rows:.0f} rows: where an explanation of "
            "few rows differs from one of all, this does too.",
            "Bands hold the mean over the groups that were dealt, without noise. Another deal of rows to groups would give "
            "another result: that is not in the bands, and how much it would be cannot be seen from what was released, "
            "which is the mean alone.",
        ]
        if self.retrain is not None:
            notes.append(
                f"It explains {groups} models that were trained on about {rows:.0f} rows each, not one trained on all."
            )
        return tuple(notes)


def choose_groups(
    n_rows_public: int, distance: float, small_noise: float, mu: float, *, trains: bool, votes: bool = False
) -> int:
    """As many groups as make the noise small, and no more than leave them enough rows.

    Parameters
    ----------
    n_rows_public : int
        The declared rows.
    distance : float
        How far apart two groups' results can be.
    small_noise : float
        The standard deviation to aim at, in the same units.
    mu : float
        The price.
    trains : bool
        Whether each group trains a model.
    votes : bool
        Whether each group ranks.

    Examples
    --------
    >>> choose_groups(30_000, math.sqrt(20), 0.02, 0.2367, trains=False)  # as many as 50 rows each allow
    600
    >>> choose_groups(3_000_000, math.sqrt(20), 0.02, 0.2367, trains=False)  # noise of 2 % is reached before
    945
    """
    fewest, most = 2, n_rows_public // (FEWEST_ROWS_TO_TRAIN if trains else FEWEST_ROWS)
    if votes and not trains:
        fewest = max(2, min(ENOUGH_VOTERS, n_rows_public // ROWS_TO_VOTE))
        most = max(most, min(ENOUGH_VOTERS, n_rows_public // FEWEST_ROWS_TO_VOTE))
    wanted = distance / (small_noise * mu)
    return max(fewest, math.ceil(wanted) if wanted < most else most)


def level_text(level: object) -> str:
    """A level or an item as text, the same for 1 and 1.0."""
    value = level.item() if isinstance(level, np.generic) else level
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def numbers(values: object, otherwise: str) -> Floats:
    """An array of numbers, or the sentence ``otherwise``."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(otherwise) from error


def finite(numbers: Floats, who: str) -> Floats:
    """The numbers, none of them NaN or infinite."""
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"the {who} returned NaN or infinity")
    return numbers


def _required_arguments(function: Callable[..., object]) -> int:
    """How many positional arguments a function must be given; 2 where nobody knows."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(argument.kind in positional and argument.default is inspect.Parameter.empty for argument in arguments)
