"""Several rows per person: no person moves an answer further than was paid for, and everything says whose promise it is."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import vitrail as vt
from explainer_table import TABLE, model, private
from person_sums import KINDS, OTHERS, SUMS, facts, moved, people, vectors, walk
from vitrail.accounting.neighbours import check_neighbours, relation_of, rows_per_person_of
from vitrail.errors import InvalidInput, LedgerError, SchemaError
from vitrail.explain.recipe import Terms
from vitrail.ledger import open_ledger
from vitrail.maps.settings import plan_training
from vitrail.vault.questions import grouped_sum

PERSONS = "add-remove, up to 3 rows per person"


@pytest.fixture
def dealt_in_turn(monkeypatch):
    """Rows go to groups in turn, so that the others' draws are the same on both sides: they stand first."""
    monkeypatch.setattr(grouped_sum, "uniform_below", lambda groups, count: np.arange(count) % groups)


@pytest.mark.usefixtures("dealt_in_turn")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SUMS)
def test_no_person_moves_a_sum_further_than_was_paid_for(name, kind):
    @settings(max_examples=60, deadline=None)
    @given(people, people)
    @example([(1.0, 0.0)] * 3, [(-1.0, 0.0)] * 3)
    @example([(1.0, 1.0)] * 3, [])
    @example([(0.1, 1.0)], [(-0.1, -1.0)] * 3)
    def attack(person, other):
        after = [*OTHERS, *(other if kind == "replace-one" else [])]
        assert moved(SUMS[name], [*OTHERS, *person], after, relation_of(kind, 3)) <= 1

    attack()


WORST = {
    ("bounded sum", "add-remove"): ([(1.0, 0.0)] * 3, []),
    ("bounded sum", "replace-one"): ([(1.0, 0.0)] * 3, [(-1.0, 0.0)] * 3),
    ("cell counts", "add-remove"): ([(1.0, 0.0)] * 3, []),
    ("cell counts", "replace-one"): ([(1.0, 0.5)] * 3, [(-1.0, -0.5)] * 3),
    ("gram sum", "add-remove"): ([(1.0, 0.0)] * 3, []),
    ("product sum", "add-remove"): ([(1.0, 0.0)] * 3, []),
    ("ranking", "replace-one"): ([(1.0, -1.0)] * 3, [(-1.0, 1.0)] * 3),
}


@pytest.mark.usefixtures("dealt_in_turn")
@pytest.mark.parametrize(("name", "kind"), WORST)
def test_nothing_is_wasted_and_two_rows_would_be_too_few(name, kind):
    """Three rows reach the bound for three; noise for a unit of two would be too little, so the attack above can fail."""
    person, other = WORST[name, kind]
    before, after = [*OTHERS, *person], [*OTHERS, *other]
    reached = moved(SUMS[name], before, after, relation_of(kind, 3))
    assert 0.97 < reached <= 1
    assert moved(SUMS[name], before, after, relation_of(kind, 2)) > 2


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), people, people)
@example("add-remove", [(1.0, 1.0)] * 3, [])
def test_no_person_moves_a_score_further_than_the_choice_allows(kind, person, other):
    question, relation = vt.Select(lambda b: 9 * vectors(b), 2, bound=0.7), relation_of(kind, 3)
    plan = question.plan(1.0, facts(relation))

    def scores(rows):
        return plan.scores(walk(rows, relation), 4)

    after = scores([*OTHERS, *(other if kind == "replace-one" else [])])
    assert max(abs(a - b) for a, b in zip(scores([*OTHERS, *person]), after, strict=True)) <= plan.sensitivity_cells
    row = question.plan(1.0, facts(kind))
    assert (plan.sensitivity_cells, plan.epsilon) == (3 * row.sensitivity_cells, row.epsilon)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_as_many_times_larger_at_the_same_price(name, kind):
    question = SUMS[name]
    one, seven = (question.plan(0.5, facts(relation_of(kind, count))) for count in (1, 7))
    assert seven.sigma / one.sigma == pytest.approx(7, rel=3e-3)
    assert seven.event.cost().pico_mu_squared == pytest.approx(0.25e12, rel=1e-9)


def test_every_pair_of_exchanged_rows_is_rounded():
    """Pairs no further apart than ``replace_bound``, all rounded the same way: what the grid adds counts for each."""
    question, relation = vt.BoundedSum(vectors, 2, 0.3, replace_bound=0.43), relation_of("replace-one", 3)
    plan = question.plan(0.8, facts(relation))
    assert plan.sensitivity == pytest.approx(3 * (0.43 + 2 * plan.grid.displacement), rel=1e-12)
    assert plan.sensitivity < 3 * 2 * 0.3


