"""Rules of a schema: declared, checked, written down, and left out where there are none."""

import json
import pickle

import pytest

import vitrail as vt
from vitrail.errors import SchemaError

COLUMNS = {
    "degree": vt.Categorical(["school", "college", "doctor"]),
    "years": vt.Numeric(0, 20, integer=True),
    "kind": vt.Categorical(["low", "high"]),
    "oldest": vt.Numeric(0, 100),
    "average": vt.Numeric(0, 100),
}
YEARS = {"school": 10, "college": 14, "doctor": 18}
RULES = [
    vt.Link("degree", "years", YEARS),
    vt.Link("degree", "kind", {"school": "low", "college": "high", "doctor": "high"}),
    vt.AtLeast("oldest", "average"),
    vt.Within("oldest", 10, 60.5),
    vt.Group("kind", ("kind", "years")),
]


def test_rules_go_through_files_pickles_and_repr(tmp_path):
    schema = vt.Schema(COLUMNS, rules=RULES)
    assert list(schema.rules) == RULES
    schema.save(tmp_path / "schema.json")
    assert vt.Schema.load(tmp_path / "schema.json") == schema
    for again in (
        vt.Schema.from_json(json.loads(json.dumps(schema.to_json()))),
        pickle.loads(pickle.dumps(schema)),
        eval(repr(schema), vars(vt) | {name: getattr(vt, name) for name in vt.__all__}),
    ):
        assert again == schema
        assert again.rules == schema.rules
        assert again.digest() == schema.digest()


def test_a_schema_without_rules_is_what_it_was():
    plain = vt.Schema(COLUMNS)
    assert plain.rules == ()
    assert "rules" not in plain.to_json()
    assert plain == vt.Schema(COLUMNS, rules=[])
    assert plain != vt.Schema(COLUMNS, rules=RULES[2:])


def test_levels_that_are_numbers_are_read_back():
    columns = {"floor": vt.Categorical([1, 2, True + 2]), "height": vt.Numeric(0, 12)}
    schema = vt.Schema(columns, rules=[vt.Link("floor", "height", {1: 3, 2: 6, 3: 9})])
    again = vt.Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again.rules == schema.rules == (vt.Link("floor", "height", {1: 3.0, 2: 6.0, 3: 9.0}),)


def test_rules_go_with_their_columns():
    schema = vt.Schema(COLUMNS, rules=RULES)
    assert list(schema.without("kind").rules) == [RULES[0], *RULES[2:4]]
    assert list(schema.without("average", "years").rules) == [RULES[1], RULES[3]]
    assert schema.groups == {"kind": ("kind", "years")}
    assert schema.without("kind").groups == {}


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (vt.AtLeast("oldest", "average"), "give a list"),
        ([("oldest", "average")], "must be a vt.Link, vt.AtLeast, vt.Within or vt.Group"),
        ([vt.AtLeast("oldest", "averge")], "Did you mean 'average'"),
        ([vt.AtLeast("oldest", "degree")], "give two numeric columns"),
        ([vt.AtLeast("oldest", "oldest")], "give two numeric columns"),
        ([vt.Link("years", "degree", {})], "a categorical one"),
        ([vt.Link("degree", "years", {"school": 10, "college": 14})], "no value for 'doctor'; every level needs one"),
        ([vt.Link("degree", "years", YEARS | {"master": 16})], "a value for 'master'; 'degree' must be one of"),
        (
            [vt.Link("degree", "years", YEARS | {"doctor": 21})],
            "the value 21 for 'doctor'; it must be a whole number",
        ),
        ([vt.Link("degree", "years", YEARS | {"doctor": 17.5})], "it must be a whole number"),
        ([vt.Link("degree", "years", YEARS | {"doctor": "many"})], "it must be a number"),
        ([vt.Link("degree", "kind", dict.fromkeys(YEARS, "middle"))], "the value 'middle' for 'school'; it must be one of"),
        ([vt.Link("degree", "years", [10, 14, 18])], "give a dictionary of level to value"),
        ([vt.Link("dgree", "years", YEARS)], "Did you mean 'degree'"),
        ([RULES[0], vt.Link("kind", "years", {"low": 10, "high": 14})], "link each follower to one column"),
        ([RULES[1], vt.Link("kind", "years", {"low": 10, "high": 14})], "link each follower to one column"),
        ([vt.Within("oldest", 10, 200)], "the plausible range of 'oldest' is 10 to 200"),
        ([vt.Within("oldest", 20, 10)], "the plausible range of 'oldest' is 20 to 10"),
        ([vt.Within("years", 10.2, 10.8)], "it must hold a whole number"),
        ([vt.Within("degree", 10, 20)], "must be a numeric column"),
        ([vt.Group("", ["kind", "years"])], "a group is called ''"),
        ([vt.Group("who", "kind")], "the group 'who' has the columns 'kind'; give a list of at least two"),
        ([vt.Group("who", ["kind"])], "at least two"),
        ([vt.Group("who", ["kind", "yers"])], "Did you mean 'years'"),
        ([vt.Group("degree", ["kind", "years"])], "is a column outside it"),
        ([vt.Group("who", ["kind", "kind"])], "the groups name 'kind' twice; a column belongs to one group"),
        ([RULES[-1], vt.Group("who", ["degree", "years"])], "the groups name 'years' twice"),
        ([RULES[-1], vt.Group("kind", ["oldest", "average"])], "is a column outside it"),
        ([vt.Group("who", ["kind", "years"]), vt.Group("who", ["oldest", "average"])], "a name of its own"),
    ],
)
def test_bad_rules_are_refused_in_a_sentence(rules, sentence):
    with pytest.raises(SchemaError, match=sentence):
        vt.Schema(COLUMNS, rules=rules)


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ({}, "must be a list"),
        ([3], "an object with a 'rule'"),
        ([{"rule": "linked"}], "one of 'link', 'at least', 'within', 'group'"),
        ([{"rule": "group", "name": 7, "columns": ["kind", "years"]}], "a group is called 7"),
        ([{"rule": "group", "name": "who", "columns": {"kind": 1, "years": 2}}], "give a list"),
        ([{"rule": "group", "name": "who", "columns": [["kind"], "years"]}], "a rule names"),
        ([{"rule": "at least", "larger": "oldest"}], "has the fields 'rule', 'larger'; it has"),
        ([{"rule": "at least", "larger": "oldest", "smaller": ["average"]}], "a rule names"),
        ([{"rule": "within", "column": "oldest", "low": "a", "high": 3}], "must be a number"),
    ],
)
def test_bad_rules_in_a_file_are_refused_in_a_sentence(rules, sentence):
    with pytest.raises(SchemaError, match=sentence):
        vt.Schema.from_json({**vt.Schema(COLUMNS).to_json(), "rules": rules})
