"""The pure functions behind the reproduced paper on counterfactuals."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import vitrail as vt
from benchmark_scripts import script

cases = script("papers.counterfactual_cases")
adult = script("papers.counterfactual_adult")
pixels = script("papers.counterfactual_pixels")
several = script("papers.counterfactual_several")
datasets = script("bench_data")
dice = script("peers.dice")
fresh = script("papers.counterfactual_fresh")
reasons = script("reasons_counterfactual")

SCHEMA = vt.Schema({"size": vt.Numeric(0, 10, integer=True), "kind": vt.Categorical(["a", "b"])})


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    made = [pd.DataFrame({"size": rng.integers(0, 11, n), "kind": rng.choice(["a", "b"], n)}) for n in (3000, 400)]

    def probability(features):
        return (features[:, 0] > 0.55).astype(float)

    model = vt.Model(probability, range=(0, 1), name="threshold")
    return cases.Case("small", SCHEMA, made[0], probability, model, made[1], 1)


def test_only_people_who_need_an_answer_are_asked_about(case):
    people = case.people(10_000)
    assert (people["size"] <= 5).all()
    assert len(people) == (case.test["size"] <= 5).sum()
    assert case.people(20).equals(case.people(20))


def test_real_rows_are_those_of_the_wanted_class(case):
    assert len(case.real) == (case.test["size"] > 5).sum()
    assert case.real[:, 0].min() > 0.55


def test_nearest_agrees_with_a_plain_search():
    rng = np.random.default_rng(1)
    rows, real = rng.random((300, 5)), rng.random((70, 5))
    plain = np.linalg.norm(rows[:, None] - real[None], axis=2).min(axis=1)
    assert cases.nearest(rows, real, part=64) == pytest.approx(plain, abs=1e-7)


def test_answers_are_judged_by_the_model_and_missing_ones_count_against(case):
    queries = np.array([[2.0, 0.0], [3.0, 1.0], [4.0, 0.0]])
    answers = np.array([[8.0, 0.0], [4.0, 1.0], [np.nan, np.nan]])  # flipped, not flipped, not given
    found = cases.of_schema(case, queries, answers)
    assert found.flipped.tolist() == [True, False, False]
    row = found.row()
    assert row["flipping_ratio"] == pytest.approx(1 / 3)
    assert row["distance"] == pytest.approx(0.6)
    assert row["changed_columns"] == 1


def test_no_valid_answer_has_no_mean(case):
    found = cases.of_schema(case, np.array([[2.0, 0.0]]), np.array([[3.0, 0.0]]))
    assert found.row()["distance"] is None
    assert found.row()["flipping_ratio"] == 0


def test_ratios_are_over_people_whom_both_answered():
    mine, theirs = np.array([1.0, 9.0, 3.0]), np.array([2.0, 9.0, 6.0])
    assert adult.ratio(mine, theirs, np.array([True, False, True])) == pytest.approx(0.5)


@pytest.mark.usefixtures("planted_noise")
def test_ours_on_a_small_case_and_the_mean_over_fits(case):
    found = [adult.ours(case, case.people(30), 1.0, None, cases.TUNED) for _ in range(2)]
    row = adult.mean_row(found)
    assert row["fits"] == 2
    assert row["queries"] == 30
    assert row["flipping_ratio"] == 1
    assert row["distance"] >= 0.1 * (6 - case.people(30)["size"].mean()) - 1e-9  # no valid answer is nearer


def test_rules_reach_the_schema(case):
    columns = {"age": vt.Numeric(0, 9, integer=True), "sex": vt.Categorical(["f", "m"]), "job": vt.Categorical(["x", "y"])}
    plain = cases.Case("p", vt.Schema(columns), case.rows, case.probability, case.model, case.test, 1)
    ruled = adult.with_rules(plain).schema
    assert [ruled[name].change for name in ("age", "sex", "job")] == ["up", "never", "any"]


def test_an_outlier_has_a_larger_factor():
    rng = np.random.default_rng(2)
    lof = cases.outlier_factor(rng.normal(size=(500, 2)))
    inside, outside = lof(np.array([[0.0, 0.0], [9.0, 9.0]]))
    assert inside < 1.5 < outside


def test_diagnoses_are_grouped_as_by_strack():
    codes = ("428", "250.83", "V45", "?", "786", "535", "820", "715", "600", "153", "E849")
    names = "circulatory diabetes other other respiratory digestive injury musculoskeletal genitourinary neoplasms other"
    assert [datasets.diagnosis_group(code) for code in codes] == names.split()


def test_pixels_survive_being_written_as_text():
    row = np.random.default_rng(3).integers(0, 256, 784)
    assert (pixels.text_pixels(pixels.pixels_text(row)) == row).all()


def test_the_torch_copy_says_what_the_network_says():
    pytest.importorskip("torch")
    import torch
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(4)
    rows, labels = rng.random((90, 6)), np.arange(90) % 3
    network = MLPClassifier((5,), max_iter=15, random_state=0)
    with pytest.warns(UserWarning, match="Maximum iterations|converged"):
        network.fit(rows, labels)
    with torch.no_grad():
        said = pixels.torch_copy(network)(torch.as_tensor(rows, dtype=torch.float32)).numpy()
    assert said == pytest.approx(network.predict_proba(rows), abs=1e-5)


def test_rows_of_dice_are_read_onto_the_schema():
    frame = pd.DataFrame({"size": ["3", "99"], "kind": ["b", "a"]}, dtype=object)
    assert dice.read(SCHEMA, frame).tolist() == [[3.0, 1.0], [10.0, 0.0]]
    predictor = dice.Predictor(SCHEMA, lambda features: features[:, 0])
    assert predictor.predict_proba(frame).tolist() == pytest.approx(np.array([[0.7, 0.3], [0.0, 1.0]]))
    assert predictor.predict(frame).tolist() == [0, 1]


def test_several_classes_are_asked_one_by_one():
    class Largest:
        """The class is the largest of three features."""

        classes_ = np.arange(3)

        def predict(self, rows):
            return rows.argmax(axis=1)

    schema = vt.Schema({f"pixel {n}": vt.Numeric(0, 255, integer=True) for n in range(3)})
    case = several.Several("bits", schema, Largest(), 3, 255)
    assert case.classes(np.array([[0, 255, 3], [9, 0, 0]])).tolist() == [1, 0]
    asked = several.Asked(
        np.zeros((2, 3)), np.array([1, 2]), np.array([True, False]), np.array([0.5, 7.0]), np.array([0.1, 7.0]), 4.0
    )
    row = asked.row()
    assert row["flipping_ratio"] == 0.5
    assert row["distance"] == 0.5
    assert row["seconds_each"] == 2.0


def test_fresh_people_were_nobodys_query_and_groups_share_nobody(case):
    other = cases.Case("other", SCHEMA, case.rows, lambda f: f[:, 1], case.model, case.test, 1)
    fresh_before = fresh.LOOKED_AT
    try:
        fresh.LOOKED_AT = 40
        groups = fresh.fresh_rows([case, other])
    finally:
        fresh.LOOKED_AT = fresh_before
    seen = set(case.places(40)) | set(other.places(40))
    drawn = np.concatenate(list(groups.values()))
    assert len(drawn) == len(set(drawn)) == len(case.test) - len(seen)
    assert not seen & set(drawn)
    assert list(groups) == ["gradient", "tuning", "last"]


def test_the_rule_takes_the_smallest_weight_that_passes_both():
    found = {w: {"plausibility": p, "distance": d} for w, p, d in ((1.3, 0.9, 0.5), (1.4, 0.8, 0.9), (1.5, 0.7, 1.1))}
    assert fresh.chosen_of(found) == 1.4
    found[1.4]["distance"] = 1.0
    assert fresh.chosen_of(found) == 1.4  # plausibility first
    assert fresh.chosen_of({1.3: {"plausibility": 1.2, "distance": 0.5}, 1.6: {"plausibility": 1.1, "distance": 2.0}}) == 1.6


def test_ratios_of_fits_and_their_interval():
    def measured(distance):
        flipped = np.ones(len(distance), dtype=bool)
        return adult.Measured(cases.Verdict(flipped, distance, distance, distance, distance), 1.0)

    rng = np.random.default_rng(5)
    theirs = rng.uniform(1, 2, 60)
    told = fresh.against([measured(theirs / 2), measured(theirs / 4)], [measured(theirs)], "distance")
    assert told["ratios"] == pytest.approx([0.5, 0.25])
    assert told["ratio"] == pytest.approx(0.375)
    assert told["interval"] == pytest.approx([0.375, 0.375])
    mixed = fresh.against([measured(rng.uniform(1, 2, 60))], [measured(theirs)], "distance")
    assert mixed["interval"][0] < mixed["ratio"] < mixed["interval"][1]


def test_features_of_dice_are_brought_to_the_schemas():
    rows = pd.DataFrame({"size": [2, 6], "kind": ["b", "b"]})
    factors, offset = dice.encoding(SCHEMA, rows, ["size", "kind_b"])  # no row has level a
    assert (np.array([0.5, 1.0]) @ factors + offset).tolist() == pytest.approx([0.4, 0.0, 1.0])


# --- answers that a person can use ---------------------------------------------------------------------------------------


@pytest.fixture
def ruled():
    columns = {
        "degree": vt.Categorical(["low", "high"]),
        "years": vt.Numeric(0, 20, integer=True),
        "oldest": vt.Numeric(0, 10, integer=True, change="up"),
        "average": vt.Numeric(0, 10, integer=True),
    }
    rules = [vt.Link("degree", "years", {"low": 5, "high": 15}), vt.AtLeast("oldest", "average")]
    schema = vt.Schema(columns, rules)
    frame = pd.DataFrame({"degree": ["low", "high"], "years": [5, 15], "oldest": [5, 6], "average": [2, 3]})

    def probability(features):  # two of three: a high degree, much of oldest, much of average
        return (((features[:, 1] > 0) * 1 + (features[:, 3] > 0.75) + (features[:, 4] > 0.75)) >= 2).astype(float)

    model = vt.Model(probability, range=(0, 1), name="two of three")
    return cases.Case("ruled", schema, frame, probability, model, frame, 1)


def test_redundant_changes_are_found_alone_and_in_pairs(ruled):
    person = np.array([[0.0, 5, 5, 2]])
    needed, one_too_many = np.array([[1.0, 15, 8, 2]]), np.array([[1.0, 15, 8, 8]])
    assert not reasons.redundant(ruled, person, needed).any()
    assert reasons.redundant(ruled, person, one_too_many).all()
    assert len(list(reasons.undone(ruled.schema, person[0], needed[0]))) == 2  # linked columns are one change
    assert len(list(reasons.undone(ruled.schema, person[0], one_too_many[0]))) == 4  # two of six would break the order


def test_broken_rules_are_found_where_columns_changed(ruled):
    person = np.array([0.0, 5, 5, 2])
    broken = partial(reasons.breaks_rules, ruled.schema)
    assert broken(person, np.array([1.0, 5, 5, 2]))
    assert broken(person, np.array([0.0, 5, 5, 6]))
    assert broken(person, np.array([0.0, 5, 4, 2]))
    assert not broken(person, np.array([1.0, 15, 6, 6]))
    odd = np.array([1.0, 5, 1, 2])
    assert not broken(odd, odd)


def test_the_baseline_undoes_the_largest_changes_that_it_can(ruled):
    person = np.array([0.0, 5, 5, 2])
    assert reasons.greedy(ruled, person, np.array([1.0, 15, 8, 8])).tolist() == [0, 5, 8, 8]
    assert np.isnan(reasons.nearest_rows(ruled, person[None], np.array([[0.0, 5, 6, 3]]))).all()