def test_what_is_planned_before_a_question_is_asked_knows_the_noise():
    terms = Terms.of(private(rows_per_person=3), 0.6)
    assert terms.noise_of_mean() == pytest.approx(3 / 0.6 / 3000)
    assert terms.mu_of_a_row == pytest.approx(0.2)
    assert Terms.of(private(rows_per_person=3, neighbours="replace-one"), 0.6).noise_of_mean() == pytest.approx(
        6 / 0.6 / 3000
    )
    with pytest.raises(InvalidInput, match="hardly any could be shown"):
        vt.GroupReport(private(rows_per_person=1000), model(), by="sex")(epsilon=1.0)
    assert vt.GroupReport(private(), model(), by="sex")(epsilon=1.0).guarantee.neighbours == "add-remove"


def test_a_bound_whose_multiple_is_no_float_is_rounded_up():
    bound = 0.1 + 2.0**-56
    assert Fraction(facts(PERSONS).farthest(bound)) >= 3 * Fraction(bound) > Fraction(math.nextafter(3 * bound, 0))
    assert facts("replace-one").farthest(bound) == 2 * bound


def test_the_unit_is_part_of_the_relation():
    assert relation_of("add-remove", 3) == relation_of(PERSONS) == relation_of(PERSONS, 3) == PERSONS
    assert rows_per_person_of(relation_of("replace-one", 1)) == 1
    with pytest.raises(InvalidInput, match="say it once"):
        relation_of(PERSONS, 4)
    for bad in ("add-remove, up to 1 rows per person", "add-remove, up to 03 rows per person", "x, up to 3 rows per person",
                "add-remove, up to 1000001 rows per person", f"{PERSONS} ", f"{PERSONS}\n", None, 3):  # fmt: skip
        with pytest.raises(InvalidInput, match="neighbours is"):
            check_neighbours(bad)
    for count in (0, -1, 1.5, True, "3", 10**6 + 1):
        with pytest.raises(InvalidInput, match="rows_per_person"):
            private(rows_per_person=count)


# What is said


def test_everything_says_whose_promise_it_is():
    data = private(rows_per_person=3)
    assert (data.rows_per_person, data.neighbours, data.n_rows_public) == (3, PERSONS, 3000)
    found = vt.marginals(data, epsilon=0.5)
    unit = "all rows of any one person (at most 3)"
    bill, quote = data.budget.bill(), data.quote(vt.CellCounts(lambda block: np.zeros((len(block), 1)), (1,)), epsilon=0.1)
    for promise in (found.guarantee, bill.guarantee, quote.guarantee):
        assert f", for adding or removing {unit} of the data" in promise.sentence
        assert vt.Guarantee.from_json(promise.to_json()) == promise
    assert vt.Marginals.from_bytes(found.to_bytes()).guarantee.neighbours == PERSONS
    label = vt.privacy_label(found, bill=bill)
    terms = label.to_json_ld()["dp:label"]
    assert (terms["dp:unitOfPrivacy"], terms["dp:mostRowsPerUnit"], terms["dp:neighbours"]) == ("person", 3, PERSONS)
    text = label.to_markdown()
    assert "All rows of any one person (at most 3)." in text
    assert "with all rows of a person against the dataset without them" in text
    assert "One row is" not in text
    page = vt.show.page(found, bill=bill)
    assert f"{PERSONS}: with or without {unit}" in page
    assert f"The promise is about {unit}." in page
    assert vt.privacy_label(vt.marginals(private(), epsilon=0.5)).to_json_ld()["dp:label"]["dp:unitOfPrivacy"] == "row"


def test_a_unit_that_is_exchanged_is_told_too():
    found = vt.marginals(private(rows_per_person=2, neighbours="replace-one"), epsilon=0.5)
    assert "for replacing all rows of any one person (at most 2) of the data" in found.guarantee.sentence
    assert "The number of people is then not protected." in vt.privacy_label(found).to_markdown()
    assert "any one person (at most 2) exchanged for another" in vt.show.page(found)


# Accounts


def test_an_account_is_about_one_unit(tmp_path):
    ledger = tmp_path / "l.db"
    vt.marginals(private(ledger=ledger, rows_per_person=3), epsilon=0.5)
    for other in ({}, {"rows_per_person": 2}, {"rows_per_person": 4}, {"rows_per_person": 3, "neighbours": "replace-one"}):
        with pytest.raises(LedgerError, match=r"neighbours 'add-remove, up to 3 rows per person'; now it is asked"):
            private(ledger=ledger, **other)
    again = private(ledger=ledger, rows_per_person=3)
    vt.marginals(again, epsilon=0.5)
    assert again.budget.spent_epsilon == pytest.approx(0.5)  # the stored answer, for nothing
    assert open_ledger(ledger).verify().ok


