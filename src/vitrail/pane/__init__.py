"""The pane: one file of releases that explains a model for ever, on any machine, without the data.

The owner pays once (:func:`release`); whoever has the file explains anybody (:class:`Pane`). Reading imports neither the
vault nor the ledger: what buys is imported when it is first used.

Examples
--------
>>> import numpy as np, vitrail as vt
>>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
>>> rows = {"age": np.linspace(0, 100, 20_000), "smoker": np.tile(["no", "yes"], 10_000)}
>>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=20_000, budget=vt.Budget(1, 1e-6))
>>> model = vt.Model(lambda x: 0.2 + 0.5 * x[:, 0] + 0.2 * x[:, 2], range=(0, 1), name="risk")
>>> quote = data.quote(vt.pane.PaneExplainer(data, model), epsilon=1.0)
>>> quote.fits, quote.result.parts
(True, ('rows', 'reasons', 'pdp', 'ale', 'importance'))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..show.label import label_facts
from .comparison import PaneComparison, compare
from .letters import write_letters
from .pages import label_of
from .pane import Pane
from .person import Person

if TYPE_CHECKING:
    from .mlflow_model import save_mlflow
    from .pane_recipe import PaneExplainer, release

__all__ = ["Pane", "PaneComparison", "PaneExplainer", "Person", "compare", "release", "save_mlflow", "write_letters"]

label_facts.register(Pane, label_of)
label_facts.register(Person, lambda person: label_of(person.pane) | {"what": "A person's explanation"})


def __getattr__(name: str) -> object:
    """Import what buys a pane, or hands it to MLflow, when it is first used."""
    if name in __all__:
        return getattr(import_module(".mlflow_model" if name == "save_mlflow" else ".pane_recipe", __name__), name)
    raise AttributeError(f"module 'vitrail.pane' has no attribute {name!r}")
