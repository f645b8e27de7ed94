"""No answer has a change that can be undone, alone or with one other; and answers keep the schema's rules."""

import re
from itertools import combinations

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise
from vitrail.errors import InvalidInput
from vitrail.solve.counterfactual.permitted import Rules

YEARS = {"none": 8, "school": 10, "college": 14, "doctor": 18}
COLUMNS = {
    "degree": vt.Categorical(list(YEARS)),
    "years": vt.Numeric(0, 20, integer=True, change="up"),
    "oldest": vt.Numeric(0, 40, integer=True),
    "average": vt.Numeric(0, 40.0),
    "income": vt.Numeric(0, 100.0),
    "job": vt.Categorical(["a", "b", "c"]),
    "home": vt.Categorical(["rent", "own"], change="never"),
}
RULES = [vt.Link("degree", "years", YEARS), vt.AtLeast("oldest", "average"), vt.Within("income", 5, 90)]
SCHEMA = vt.Schema(COLUMNS, rules=RULES)
N = 3000
PLAYERS = (["degree", "years"], ["oldest"], ["average"], ["income"], ["job"], ["home"])


def rows(n, seed):
    generator = np.random.default_rng(seed)
    degree = generator.choice(list(YEARS), n)
    oldest = generator.integers(0, 41, n)
    return {
        "degree": degree,
        "years": np.array([YEARS[level] for level in degree]),
        "oldest": oldest,
        "average": oldest * generator.uniform(0, 1, n),
        "income": generator.uniform(0, 100, n),
        "job": generator.choice(["a", "b", "c"], n),
        "home": generator.choice(["rent", "own"], n),
    }


def people(n, seed=7):
    table = rows(n, seed)
    return [{name: column[i].item() for name, column in table.items()} for i in range(n)]


def tangled(seed):
    """A model of products of steps: neither smooth nor monotone, so that changes matter together."""
    generator = np.random.default_rng(seed)
    one, other = generator.integers(0, SCHEMA.n_features, (2, 40))
    at, weight = generator.uniform(0.1, 0.9, (2, 40)), generator.normal(size=40)

    def output(x):
        sides = (x[:, one] > at[0]).astype(float) * np.where(x[:, other] > at[1], 1.0, -1.0)
        return 1 / (1 + np.exp(-np.einsum("ij,j->i", sides, weight) - 1.0))

    return vt.Model(output, range=(0, 1), name=f"tangled {seed}")


def plain(weights, base=0.0):
    """A model that adds features up."""
    where = [(SCHEMA.feature_names.index(name), weight) for name, weight in weights.items()]
    return vt.Model(
        lambda x: np.clip(base + sum(weight * x[:, place] for place, weight in where), 0, 1), range=(0, 1), name="sum"
    )


@pytest.fixture(scope="module")
def picture():
    data = vt.PrivateData(rows(N, 0), SCHEMA, name="people", n_rows_public=N, budget=vt.Budget(9, 1e-6), ledger="memory")
    with planted_noise():
        return vt.Counterfactual(data, plain({"income": 1.0}), rows=True).fit(epsilon=3.0).picture


def breaks(person, row):
    """The rules that a row breaks about what it changes, by brute force."""
    changed = {name for name in COLUMNS if row[name] != person[name]}
    broken = []
    if {"degree", "years"} & changed and YEARS[row["degree"]] != row["years"]:
        broken.append("link")
    if {"oldest", "average"} & changed and row["oldest"] < row["average"]:
        broken.append("order")
    if "income" in changed and not 5 <= row["income"] <= 90:
        broken.append("range")
    if "home" in changed or row["years"] < person["years"]:
        broken.append("change")
    return broken


def say(model, row):
    return model.predict(SCHEMA, SCHEMA.read_points(row))[0] >= 0.5


def test_no_change_can_be_undone_alone_or_with_one_other(picture):
    crowd, n_answers, n_several = people(6), 0, 0
    for seed in range(30):
        model = tangled(seed)
        out = vt.FittedCounterfactual(picture, model)(crowd, total_CFs=3)
        for person, wanted, answers in zip(crowd, out.wanted, out.answers, strict=True):
            for answer in answers:
                row = dict(answer.row)
                assert say(model, row) == wanted
                assert breaks(person, row) == []
                changed = [group for group in PLAYERS if any(row[name] != person[name] for name in group)]
                n_answers, n_several = n_answers + 1, n_several + (len(changed) > 1)
                for undone in (*((group,) for group in changed), *combinations(changed, 2)):
                    less = row | {name: person[name] for group in undone for name in group}
                    if not breaks(person, less):
                        assert say(model, less) != wanted, (seed, person, row, undone)
    assert n_answers > 200
    assert n_several > 50


def test_numbers_are_taken_back_as_far_as_the_model_agrees(picture):
    out = vt.FittedCounterfactual(picture, plain({"oldest": 0.6, "income": 0.5}))(people(40), desired_class=1, total_CFs=2)
    checked = 0
    for person, answers in zip(out.points, out.answers, strict=True):
        for answer in answers:
            for name, step in (("oldest", 1), ("income", 0.1)):
                if (row := dict(answer.row))[name] > person[name] + step:
                    row[name] -= step
                    if not breaks(person, row):  # a step back that breaks an order is none
                        assert not say(plain({"oldest": 0.6, "income": 0.5}), row)
                        checked += 1
            assert answer.row["oldest"] == int(answer.row["oldest"])
    assert checked > 20


def test_answers_change_different_sets_of_columns(picture):
    for seed in range(8):
        out = vt.FittedCounterfactual(picture, tangled(seed))(people(5), total_CFs=4)
        for changes in out.changes:
            sets = [frozenset(name for name, _, _ in change) for change in changes]
            assert len(set(sets)) == len(sets)


