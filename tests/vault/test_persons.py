"""Rows that say whose they are: everybody counts once, wherever their rows lie, and nobody moves an answer further."""

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import vitrail as vt
from exact_sums import exact_sum
from explainer_table import SCHEMA, TABLE, model, rows
from person_sums import KINDS, OTHERS, PLANE, SUMS, exact, facts, moved, vectors, walk
from person_tables import IN_ORDER, SHUFFLED, SOURCE_SCHEMA, WHOLE, table, written
from vitrail.accounting.neighbours import relation_of
from vitrail.errors import InvalidInput, LedgerError, SchemaError
from vitrail.ledger import open_ledger
from vitrail.vault.engines.row_pass import RowPass
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.questions import grouped_sum
from vitrail.vault.rows import names
from vitrail.vault.rows.persons import open_persons
from vitrail.vault.rows.predictions import Predictions
from vitrail.vault.rows.sampling import Sample
from vitrail.vault.sums.grid import Grid
from vitrail.vault.training.run import People, private_draws

NAMES = [f"other {number}" for number in range(len(OTHERS))]
crowd = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), max_size=9)


def whole(kind):
    return relation_of(kind, whole_person=True)


# Bounds


@pytest.fixture
def dealt_in_turn(monkeypatch):
    """Everybody's draw is the same on both sides: the person stands last in the order of names."""
    monkeypatch.setattr(grouped_sum, "uniform_below", lambda groups, count: np.arange(count) % groups)
    monkeypatch.setattr(names, "_digest", lambda text: (2**63, 9) if text == b"me" else (len(text or b""), hash(text) % 97))


@pytest.mark.usefixtures("dealt_in_turn")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SUMS)
def test_nobody_moves_a_sum_further_than_was_paid_for(name, kind):
    @settings(max_examples=60, deadline=None)
    @given(crowd, crowd)
    @example([(1.0, 0.0)] * 9, [(-1.0, 0.0)] * 7)
    @example([(1.0, 1.0)] * 3, [])
    @example([(1.0, 1.0)] * 2, [(-1.0, -1.0)])
    @example([(0.1, 1.0)], [(-0.1, -1.0)] * 5)
    def attack(person, other):
        other = other if kind == "replace-one" else []
        who = [*NAMES, *["me"] * len(person)], [*NAMES, *["me"] * len(other)]
        assert moved(SUMS[name], [*OTHERS, *person], [*OTHERS, *other], whole(kind), who=who) <= 1

    attack()


WORST = {
    ("bounded sum", "add-remove"): ([(1.0, 0.0)] * 5, []),
    ("bounded sum", "replace-one"): ([(1.0, 0.0)] * 5, [(-1.0, 0.0)] * 2),
    ("cell counts", "add-remove"): ([(1.0, 0.0)] * 5, []),
    ("cell counts", "replace-one"): ([(1.0, 0.5)] * 5, [(-1.0, -0.5)]),
    ("gram sum", "add-remove"): ([(1.0, 0.0)] * 5, []),
    ("gram sum of many queries", "add-remove"): ([(1.0, 0.0)] * 5, []),
    ("product sum", "add-remove"): ([(1.0, 0.0)] * 5, []),
}


@pytest.mark.parametrize(("name", "kind"), WORST)
def test_nothing_is_wasted_and_rows_that_count_whole_would_be_too_much(name, kind):
    """Alike rows reach the bound together, so the attack above can fail: the same rows as people of their own break it."""
    person, other = WORST[name, kind]
    before, after = [*OTHERS, *person], [*OTHERS, *other]
    together = [*NAMES, *["me"] * len(person)], [*NAMES, *["me"] * len(other)]
    apart = tuple([*NAMES, *[f"me {row}" for row in range(len(rows) - len(NAMES))]] for rows in (before, after))
    assert 0.97 < moved(SUMS[name], before, after, whole(kind), who=together) <= 1
    assert moved(SUMS[name], before, after, whole(kind), who=apart) > 3


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 12),
    st.sampled_from([1e-3, 2.0**-20, 2.0**-29]),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=36, max_size=36),
)
@example(3, 2.0**-29, [1.0] * 36)
@example(7, 1e-3, [1.0, 0.0, 0.0] * 12)
def test_a_persons_integers_obey_the_limit_on_coarse_and_fine_grids(rows_of_one, step, numbers):
    grid = Grid(1.7320508075688772, 2.0 ** np.floor(np.log2(step)), 3)
    table = {"x": np.zeros(rows_of_one), "who": ["me"] * rows_of_one}
    given_vectors = np.array(numbers).reshape(12, 3)[:rows_of_one]
    question = vt.BoundedSum(lambda block: np.resize(given_vectors, (len(block), 3)), 3, grid.l2_bound)
    schema = vt.Schema({"x": vt.Numeric(0, 1)})
    about = PublicFacts(schema, None, 1, WHOLE, 12)
    total = exact_sum(
        RowPass(open_persons(table, schema, "who"), about, Predictions(about)), question.row_function(), grid, 12
    )
    assert sum(int(cell) ** 2 for cell in total) <= grid.limit_squared


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), crowd, crowd)
@example("add-remove", [(1.0, 1.0)] * 9, [])
def test_nobody_moves_a_score_further_than_the_choice_allows(kind, person, other):
    question = vt.Select(lambda block: 9 * vectors(block), 2, bound=0.7)
    plan = question.plan(1.0, facts(whole(kind)))
    other = other if kind == "replace-one" else []

    def scores(mine):
        return plan.scores(walk([*OTHERS, *mine], whole(kind), [*NAMES, *["me"] * len(mine)]), 4)

    assert max(abs(a - b) for a, b in zip(scores(person), scores(other), strict=True)) <= plan.sensitivity_cells
    assert plan.sensitivity_cells == question.plan(1.0, facts(kind)).sensitivity_cells


