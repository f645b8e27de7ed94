"""The vocabulary of requests: every explainer, every option, there and back."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

import vitrail as vt
from explainer_table import ONE_POINT, TABLE, Row, private, rows
from vitrail.errors import InvalidInput
from vitrail.explain.linear.fitting import Fitting
from vitrail.explain.recipe import Explainer
from vitrail.serve import kinds, shapes

LAPLACE = {"partial dependence with Laplace noise", "accumulated effects with Laplace noise"}
NOT_JSON = {
    "any curve",
    "any ranking",
    "any ranking of the first",
    "local adaptive",
    "local enhanced",
    "local rows",
    *LAPLACE,
}
WHY_NOT = "a service takes no code, no history of somebody's own, and explains on private rows by a pane"
WRAPPED = {"local classes", "local moments", "local cells", "local cells by sex"}
"""Rows of the table that are no explainers of the library but stand for one."""


@functools.cache
def fitted() -> LinearRegression:
    points = np.random.default_rng(0).uniform(size=(50, 4))
    return LinearRegression().fit(points, points @ [0.3, 0.2, 0.1, 0.2])


def model() -> vt.Model:
    """One that is known by its content, as the models of a service are."""
    made = vt.Model(fitted(), range=(0, 1), inputs="features", name="score")
    made.at_service = "score"  # type: ignore[attr-defined]
    return made


def explainer_and_points(row: Row, data: vt.PrivateData, asked: vt.Model) -> tuple[Explainer, object]:
    local = vt.LocalLinear(data, asked)
    wrapped: dict[str, Any] = {
        "local classes": lambda: vt.LocalClasses(data, [asked]),
        "local moments": lambda: local.fitting("moments"),
        "local cells": lambda: local.fitting("cells"),
        "local cells by sex": lambda: local.fitting(vt.linear.Cells(columns=("sex",))),
    }
    if row.name in wrapped:
        return wrapped[row.name](), ONE_POINT if row.name == "local classes" else None
    made = row.make(data, asked)
    return type(made)(**{name: value for name, value in made.given().items() if name != "key"}), row.points


@pytest.mark.parametrize("row", [row for row in TABLE if row.name not in NOT_JSON], ids=lambda row: row.name)
def test_an_explainer_comes_back_as_the_same_question(row: Row) -> None:
    data, asked = private(), model()
    made, points = explainer_and_points(row, data, asked)
    request = json.loads(json.dumps({**kinds.described(made, points), "epsilon": 1.0}, allow_nan=False))
    checked = kinds.checked(request)
    again = kinds.explainer_of(checked, data, [asked] * len(kinds.models_named(request)), lambda sha: pytest.fail(sha))
    theirs = kinds.conversation_of(again, checked)
    ours = made.conversation() if points is None else made.conversation(points)  # type: ignore[attr-defined]
    assert theirs.label == ours.label
    assert theirs.identity is not None
    assert json.dumps(theirs.identity, sort_keys=True) == json.dumps(ours.identity, sort_keys=True)
    assert theirs.sampling_rate == ours.sampling_rate


@pytest.mark.parametrize("row", [row for row in TABLE if row.name in NOT_JSON], ids=lambda row: row.name)
def test_what_has_no_place_in_requests_says_why(row: Row) -> None:
    data, asked = private(), model()
    made = row.make(data, asked) if row.name != "local rows" else vt.LocalLinear(data, asked).fitting(vt.linear.Rows())
    with pytest.raises(InvalidInput, match="service"):
        kinds.described(made, row.points)


@pytest.mark.parametrize("kind", kinds.KINDS.values(), ids=lambda kind: kind.name)
def test_every_option_of_an_explainer_is_in_the_vocabulary_or_refused_with_a_reason(kind: kinds.Kind) -> None:
    made: Any = vt.LocalLinear if kind.explainer is Fitting else kind.explainer
    declared = set(inspect.signature(made).parameters) - {"data", "model", "models"}
    unsampled = {"sampling_rate"} if kind.name in ("counterfactual", "groups", "local-classes") else set()
    unfitted = {"method"} if kind.explainer is Fitting else set()
    offered = set(kind.options) - ({"kind"} if kind.explainer is Fitting else set())
    assert declared - set(kinds.REFUSED) - unsampled - unfitted == offered


def test_every_explainer_of_the_library_is_in_the_vocabulary_or_refused_with_a_reason() -> None:
    public = {name: getattr(vt, name) for name in vt.__all__}
    explainers = {name for name, made in public.items() if isinstance(made, type) and issubclass(made, Explainer)}
    known = {kind.explainer.__name__ for kind in kinds.KINDS.values()}
    assert explainers - known == {name for name in kinds.REFUSED if name[0].isupper()}


def test_what_was_given_is_remembered_as_it_was_given() -> None:
    data, asked = private(), model()
    explainer = vt.GlobalReport(data, asked, parts=["shap", "pdp"], weights={"pdp": 3.0, "shap": 1.0})
    assert explainer.given() == {
        "data": data,
        "model": asked,
        "parts": ["shap", "pdp"],
        "weights": {"pdp": 3.0, "shap": 1.0},
    }
    assert dataclasses.replace(explainer, parts=["pdp"]).given()["parts"] == ["pdp"]


def test_results_come_back() -> None:
    data = private()
    for made in (vt.marginals(data, epsilon=0.5), vt.LocalClasses(data, [model()], key="x")(ONE_POINT, epsilon=0.5)):
        kind, content = kinds.content_of(made)
        again = kinds.read_result(kind, content)
        assert kinds.content_of(again) == (kind, content)
        assert isinstance(kinds.json_of(kind, content), dict)


WRONG: list[tuple[Any, str]] = [
    ([], "must be an object"),
    ({}, "explainer is 'None'"),
    ({"explainer": "marginals", "epsilon": 1, "options": {"bims": 3}}, "Did you mean 'bins'"),
    ({"explainer": "marginals", "epsilon": 1, "options": {"bins": True}}, "a whole number"),
    ({"explainer": "marginals"}, "no price"),
    ({"explainer": "marginals", "epsilon": 1, "mu": 1}, "epsilon and mu"),
    ({"explainer": "marginals", "verdict": "clear"}, "names verdict"),
    ({"explainer": "shapley", "model": "score", "epsilon": 1}, "no 'points'"),
    ({"explainer": "shapley", "epsilon": 1, "points": [{}]}, "no 'model'"),
    ({"explainer": "groups", "model": "m", "epsilon": 1e400, "options": {}}, "finite"),
    ({"explainer": "marginals", "model": "score", "epsilon": 1}, "not known"),
    ({"explainer": "marginals", "epsilon": 1, "options": {"columns": ["a\x00"]}}, "no text has|must be"),
]


@pytest.mark.parametrize(("request_", "sentence"), WRONG)
def test_what_is_wrong_with_a_request_is_said(request_: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        kinds.checked(request_)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from(sorted(kinds.KINDS)), data=st.data())
def test_any_options_make_an_explainer_or_a_sentence_of_ours(kind: str, data: st.DataObject) -> None:
    names = st.sampled_from([*kinds.KINDS[kind].options, "other"])
    options = data.draw(st.dictionaries(names, JSON, max_size=2))
    asked = model()
    request: Any = {"explainer": kind, "options": options, "epsilon": 1.0, "points": [ONE_POINT], "model": ["score"]}
    if not kinds.KINDS[kind].points:
        del request["points"]
    if kinds.KINDS[kind].models == "none":
        del request["model"]
    elif kinds.KINDS[kind].models == "one":
        request["model"] = "score"
    with contextlib.suppress(vt.errors.VitrailError):
        checked = kinds.checked(request)
        explainer = kinds.explainer_of(checked, PRIVATE, [asked], lambda sha: vt.marginals(PRIVATE, epsilon=0.1))
        kinds.conversation_of(explainer, checked)


PRIVATE = private(rows(20))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_json_or_a_sentence_of_ours(content: bytes) -> None:
    with contextlib.suppress(InvalidInput):
        shapes.parsed(content)


def test_a_missing_value_of_a_point_is_null() -> None:
    schema = vt.Schema(
        {"age": vt.Numeric(0, 100, missing=-1, codes=[-1], as_nan=True), "ill": vt.Categorical([False, True])}
    )
    points = {"age": [np.nan, 3.5], "ill": [True, False]}
    written = json.loads(json.dumps(kinds.points_of(schema, points), allow_nan=False))
    assert written == [{"age": None, "ill": True}, {"age": 3.5, "ill": False}]
    np.testing.assert_array_equal(schema.read_points(written), schema.read_points(points))


def test_what_would_take_hours_is_refused_for_quotes_too() -> None:
    points = [{"age": 40}] * 100
    asked = {"explainer": "shapley", "model": "score", "points": points, "epsilon": 1.0, "options": {"n_permutations": 30}}
    assert kinds.checked(asked) == asked
    with pytest.raises(InvalidInput, match="100 points of 31 permutations each are too much"):
        kinds.checked({**asked, "options": {"n_permutations": 31}}, price_only=False)
    descent = {"explainer": "local-linear", "model": "score", "points": points, "epsilon": 1.0}
    for iterations, fits in ((30, True), (31, False)):
        request = {**descent, "options": {"method": {"name": "descent", "iterations": iterations}}}
        with contextlib.nullcontext() if fits else pytest.raises(InvalidInput, match="iterations each are too much"):
            kinds.checked(request)


def test_many_names_are_read_and_the_second_of_two_is_refused() -> None:
    """As many as fit into a request: a check that compared every two of them would take half an hour."""
    names = ",".join(f'"{number:x}":0' for number in range(300_000))
    assert len(shapes.parsed(f"{{{names}}}".encode())) == 300_000  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=f"names '{299_999:x}' twice"):
        shapes.parsed(f'{{{names},"{299_999:x}":1}}'.encode())
