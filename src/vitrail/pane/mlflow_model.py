"""A pane as an MLflow model: people in, reasons with bands out, wherever MLflow serves models. No vault, no ledger.

MLflow is told which module reads the folder (its *loader module*, this one), so that nothing of ours is pickled: the pane is
the file that ``Pane.save`` writes, and an ONNX model its own bytes. Any other model can only be kept as a pickle, as MLflow
keeps them all: whoever loads such a folder runs what is in it.
"""

from __future__ import annotations

import json
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle

from .. import __version__, _checks
from ..accounting import JsonValue
from ..errors import InvalidInput
from ..model import Model
from ..model.onnx_graphs import OnnxPredictor
from ..results.archive import json_bytes, read_bytes, write_bytes
from ..schema import Column, Numeric
from .manifest import EMBEDDED
from .pane import METHODS, Method, Pane

if TYPE_CHECKING:
    import pandas as pd

PANE, ONNX, PICKLE, OPTIONS = "x.pane", "model.onnx", "model.pkl", "options.json"
EXAMPLE_ROWS = 3
KINDS = {bool: "boolean", int: "long", float: "double", str: "string"}
"""What MLflow calls the types of levels."""


class PersonExplainer:
    """What MLflow calls: a frame of people, to a frame of reasons.

    Parameters
    ----------
    pane : Pane
        With its model, where it is explained with that.
    another : Model or None
        Another model than the pane's.
    method, bands
        As for :meth:`Pane.local`.
    """

    def __init__(self, pane: Pane, another: Model | None, method: Method, bands: bool) -> None:
        self.pane, self.another, self.method, self.bands = pane, another, method, bands

    def predict(self, model_input: object, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """One line a person: ``output``, ``base_value``, and ``contribution:C``, ``lower:C``, ``upper:C`` of each column C.

        Base value and contributions add up to the output as far as ``Attribution.gap`` says; bands are NaN without.
        """
        found = self.pane.local(model_input, method=self.method, bands=self.bands, model=self.another)
        table = found.frame()
        columns: dict[str, object] = {"output": found.outputs, "base_value": found.base_values}
        for j, name in enumerate(found.columns):
            for what, numbers in (("contribution", "value"), ("lower", "lower"), ("upper", "upper")):
                columns[f"{what}:{name}"] = table[numbers][j :: len(found.columns)]
        frame: pd.DataFrame = import_module("pandas").DataFrame(columns)
        return frame


def save_mlflow(
    pane: Pane,
    folder: str | Path,
    *,
    model: Model | str | None = None,
    method: Method = "auto",
    bands: bool = True,
) -> Path:
    """Save a pane as an MLflow model that explains people; ``mlflow.pyfunc.load_model(folder).predict(people)`` asks it.

    Parameters
    ----------
    pane : Pane
        What explains.
    folder : path
        To be made.
    model : Model or str, optional
        The model to explain with: one of the pane's by its name, ``"embedded"``, or any other; the pane's own if not given.
        The pane's own is kept as it is where it is ONNX; any other is pickled.
    method, bands
        As for :meth:`Pane.local`.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import numpy as np, tempfile, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> rows = {"age": np.linspace(0, 100, 4000), "smoker": np.tile(["no", "yes"], 2000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=4000, budget=vt.Budget(1, 1e-6))
    >>> risk = vt.Model(lambda x: 0.2 + 0.5 * x[:, 0], range=(0, 1), name="risk")
    >>> pane = vt.release(data, risk, epsilon=1.0, parts=["rows"])
    >>> folder = vt.pane.save_mlflow(pane, tempfile.mkdtemp() + "/reasons")
    >>> import mlflow, pandas as pd
    >>> people = pd.DataFrame({"age": [80.0, 20.0], "smoker": ["no", "yes"]})
    >>> mlflow.pyfunc.load_model(str(folder)).predict(people)["output"].round(2).tolist()
    [0.6, 0.3]
    """
    try:
        mlflow = import_module("mlflow.pyfunc")
        import_module("pandas")
    except ImportError as error:
        raise InvalidInput("mlflow or pandas is not installed; install them with: pip install 'vitrail[mlflow]'") from error
    chosen = _checks.choice("method", method, METHODS)
    path = Path(folder)
    if path.exists():
        raise InvalidInput(f"there is something at {str(folder)!r}; name a folder that is to be made")
    explainer = PersonExplainer(*_with_model(pane, model), chosen, bool(bands))
    example = pane.schema.pandas(pane.schema.probe_rows(EXAMPLE_ROWS))
    with tempfile.TemporaryDirectory() as held:
        _write(explainer, Path(held))
        mlflow.save_model(
            str(path),
            loader_module=__name__,
            data_path=held,
            signature=_signature(pane, explainer.predict(example)),
            input_example=example,
            pip_requirements=[f"vitrail[mlflow]=={__version__}"],
            metadata={"vitrail": json.dumps({"dataset": pane.dataset, "guarantee": pane.guarantee.to_json()})},
        )
    return path


def _with_model(pane: Pane, model: Model | str | None) -> tuple[Pane, Model | None]:
    """The pane of the model that is asked for; and that model, if the pane is not about it."""
    if model == EMBEDDED:
        pane, model = pane.with_model(EMBEDDED), None
    if isinstance(model, Model):
        number = pane.manifest.number_of(model)
        return (pane, model) if number is None else (pane.about(pane.models[number]).with_model(model), None)
    if model is None and len(pane.models) > 1:
        raise InvalidInput(f"this pane is about several models; choose one: model={pane.models[0]!r}")
    return (pane if model is None else pane.about(model)), None


def _write(explainer: PersonExplainer, folder: Path) -> None:
    pane, another = explainer.pane, explainer.another
    pane.save(folder / PANE)
    options: dict[str, JsonValue] = {"method": explainer.method, "bands": explainer.bands, "another": another is not None}
    write_bytes(folder / OPTIONS, json_bytes(options))
    if another is None and pane.model is not None and isinstance(pane.model.predictor, OnnxPredictor):
        write_bytes(folder / ONNX, pane.model.predictor.wrapped)  # read as the pane says
    elif (kept := another or pane.model) is not None:
        write_bytes(folder / PICKLE, cloudpickle.dumps(kept))


def _load_pyfunc(data_path: str) -> PersonExplainer:
    """What MLflow calls to read the folder."""
    folder = Path(data_path)
    options = json.loads(read_bytes(folder / OPTIONS))
    model: Any = folder / ONNX if (folder / ONNX).exists() else None
    if (folder / PICKLE).exists():
        model = cloudpickle.loads(read_bytes(folder / PICKLE))
    pane = Pane.load(folder / PANE, model=None if options["another"] else model)
    return PersonExplainer(pane, model if options["another"] else None, options["method"], options["bands"])


def _signature(pane: Pane, answer: pd.DataFrame) -> object:
    """Columns in, as declared; numbers out."""
    types = import_module("mlflow.types")
    inputs = [types.ColSpec(_kind(column), name) for name, column in pane.schema.items()]
    outputs = [types.ColSpec("double", name) for name in answer]
    made: object = import_module("mlflow.models").ModelSignature(types.Schema(inputs), types.Schema(outputs))
    return made


def _kind(column: Column) -> str:
    if isinstance(column, Numeric):
        return "long" if column.integer else "double"
    kinds = {type(level) for level in column.levels}
    if kinds == {int, float}:
        return "double"
    return KINDS[kinds.pop()] if len(kinds) == 1 else "string"
