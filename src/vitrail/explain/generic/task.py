"""What runs on one group of rows: perhaps train a model, then explain, then read what the explainer said.

It is sent to other processes, so it holds public things only: functions, a model, the schema.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from ...model import Model
from ...schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from ...vault import Block, PrivateData

Floats = NDArray[np.float64]
Explainer = Callable[..., object]
"""``explainer(model, X)``, or ``explainer(model, X, y)`` where it asks for a third argument: the target."""

Retrain = Callable[["pd.DataFrame"], object]


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

    def __call__(self, frame: object) -> Floats:
        """The same as :meth:`predict`."""
        return self.predict(frame)


@dataclass(frozen=True)
class GroupTask:
    """The function of a grouped sum."""

    explainer: Explainer
    model: object
    retrain: Retrain | None
    target: str | None
    wants_target: bool
    read: Callable[[object], Floats]

    def __call__(self, block: Block) -> Floats:
        """What the explainer says about one group, as numbers."""
        frame = block.frame()
        model = self.model if self.retrain is None else self.retrain(frame.copy())
        columns = frame if self.target is None else frame.drop(columns=self.target)
        if self.wants_target:
            return self.read(self.explainer(model, columns, frame[self.target]))
        return self.read(self.explainer(model, columns))


def group_task(
    data: PrivateData,
    explainer: Explainer,
    model: object,
    retrain: Retrain | None,
    read: Callable[[object], Floats],
    what: str,
) -> GroupTask:
    """The function of a grouped sum, or an error that says what is wrong with its parts."""
    if not callable(explainer):
        raise InvalidInput(f"the explainer of {what} is {explainer!r}; it must be a function explainer(model, X)")
    if retrain is not None:
        if model is not None:
            raise InvalidInput(f"{what} was given both model= and retrain=; with retrain= every group trains its own model")
        if not callable(retrain):
            raise InvalidInput(
                f"retrain of {what} is {retrain!r}; it must be a function of a data frame that returns a model"
            )
    wants_target = _required_arguments(explainer) >= 3
    if wants_target and data.target is None:
        raise InvalidInput(
            f"the explainer of {what} takes three arguments (model, X, y), but this dataset declares no target; give "
            "PrivateData target="
        )
    if isinstance(model, Model):
        model.check(data.feature_schema)
        model = FrameModel(model, data.feature_schema)
    return GroupTask(explainer, model, retrain, data.target, wants_target, read)


def _required_arguments(function: Callable[..., object]) -> int:
    """How many arguments a function must be given by place; 2 where nobody knows."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in by_place and one.default is inspect.Parameter.empty for one in arguments)
