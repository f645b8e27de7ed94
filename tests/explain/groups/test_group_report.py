"""What GroupReport says: right without noise, honest with it, and errors of ours before anything is charged."""

from __future__ import annotations

import itertools
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import Cost
from vitrail.errors import InvalidInput
from vitrail.vault import PublicRows

N_ROWS = 4000
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(18, 90, integer=True, missing=-1, codes=(-1,)),
        "race": vt.Categorical(["a", "b", "c", "?"], missing="?"),
        "sex": vt.Categorical(["f", "m"]),
        "pay": vt.Numeric(0, 1),
        "kids": vt.Numeric(0, 3, integer=True),
        "rich": vt.Categorical(["no", "yes"]),
    }
)


def rows(n: int = N_ROWS, seed: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    pay = draw.random(n)
    return {
        "age": draw.integers(18, 91, n),
        "race": draw.choice(["a", "b", "c"], n, p=[0.7, 0.295, 0.005]),
        "sex": draw.choice(["f", "m"], n),
        "pay": pay,
        "kids": draw.integers(0, 4, n),
        "rich": np.where(draw.random(n) < pay, "yes", "no"),
    }


def score(raw: np.ndarray) -> np.ndarray:
    return np.clip(0.9 * raw[:, 3] + 0.1 * (raw[:, 2] == 1), 0, 1)


MODEL = vt.Model(score, range=(0, 1), inputs="values", name="score")


def private(held: dict[str, Any] | None = None, schema: vt.Schema = SCHEMA, **options: Any) -> vt.PrivateData:
    given = {"name": "staff", "n_rows_public": N_ROWS, "target": "rich", "budget": vt.Budget(50, 1e-6), "ledger": "memory"}
    return vt.PrivateData(rows() if held is None else held, schema, **given | options)  # type: ignore[arg-type]


def without_noise(report: vt.GroupReport, held: dict[str, Any], target: str | None = "rich") -> vt.GroupTable:
    """The same recipe on public rows, at a price at which noise is nothing."""
    found, _ = report.conversation().on(PublicRows(held, report.data.schema, N_ROWS, target, block_rows=512), mu=1e5)
    return found


def counted(held: dict[str, Any], group: np.ndarray) -> dict[str, float]:
    """Every measure of one group, by numpy."""
    raw = np.column_stack([np.zeros(N_ROWS), np.zeros(N_ROWS), held["sex"] == "m", held["pay"]])
    output = score(raw.astype(np.float64))[group]
    selected, rich = output >= 0.5, held["rich"][group] == "yes"
    return {
        "selection_rate": selected.mean(),
        "mean_output": output.mean(),
        "base_rate": rich.mean(),
        "true_positive_rate": selected[rich].mean(),
        "false_positive_rate": selected[~rich].mean(),
        "precision": rich[selected].mean(),
        "accuracy": (selected == rich).mean(),
        "calibration_gap": output.mean() - rich.mean(),
    }


def test_without_noise_every_number_is_the_plain_one() -> None:
    held = rows()
    found = without_noise(vt.GroupReport(private({n: [] for n in SCHEMA}), MODEL, by=["sex", "kids"]), held)
    assert found.groups == tuple(f"{sex}, {kids}" for sex in "fm" for kids in range(4))
    for number, (sex, kids) in enumerate((sex, kids) for sex in "fm" for kids in range(4)):
        group = (held["sex"] == sex) & (held["kids"] == kids)
        assert found.rows.value[number] == pytest.approx(group.sum(), abs=0.01)
        truth = counted(held, group)
        assert set(truth) == set(found.measures)
        for measure, value in truth.items():
            assert found[measure].value[number] == pytest.approx(value, abs=1e-4)
    rates = found["selection_rate"].value
    assert float(found.between["demographic_parity_difference"].value) == pytest.approx(np.ptp(rates))
    assert float(found.between["demographic_parity_ratio"].value) == pytest.approx(rates.min() / rates.max())


def test_calibration_within_bins_is_the_plain_one() -> None:
    held = rows()
    found = without_noise(vt.GroupReport(private({n: [] for n in SCHEMA}), MODEL, by="sex", threshold=0.3, bins=5), held)
    raw = np.column_stack([np.zeros(N_ROWS), np.zeros(N_ROWS), held["sex"] == "m", held["pay"]]).astype(np.float64)
    outputs, edges = score(raw), found.layout.edges
    assert found.threshold == 0.3
    assert 0.3 in edges
    assert len(edges) == 6
    for place, (low, high) in enumerate(itertools.pairwise(edges)):
        for number, sex in enumerate("fm"):
            there = (held["sex"] == sex) & (outputs >= low) & ((outputs < high) | (high == 1))
            means = outputs[there].mean(), (held["rich"][there] == "yes").mean()
            for name, mean in zip(("mean_output", "mean_outcome"), means, strict=True):
                assert found.calibration[name][place].value[number] == pytest.approx(mean, abs=1e-3)


def test_a_number_as_target_has_errors_and_one_that_is_cut_has_rates() -> None:
    held = rows()
    empty = {n: [] for n in SCHEMA}
    schema = SCHEMA.without("rich")
    report = vt.GroupReport(private(empty, schema, target="kids"), MODEL_OF_FOUR, by="sex")
    found = without_noise(report, held, "kids")
    assert found.measures == ("selection_rate", "mean_output", "mean_outcome", "mean_error", "mean_absolute_error")
    for number, sex in enumerate("fm"):
        kids = held["kids"][held["sex"] == sex]
        output = 3 * held["pay"][held["sex"] == sex]
        assert found["mean_outcome"].value[number] == pytest.approx(kids.mean(), abs=1e-3)
        assert found["mean_error"].value[number] == pytest.approx((output - kids).mean(), abs=1e-3)
        assert found["mean_absolute_error"].value[number] == pytest.approx(np.abs(output - kids).mean(), abs=1e-3)
    assert found.threshold == 1.5  # the middle of the model's range
    report = vt.GroupReport(private(empty, schema, target="kids"), MODEL_OF_FOUR, by="sex", outcome_threshold=2)
    found = without_noise(report, held, "kids")
    assert "calibration_gap" not in found  # outputs up to 3 are no probabilities
    assert found["base_rate"].value[0] == pytest.approx((held["kids"][held["sex"] == "f"] >= 2).mean(), abs=1e-3)


MODEL_OF_FOUR = vt.Model(lambda raw: 3 * raw[:, 3], range=(0, 3), inputs="values", name="number")


def test_without_a_target_there_are_counts_selection_rates_and_mean_outputs() -> None:
    found = vt.GroupReport(private(target=None, schema=SCHEMA.without("rich")), MODEL, by="sex")(epsilon=1.0)
    assert found.measures == ("selection_rate", "mean_output")
    assert set(found.between) == {"demographic_parity_difference", "demographic_parity_ratio"}
    assert set(found.calibration) == {"mean_output"}
    assert "Calibration" not in found.to_html()


def test_numbers_are_cut_at_their_edges_and_missing_values_follow_the_schema() -> None:
    held = rows()
    held["age"] = held["age"].astype(np.float64)
    held["age"][:400] = np.nan
    held["race"] = held["race"].astype(object)
    held["race"][:100] = None
    empty = {n: [] for n in SCHEMA}
    found = without_noise(vt.GroupReport(private(empty), MODEL, by="age", edges={"age": [30, 64.5]}), held)
    assert found.groups == ("18 to 29", "30 to 64", "65 to 90", "-1")
    ages = held["age"][400:]
    counts = [(ages < 30).sum(), ((ages >= 30) & (ages < 65)).sum(), (ages >= 65).sum(), 400]
    np.testing.assert_allclose(found.rows.value, counts, atol=0.01)
    by_race = without_noise(vt.GroupReport(private(empty), MODEL, by="race"), held)
    assert by_race.rows.value[3] == pytest.approx(100, abs=0.01)
    held["sex"] = held["sex"].astype(object)
    held["sex"][:1000] = None  # no stand-in was declared: these rows do not count
    by_sex = without_noise(vt.GroupReport(private(empty), MODEL, by="sex"), held)
    assert by_sex.rows_counted.counted == pytest.approx(3000, abs=0.1)
    assert by_sex.rows_counted.contradicts


@pytest.mark.usefixtures("planted_noise")
def test_small_groups_are_said_and_not_shown() -> None:
    found = vt.GroupReport(private(), MODEL, by="race")(epsilon=0.5)
    assert found.hidden == ("c", "?")  # 20 rows and none, where the count has noise of 20
    note = next(note for note in found.notes if note.startswith("Too few rows"))
    assert "c, ?" in note
    frame = found.frame()
    numbers = np.stack([frame[name] for name in ("value", "lower", "upper")])
    hidden = np.isin(frame["group"], found.hidden)
    assert np.isnan(numbers[:, hidden]).all()
    assert not np.isnan(numbers[:, (frame["group"] == "a") & (frame["part"] == "group")]).any()
    assert "too few rows" in found.to_html().lower()
    assert not found.against("selection_rate").shown[2:].any()


@pytest.mark.usefixtures("planted_noise")
def test_bands_stay_where_numbers_can_lie() -> None:
    found = vt.GroupReport(private(), MODEL, by=["race", "sex"])(epsilon=0.3)
    for measure in found.measures:
        low = -1.0 if measure == "calibration_gap" else 0.0
        bands = found[measure]
        assert (bands.lower >= low).all()
        assert (bands.upper <= 1.0).all()
        assert (bands.lower <= bands.value).all()
        assert (bands.value <= bands.upper).all()
    for bands in found.between.values():
        assert 0 <= bands.lower <= bands.value <= bands.upper <= 1
    apart = found.against("selection_rate", reference="a, f")
    assert apart.value[found.groups.index("a, f")] == 0
    assert (np.abs([apart.lower, apart.upper]) <= 1).all()


def held_by_all_pairs(found: vt.GroupTable, measure: str, n_measures: int) -> float:
    """The lower end of the largest difference, each pair's band at the level of all of them together."""
    shown = found[measure].shown
    n = int(shown.sum())
    z = NormalDist().inv_cdf(1 - 0.025 / (n * (n - 1) / 2) / n_measures)
    bands = found._estimates.bands(found.layout.measures[measure], z, cut=False)
    value, lower, upper = (numbers[shown] for numbers in bands)
    down = np.hypot((value - lower)[:, None], (upper - value)[None, :])
    return max(0.0, float((value[:, None] - value[None, :] - down).max()))


def test_the_most_different_pair_is_held_to_all_pairs() -> None:
    found = vt.GroupReport(private(), MODEL, by=["sex", "kids"])(epsilon=1.0)
    for name, measures in (
        ("demographic_parity_difference", ["selection_rate"]),
        ("equal_opportunity_difference", ["true_positive_rate"]),
        ("equalized_odds_difference", ["true_positive_rate", "false_positive_rate"]),
    ):
        wanted = max(held_by_all_pairs(found, measure, len(measures)) for measure in measures)
        assert float(found.between[name].lower) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.usefixtures("planted_noise")
def test_nothing_is_compared_with_itself_or_with_a_group_that_is_not_shown() -> None:
    found = vt.GroupReport(private(), MODEL, by="race")(epsilon=0.5)
    assert found.against("accuracy", "a").shown.tolist() == [False, True, False, False]
    assert found.against("accuracy", "a").value[0] == 0
    assert not found.against("accuracy", "c").shown.any()
    wide, narrow = (found.against("accuracy", "a"), found["accuracy"])
    assert wide.upper[1] - wide.lower[1] > narrow.upper[1] - narrow.lower[1]


def test_replacing_a_row_has_its_own_noise() -> None:
    removed, replaced = (
        vt.GroupReport(private(neighbours=relation), MODEL, by="sex")(mu=0.5) for relation in ("add-remove", "replace-one")
    )
    assert replaced.sigma / removed.sigma == pytest.approx(removed.layout.replace_bound, rel=1e-3)
    assert removed.layout.replace_bound < 1.5


def test_a_release_is_read_the_same_way_again() -> None:
    found = vt.GroupReport(private(), MODEL, by="sex")(epsilon=0.3)
    again = vt.GroupTable.from_bytes(found.to_bytes())
    assert again == found
    assert float(again.between["equalized_odds_difference"].upper) == float(found.between["equalized_odds_difference"].upper)


MANY = vt.Schema({**SCHEMA, "country": vt.Categorical([f"c{number}" for number in range(40)])})
LEVELS = vt.Schema({**SCHEMA.without("rich"), "rich": vt.Categorical(["no", "some", "yes"])})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "gender"}, "by names 'gender', which is none of"),
        ({"by": "rich"}, "the target"),
        ({"by": ["sex", "rich"]}, "the target"),
        ({"by": []}, "by is empty"),
        ({"by": None}, "name one column, or two"),
        ({"by": ["sex", "sex"]}, "twice"),
        ({"by": ["sex", "race", "kids"]}, "name one column, or two"),
        ({"by": "age"}, r"edges=\{'age': \[54\]\}"),
        ({"by": "age", "edges": [30]}, "edges is"),
        ({"by": "age", "edges": {"age": []}}, "edges of 'age' are"),
        ({"by": "age", "edges": {"age": [60, 30]}}, "that increase"),
        ({"by": "age", "edges": {"age": [10]}}, "between 18 and 90"),
        ({"by": "age", "edges": {"age": ["30"]}}, "edges of 'age' are"),
        ({"by": "age", "edges": {"age": [30.2, 30.4]}}, "no whole number"),
        ({"by": "sex", "edges": {"age": [30]}}, "no numeric column of by"),
        ({"by": "sex", "edges": {"sex": [30]}}, "no numeric column of by"),
        ({"by": "sex", "threshold": 1.5}, "threshold is 1.5"),
        ({"by": "sex", "threshold": 0}, "without its ends"),
        ({"by": "sex", "threshold": "half"}, "threshold is 'half'"),
        ({"by": "sex", "bins": 1}, "bins is 1"),
        ({"by": "sex", "positive": "maybe"}, "positive is 'maybe'"),
        ({"by": "sex", "outcome_threshold": 0.5}, "has levels"),
    ],
)
def test_wrong_inputs_are_errors_of_ours(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        vt.GroupReport(private(), MODEL, **options)


def test_options_of_a_target_without_one_are_errors() -> None:
    data = private(target=None, schema=SCHEMA.without("rich"))
    for options in ({"positive": "yes"}, {"outcome_threshold": 1}):
        with pytest.raises(InvalidInput, match="declares no target"):
            vt.GroupReport(data, MODEL, by="sex", **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="say with positive="):
        vt.GroupReport(private({n: [] for n in LEVELS}, LEVELS), MODEL, by="sex")
    assert vt.GroupReport(private({n: [] for n in LEVELS}, LEVELS), MODEL, by="sex", positive="some")
    number = private(target="kids", schema=SCHEMA.without("rich"))
    with pytest.raises(InvalidInput, match="outcome_threshold is 7"):
        vt.GroupReport(number, MODEL, by="sex", outcome_threshold=7)
    with pytest.raises(InvalidInput, match="is a number"):
        vt.GroupReport(number, MODEL, by="sex", positive=1)


def test_forty_groups_at_a_tiny_price_are_refused_before_any_charge() -> None:
    held = {**rows(), "country": np.array([f"c{number % 40}" for number in range(N_ROWS)])}
    data = private(held, MANY)
    report = vt.GroupReport(data, MODEL, by="country")
    with pytest.raises(InvalidInput, match=r"in 40 groups are 100.0 on average, .* ask for epsilon") as refused:
        report(epsilon=0.01)
    assert data.budget.spent == Cost()
    assert len(data.budget.entries) == 1  # the account was opened, and that is all
    enough = float(str(refused.value).split("ask for epsilon ")[1].split(" or")[0])
    assert report(epsilon=enough).groups[0] == "c0"


def test_too_many_groups_are_refused() -> None:
    wide = vt.Schema({**MANY, "town": vt.Categorical([f"t{number}" for number in range(20)])})
    with pytest.raises(InvalidInput, match="800 groups"):
        vt.GroupReport(private({n: [] for n in wide}, wide), MODEL, by=["country", "town"])


def test_other_groups_thresholds_and_outcomes_are_other_questions() -> None:
    data = private()
    made = [
        vt.GroupReport(data, MODEL, key="same", **options)  # type: ignore[arg-type]
        for options in (
            {"by": "sex"},
            {"by": "kids"},
            {"by": ["sex", "kids"]},
            {"by": ["kids", "sex"]},
            {"by": "age", "edges": {"age": [30]}},
            {"by": "age", "edges": {"age": [31]}},
            {"by": "sex", "threshold": 0.4},
            {"by": "sex", "bins": 6},
            {"by": "sex", "positive": "no"},
        )
    ]
    identities = [str(report.conversation().identity) for report in made]
    assert len(set(identities)) == len(identities)
    first = made[0](epsilon=0.5)
    spent = data.budget.spent
    assert vt.GroupReport(data, MODEL, by=["sex"], key="same")(epsilon=0.5) == first
    assert data.budget.spent == spent


def test_a_file_of_a_stranger_needs_groups_and_bins_that_fit() -> None:
    found = vt.GroupReport(private(), MODEL, by="sex")(epsilon=0.3)
    fields = found.to_json()
    for changed, message in (
        ({"edges": [0.0, 0.5, 0.5, 0.75, 1.0]}, "increase"),
        ({"n_below": 4}, "threshold between"),
        ({"groups": ["f", "f"]}, "different names"),
        ({"groups": ["f", "m", "x"]}, "shape"),
        ({"outcome": "none"}, "names"),
        ({"outcome_high": -1.0}, "lower one first"),
        ({"shares": {**fields["layout"]["shares"], "rows": 0.9}}, "add up to 1"),  # type: ignore[dict-item, index]
    ):
        with pytest.raises(InvalidInput, match=message):
            vt.GroupTable.from_json({**fields, "layout": {**fields["layout"], **changed}})  # type: ignore[dict-item]
    with pytest.raises(InvalidInput, match="noise scale above 0"):
        vt.GroupTable.from_json({**fields, "sigma": 0.0})
    with pytest.raises(InvalidInput, match="among what is said"):
        found["selection"]
    with pytest.raises(InvalidInput, match="reference is"):
        found.against("accuracy", reference="x")
