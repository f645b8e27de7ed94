"""Models that ``mlflow.pyfunc.load_model`` opened: names and dtypes are the signature's, outputs those of its ``predict``.

Of a classifier these are classes, unless it was saved with ``pyfunc_predict_fn="predict_proba"``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import ModelError
from ..schema import Schema
from .content_walk import content_digest
from .levels import Categories
from .predictors import ModelInput, Predictor


class PyfuncPredictor(Predictor):
    """A loaded MLflow model, and the adapter of the model inside it, where there is one."""

    records_columns = True

    def __init__(self, loaded: Any, inner: Predictor | None) -> None:
        super().__init__(loaded, "MLflow model" if inner is None else inner.label)
        self._inner = inner
        self._dtypes: dict[str, np.dtype[Any]] = {}
        signature = loaded.metadata.get_input_schema()
        if signature is not None and signature.has_input_names():
            self.expected_names = tuple(map(str, signature.input_names()))
            self.expected_width = len(self.expected_names)
            kinds = zip(self.expected_names, signature.pandas_types(), strict=True)
            self._dtypes = {name: kind for name, kind in kinds if isinstance(kind, np.dtype) and kind.kind in "iuf"}
        elif inner is not None:
            self.expected_names, self.expected_width = inner.expected_names, inner.expected_width
        self.gives_probabilities = predict_function(loaded) == "predict_proba"
        self.classes = inner.classes if inner is not None and self.gives_probabilities else None

    def __call__(self, inputs: ModelInput) -> object:
        """What MLflow's predict returns. It insists on the dtypes of the signature, and does not narrow numbers itself."""
        frame: Any = inputs
        narrow = {name: kind for name, kind in self._dtypes.items() if _fits(frame, name, kind)}
        return self.wrapped.predict(frame.astype(narrow) if narrow else frame)

    @property
    def uses_category_dtype(self) -> bool:
        """As the model inside."""
        return self._inner is not None and self._inner.uses_category_dtype

    @property
    def records_categories(self) -> bool:
        """As the model inside."""
        return self._inner is not None and self._inner.records_categories

    def categories(self, schema: Schema, columns: Sequence[str]) -> Categories | None:
        """As the model inside."""
        return None if self._inner is None else self._inner.categories(schema, columns)

    def known_levels(self) -> Iterable[tuple[str, Sequence[object]]]:
        """As the model inside."""
        return () if self._inner is None else self._inner.known_levels()

    def content(self) -> str | None:
        """That of the model inside, and which of its functions is called."""
        inner = None if self._inner is None else self._inner.content()
        return None if inner is None else content_digest(["mlflow", inner, predict_function(self.wrapped)])


def _fits(frame: Any, name: str, kind: np.dtype[Any]) -> bool:
    """Whether a column is of numbers that may be given this dtype: whole ones for whole ones."""
    given = getattr(frame[name].dtype, "kind", "O") if name in getattr(frame, "columns", ()) else "O"
    return given in "iu" or (given == "f" and kind.kind == "f")


def predict_function(loaded: Any) -> str:
    """Which function of the model inside MLflow calls."""
    return str(loaded.metadata.flavors.get("python_function", {}).get("predict_fn", "predict"))


def refuse_classes(loaded: Any, raw: object) -> None:
    """Refuse a classifier whose pyfunc answers with classes."""
    if predict_function(loaded) == "predict" and hasattr(raw, "predict_proba"):
        raise ModelError(
            f"the MLflow model answers with classes, because its {type(raw).__name__} is called by predict; save it with "
            "pyfunc_predict_fn='predict_proba', or give the model inside it: vt.Model(loaded.get_raw_model())"
        )


def raw_model(loaded: Any) -> object | None:
    """The model inside; None where MLflow has none to show."""
    try:
        return loaded.get_raw_model()  # type: ignore[no-any-return]
    except Exception:
        return None
