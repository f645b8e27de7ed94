"""Privacy labels: numbers from what was released, sentences from the page of guarantees, the shapes that others read."""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import Basis, Cost
from vitrail.errors import InvalidInput
from vitrail.show.croissant import CONTEXT
from vitrail.show.label import PrivacyLabel
from vitrail.show.label_words import FOR_THE_OWNER, NEIGHBOURS, QUESTIONS

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 100, integer=True, codes=(-9,)),
        "pay": vt.Numeric(0, 1),
        "sex": vt.Categorical(["f", "m"]),
        "mixed": vt.Categorical(["a", 1]),
        "smoker": vt.Categorical([False, True]),
    }
)


def plain(text):
    """Without marks, links and line breaks."""
    text = re.sub(r"<!--.*?-->|\*\*|`", "", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", text)


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(0)
    rows = {
        "age": draw.integers(0, 101, 900),
        "pay": draw.random(900),
        "sex": draw.choice(["f", "m"], 900),
        "mixed": np.array(["a", 1] * 450, dtype=object),
        "smoker": draw.choice([False, True], 900),
    }
    return vt.PrivateData(rows, SCHEMA, name="people", n_rows_public=900, budget=vt.Budget(4, 1e-6), ledger="memory")


@pytest.fixture(scope="module")
def rows(data):
    return vt.private_rows(data, epsilon=1.0)


def answers(label, name):
    return next(question for question in label.to_nist()["questions"] if question["name"] == name)["answers"]


def test_sentences_about_the_library_stand_in_the_page_of_guarantees():
    page = plain((ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8"))
    fixed = [sentence for question in QUESTIONS for sentence in question.library]
    assert len(fixed) > 15
    assert [sentence for sentence in (*fixed, *NEIGHBOURS.values()) if sentence not in page] == []


def test_a_label_says_what_the_result_says(rows):
    label = vt.privacy_label(rows)
    terms = label.to_json_ld()["dp:label"]
    assert (terms["dp:epsilon"], terms["dp:delta"], terms["dp:mu"]) == (
        rows.guarantee.epsilon,
        rows.guarantee.delta,
        rows.guarantee.mu,
    )
    assert terms["dp:declaredRowCount"] == 900
    assert terms["dp:rowsCounted"] == rows.rows_counted.sentence
    assert "dp:budget" not in terms
    assert answers(label, "privacy-parameters") == [rows.guarantee.sentence]
    assert "is not told here" in answers(label, "composition")[0]
    assert "Declared: 900 rows." in answers(label, "public")
    assert all(name in answers(label, "public")[1] for name in SCHEMA)


def test_a_bill_widens_the_promise_to_all_that_was_released(data, rows):
    vt.marginals(data, epsilon=0.7)
    label, alone = vt.privacy_label(rows, bill=data.budget.bill()), vt.privacy_label(rows)
    assert label.guarantee.epsilon > alone.guarantee.epsilon
    budget = label.to_json_ld()["dp:label"]["dp:budget"]
    assert (budget["dp:budgetEpsilon"], budget["dp:ledgerHead"]) == (4.0, data.budget.head)
    assert answers(label, "composition")[0] == data.budget.bill().sentence
    other = vt.PrivateData(
        {name: [] for name in SCHEMA},
        SCHEMA,
        name="x",
        n_rows_public=9,
        budget=vt.Budget(1, 1e-6),
        neighbours="replace-one",
        ledger="memory",
    )
    with pytest.raises(InvalidInput, match="neighbours 'replace-one', and the release of one with 'add-remove'"):
        vt.privacy_label(rows, bill=other.budget.bill())


def test_the_label_of_an_account_names_the_mechanisms_that_were_run(data):
    label = vt.privacy_label(data.budget)
    assert label.guarantee == data.budget.bill().guarantee
    assert label.dataset == "people"
    n_sums = len([one for one in data.budget.to_dp_events().charges if one.mechanism == "gaussian-sum"])
    assert f"sum of clipped vectors with Gaussian noise, {n_sums} times" in label.mechanisms
    assert vt.privacy_label(data.budget.bill()).guarantee == label.guarantee


@pytest.mark.parametrize(
    ("cost", "mechanisms"),
    [(Cost.of_mu(0.2), ["questions"]), (Cost.of_block(0.5, 1e-7), ["run"]), (None, ["questions", "run"])],
)
def test_a_promise_tells_which_purse_paid(cost, mechanisms):
    cost = Cost.of_mu(0.2) + Cost.of_block(0.5, 1e-7) if cost is None else cost
    promise = vt.Guarantee.of(Basis.of("a", cost), 1e-6, "replace-one")
    label = vt.privacy_label(vt.Ranking(("a", "b"), np.zeros(2), promise, cost))
    assert [mechanism.split()[0] for mechanism in label.mechanisms] == mechanisms
    assert answers(label, "neighbours")[0].startswith("replace-one: the dataset with the row against")


def test_laplace_noise_is_named_where_it_paid():
    budget = vt.Budget(3, 1e-6, training=(1.0, 1e-9))
    rows = {"sex": ["f", "m"] * 50}
    schema = vt.Schema({"sex": SCHEMA["sex"]})
    data = vt.PrivateData(rows, schema, name="few", n_rows_public=100, budget=budget, ledger="memory")
    model = vt.Model(lambda x: x[:, 0], range=(0, 1), inputs="features")
    curves = vt.PartialDependence(data, model, columns=["sex"], noise="laplace")(epsilon=1.0)
    assert vt.privacy_label(curves).mechanisms == ("sum of clipped vectors with discrete Laplace noise",)
    assert "discrete Laplace noise, " in vt.privacy_label(data.budget).mechanisms[0]


def test_what_no_program_knows_is_left_to_the_owner(rows):
    assert answers(vt.privacy_label(rows), "data-collection") == [FOR_THE_OWNER]
    label = vt.privacy_label(rows, answers={"data-collection": "By consent, <b>on paper</b>."})
    assert answers(label, "data-collection") == ["The owner says: By consent, <b>on paper</b>."]
    assert "&lt;b&gt;on paper" in label.to_html()
    with pytest.raises(InvalidInput, match="a name in answers is 'collection'"):
        vt.privacy_label(rows, answers={"collection": "x"})


def test_croissant_knows_every_term_and_describes_the_file(rows, tmp_path):
    path = rows.write(tmp_path / "rows.csv", 30)
    made = vt.privacy_label(rows).to_json_ld(path)
    assert made["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert made["@type"] == "sc:Dataset"
    (file,), (records,) = made["distribution"], made["recordSet"]
    assert file["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    types = {one["name"]: one["dataType"] for one in records["field"]}
    assert types == {
        "age": "sc:Integer",
        "pay": "sc:Float",
        "sex": "sc:Text",
        "mixed": "sc:Text",
        "smoker": "sc:Boolean",
    }
    header = path.read_text().splitlines()[0].replace('"', "").split(",")
    assert [one["source"]["extract"]["column"] for one in records["field"]] == header
    assert {one["source"]["fileObject"]["@id"] for one in records["field"]} == {file["@id"]}
    assert prefixes(made) <= CONTEXT.keys()
    assert undefined(made) == set()
    assert json.loads(json.dumps(made, allow_nan=False)) == made


ODD_NAMES = ("net pay", "net_pay", "a/b", "a:b", "..", "été")
OWNER = {
    "license": "https://spdx.org/licenses/CC-BY-4.0",
    "url": "https://example.org/people",
    "creator": "The Office",
    "date-published": "2026-01-31",
    "version": "1.0.0",
    "citation": "The Office: People.",
}


@pytest.fixture(scope="module")
def odd_rows():
    """Rows whose columns have names that are no identifiers."""
    schema = vt.Schema({name: vt.Categorical(["01", "NA"]) for name in ODD_NAMES})
    taken = {name: np.array(["01", "NA"] * 100) for name in ODD_NAMES}
    data = vt.PrivateData(taken, schema, name="odd", n_rows_public=200, budget=vt.Budget(9, 1e-6), ledger="memory")
    return vt.private_rows(data, epsilon=4.0)


def test_identifiers_of_croissant_have_no_blanks_and_no_twins(odd_rows, tmp_path):
    """Croissant's loader refuses both, and reads dots and slashes as steps from one address to another."""
    made = vt.privacy_label(odd_rows).to_json_ld(odd_rows.write(tmp_path / "my rows.csv", 5))
    (file,), (records,) = made["distribution"], made["recordSet"]
    assert (file["@id"], file["name"], file["contentUrl"]) == ("my_rows.csv", "my rows.csv", "my rows.csv")
    ids = [one["@id"].removeprefix("rows/") for one in records["field"]]
    assert ids == ["net_pay", "net_pay_2", "a_b", "a_b_2", "_", "été"]
    assert tuple(one["name"] for one in records["field"]) == ODD_NAMES
    assert {one["source"]["fileObject"]["@id"] for one in records["field"]} == {file["@id"]}


def test_the_context_is_croissants_own():
    """Its loader warns where a key of its context is missing."""
    assert {"equivalentProperty", "samplingRate", "citeAs", "dataType", "recordSet", "rai"} <= CONTEXT.keys()


def test_what_croissant_asks_of_the_owner_is_answered_by_the_owner(data, rows):
    made = vt.privacy_label(rows, answers=OWNER).to_json_ld()
    terms = ("license", "url", "creator", "datePublished", "version", "citeAs")
    words = [made[term] for term in terms]
    assert words == [
        OWNER["license"],
        OWNER["url"],
        {"@type": "sc:Organization", "name": "The Office"},
        *[*OWNER.values()][3:],
    ]
    assert undefined(made) == set()
    alone = vt.privacy_label(rows).to_json_ld()
    assert not alone.keys() & set(terms)
    assert vt.privacy_label(data.budget).to_json_ld()["datePublished"] == data.budget.entries[-1].time_utc[:10]
    assert "datePublished" in vt.privacy_label(rows, bill=data.budget.bill()).to_json_ld()


def test_columns_are_told_in_the_words_of_their_declaration():
    schema = vt.Schema(
        {
            "pay": vt.Numeric(0, 9, label="Net pay", unit="EUR", description="after tax"),
            "since": vt.Numeric("2000-01-01", "2000-01-31", date=True),
        }
    )
    promise = vt.Guarantee.of_mu(0.2, 1e-6)
    pay, since = PrivacyLabel("Rows", promise, schema=schema).to_json_ld()["variableMeasured"]
    told = {"alternateName": "Net pay", "unitText": "EUR", "description": "after tax: a number between 0.0 and 9.0"}
    assert pay == pay | told
    assert since == since | {"unitText": "days since 1970-01-01", "minValue": 10957}
    assert "alternateName" not in since


@pytest.mark.parametrize(
    ("relation", "unit"),
    [
        ("replace-one", {"dp:unitOfPrivacy": "row", "dp:mostRowsPerUnit": 1}),
        ("add-remove, up to 3 rows per person", {"dp:unitOfPrivacy": "person", "dp:mostRowsPerUnit": 3}),
        ("add-remove, all rows of a person", {"dp:unitOfPrivacy": "person"}),
    ],
)
def test_the_unit_of_a_label_is_that_of_the_promise(relation, unit):
    label = PrivacyLabel("Rows", replace(vt.Guarantee.of_mu(0.2, 1e-6), neighbours=relation), n_rows_public=900)
    terms = label.to_json_ld()["dp:label"]
    assert {name: terms[name] for name in terms if "Unit" in name or "unit" in name} == unit
    assert ("rows of a person" in answers(label, "neighbours")[0]) == (unit["dp:unitOfPrivacy"] == "person")
    assert answers(label, "public")[0] == f"Declared: 900 {'rows' if 'dp:mostRowsPerUnit' in unit else 'people'}."


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_croissants_own_loader_reads_the_label_and_the_rows(data, rows, odd_rows, ending, tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant")

    def loaded(content):
        (tmp_path / "label.jsonld").write_text(json.dumps(content))
        return mlcroissant.Dataset(jsonld=tmp_path / "label.jsonld")

    for number, made in enumerate((rows, odd_rows)):
        path = made.write(tmp_path / f"rows {number}.{ending}", 30)
        described = loaded(vt.privacy_label(made, answers=OWNER).to_json_ld(path))
        assert described.metadata.ctx.issues.warnings == set()
        records, fields = list(described.records("rows")), described.metadata.record_sets[0].fields
        drawn = made.to_arrow(30).to_pylist()
        for field in fields:
            read, there = [one[field.id] for one in records], [line[field.name] for line in drawn]
            if made is rows or ending == "parquet":  # pandas makes 1 of "01" and nothing of "NA" in a CSV file
                assert read == [value.encode() if isinstance(value, str) else value for value in there]
    warnings = loaded(vt.privacy_label(data.budget).to_json_ld()).metadata.ctx.issues.warnings
    assert {re.search(r"(citeAs|license|version)", warning)[0] for warning in warnings} == {"citeAs", "license", "version"}


SCHEMA_ORG = {
    *("name", "description", "datePublished", "variableMeasured", "distribution", "minValue", "maxValue"),
    *("contentUrl", "contentSize", "encodingFormat", "sha256", "alternateName", "unitText"),
    *("license", "url", "creator", "version"),
}
"""Terms of schema.org that are used; ``@vocab`` stands for it."""


def keys_of(value):
    if isinstance(value, dict):
        for key, one in value.items():
            if key != "@context":
                yield key
                yield from keys_of(one)
    elif isinstance(value, list):
        for one in value:
            yield from keys_of(one)


def prefixes(made):
    return {key.partition(":")[0] for key in keys_of(made) if ":" in key}


def undefined(made):
    bare = {key for key in keys_of(made) if ":" not in key and not key.startswith("@")}
    return bare - CONTEXT.keys() - SCHEMA_ORG


def test_every_term_of_ours_is_documented(data, rows, tmp_path):
    page = (ROOT / "docs" / "exports.md").read_text(encoding="utf-8")
    labels = [vt.privacy_label(rows, bill=data.budget.bill()), vt.privacy_label(data.budget)]
    used = {key for label in labels for key in keys_of(label.to_json_ld()) if key.startswith("dp:")}
    assert len(used) > 15
    assert {term for term in used if f"`{term}`" not in page} == set()


def test_files_by_their_endings(rows, tmp_path):
    label = vt.privacy_label(rows)
    assert json.loads(label.write(tmp_path / "l.json").read_text()) == label.to_nist()
    assert json.loads(label.write(tmp_path / "l.jsonld").read_text()) == label.to_json_ld()
    table = label.write(tmp_path / "l.md").read_text().splitlines()
    assert len(table) == len(QUESTIONS) + 2
    assert {line.replace("\\|", "").count("|") for line in table} == {3}
    page = label.write(tmp_path / "l.html").read_text(encoding="utf-8")
    assert "Privacy label" in page
    assert "NIST SP 800-226" in page
    assert "<script" not in page
    with pytest.raises(InvalidInput, match=r"must end in .html, .md, .json or .jsonld"):
        label.write(tmp_path / "l.txt")


def test_what_has_no_label_or_no_columns_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no privacy label of a dict"):
        vt.privacy_label({})
    ranking = vt.Ranking(("a", "b"), np.zeros(2), vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2))
    with pytest.raises(InvalidInput, match="this label knows no columns"):
        vt.privacy_label(ranking).to_json_ld(tmp_path / "rows.csv")
