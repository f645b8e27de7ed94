"""Adapters: what each family of models expects, returns and is called like.

A torch module and a native booster are copied, a file is read: what happens to them later changes nothing. An estimator is
*followed*: it may be fitted again after the model was made, and is taken as it is when a question begins (``look_again``),
never in the middle of one. A function is called as it is.

A prediction must be a function of its row alone and the same on every call. So forests run on one thread (threads add
their trees' votes in the order they finish), torch modules run in evaluation mode (batch normalisation and dropout look
at other rows, or roll dice), and ONNX sessions run sequentially on one CPU thread.

Estimators on one thread.

A forest on several threads adds its trees' votes in the order in which they finish, and floating-point sums depend on
that order: the same row would get different bits on different calls.

Forests without the cost of a call: the same trees, the same additions, the same bits as scikit-learn's own prediction.

scikit-learn wraps every tree of every call into a task, a quarter of a millisecond each: for a hundred trees and a small
block that is more than the trees themselves take. Here the trees are asked one after another, their outputs are added
in their order and divided by their number, which is what scikit-learn does on one thread. Whether the bits agree is seen
on public rows when the model is first used; if they do not, or the forest is of another kind, scikit-learn is called.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np

from ..errors import ModelError
from ..schema import FloatArray, Level, Schema
from . import on_device
from .content_walk import content_digest, is_of
from .contents import sketch
from .levels import Categories, levels_inside
from .purity import adds_up_leaves, same_bits
from .recorded import booster_of, given_names, has_categories, recorded_categories

# A float64 matrix, a pandas DataFrame, or (for ONNX) a dictionary of columns.
ModelInput: TypeAlias = object


class Predictor(ABC):
    """What ``Model`` needs to know about any predictor.

    Attributes
    ----------
    wrapped : object
        What the caller calls a model, as it is used: a function, an estimator, a module, the bytes of a file.
    label : str
        A name for display.
    expected_names, expected_width : tuple of str, int, or None
        The columns it was trained on, by name, and their number, where it knows them.
    classes : tuple or None
        What the columns of its output stand for, where it knows them.
    gives_probabilities : bool
        Whether its outputs are probabilities, by its own contract.
    unbounded : str
        Why its outputs have no bounds, for a message; empty where nothing is known about that.
    records_columns : bool
        Whether models of its kind record their columns when they are fitted. One that did not is not given any by guess.
    """

    expected_names: tuple[str, ...] | None = None
    expected_width: int | None = None
    classes: tuple[Level, ...] | None = None
    gives_probabilities: bool = False
    unbounded: str = ""
    records_columns: bool = False

    def __init__(self, wrapped: Any, label: str) -> None:
        self.wrapped, self.label = wrapped, label

    @abstractmethod
    def __call__(self, inputs: ModelInput) -> object:
        """The outputs for a block of rows."""

    @property
    def uses_category_dtype(self) -> bool:
        """Whether it was fitted on columns of pandas' category dtype and tells them apart by it."""
        return False

    def categories(self, schema: Schema, columns: Sequence[str]) -> Categories | None:
        """The categories that it recorded, in its order, of those of its columns that are levels to it.

        None where it takes plain values: encoders inside it, if any, know what to do with them.
        """
        return None

    @property
    def records_categories(self) -> bool:
        """Whether ``categories`` has any."""
        return False

    def known_levels(self) -> Iterable[tuple[str, Sequence[object]]]:
        """Columns and the levels that encoders inside it learned for them."""
        return ()

    def look_again(self) -> None:  # noqa: B027 - most have nothing to do: what they call is their own, or a function
        """Take what it stands for as it is now."""

    def on_device(self, device: str, inputs: Sequence[ModelInput]) -> Predictor | None:
        """The same predictor on an accelerator, tried on public inputs of all shapes to come; None where it stays here."""
        return None

    def content(self) -> str | None:
        """A stable hash of everything that decides the outputs, as it was at the last look, or None."""
        return content_digest(self.wrapped)

    def sketch(self) -> str:
        """What can be known where ``content`` is None: the class."""
        return sketch(type(self.wrapped))


