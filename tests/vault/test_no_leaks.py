"""Nothing on the vault's face tells one dataset from another of the same schema."""

import copy
import inspect
import json
import pickle
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import vitrail as vt
from exact_sums import exact_sum
from vitrail.errors import BudgetExceeded, InvalidInput, VitrailError
from vitrail.ledger import open_ledger
from vitrail.vault.engines import row_pass

SCHEMA = vt.Schema({"age": vt.Numeric(0, 100), "city": vt.Categorical(["Aix", "Bonn"]), "income": vt.Numeric(0, 10)})
SECRET = 61.0625  # in no public number


def dataset(n, seed, odd=False):
    generator = np.random.default_rng(seed)
    rows = {
        "age": [SECRET, *generator.uniform(0, 100, n - 1)] if n else [],
        "city": list(generator.choice(["Aix", "Bonn"], n)),
        "income": list(generator.uniform(0, 10, n)),
    }
    if odd:
        rows["age"][0], rows["city"][0], rows["income"][0] = "not a number", "Xanadu", float("inf")
    return rows


def opened(rows, ledger=None, budget=None):
    return vt.PrivateData(
        rows,
        SCHEMA,
        name="people",
        target="income",
        n_rows_public=500,
        budget=budget or vt.Budget(2.0, 1e-6),
        ledger=ledger,
        block_rows=64,
    )


DATASETS = {
    "ordinary": dataset(500, 1),
    "another": dataset(500, 2),
    "one more": dataset(501, 1),
    "small": dataset(3, 3),
    "empty": dataset(0, 4),
    "odd": dataset(500, 5, odd=True),
}


def mean_of(block):
    return block.features


@pytest.mark.parametrize("which", ["the data", "a part"])
def test_there_is_no_public_way_to_the_rows_or_their_number(which):
    data = opened(DATASETS["one more"])
    data = data if which == "the data" else data.parts(2, name="halves")[0]
    public = [name for name in dir(data) if not name.startswith("_")]
    expected = (
        "analyst as_it_was ask ask_reserved budget cap delta feature_schema finish for_analyst has_begun keep kept "
        "n_rows_public name neighbours part parts person price_tag quote reserve rows_per_person schema target train"
    )
    assert sorted(public) == expected.split()
    for name in public:
        value = getattr(data, name)
        assert not isinstance(value, np.ndarray)
        assert str(SECRET) not in repr(value)
        assert "501" not in repr(value)
    assert not hasattr(data, "__dict__")
    assert not hasattr(data, "__len__")
    assert not hasattr(data, "__iter__")
    assert not hasattr(data, "__array__")
    assert not hasattr(data, "__dataframe__")


def test_reprs_show_no_rows():
    for rows in DATASETS.values():
        data = opened(rows)
        for shown in (repr(data), str(data), f"{data}", format(data), repr([data])):
            assert shown.strip("[]") == "PrivateData('people', 3 columns, declared rows 500)"
        hidden = [repr(getattr(data, name)) for name in dir(data) if "PrivateData__" in name]
        part = data.parts(2, name="halves")[0]
        hidden += [repr(getattr(part, name)) for name in dir(part) if "PrivateData__" in name]
        assert len(hidden) > 12
        assert not any(str(SECRET) in text for text in hidden)


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy, lambda data: data.__reduce_ex__(2)])
def test_the_rows_cannot_be_taken_out_as_a_copy(take):
    with pytest.raises(InvalidInput, match="out of the vault"):
        take(opened(DATASETS["ordinary"]))


def test_json_and_vars_have_nothing_to_say():
    data = opened(DATASETS["ordinary"])
    with pytest.raises(TypeError):
        json.dumps(data)
    with pytest.raises(TypeError):
        vars(data)
    with pytest.raises(AttributeError):
        data.rows = 1


def impure_of_block(block):
    return block.features - block.features.mean(axis=0)