def test_an_answer_for_rows_is_never_given_again_for_persons(tmp_path):
    """Two accounts, one dataset: the stored answer of one unit is not another's."""
    question = vt.CellCounts(lambda block: np.zeros((len(block), 1)), (1,), key="count")
    one = private(ledger=tmp_path / "l.db", account="rows").ask(question, epsilon=0.5)
    three = private(ledger=tmp_path / "l.db", account="persons", rows_per_person=3).ask(question, epsilon=0.5)
    assert not three.replayed
    assert three.sigma == pytest.approx(3 * one.sigma)


def test_somebody_elses_accountant_is_told_the_price_of_a_person():
    data = private(rows_per_person=3)
    data.ask(vt.BoundedSum(lambda block: block.features[:, :1], 1, 1.0, rate=0.1), epsilon=0.5)
    events = data.budget.to_dp_events()
    (charge,) = events.charges
    assert charge.sampling_rate == 1.0  # a person's rows have a coin each: the accountant would take one for all of them
    assert charge.noise_multiplier == pytest.approx(1 / charge.cost.mu)
    assert (events.relation, events.to_json()["neighbours"]) == ("ADD_OR_REMOVE_ONE", PERSONS)
    exchanged = private(rows_per_person=3, neighbours="replace-one")
    exchanged.ask(vt.BoundedSum(lambda block: block.features[:, :1], 1, 1.0), epsilon=0.5)
    events = exchanged.budget.to_dp_events()
    assert events.relation == "REPLACE_ONE"
    assert events.charges[0].noise_multiplier == pytest.approx(2 / events.charges[0].cost.mu)


# What is not proven is refused, and nothing is charged


def refused(data, ask, message="(up to|at most) 3"):
    with pytest.raises((InvalidInput, SchemaError, LedgerError), match=message):
        ask()
    assert data.budget.spent_epsilon == 0
    assert data.budget.training_spent == (0.0, 0.0)


def test_what_is_proven_for_single_rows_is_refused():
    data = private(rows_per_person=3)
    refused(data, lambda: data.parts(3, name="thirds"))
    refused(data, lambda: vt.LocalLinear(data, model(), training_guarantee=(1.0, 1e-6)))
    history = vt.linear.History(vt.LocalLinear(data, model()).problem)
    refused(data, lambda: vt.LocalLinear(data, model(), method=vt.linear.Adaptive(history=history)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_size", [20, 100])
def test_training_is_refused(kind, batch_size):
    schema = vt.Schema({"x": vt.Numeric(0, 1), "side": vt.Categorical(["left", "right"])})
    rows = {"x": [0.2, 0.8] * 50, "side": ["left", "right"] * 50}
    budget = vt.Budget(9.0, 1e-5, training=(8.0, 5e-6))
    settings = {"n_rows_public": 100, "target": "side", "ledger": "memory", "rows_per_person": 3, "neighbours": kind}
    data = vt.PrivateData(rows, schema, name="sides", budget=budget, **settings)
    classifier = vt.LocallyLinearClassifier(epsilon=4.0, delta=1e-6, batch_size=batch_size)
    refused(data, lambda: classifier.fit(data))
    refused(data, lambda: vt.tune_locally_linear(classifier, data, candidates=[{"clip": 0.1}, {"clip": 0.3}]))
    training = plan_training(classifier, 1, 2, 100, kind)  # as for single rows
    refused(data, lambda: data.train(training))


def test_promises_of_different_units_are_not_added_up():
    rows, persons = private(), private(rows_per_person=3)
    bought = vt.marginals(rows, epsilon=0.5)
    refused(persons, lambda: vt.PartialDependence(persons, model(), marginals=bought), "cannot be added up")
    with pytest.raises(InvalidInput, match="the bill is of an account with neighbours"):
        vt.show.page(vt.marginals(persons, epsilon=0.5), bill=rows.budget.bill())
    with pytest.raises(InvalidInput, match="same neighbours and rows_per_person"):
        vt.Guarantee.together([bought.guarantee], 1e-6, persons.neighbours)


# Explainers of the table: bands are read off noise that is three times larger, and quotes know it


FEW = ("marginals", "shapley", "partial dependence", "permutation importance", "groups", "any curve", "local statistics")


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in TABLE if row.name in FEW])
def test_explainers_work_for_persons(row):
    data = private(rows_per_person=3)
    explainer = row.make(data, model())
    talk = explainer.conversation() if row.points is None else explainer.conversation(row.points)
    quoted = talk.quote(epsilon=row.epsilon)
    found = explainer(epsilon=row.epsilon) if row.points is None else explainer(row.points, epsilon=row.epsilon)
    assert found.guarantee.neighbours == PERSONS
    assert found.guarantee.epsilon <= row.epsilon * (1 + 1e-6)
    assert data.budget.spent_epsilon <= row.epsilon * (1 + 1e-6)
    single = row.make(private(), model())
    other = (single.conversation() if row.points is None else single.conversation(row.points)).quote(epsilon=row.epsilon)
    if quoted.half_width is not None and other.half_width is not None:
        assert quoted.half_width > 1.2 * other.half_width