class EstimatorPredictor(Predictor):
    """A fitted estimator in the manner of scikit-learn, on one thread."""

    records_columns = True

    def __init__(self, given: Any, *, gives_probabilities: bool) -> None:
        self._given, self.gives_probabilities = given, gives_probabilities
        self.look_again()

    def look_again(self) -> None:
        """Take the caller's estimator as it is now. A call that is under way keeps what it began with."""
        estimator, before = on_one_thread(self._given), getattr(self, "seen", None)
        self.seen = _SeenEstimator(estimator)
        # That a mean over trees is the forest's own was tried. It holds for the very same trees, whatever is in them.
        if before is not None and before.trees and _same_trees(before.trees[0], trees_of(estimator)):
            self.seen.trees.append(before.trees[0])
        steps = getattr(estimator, "steps", None)  # a pipeline is called after its last one
        super().__init__(estimator, type(steps[-1][1] if isinstance(steps, list) and steps else estimator).__name__)
        names, width = getattr(estimator, "feature_names_in_", None), getattr(estimator, "n_features_in_", None)
        self.expected_names = given_names(names)
        self.expected_width = None if width is None else int(width)
        classes = getattr(estimator, "classes_", None)
        known = self.gives_probabilities and classes is not None and np.ndim(classes) == 1
        self.classes = tuple(np.asarray(classes).tolist()) if known else None

    @property
    def uses_category_dtype(self) -> bool:
        """Whether it was fitted on columns of pandas' category dtype and tells them apart by it."""
        fitted = getattr(self.wrapped, "best_estimator_", self.wrapped)
        by_dtype = isinstance(given := getattr(fitted, "categorical_features", None), str) and given == "from_dtype"
        return by_dtype and getattr(fitted, "is_categorical_", None) is not None

    def categories(self, schema: Schema, columns: Sequence[str]) -> Categories | None:
        """What the booster inside recorded, if the estimator is one of XGBoost's or LightGBM's."""
        booster = self._booster
        return None if booster is None else recorded_categories(booster, schema, columns, self.label)

    @property
    def records_categories(self) -> bool:
        """Whether the booster inside it, if there is one, recorded any."""
        return (booster := self._booster) is not None and has_categories(booster)

    @property
    def _booster(self) -> Any | None:
        return booster_of(getattr(self.wrapped, "best_estimator_", self.wrapped))

    def known_levels(self) -> Iterable[tuple[str, Sequence[object]]]:
        """Columns and the levels that encoders inside it learned for them."""
        return levels_inside(self.wrapped)

    def __call__(self, inputs: ModelInput) -> object:
        """Probabilities of a classifier, values of a regressor."""
        seen = self.seen
        if isinstance(inputs, np.ndarray) and (trees := self._fast_trees(seen, inputs)) is not None:
            return mean_of_trees(trees, inputs, probabilities=self.gives_probabilities)
        return seen.estimator.predict_proba(inputs) if self.gives_probabilities else seen.estimator.predict(inputs)

    def _fast_trees(self, seen: _SeenEstimator, inputs: FloatArray) -> tuple[Any, ...] | None:
        """The trees, where asking them directly gives the same bits; decided at the first call, which is on public rows."""
        if not seen.trees:
            trees = trees_of(seen.estimator)
            same = trees is not None and agrees(trees, seen.estimator, inputs, probabilities=self.gives_probabilities)
            seen.trees.append(trees if same else None)
        return seen.trees[0]


@dataclass(frozen=True, slots=True, eq=False)
class _SeenEstimator:
    """An estimator on one thread, and its trees once they were tried."""

    estimator: Any
    trees: list[tuple[Any, ...] | None] = field(default_factory=list)


class TorchPredictor(Predictor):
    """A torch module in evaluation mode on the CPU, or for private rows on an accelerator; a copy of its own."""

    def __init__(self, module: Any, device: str = "cpu") -> None:
        super().__init__(module, type(module).__name__)
        self.device = device

    def __call__(self, inputs: ModelInput) -> object:
        """The module's output, without gradients, for inputs in the precision of its parameters."""
        return on_device.run(self.wrapped, cast(FloatArray, inputs), self.device)

    def on_device(self, device: str, inputs: Sequence[ModelInput]) -> Predictor | None:
        """A copy on a device, if no row can make it fail there."""
        there = on_device.moved(self.wrapped, device, cast(Sequence[FloatArray], inputs))
        return None if there is None else TorchPredictor(there, device)