@pytest.mark.parametrize("name", SUMS)
def test_noise_is_that_of_one_row_each(name):
    one, any_number = (SUMS[name].plan(0.5, facts(relation)) for relation in ("add-remove", WHOLE))
    assert any_number.sigma == pytest.approx(one.sigma, rel=1e-3)


def test_exchanged_people_may_be_twice_as_far_apart_as_rows():
    """The rounding of any number of rows adds up, so a proven distance of two rows is no bound for people."""
    question = vt.BoundedSum(vectors, 2, 0.3, replace_bound=0.43)
    assert question.plan(0.8, facts(whole("replace-one"))).sensitivity == 0.6


# Everybody counts once


def test_a_person_adds_the_mean_of_their_rows():
    generator = np.random.default_rng(3)
    raw, who = generator.uniform(-1, 1, (500, 2)), generator.integers(0, 120, 500)
    tables = pd.DataFrame(raw, columns=["x", "y"]).assign(who=who)
    for name in ("bounded sum", "cell counts", "gram sum", "gram sum of many queries", "product sum"):
        plan, one_row = (SUMS[name].plan(1.0, facts(relation)) for relation in (WHOLE, "add-remove"))
        together = exact(plan, raw, WHOLE, who.tolist()) * plan.step
        alone = np.array([exact(one_row, raw[[row]], "add-remove") * one_row.step for row in range(len(raw))])
        expected = pd.DataFrame(alone).groupby(tables.who).mean().sum().to_numpy()
        assert together == pytest.approx(expected, rel=2e-3, abs=0.3), name


def test_a_row_without_a_name_does_not_count():
    plan = SUMS["cell counts"].plan(1.0, facts(WHOLE))
    counted = exact(plan, [[0.5, 0.5]] * 5, WHOLE, ["ann", None, float("nan"), "", "bob"]) * plan.step
    assert counted.sum() == 2 * 2  # two people, two partitions


def test_somebody_counts_as_soon_as_one_row_does():
    plan = SUMS["cell counts"].plan(1.0, facts(WHOLE))
    counted = exact(plan, [[0.5, 0.5], [np.nan, 0.5], [np.nan, 0.0]], WHOLE, ["ann", "ann", "bob"]) * plan.step
    assert counted.sum() == 2


def test_somebody_with_very_many_rows_counts_too():
    count = 5000
    plan = SUMS["bounded sum"].plan(1.0, facts(WHOLE))
    together = exact(plan, [[0.05, 0.0]] * count, WHOLE, ["me"] * count) * plan.step
    assert together == pytest.approx([0.15, 0.0], rel=0.05)
    plan = SUMS["cell counts"].plan(1.0, facts(WHOLE))
    assert exact(plan, [[0.5, 0.5]] * count, WHOLE, ["me"] * count).sum() * plan.step == pytest.approx(2, rel=0.01)


# Coins, groups and parts are a person's


def data_of(frame, **options):
    settings = {"name": "visits", "n_rows_public": 300, "budget": vt.Budget(3, 1e-6), "ledger": "memory", "person": "who"}
    return vt.PrivateData(frame, SOURCE_SCHEMA, **(settings | options))


@pytest.mark.parametrize("place", ["memory", "csv"])
def test_all_rows_of_a_person_are_sampled_or_none(tmp_path, place):
    frame = table(SHUFFLED)
    source = open_persons(frame if place == "memory" else written(tmp_path, frame, place), SOURCE_SCHEMA, "who")
    about = PublicFacts(SOURCE_SCHEMA, None, 300, WHOLE, 64)
    seen = np.concatenate(list(Sample(source, about, 0.5).chunks(50)))
    found, everybody = Counter(seen[:, -1]), Counter(np.concatenate(list(source.chunks(999)))[:, -1])
    assert all(everybody[token] == count for token, count in found.items())
    assert 70 < len(found) < len(everybody) - 70  # of some 300: beyond nine standard deviations of a fair coin


