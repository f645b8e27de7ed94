"""The vocabulary of requests: every explainer by a name, its options as JSON values, never code.

A request names an explainer, a model, options, public points and a price. :func:`explainer_of` makes the explainer of it, on
the service's side; :func:`described` makes the request of an explainer, on the client's; one table (:data:`KINDS`) is behind
both, and behind the description of the API. What takes a function has no place in it (:data:`REFUSED`).
Results travel as the files that ``save`` writes (:func:`content_of`, :func:`read_result`).

Tests: tests/serve/test_kinds.py, which also holds every option of every explainer against the table.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from .._checks import did_you_mean
from ..accounting import JsonValue
from ..errors import DamagedFile, InvalidInput
from ..explain.counterfactual import Counterfactual
from ..explain.effects import AccumulatedEffects, PartialDependence
from ..explain.global_report import GlobalReport
from ..explain.group_report import GroupReport
from ..explain.interactions import Interactions
from ..explain.linear.fitting import Fitting
from ..explain.linear.local_classes import ClassAttributions, LocalClasses
from ..explain.linear.local_linear import LocalLinear
from ..explain.linear.options import Adaptive, Cells, Descent, FromHistory, Moments, Rows, Statistics
from ..explain.marginals import MarginalsExplainer
from ..explain.permutation_importance import PermutationImportance
from ..explain.private_rows import PrivateRowsExplainer
from ..explain.recipe import Conversation, Explainer, LocalExplainer
from ..explain.shap_global import ShapDependence, ShapImportance
from ..explain.shapley import Shapley
from ..model import Model
from ..pane.pane import Pane
from ..pane.pane_recipe import PaneExplainer
from ..results import Attribution, Curve, Ranking, Surface
from ..results.archive import json_bytes, parsed_json, unpack
from ..results.base import Stored
from ..results.class_picture import ClassPicture
from ..results.counterfactuals import Counterfactuals
from ..results.effects import Effects
from ..results.group_table import GroupTable
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..results.report import Report
from ..results.synopsis import Synopsis
from ..schema import Schema
from ..solve.linear import weights
from ..solve.linear.weights import Weight
from ..vault import PrivateData
from . import shapes
from .shapes import CELL, FLAG, LEVEL, NULL, NUMBER, TEXT, WHOLE, Shape, either, list_of, one_of, record, table_of

MOST_POINTS, MOST_STEPS = 1000, 3000
"""Of a request; and the most points times permutations, or times iterations: its quote should take seconds."""
PANE_KIND = "vitrail-pane"
CLASSES_KIND = "vitrail-classes/1"
Models: TypeAlias = Literal["none", "one", "some", "any number", "several"]
"""How many: of "some" one is given as it is, of "several" as a list."""
RATE: Shape = {"type": "number", "minimum": 0, "maximum": 1}
COLUMNS = either(list_of(TEXT, least=1), NULL)
PAIRS = either(list_of(either(TEXT, list_of(TEXT, least=2, most=2)), least=1), NULL)
SMOOTH = one_of("smooth", "plain")
LOSS = one_of("squared", "absolute", "zero-one", "log")
DIGEST: Shape = record(["sha256"], sha256={"type": "string", "minLength": 64, "maxLength": 64})
MARGINALS = either(DIGEST, NULL)
"""Histograms or private rows that this analyst bought before, by the SHA-256 of their file."""
WEIGHTS = {
    make.__name__: make for make in (weights.stable, weights.polynomial, weights.exponential, weights.inverse_quadratic)
}
WEIGHT = either(record(["name"], name=one_of(*WEIGHTS), c=NUMBER, width=NUMBER), NULL)
METHOD_CLASSES: Mapping[str, Callable[..., Any]] = {"statistics": Statistics, "descent": Descent}
METHOD = either(
    one_of("auto", *METHOD_CLASSES),
    record(["name"], name=one_of(*METHOD_CLASSES), bands=FLAG, draws=WHOLE, iterations=either(WHOLE, NULL)),
)
FITS: Mapping[str, Callable[..., Any]] = {"moments": Moments, "cells": Cells}
FIT = either(one_of("auto", *FITS), record(["name"], name=one_of("cells"), columns=list_of(TEXT)))
_JOINT: Mapping[str, Shape] = {"marginals": MARGINALS, "sampling_rate": RATE}
_REPORT_PARTS = one_of("pdp", "ale", "importance", "shap")
_PANE_PARTS = one_of("rows", "reasons", "local", "pdp", "ale", "effects", "importance", "counterfactual")


@dataclass(frozen=True)
class Kind:
    """An explainer that can be asked for.

    Attributes
    ----------
    name : str
        In requests.
    explainer : type
        What it makes.
    answers : str
        Which question it answers, in plain words.
    models : {"none", "one", "some", "any number", "several"}
        Which models it is about.
    points : bool
        Whether it is about public points.
    options : mapping of str to shape
        What else may be said.
    required : tuple of str
        Options without which there is no question.
    example : mapping
        Options of an example.
    """

    name: str
    explainer: type[Any]
    answers: str
    models: Models = "one"
    points: bool = False
    options: Mapping[str, Shape] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    example: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def shape(self) -> Shape:
        """Of a request for it, as JSON Schema writes it."""
        fields: dict[str, Shape] = {"explainer": one_of(self.name), "options": record(self.required, **self.options)}
        fields |= {"epsilon": NUMBER, "mu": NUMBER, "half_width": NUMBER, "verdict": one_of("clear", "weak")}
        required = ["explainer", *(["options"] if self.required else [])]
        if self.models != "none":
            several = list_of(TEXT, least=1, most=20)
            shape = {"one": TEXT, "some": either(TEXT, several), "any number": either(TEXT, several, NULL)}
            fields["model"] = shape.get(self.models, several)
            required += [] if self.models == "any number" else ["model"]
        if self.points:
            fields["points"] = list_of(table_of(CELL), least=1, most=MOST_POINTS)
        return record(required, **fields)

    def make(self, data: PrivateData, models: Sequence[Model], options: Mapping[str, Any]) -> Any:
        """The explainer."""
        given = {
            name: _READ[name](value) if name in _READ and value is not None else value for name, value in options.items()
        }
        if self.models == "none":
            return self.explainer(data, **given)
        if self.explainer is Fitting:
            kind = given.pop("kind", "auto")
            return LocalLinear(data, models[0], **given).fitting(kind)
        about = (
            models[0] if self.models == "one" else None if not models else models[0] if len(models) == 1 else list(models)
        )
        return self.explainer(data, list(models) if self.models == "several" else about, **given)


def _weight(value: Mapping[str, Any]) -> Weight:
    return _called("weight", WEIGHTS, value)  # type: ignore[no-any-return]


def _method(value: str | Mapping[str, Any]) -> Any:
    return value if isinstance(value, str) else _called("method", METHOD_CLASSES, value)


def _fit(value: str | Mapping[str, Any]) -> Any:
    return value if isinstance(value, str) else Cells(columns=tuple(value["columns"]) if "columns" in value else None)


def _called(what: str, known: Mapping[str, Callable[..., Any]], value: Mapping[str, Any]) -> Any:
    options, make = {name: value[name] for name in value if name != "name"}, known[value["name"]]
    for name in options:
        if name not in inspect.signature(make).parameters:
            raise InvalidInput(f"options.{what} has {name!r}, which {value['name']!r} does not take")
    return make(**options)


def _pairs(value: list[Any]) -> list[Any]:
    return [tuple(one) if isinstance(one, list) else one for one in value]


_READ: Mapping[str, Callable[[Any], Any]] = {"weight": _weight, "method": _method, "kind": _fit, "columns": _pairs}
_LINEAR: Mapping[str, Shape] = {"weight": WEIGHT, "labels": one_of("soft", "hard"), "intercept": FLAG}
_TABLE = (
    Kind("marginals", MarginalsExplainer, "How is every column distributed?", "none",
         options={"columns": COLUMNS, "bins": WHOLE, "sampling_rate": RATE}, example={"bins": 10}),
    Kind("private-rows", PrivateRowsExplainer, "Rows of nobody's that are like the private ones, to explain any model on.",
         "none", options={"columns": COLUMNS, "bins": WHOLE, "parents": either(WHOLE, NULL), "sampling_rate": RATE}),
    Kind("shapley", Shapley, "Why does the model say this about this person? Shapley values.", points=True,
         options={"clip": either(NUMBER, one_of("auto"), NULL), "n_permutations": WHOLE, "seed": WHOLE,
                  "sampling_rate": RATE}),
    Kind("local-linear", LocalLinear, "Which columns matter near this person? A linear picture of the model.", points=True,
         options={**_LINEAR, "method": METHOD, "sampling_rate": RATE}),
    Kind("local-classes", LocalClasses, "Which columns speak for each class of a model, near this person?", "several", True,
         options={"weight": WEIGHT, "method": METHOD}),
    Kind("local-fit", Fitting, "A file that explains anybody with linear pictures, without asking again.",
         options={**_LINEAR, "kind": FIT, "sampling_rate": RATE}),
    Kind("partial-dependence", PartialDependence, "How does the output change with a column, all else being as it is?",
         options={**_JOINT, "columns": PAIRS, "resolution": either(WHOLE, NULL), "estimate": SMOOTH}),
    Kind("accumulated-effects", AccumulatedEffects, "The same, moving each row only a little: for columns that go together.",
         options={**_JOINT, "columns": COLUMNS, "orders": either(table_of(list_of(LEVEL)), NULL), "estimate": SMOOTH}),
    Kind("permutation-importance", PermutationImportance, "How much worse is the model without what a column says?",
         options={**_JOINT, "columns": COLUMNS, "loss": LOSS, "loss_bound": either(NUMBER, NULL),
                  "n_repeats": either(WHOLE, NULL), "clip": either(NUMBER, NULL), "positive": either(LEVEL, NULL),
                  "estimate": SMOOTH}),
    Kind("interactions", Interactions, "Which pairs of columns act together?",
         options={**_JOINT, "columns": PAIRS, "n_pairs": WHOLE, "grid": WHOLE}),
    Kind("shap-importance", ShapImportance, "How large are the Shapley values of every column, on average?",
         options={**_JOINT, "chains": WHOLE}),
    Kind("shap-dependence", ShapDependence, "How do Shapley values change along a column?",
         options={**_JOINT, "columns": COLUMNS, "chains": WHOLE}),
    Kind("global-report", GlobalReport, "Curves and importance of every column, from one joint question.",
         options={**_JOINT, "columns": COLUMNS, "parts": either(list_of(_REPORT_PARTS, least=1), NULL),
                  "weights": either(table_of(NUMBER), NULL), "loss": LOSS, "loss_bound": either(NUMBER, NULL),
                  "orders": either(table_of(list_of(LEVEL)), NULL), "estimate": SMOOTH}),
    Kind("groups", GroupReport, "What does the model do to each group: selection, errors, calibration?",
         options={"by": either(TEXT, list_of(TEXT, least=1)), "edges": either(table_of(list_of(NUMBER)), NULL),
                  "threshold": either(NUMBER, NULL), "positive": either(LEVEL, NULL),
                  "outcome_threshold": either(NUMBER, NULL), "bins": WHOLE},
         required=("by",), example={"by": "sex"}),
    Kind("counterfactual", Counterfactual, "What would have to change for another answer? A picture of the classes.",
         "some", options={"threshold": NUMBER, "by": one_of("predictions", "labels"),
                             "latent": one_of("auto", "none", "linear", "network"), "rows": either(FLAG, one_of("auto")),
                             "clip": either(NUMBER, NULL)}),
    Kind("pane", PaneExplainer, "One file that explains anybody, anywhere, for ever.", "any number",
         options={"parts": either(one_of("all"), list_of(_PANE_PARTS, least=1)), "weights": either(table_of(NUMBER), NULL),
                  "threshold": either(NUMBER, NULL), "loss": LOSS, "loss_bound": either(NUMBER, NULL), "embed_model": FLAG,
                  "sampling_rate": RATE, "version": TEXT, "expires": either(TEXT, NULL)}),
)  # fmt: skip
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _TABLE}
"""Every explainer that can be asked for, by name."""
REFUSED: Mapping[str, str] = {
    "AnyCurve": "it runs a function on groups of rows, and a service takes no code",
    "AnyRanking": "it runs a function on groups of rows, and a service takes no code",
    "view": "a view is a function of rows, and a service takes no code",
    "key": "models of a service are files, known by their content",
    "training_guarantee": "how a model was trained is for its owner to say",
    "noise": "a service takes Laplace noise by itself, where few levels are asked about and there is a purse for it",
    "page": "the words of pages are the owner's, in the declaration",
}
"""What has no place in requests, and why."""
_CLASSES: tuple[type[Stored], ...] = (
    Attribution, ClassPicture, Counterfactuals, Curve, Effects, GroupTable, Marginals, PrivateRows, Ranking, Report, Surface,
    Synopsis,
)  # fmt: skip
_STORED = {result.FORMAT: result for result in _CLASSES}


# --- a request -----------------------------------------------------------------------------------------------------------


def checked(request: JsonValue, *, price_only: bool = True) -> dict[str, Any]:
    """A request of the right shape, or an error that says what is wrong with it; nothing is charged or looked at.

    Parameters
    ----------
    request : JSON value
        As it came.
    price_only : bool
        Whether it has to name a price, rather than an accuracy whose price is asked for.

    Examples
    --------
    >>> checked({"explainer": "shaply"})
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: explainer is 'shaply'; it must be one of those that GET /v1/vocabulary lists. Did you mean \
'shapley'?
    """
    if not isinstance(request, dict):
        raise InvalidInput(f"the request is {type(request).__name__}; it must be an object")
    name = request.get("explainer")
    if not isinstance(name, str) or name not in KINDS:
        hint = did_you_mean(name, KINDS)
        raise InvalidInput(f"explainer is {str(name)[:60]!r}; it must be one of those that GET /v1/vocabulary lists.{hint}")
    kind = KINDS[name]
    shapes.check(request, kind.shape, "")
    prices = ("epsilon", "mu") if price_only else ("epsilon", "mu", "half_width", "verdict")
    given = [price for price in ("epsilon", "mu", "half_width", "verdict") if price in request]
    if len(given) != 1 or given[0] not in prices:
        raise InvalidInput(f"the request names {' and '.join(given) or 'no price'}; give one of {', '.join(prices)}")
    if kind.points and price_only and "points" not in request:
        raise InvalidInput("the request has no 'points'; give those to be explained, a list of objects")
    _check_steps({"options": {}, **request})
    return {"options": {}, **request}


def _check_steps(request: Mapping[str, Any]) -> None:
    """Refuse what would keep a processor for hours, of quotes too, which are free."""
    points, options = len(request.get("points", ())) or 1, request["options"]
    method = options.get("method")
    descent = method if isinstance(method, dict) else {"name": method}
    each = {"permutations": options.get("n_permutations", 1)}
    if descent["name"] == "descent":
        each["iterations"] = descent.get("iterations") or 1
    for what, count in each.items():
        if points * count > MOST_STEPS:
            raise InvalidInput(
                f"{points} points of {count} {what} each are too much for one request; there may be {MOST_STEPS} in all"
            )


def models_named(request: Mapping[str, Any]) -> list[str]:
    """The models that a request names."""
    named = request.get("model")
    return [] if named is None else [named] if isinstance(named, str) else list(named)


def explainer_of(
    request: Mapping[str, Any],
    data: PrivateData,
    models: Sequence[Model],
    bought: Callable[[str], Marginals | PrivateRows],
    **defaults: object,
) -> Any:
    """The explainer that a checked request asks for.

    Parameters
    ----------
    request : mapping
        As :func:`checked` returns it.
    data : PrivateData
        The analyst's view of the rows.
    models : list of Model
        Those that it names.
    bought : callable
        From the SHA-256 of a file to the histograms that this analyst bought.
    defaults : optional
        The owner's, for options that the request leaves out.
    """
    options = dict(request["options"])
    if isinstance(given := options.get("marginals"), dict):
        options["marginals"] = bought(given["sha256"])
    return KINDS[request["explainer"]].make(data, models, {**defaults, **options})


def conversation_of(explainer: Any, request: Mapping[str, Any]) -> Conversation[Any]:
    """What would be said to the vault."""
    about = (request["points"],) if isinstance(explainer, LocalExplainer) else ()
    made: Conversation[Any] = explainer.conversation(*about)
    return made


def described(explainer: Explainer, points: object = None) -> dict[str, Any]:
    """The request that an explainer is, without its price: what ``explainer_of`` makes again on the other side."""
    of = explainer.of if isinstance(explainer, Fitting) else None
    kind = next((kind for kind in _TABLE if type(explainer) is kind.explainer), None)
    if kind is None or (isinstance(explainer, Fitting) and of is None):
        why = REFUSED.get(type(explainer).__name__, "the service does not know it")
        raise InvalidInput(f"{type(explainer).__name__} cannot be asked of a service: {why}")
    given = (of[0] if of else explainer).given()
    data, model = given.pop("data"), given.pop("models" if "models" in given else "model", None)
    options = {name: _written(name, value) for name, value in given.items() if value is not None}
    if of:
        options["kind"] = _written("kind", of[1])
    for name in options:
        if name not in kind.options:
            raise InvalidInput(f"{name}= cannot be given to a service: {REFUSED.get(name, 'it is no JSON value')}")
    request: dict[str, Any] = {"explainer": kind.name, "options": options}
    if kind.models != "none" and model is not None:
        listed = [_named(one) for one in (model if isinstance(model, list | tuple) else [model])]
        request["model"] = (
            listed[0] if kind.models == "one" or (kind.models == "any number" and len(listed) == 1) else listed
        )
    if kind.points and points is not None:
        request["points"] = points_of(data.feature_schema, points)
    shapes.check(request, kind.shape, "")
    return request


def points_of(schema: Schema, points: object) -> list[dict[str, Any]]:
    """Public points as a list of objects of JSON values."""
    raw = schema.read_points(points)
    columns = {name: values.tolist() for name, values in schema.frame(raw).items()}
    return [{name: _cell(values[number]) for name, values in columns.items()} for number in range(len(raw))]


def _cell(value: Any) -> JsonValue:
    if isinstance(value, float) and math.isnan(value):  # a missing value of a column that is NaN to models
        return None
    return str(value) if not isinstance(value, str | int | float | bool | None) else value


def _named(model: Model) -> str:
    """How a request names a model: by the hash of its file, and its output where it has several."""
    name: str | None = getattr(model, "at_service", None)
    if name is not None:
        return name
    from ..pane.manifest import onnx_content

    try:
        content = onnx_content(model)
    except InvalidInput as error:
        raise InvalidInput(
            f"{model.name} is no ONNX model; a service takes models that its owner approved: house.model(name), or its file"
        ) from error
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _written(name: str, value: Any) -> Any:
    """An option as JSON writes it."""
    if isinstance(value, Weight):
        return {"name": value.name, **dict(value.parameters)}
    if isinstance(value, Marginals | PrivateRows):
        return {"sha256": hashlib.sha256(value.to_bytes()).hexdigest()}
    for known in (METHOD_CLASSES, FITS):
        for text, made in known.items():
            if type(value) is made:
                facts = {name: _plain(one) for name, one in asdict(value).items() if one is not None}
                return {"name": text, **facts} if facts else text
    if callable(value) or isinstance(value, Adaptive | FromHistory | Rows):
        what = "is a function; a service takes no code" if callable(value) else f"is {value!r}, which no service offers"
        raise InvalidInput(f"{name}= {what}; vt.release buys private rows that explain anything")
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def canonical(request: Mapping[str, Any]) -> str:
    """The same text for the same request."""
    return json.dumps(request, sort_keys=True, allow_nan=False, separators=(",", ":"))


# --- a result ------------------------------------------------------------------------------------------------------------


def content_of(result: object) -> tuple[str, bytes]:
    """What kind of file a result is, and the file."""
    if isinstance(result, Pane):
        return PANE_KIND, result.to_bytes()
    if isinstance(result, ClassAttributions):
        found: list[JsonValue] = [[_plain(level), about.to_json()] for level, about in result.items()]
        return CLASSES_KIND, json_bytes({"format": CLASSES_KIND, "classes": found})
    assert isinstance(result, Stored)
    return result.FORMAT, result.to_bytes()


def read_result(kind: str, content: bytes, what: str = "the result") -> Any:
    """The result that a file holds; nothing in it is run."""
    if kind == PANE_KIND:
        return Pane.from_bytes(content, what=what)
    if kind == CLASSES_KIND:
        fields = parsed_json(content, what)
        if not isinstance(fields, dict) or not isinstance(listed := fields.get("classes"), list):
            raise DamagedFile(f"{what} holds no classes")
        pairs: list[Any] = listed
        return ClassAttributions({level: Attribution.from_json(about, what=what) for level, about in pairs})
    if kind not in _STORED:
        raise DamagedFile(f"{what} is called {kind[:60]!r}, which this version of Vitrail does not know; upgrade to read it")
    return _STORED[kind].from_bytes(content, what=what)


def json_of(kind: str, content: bytes) -> JsonValue:
    """The result as plain JSON values; of a pane its manifest."""
    if kind == PANE_KIND:
        return unpack(content, "the pane")[0]
    if kind == CLASSES_KIND:
        return parsed_json(content, "the result")
    stored: Stored = read_result(kind, content)
    return stored.to_json()
