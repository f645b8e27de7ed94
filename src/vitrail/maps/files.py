"""A trained model in a file: its maps, what they act on, and its promise. Text (JSON); opening it runs nothing.

Numbers are written so that they are read back bit for bit, and what is read is checked before anything is made of it:
whoever is sent a file of maps need not trust the sender with more than the maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Floats
from ..accounting import JsonValue
from ..accounting.guarantee import Guarantee
from ..errors import DamagedFile, VitrailError
from ..results.archive import json_bytes, parsed_json, write_bytes
from ..schema import Schema
from ..vault import Curve, FeatureCurves
from .explaining import TrainingGuarantee
from .locally_linear import LocallyLinearClassifier
from .settings import PictureFilters, checked_bounds

FORMAT = "vitrail-maps/1"
ENDING = ".maps"


def save_maps(model: LocallyLinearClassifier, path: str | Path) -> Path:
    """Write a trained model to a file.

    Parameters
    ----------
    model : LocallyLinearClassifier
        Trained. Settings of the training run are not kept, but its promise is.
    path : str or Path
        Ends in ``.maps`` by custom: the command line opens such files as models.

    Examples
    --------
    >>> import tempfile, numpy as np, vitrail as vt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (500, 2)); y = np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> clf = vt.LocallyLinearClassifier(epsilon=2.0, n_maps=2, bounds=(0, 1), steps=20, progress=False).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     back = load_maps(save_maps(clf, folder + "/yes.maps"))
    >>> bool((back.predict_proba(X) == clf.predict_proba(X)).all()), back.guarantee_.epsilon == clf.guarantee_.epsilon
    (True, True)
    """
    bank = model.explain_global()  # refuses a model that was not trained
    curves = model.curves_
    bounds = None if model.schema_ is not None else model._bounds
    promise = bank.guarantee
    content: dict[str, JsonValue] = {
        "format": FORMAT,
        "classes": model.classes_.tolist(),
        "maps": model.maps_.tolist(),
        "biases": model.biases_.tolist(),
        "beta": float(model.beta_),
        "row_length": None if model.row_length_ is None else float(model.row_length_),
        "schema": None if model.schema_ is None else model.schema_.to_json(),
        "columns": None if model.schema_ is not None else list(bank.features),
        "bounds": None if bounds is None else [end.tolist() for end in bounds],
        "curves": None if curves is None else [_curve_json(curve) for curve in curves.curves],
        "picture": None if model.filters is None else _plain(asdict(model.filters)),
        "promise": promise.promise.to_json(),
        "taken_as_public": list(promise.taken_as_public),
        "noise_multiplier": float(promise.noise_multiplier),
        "sampling_rate": float(promise.sampling_rate),
        "steps": int(promise.steps),
    }
    return write_bytes(path, json_bytes(content))


def load_maps(path: str | Path) -> LocallyLinearClassifier:
    """Read a model that :func:`save_maps` wrote; it predicts and explains as the one that was saved.

    Examples
    --------
    >>> load_maps("nowhere.maps")
    Traceback (most recent call last):
        ...
    vitrail.errors.DamagedFile: the file of maps 'nowhere.maps' cannot be read: No such file or directory
    """
    name = Path(path).name
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DamagedFile(f"the file of maps {name!r} cannot be read: {error.strerror}") from error
    fields = parsed_json(content, f"the file of maps {name!r}")
    if not isinstance(fields, Mapping) or fields.get("format") != FORMAT:
        raise DamagedFile(f"{name!r} is no file of maps: it does not begin with the format {FORMAT!r}")
    try:
        return _model_of(fields)
    except (KeyError, TypeError, ValueError, VitrailError) as error:
        raise DamagedFile(f"the file of maps {name!r} is damaged: {error}") from error


def _model_of(fields: Mapping[str, Any]) -> LocallyLinearClassifier:
    classes = np.array(fields["classes"])
    if classes.ndim != 1 or len(classes) < 2 or classes.dtype.kind not in "Ubif" or list(classes) != sorted(set(classes)):
        raise ValueError("its classes are not two or more, distinct and in order")
    promise = Guarantee.from_json(fields["promise"])
    picture = fields["picture"]
    filters = None if picture is None else PictureFilters(**{**picture, "shape": tuple(picture["shape"])})
    model = LocallyLinearClassifier(promise.epsilon, promise.delta, filters=filters)
    model.classes_, model.schema_, model.curves_ = classes, None, None
    if fields["schema"] is not None:
        schema = Schema.from_json(fields["schema"])
        model.schema_, model.n_features_in_ = schema, schema.n_columns
        model.feature_names_in_ = np.array(schema.names, dtype=object)
        width = schema.n_features
        if fields["curves"] is not None:
            model.curves_ = FeatureCurves(width, tuple(_curve(curve) for curve in fields["curves"]))
            width = model.curves_.width
    else:
        columns = [str(column) for column in fields["columns"]]
        width = model.n_features_in_ = len(columns)
        if columns != [f"x{number}" for number in range(width)]:
            model.feature_names_in_ = np.array(columns, dtype=object)
        model._bounds = checked_bounds(fields["bounds"], width)
    n_maps = len(fields["maps"])
    model.maps_ = _numbers(fields["maps"], (n_maps, len(classes), width), "maps")
    model.biases_ = _numbers(fields["biases"], (n_maps, len(classes)), "biases")
    model.beta_ = float(_numbers(fields["beta"], (), "beta"))
    model.row_length_ = None if fields["row_length"] is None else float(_numbers(fields["row_length"], (), "row_length"))
    model.guarantee_ = TrainingGuarantee(
        promise,
        tuple(str(fact) for fact in fields["taken_as_public"]),
        float(fields["noise_multiplier"]),
        float(fields["sampling_rate"]),
        int(fields["steps"]),
    )
    return model


def _numbers(values: object, shape: tuple[int, ...], what: str) -> Floats:
    array = np.array(values, dtype=np.float64)
    if array.shape != shape or not array.size or not np.isfinite(array).all():
        raise ValueError(f"its {what} have shape {array.shape} and must be finite numbers of shape {shape}")
    return array


def _curve_json(curve: Curve) -> JsonValue:
    table: dict[str, JsonValue] = {"knots": curve.knots.tolist(), "values": curve.values.tolist()}
    return {"feature": int(curve.feature), "gates": [int(gate) for gate in curve.gates], **table}


def _curve(fields: Mapping[str, Any]) -> Curve:
    gates = tuple(int(gate) for gate in fields["gates"])
    return Curve(int(fields["feature"]), np.array(fields["knots"]), np.array(fields["values"]), gates)


def _plain(fields: dict[str, Any]) -> dict[str, JsonValue]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