def test_no_answer_that_is_farther_than_the_nearest_row_of_the_class_is_told_first(picture):
    income, oldest = (SCHEMA.feature_names.index(name) for name in ("income", "oldest"))
    model = vt.Model(
        lambda x: ((x[:, income] >= 0.75) | ((x[:, income] >= 0.55) & (x[:, oldest] >= 0.55))).astype(float),
        range=(0, 1),
        name="either",
    )
    person = people(1)[0] | {"income": 45.0, "oldest": 18, "average": 5.0}  # 0.3 away by one change, 0.2 by two
    explain, vary = vt.FittedCounterfactual(picture, model), ["income", "oldest"]  # in which rows of the class lie densely
    near = explain(person, desired_class=1, total_CFs=2, features_to_vary=vary)
    assert [{name for name, *_ in change} for change in near.changes[0]] == [{"income", "oldest"}, {"income"}]


def test_linked_columns_change_together_and_naming_one_names_both(picture):
    model = plain({"degree=doctor": 0.6})
    person = people(1)[0] | {"degree": "school", "years": 10}
    for named in (["degree"], ["years"], "all"):
        out = vt.FittedCounterfactual(picture, model)(person, desired_class=1, features_to_vary=named)
        assert out.changes[0][0] == (("degree", "school", "doctor"), ("years", 10, 18))
    by_years = vt.FittedCounterfactual(picture, plain({"years": 1.0}, base=-0.15))(person, desired_class=1)
    assert by_years.changes[0][0] == (("degree", "school", "college"), ("years", 10, 14))


def test_what_a_rule_of_a_linked_column_forbids_is_forbidden_to_both(picture):
    model = plain({"degree=none": 1.0})
    out = vt.FittedCounterfactual(picture, model)(people(1)[0] | {"degree": "school", "years": 10}, desired_class=1)
    assert out.answers == ((),)  # fewer years: they only go up
    assert "No permitted change" in out.messages[0]


def test_a_person_who_breaks_a_rule_is_not_told_to_mend_it(picture):
    odd = people(1)[0] | {"degree": "doctor", "years": 9, "oldest": 3, "average": 20.0, "income": 20.0}
    out = vt.FittedCounterfactual(picture, plain({"income": 1.0}))(odd, desired_class=1)
    assert [name for name, _, _ in out.changes[0][0]] == ["income"]
    touched = vt.FittedCounterfactual(picture, plain({"average": 1.0}))(odd | {"average": 19.0}, desired_class=1)
    assert touched.answers[0]
    assert breaks(odd | {"average": 19.0}, dict(touched.answers[0][0].row)) == []


def test_settling_keeps_the_rules_and_is_done_in_one_go():
    rules, generator = Rules.of(SCHEMA, "all", None), np.random.default_rng(0)
    own = SCHEMA.read(rows(3000, 1))
    odd = generator.random(own.shape) < 0.2  # some break rules themselves
    own = np.where(odd, SCHEMA.read(rows(3000, 2)), own)
    wild = own + generator.normal(size=own.shape) * np.where(generator.random(own.shape) < 0.5, 20, 0)
    settled = rules.settle(own, wild)
    assert rules.kept(own, settled).all()
    told, before = ([dict(zip(SCHEMA.frame(raw), row, strict=True)) for row in zip(*SCHEMA.frame(raw).values(), strict=True)]
                    for raw in (settled, own))  # fmt: skip
    assert [breaks(person, row) for person, row in zip(before, told, strict=True)] == [[]] * 3000
    assert (settled != own).any(axis=0)[:-1].all()


def test_a_value_outside_the_bounds_stays_or_gets_inside():
    rules = Rules.of(SCHEMA, "all", None)
    own = SCHEMA.read_points(people(1)[0])
    own[0, SCHEMA.column_index("oldest")], own[0, SCHEMA.column_index("income")] = -9.0, -7.0
    assert (rules.settle(own, own) == own).all()
    settled = rules.settle(own, own + 1)
    assert settled[0, SCHEMA.column_index("income")] == 5
    assert 0 <= settled[0, SCHEMA.column_index("oldest")] <= 40


def test_a_range_of_outputs_is_reached_and_said(picture):
    model = vt.Model(lambda x: 900 * x[:, SCHEMA.feature_names.index("income")], range=(0, 900), name="rent")
    explain = vt.FittedCounterfactual(picture, model)
    person = people(1)[0] | {"income": 20.0}
    out = explain(person, desired=(500, None))
    assert (out.classes, out.wanted) == (("below 500",), ("at least 500",))
    assert 500 <= out.answers[0][0].output < 502
    between = explain([person, person | {"income": 80.0}], desired=(300, 310))
    assert all(300 <= answers[0].output <= 310 for answers in between.answers)
    assert explain(person, desired=(None, 100.5)).wanted == ("at most 100.5",)
    assert "rent says at most 200 already" in explain(person, desired=(None, 200)).messages[0]
    assert "leads rent to 810 to 820" in explain(person, desired=(810, 820), features_to_vary=["job"]).messages[0]
    page = out.to_html()
    assert "rent says below 500; what would make it say at least 500?" in page
    assert re.search(r"With income 5\d\.\d+ instead of 20(\.0)?, rent would say at least 500\.", page)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"desired": 500}, "give a pair"),
        ({"desired": (None, None)}, "give a pair"),
        ({"desired": (0.9, 0.1)}, "low must not be above high"),
        ({"desired": (0.5, 7)}, "a number from 0 to 1"),
        ({"desired": (0.5, None), "desired_class": 1}, "not both"),
    ],
)
def test_bad_ranges_of_outputs_are_refused_in_a_sentence(picture, given, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        vt.FittedCounterfactual(picture, plain({"income": 1.0}))(people(1), **given)