def torch_predictor(module: Any) -> TorchPredictor:
    """The adapter of a module: of a copy in evaluation mode, where it can be copied."""
    try:
        return TorchPredictor(copy.deepcopy(module).cpu().eval())
    except Exception as error:
        if module.training:
            raise ModelError("the torch module cannot be copied and is in training mode; call its eval() first") from error
        return TorchPredictor(module)


# Pipelines in searches in votes in calibrations: deep enough for all of them, and an end for what refers to itself.
DEEPEST = 12


def on_one_thread(estimator: Any, depth: int = DEEPEST) -> Any:
    """The estimator, or a shallow copy of it in which everything that has ``n_jobs`` uses one thread and is quiet.

    Estimators inside it, in attributes and lists, are followed. Fitted arrays are shared with the original, which is
    left as it is.
    """
    if depth <= 0 or isinstance(estimator, type) or not hasattr(estimator, "__dict__"):
        return estimator
    changed: dict[str, object] = {}
    for name, value in vars(estimator).items():
        if name == "n_jobs" and value != 1:
            changed[name] = 1
        elif name == "verbose" and isinstance(value, int) and value:
            changed[name] = type(value)(0)  # progress goes to the screen while private rows pass
        elif (inner := _inner(value, depth - 1)) is not value:
            changed[name] = inner
    if not changed:
        return estimator
    try:
        quiet = copy.copy(estimator)
        vars(quiet).update(changed)
    except Exception:  # an estimator that resists copying is used as it is; the purity probe will judge it
        return estimator
    return quiet


def _inner(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, int | float | str | np.ndarray):  # nearly all attributes; no estimators
        return value
    if is_of(value, "xgboost", "Booster"):  # it has the threads that it was trained with, whatever n_jobs says now
        quiet = value.copy()
        quiet.set_param({"nthread": 1, "verbosity": 0})
        return quiet
    if any(hasattr(value, method) for method in ("predict", "predict_proba", "transform")):
        return on_one_thread(value, depth)
    if type(value) in (list, tuple) and depth > 0:
        inner = [_inner(item, depth - 1) for item in value]
        return type(value)(inner) if any(new is not old for new, old in zip(inner, value, strict=True)) else value
    return value


def trees_of(estimator: Any) -> tuple[Any, ...] | None:
    """The trees of a fitted forest with one output, or None."""
    trees = getattr(estimator, "estimators_", None)
    is_forest = adds_up_leaves(estimator) and isinstance(trees, list) and getattr(estimator, "n_outputs_", None) == 1
    return tuple(trees) if is_forest and trees else None


def _same_trees(some: tuple[Any, ...] | None, others: tuple[Any, ...] | None) -> bool:
    """Whether these are the very same objects; no trees are not the same as no trees."""
    both = some is not None and others is not None and len(some) == len(others)
    return both and all(tree is other for tree, other in zip(some or (), others or (), strict=True))


def mean_of_trees(trees: tuple[Any, ...], rows: FloatArray, *, probabilities: bool) -> FloatArray:
    """What the forest says about rows: (rows, classes) or (rows,)."""
    numbers = np.ascontiguousarray(rows, dtype=np.float32)  # as trees compare them
    if not np.isfinite(numbers).all():
        raise ValueError("the forest was given a value that is no finite 32-bit number")
    mean = np.asarray(sum(tree.tree_.predict(numbers) for tree in trees) / len(trees))  # of shares of classes, or of means
    return mean if probabilities else mean.reshape(len(numbers))


def agrees(trees: tuple[Any, ...], estimator: Any, rows: FloatArray, *, probabilities: bool) -> bool:
    """Whether the short way gives the bits of the estimator's own, on public rows."""
    try:
        own = np.asarray(estimator.predict_proba(rows) if probabilities else estimator.predict(rows), dtype=np.float64)
        return same_bits(mean_of_trees(trees, rows, probabilities=probabilities), own)
    except Exception:
        return False
