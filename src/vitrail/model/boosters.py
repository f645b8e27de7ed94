"""Native boosters: XGBoost's, LightGBM's and CatBoost's own objects, as their files hold them.

What an output is follows from the objective that a booster was trained with, which it records: probabilities, numbers
without bounds (then ``range=`` is needed), or the number of a class, which cannot be explained and is refused.

Boosters of XGBoost and LightGBM are copied by way of their serialised form, which is also their content: it is the same
before and after they are saved. CatBoost's bytes are not (they hold when and how it was trained), so its content is that of
its JSON form without these.

Rows are independent: each library adds up the leaves of a row, tree after tree, and shares work among threads by rows. One
thread is used all the same, and the purity probe is the one for any model: what turns the sum into a probability is compiled
code that need not round alike at every place in a block.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ModelError
from ..schema import Schema
from .content_walk import catboost_content, is_of
from .levels import Categories
from .predictors import ModelInput, Predictor
from .recorded import given_names, has_categories, recorded_categories

# The output is the probability of the second of two classes.
XGBOOST_BINARY = ("binary:logistic",)
XGBOOST_CLASS_NUMBERS = {"multi:softmax": "multi:softprob", "binary:hinge": "binary:logistic"}
XGBOOST_MARGINS = {"binary:logitraw": "binary:logistic"}
LIGHTGBM_BINARY = ("binary", "cross_entropy")
LIGHTGBM_CLASSES = ("multiclass", "multiclassova")


class BoosterPredictor(Predictor):
    """A booster of XGBoost or LightGBM, copied from its serialised form."""

    def __init__(self, serialised: bytes, label: str) -> None:
        super().__init__(self._opened(serialised), label)
        self.serialised = serialised
        self._read()

    def __reduce__(self) -> tuple[type[BoosterPredictor], tuple[bytes, str]]:
        return type(self), (self.serialised, self.label)

    def content(self) -> str:
        """SHA-256 of the serialised form."""
        return hashlib.sha256(type(self).__name__.encode() + b"\0" + self.serialised).hexdigest()

    @abstractmethod
    def _opened(self, serialised: bytes) -> Any:
        """The library's own object, on one thread."""

    @abstractmethod
    def _read(self) -> None:
        """Take names, width, classes and the meaning of outputs from what the booster recorded."""

    @property
    def records_categories(self) -> bool:
        """Whether the booster recorded any."""
        return has_categories(self.wrapped)

    def categories(self, schema: Schema, columns: Sequence[str]) -> Categories | None:
        """What the booster recorded."""
        return recorded_categories(self.wrapped, schema, columns, self.label)

    def _read_classes(self, n_classes: int) -> None:
        """Outputs are probabilities of classes, which native boosters number."""
        self.gives_probabilities, self.classes = True, tuple(range(n_classes))


