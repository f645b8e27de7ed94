"""``Pane.explore``: the one door from a pane to its live page. Lazy: reading a pane imports nothing of ``live``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..model import Model
    from .pane import Pane

HEIGHT = 820


class Shown(Protocol):
    """What notebooks show; ``html`` is one file that needs no server."""

    @property
    def html(self) -> str:
        """The whole page."""


def in_notebook(pane: Pane, person: object = None, *, model: Model | None = None, height: int = HEIGHT) -> Shown:
    """The live page of this pane in a notebook: a form, and the explanation of whoever is entered. Free.

    Pane and model run in the notebook's own browser; the model must be ONNX. The output holds both, and is saved with the
    notebook. ``vitrail page`` writes the same page as files.

    Parameters
    ----------
    person : object, optional
        Whom the form shows first: a dictionary, or a data frame of one line.
    model : Model, optional
        Another ONNX model than the pane's.
    height : int
        Of the frame, in pixels.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "height": vt.Numeric(0, 200)})
    >>> rows = {"age": np.linspace(0, 100, 9000), "height": np.tile(np.linspace(150, 190, 9), 1000)}
    >>> data = vt.PrivateData(rows, schema, name="people", n_rows_public=9000, budget=vt.Budget(1, 1e-6))
    >>> pane = vt.release(data, vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk"), epsilon=1.0)
    >>> pane.explore({"age": 80, "height": 170})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    vitrail.errors.ModelError: a browser runs ONNX models, and risk is none; export it and give the .onnx file. For ...
    """
    shown: Shown = import_module("vitrail.live.widget").explore(pane, person, model=model, height=height)
    return shown