QUESTIONS = {
    "sum": vt.BoundedSum(mean_of, 3, 1.0, key="k"),
    "gram": vt.GramSum(mean_of, 3, 1.0, key="k"),
    "sampled": vt.BoundedSum(mean_of, 3, 1.0, rate=0.3, key="k"),
    "grouped": vt.GroupedSum(lambda block: block.features.mean(), 1, low=0, high=1, groups=3, isolation="none", key="k"),
    "select": vt.Select(mean_of, 3, 1.0, key="k"),
    "wrong shape": vt.BoundedSum(mean_of, 7, 1.0),
    "fails": vt.BoundedSum(lambda block: 1 / 0, 1, 1.0),
    "too dear": vt.BoundedSum(mean_of, 3, 1.0),
    "impure": vt.BoundedSum(impure_of_block, 3, 1.0),
}


def face(rows):
    """Everything a user sees of a dataset, noise aside."""
    ledger = open_ledger("memory")
    data = opened(rows, ledger)
    seen = [repr(data), repr(data.schema), repr(data.budget)]
    for name, question in QUESTIONS.items():
        price = 9.0 if name == "too dear" else 0.1
        seen.append(str(data.quote(question, epsilon=price)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                release = data.ask(question, epsilon=price)
            except VitrailError as error:
                seen.append(f"{type(error).__name__}: {error}")
            else:
                seen.append((repr(release), release.value.shape, release.question, release.cost, release.sigma))
                seen.append(release._repr_html_())
        seen.append([str(warning.message) for warning in caught])
    seen.append(repr(data.budget.spent))
    return seen


def test_different_data_have_the_same_face(capfd):
    faces = {name: face(rows) for name, rows in DATASETS.items()}
    for name, seen in faces.items():
        assert repr(seen) == repr(faces["ordinary"]), name
    assert capfd.readouterr() == ("", "")


def test_the_bill_describes_questions_alike_for_all_data():
    bills = []
    for rows in DATASETS.values():
        ledger = open_ledger("memory")
        data = opened(rows, ledger)
        for name in ("sum", "gram", "sampled", "grouped", "select"):
            data.ask(QUESTIONS[name], epsilon=0.1)
        bills.append([entry.body for entry in data.budget.entries if entry.kind == "charged"])
    assert len(bills[0]) == 5
    assert all(repr(bill) == repr(bills[0]) for bill in bills)


def test_refusals_do_not_depend_on_the_data():
    refusals = set()
    for rows in DATASETS.values():
        with pytest.raises(BudgetExceeded) as caught:
            opened(rows).ask(vt.BoundedSum(mean_of, 3, 1.0), epsilon=9.0)
        refusals.add((str(caught.value), caught.value.requested_epsilon, caught.value.remaining_epsilon))
    assert len(refusals) == 1


def test_the_progress_bar_counts_declared_rows(monkeypatch):
    """Its total is public, and so is what one step adds; the true number of rows is in neither."""
    seen = []

    @contextmanager
    def spied(label, total_units):
        seen.append(("total", label, total_units))
        yield lambda units: seen.append(("step", units))

    monkeypatch.setattr(row_pass, "progress", spied)
    opened(DATASETS["one more"]).ask(QUESTIONS["sum"], epsilon=0.1)
    totals = {event[1:] for event in seen if event[0] == "total"}
    assert totals == {("summing", 500)}
    assert {event[1] for event in seen if event[0] == "step"} == {64}


def test_a_block_hides_how_many_of_its_rows_are_people(walk):
    seen = []

    def spy(block):
        seen.append((len(block), repr(block), block.features.shape, block.values.shape))
        return block.features[:, :1]

    for rows in DATASETS.values():
        walked = walk(rows, SCHEMA, block_rows=64)
        question = vt.BoundedSum(spy, 1, 1.0)
        grid = question.plan(1.0, walked.facts).grid
        exact_sum(walked, question.row_function(), grid, 64)
    assert len(set(seen)) == 1


def test_the_room_with_the_rows_is_not_on_the_public_face():
    import vitrail.vault

    own = {"PublicRows"}  # rows that the caller brings
    assert not any("Rows" in name or "Pass" in name for name in set(vitrail.vault.__all__) - own)
    for name in vitrail.vault.__all__:
        thing = getattr(vitrail.vault, name)
        methods = inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else []
        assert not [method for method, _ in methods if method in ("rows", "data", "to_frame", "to_pandas", "chunks")]