def test_all_rows_of_a_person_lie_in_one_group():
    schema = vt.Schema({"x": vt.Numeric(0, 300)})
    who = np.repeat(np.arange(60), 5)[np.random.default_rng(1).permutation(300)]
    whole_people = vt.GroupedSum(
        lambda block: float((np.unique(block.column("x"), return_counts=True)[1] == 5).all()), 1, 0, 1, groups=10,
        isolation="none",
    )  # fmt: skip
    about = PublicFacts(schema, None, 60, WHOLE, 64)
    source = open_persons({"x": who.astype(float), "who": who}, schema, "who")
    plan = whole_people.plan(1.0, about)
    total = plan.exact_cells(RowPass(source, about, Predictions(about)), 64) * plan.step + 10 * 0.5
    assert total[0] == pytest.approx(10, abs=0.3)  # an empty group, one in 10 000 here, would say a half
    rows_alone = RowPass(vt.vault.rows.sources.open_rows({"x": who.astype(float)}, schema), about, Predictions(about))
    assert plan.exact_cells(rows_alone, 64)[0] * plan.step + 5 < 9


def test_all_rows_of_a_person_lie_in_one_part():
    data = data_of(table(SHUFFLED))
    everybody = Counter()
    question = vt.CellCounts(lambda block: np.zeros((len(block), 1)), (1,))
    parts = data.parts(3, name="thirds")
    for part in parts:
        tokens = set(np.concatenate(list(part._PrivateData__rows.chunks(999)))[:, -1])
        assert not tokens & set(everybody)
        everybody.update(tokens)
        part.ask(question, epsilon=0.5)
    assert set(everybody) == set(np.concatenate(list(data._PrivateData__rows.chunks(999)))[:, -1])
    assert len(everybody) > 250
    assert data.budget.spent_epsilon == pytest.approx(0.5)
    with pytest.raises(InvalidInput, match="share a budget under 'add-remove' only"):
        data_of(table(SHUFFLED), neighbours="replace-one").parts(3, name="thirds")


def test_by_another_column_they_are_other_people(tmp_path):
    """Stored answers and parts of one column's people are not another's."""
    frame = table(SHUFFLED).append_column("family", table(SHUFFLED)["who"])
    question = vt.CellCounts(lambda block: np.zeros((len(block), 1)), (1,), key="count")
    one, other = (data_of(frame, ledger=tmp_path / "l.db", person=person) for person in ("who", "family"))
    one.ask(question, epsilon=0.5)
    assert not other.ask(question, epsilon=0.5).replayed
    assert one.parts(3, name="thirds")[0].part != other.parts(3, name="thirds")[0].part