def both_classes(second: object) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Probabilities of two classes, given those of the second."""
    share = np.asarray(second, dtype=np.float64)
    return np.stack([1.0 - share, share], axis=1)


class XgboostPredictor(BoosterPredictor):
    """A booster of XGBoost."""

    def _opened(self, serialised: bytes) -> Any:
        xgboost = importlib.import_module("xgboost")
        booster = xgboost.Booster()
        booster.load_model(bytearray(serialised))
        booster.set_param({"nthread": 1, "verbosity": 0})
        return booster

    def _read(self) -> None:
        learner = json.loads(self.wrapped.save_config())["learner"]
        objective = learner["objective"]["name"]
        self.expected_names, self.expected_width = given_names(self.wrapped.feature_names), self.wrapped.num_features()
        self.in_place = learner["gradient_booster"]["name"] != "gblinear"
        # A file of an estimator says so, and is used as the estimator would be: up to where it stopped early.
        best = self.wrapped.attr("best_iteration") if self.wrapped.attr("scikit_learn") is not None else None
        self.rounds = (0, 0 if best is None else int(best) + 1)
        if objective in XGBOOST_CLASS_NUMBERS:
            raise ModelError(
                f"{self.label} was trained with {objective!r} and answers with the number of a class, not with "
                f"probabilities; train it with {XGBOOST_CLASS_NUMBERS[objective]!r}"
            )
        if objective in XGBOOST_MARGINS:
            self.unbounded = (
                f"was trained with {objective!r}, whose outputs are margins without bounds; train it with "
                f"{XGBOOST_MARGINS[objective]!r} for probabilities"
            )
        elif objective in XGBOOST_BINARY:
            self._read_classes(2)
        elif objective == "multi:softprob":
            self._read_classes(int(learner["learner_model_param"]["num_class"]))

    def __call__(self, inputs: ModelInput) -> object:
        """Probabilities of every class, or the predicted values."""
        xgboost = importlib.import_module("xgboost")
        with xgboost.config_context(verbosity=0):
            if self.in_place:
                named = self.expected_names is not None
                found = self.wrapped.inplace_predict(inputs, iteration_range=self.rounds, validate_features=named)
            else:
                names = {} if self.expected_names is None else {"feature_names": list(self.expected_names)}
                found = self.wrapped.predict(xgboost.DMatrix(inputs, nthread=1, enable_categorical=True, **names))
        return both_classes(found) if self.classes is not None and len(self.classes) == 2 and found.ndim == 1 else found


class LightgbmPredictor(BoosterPredictor):
    """A booster of LightGBM."""

    def _opened(self, serialised: bytes) -> Any:
        return importlib.import_module("lightgbm").Booster(model_str=serialised.decode())

    def _read(self) -> None:
        self.expected_names, self.expected_width = given_names(self.wrapped.feature_name()), self.wrapped.num_feature()
        header = self.serialised.decode().partition("\nTree=")[0]
        said = re.search(r"^objective=(\S*)", header, re.MULTILINE)
        objective = said[1] if said else "custom"
        if objective in LIGHTGBM_BINARY:
            self._read_classes(2)
        elif objective in LIGHTGBM_CLASSES:
            classes = re.search(r"^num_class=(\d+)", header, re.MULTILINE)
            self._read_classes(int(classes[1]) if classes else 2)
        elif objective == "custom":
            self.unbounded = "was trained with an objective of its own, whose outputs are margins without bounds"

    def __call__(self, inputs: ModelInput) -> object:
        """Probabilities of every class, or the predicted values."""
        found = self.wrapped.predict(inputs, num_threads=1, verbosity=-1)
        return both_classes(found) if self.classes is not None and found.ndim == 1 else found


# The importance of a column, in percent, from which some level of it must change some output.
LEAST_IMPORTANCE = 1.0


class CatboostPredictor(Predictor):
    """A model of CatBoost, taken as it is when a question begins; on one thread."""

    def __init__(self, given: Any, label: str | None = None) -> None:
        super().__init__(given, label or type(given).__name__)
        self.look_again()

    def look_again(self) -> None:
        """Read names and classes off the model as it is now."""
        if not self.wrapped.is_fitted():
            raise ModelError(f"{self.label} is not fitted; call its fit first")
        names = self.wrapped.feature_names_
        self.expected_names, self.expected_width = given_names(names, made_up=""), len(names)
        classes = np.ravel(self.wrapped.classes_).tolist() if self.wrapped.classes_ is not None else []
        self.gives_probabilities, self.classes = bool(classes), tuple(classes) or None

    def __call__(self, inputs: ModelInput) -> object:
        """Probabilities of every class, or the predicted values."""
        if self.gives_probabilities:
            return self.wrapped.predict(inputs, prediction_type="Probability", thread_count=1)
        return self.wrapped.predict(inputs, thread_count=1)

    def levels_that_matter(self) -> tuple[str, ...]:
        """Columns of levels that the model leans on; it keeps hashes of levels only, so they have to be tried."""
        numbers, names = self.wrapped.get_cat_feature_indices(), self.expected_names or ()
        if not numbers or not names:
            return ()
        try:
            importance = self.wrapped.get_feature_importance(type="PredictionValuesChange")
        except Exception:  # some losses have none without their training rows
            return ()
        return tuple(names[number] for number in numbers if importance[number] >= LEAST_IMPORTANCE)

    def content(self) -> str | None:
        """SHA-256 of trees, borders and hashes, without when and how they were trained."""
        return catboost_content(self.wrapped)


def booster_predictor(given: Any) -> Predictor | None:
    """The adapter of a native booster; None for anything else."""
    if is_of(given, "xgboost", "Booster"):
        try:
            serialised = bytes(given.save_raw("ubj"))
        except Exception as error:
            raise ModelError("the XGBoost booster is not trained; give what xgboost.train returns") from error
        return XgboostPredictor(serialised, "XGBoost booster")
    if is_of(given, "lightgbm", "Booster"):
        return LightgbmPredictor(given.model_to_string().encode(), "LightGBM booster")
    return CatboostPredictor(given) if is_of(given, "catboost", "CatBoost") else None