def test_whoever_enters_a_step_of_training_is_there_with_one_row():
    counts = np.array([1, 5, 2, 40])
    everyone = People(np.cumsum(counts) - counts, counts)
    owner = np.repeat(np.arange(4), counts)
    seen = Counter()
    for draws in private_draws(48, 1.0, 1.0, 2, 200, people=everyone):
        assert owner[draws.rows].tolist() == [0, 1, 2, 3]
        seen.update(draws.rows.tolist())
    assert len(seen) > 40  # every row in its turn: 40 rows in 200 draws
    for draws in private_draws(48, 0.5, 1.0, 2, 50, people=everyone):
        assert len(set(owner[draws.rows])) == len(draws.rows)
    mask, rest = everyone.of_rows(np.array([True, False, True, False]))
    assert (owner[mask].tolist(), rest.starts.tolist(), rest.counts.tolist()) == ([0, 2, 2], [0, 1], [1, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_training_promises_something_to_people(kind):
    schema = vt.Schema({"x": vt.Numeric(0, 1), "side": vt.Categorical(["left", "right"])})
    frame = {"x": [0.2, 0.8] * 150, "side": ["left", "right"] * 150, "who": np.arange(300) % 100}
    budget = vt.Budget(20.0, 1e-5, training=(16.0, 5e-6))
    settings = {"n_rows_public": 100, "target": "side", "ledger": "memory", "person": "who", "neighbours": kind}
    data = vt.PrivateData(frame, schema, name="sides", budget=budget, **settings)
    classifier = vt.LocallyLinearClassifier(epsilon=8.0, delta=1e-6, batch_size=50).fit(data)
    assert "all rows of any one person (who counts once)" in classifier.guarantee_.sentence
    assert data.budget.training_spent[0] == pytest.approx(8.0)
    chosen = vt.tune_locally_linear(
        vt.LocallyLinearClassifier(epsilon=4.0, delta=1e-6, batch_size=50), data, candidates=[{"clip": 0.1}, {"clip": 0.3}]
    )
    assert chosen is not None


# What is said, and what is refused


def test_everything_says_that_the_promise_is_about_people():
    found = vt.marginals(data_of(table(SHUFFLED)), epsilon=1.0)
    assert found.guarantee.neighbours == WHOLE
    assert ", for adding or removing all rows of any one person (who counts once) of the data" in found.guarantee.sentence
    label = vt.privacy_label(found)
    assert label.to_json_ld()["dp:label"]["dp:unitOfPrivacy"] == "person"
    assert "dp:mostRowsPerUnit" not in label.to_json_ld()["dp:label"]
    assert "with all rows of a person against the dataset without them" in label.to_markdown()
    page = vt.show.page(found)
    assert "all rows of any one person (who counts once)" in page
    assert "k times as many rows" not in page


def test_somebody_elses_accountant_may_use_a_persons_coin():
    data = data_of(table(SHUFFLED))
    data.ask(vt.BoundedSum(lambda block: block.features[:, :1], 1, 1.0, rate=0.1), epsilon=0.5)
    (charge,) = data.budget.to_dp_events().charges
    assert charge.sampling_rate == 0.1


def test_an_account_is_about_rows_or_about_people(tmp_path):
    ledger = tmp_path / "l.db"
    vt.marginals(data_of(table(SHUFFLED), ledger=ledger), epsilon=0.5)
    for other in ({"person": None}, {"person": None, "rows_per_person": 2}, {"neighbours": "replace-one"}):
        with pytest.raises(LedgerError, match=f"neighbours '{WHOLE}'; now it is asked"):
            data_of(table(SHUFFLED), ledger=ledger, **other)
    assert open_ledger(ledger).verify().ok


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"person": "x"}, "leave it out of the schema"),
        ({"person": "whom"}, "no column 'whom', which person= names"),
        ({"person": 3}, "person is 3"),
        ({"rows_per_person": 3}, "leave rows_per_person out"),
        ({"person": None, "neighbours": WHOLE}, "name the column that does: person="),
    ],
)
def test_a_unit_that_is_none_is_refused(options, message):
    with pytest.raises((InvalidInput, SchemaError), match=message):
        data_of(table(SHUFFLED), **options)


def test_arrays_have_no_names(tmp_path):
    with pytest.raises(SchemaError, match="give a data frame or a dictionary"):
        vt.PrivateData(np.zeros((3, 2)), PLANE, name="a", n_rows_public=3, budget=vt.Budget(1, 1e-6), person="who")
    with pytest.raises(SchemaError, match=r"rows.csv has no column 'whom', which person= names"):
        data_of(written(tmp_path, table(SHUFFLED), "csv"), person="whom")
    nested = table(IN_ORDER).set_column(2, "who", pa.array([[1]] * 2000))
    pq.write_table(nested, tmp_path / "nested.parquet")
    with pytest.raises(SchemaError, match="names are texts or numbers"):
        data_of(tmp_path / "nested.parquet")


def test_what_does_not_say_whether_it_is_about_people_is_refused():
    frame = rows(200) | {"who": np.arange(200) % 50}
    data = vt.PrivateData(
        frame, SCHEMA, name="p", target="rich", n_rows_public=50, budget=vt.Budget(9, 1e-6), person="who", ledger="memory"
    )
    with pytest.raises(InvalidInput, match="about all rows of any one person"):
        vt.LocalLinear(data, model(), training_guarantee=(1.0, 1e-6))
    assert data.budget.spent_epsilon == 0


# Explainers of the table

FEW = ("marginals", "shapley", "partial dependence", "permutation importance", "groups", "any curve", "local statistics")


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in TABLE if row.name in FEW])
def test_explainers_count_people_and_not_rows(row):
    """Everybody is there three times: what is found is what one row each would give, at the same width."""
    once = rows(1500)
    thrice = {name: np.concatenate([values] * 3) for name, values in once.items()} | {"who": np.tile(np.arange(1500), 3)}

    def private(frame, **options):
        facts = {"name": "p", "target": "rich", "n_rows_public": 1500, "budget": vt.Budget(90, 1e-6), "ledger": "memory"}
        return vt.PrivateData(frame, SCHEMA, **facts, **options)

    def found(data):
        explainer = row.make(data, model())
        return explainer(epsilon=row.epsilon) if row.points is None else explainer(row.points, epsilon=row.epsilon)

    people = found(private(thrice, person="who"))
    single = found(private(once))
    assert people.guarantee.neighbours == WHOLE
    assert people.guarantee.epsilon <= row.epsilon * (1 + 1e-6)
    counted = getattr(people, "rows_counted", None)
    if counted is not None:
        assert abs(counted.counted - 1500) < 6 * counted.std + 1
        assert counted.std == pytest.approx(single.rows_counted.std, rel=0.2)
