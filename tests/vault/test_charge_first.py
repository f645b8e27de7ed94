"""Probe, charge, draw, read: in that order, and nothing happens after a refusal."""

import itertools

import numpy as np
import pytest

import vitrail as vt
import vitrail.vault.noise.sampler
from vitrail.errors import BudgetExceeded, InvalidInput, Unanswered
from vitrail.ledger import SqlLedger, open_ledger
from vitrail.vault.rows.sources import ArrowRows, MemoryRows

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})
ROWS = {"x": np.linspace(0, 1, 40)}


class SpyLedger(SqlLedger):
    """A ledger that writes down when it was asked."""

    def __init__(self, log):
        super().__init__("memory")
        self._log = log

    def charge(self, *args, **kwargs):
        charged = super().charge(*args, **kwargs)
        self._log.append("charged")
        return charged

    def store(self, *args, **kwargs):
        self._log.append("stored")
        return super().store(*args, **kwargs)


def features(block):
    return block.features


def two(block):
    return np.column_stack([block.features, 1 - block.features])


QUESTIONS = {
    "bounded": lambda **options: vt.BoundedSum(features, 1, 1.0, **options),
    "gram": lambda **options: vt.GramSum(two, 2, 1.0, **options),
    "gram shared": lambda **options: vt.GramSum(
        two, 2, 1.0, row_weights=lambda block: np.ones((len(block), 9)), queries=9, **options
    ),
    "sampled": lambda **options: vt.BoundedSum(features, 1, 1.0, rate=0.5, **options),
    "grouped": lambda **options: vt.GroupedSum(
        lambda block: block.features.mean(), 1, low=0, high=1, groups=4, isolation="none", **options
    ),
    "select": lambda **options: vt.Select(two, 2, 1.0, **options),
    "product": lambda **options: vt.ProductSum(lambda block: (features(block), two(block)), (1,), (2,), **options),
}


@pytest.fixture(params=QUESTIONS)
def question_of(request):
    return QUESTIONS[request.param]


@pytest.fixture
def log(monkeypatch):
    """What happened, in order: rows read, bits drawn, the ledger asked."""
    events = []
    chunks = MemoryRows.chunks

    def spied_chunks(self, rows):
        events.append("rows read")
        yield from chunks(self, rows)

    real = vitrail.vault.noise.sampler.os.urandom

    def spied_urandom(n):
        events.append("bits drawn")
        return real(n)

    monkeypatch.setattr(MemoryRows, "chunks", spied_chunks)
    monkeypatch.setattr(vitrail.vault.noise.sampler.os, "urandom", spied_urandom)
    return events


def opened(log, budget=None, **options):
    options = {"n_rows_public": 40, "block_rows": 8, **options}
    return vt.PrivateData(ROWS, UNIT, name="spied", budget=budget or vt.Budget(20, 1e-6), ledger=SpyLedger(log), **options)


def test_the_charge_comes_first_then_the_noise_then_the_rows(log, question_of):
    data = opened(log)
    log.clear()
    data.ask(question_of(), mu=0.5)
    order = [event for event, _ in itertools.groupby(log)]
    assert order[:3] == ["charged", "bits drawn", "rows read"]
    assert order[-1] == "stored"


def test_a_quote_reads_and_draws_and_charges_nothing(log, question_of):
    data = opened(log)
    log.clear()
    quote = data.quote(question_of(), mu=0.5)
    assert log == []
    assert quote.fits
    assert quote.cost == data.ask(question_of(), mu=0.5).cost


def test_a_refusal_leaves_everything_untouched(log, question_of):
    data = opened(log, vt.Budget(0.1, 1e-6))
    before = data.budget
    log.clear()
    with pytest.raises(BudgetExceeded):
        data.ask(question_of(), mu=5.0)
    assert log == []
    assert data.budget == before


def test_a_crash_in_the_pass_leaves_the_charge(monkeypatch, question_of):
    log = []
    data = opened(log)

    def broken(self, rows):
        raise OSError("the disk went away")
        yield

    monkeypatch.setattr(MemoryRows, "chunks", broken)
    question = question_of(key="fragile")
    with pytest.raises(Unanswered, match="stays on the bill") as caught:
        data.ask(question, mu=0.5)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    spent = data.budget.spent
    assert spent == data.quote(question, mu=0.5).cost
    assert log == ["charged"]
    monkeypatch.undo()
    release = data.ask(question, mu=0.5)
    assert not release.replayed, "nothing was stored, so it is computed"
    assert data.budget.spent == spent, "under the charge that was made: nothing of it had left the vault"
    assert data.ask(question, mu=0.5).to_bytes() == release.to_bytes()


@pytest.mark.parametrize("key", [None, "named"])
def test_a_file_that_is_gone_is_noticed_before_the_charge(tmp_path, key):
    """Looking at a file's name is no look at rows."""
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(ROWS), path)
    data = vt.PrivateData(path, UNIT, name="file", n_rows_public=40, budget=vt.Budget(9, 1e-6))
    path.unlink()
    question = vt.BoundedSum(features, 1, 1.0, key=key)
    with pytest.raises(InvalidInput, match="is gone"):
        data.ask(question, mu=0.5)
    assert data.budget.spent.pico_mu_squared == 0


def test_quotes_and_refusals_do_not_open_the_file(tmp_path, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(ROWS), path)
    data = vt.PrivateData(path, UNIT, name="file", n_rows_public=40, budget=vt.Budget(0.1, 1e-6))

    def forbidden(self, rows):
        raise AssertionError("rows were read")

    monkeypatch.setattr(ArrowRows, "chunks", forbidden)
    question = vt.BoundedSum(features, 1, 1.0)
    assert not data.quote(question, mu=5.0).fits
    with pytest.raises(BudgetExceeded):
        data.ask(question, mu=5.0)


def test_a_replay_is_the_same_bytes_for_free(log, question_of):
    data = opened(log)
    question = question_of(key="again")
    first = data.ask(question, mu=0.5)
    spent = data.budget.spent
    log.clear()
    again = data.ask(question_of(key="again"), mu=0.5)
    assert again.replayed
    assert not first.replayed
    assert again.to_bytes() == first.to_bytes()
    assert data.budget.spent == spent
    assert "rows read" not in log
    assert "bits drawn" not in log


def test_of_two_that_compute_one_answer_both_deliver_what_was_stored_first(question_of):
    """The second asks while the first has looked and not stored yet: one charge, one answer."""
    waiting = []

    class Slow(SqlLedger):
        def store(self, charge, release):
            for other in waiting:
                waiting.clear()
                overtaking.append(other())
            return super().store(charge, release)

    ledger, options = Slow("memory"), {"name": "rows", "n_rows_public": 40, "budget": vt.Budget(9, 1e-6)}
    slow, fast = (vt.PrivateData(ROWS, UNIT, ledger=ledger, **options) for _ in range(2))
    overtaking = []
    waiting.append(lambda: fast.ask(question_of(key="raced"), mu=0.5))
    overtaken = slow.ask(question_of(key="raced"), mu=0.5)
    assert overtaking[0].to_bytes() == overtaken.to_bytes()
    assert (overtaking[0].replayed, overtaken.replayed) == (False, True)
    assert fast.budget.n_questions == 1
    assert ledger.verify().ok


def test_another_price_key_version_or_dataset_is_another_question():
    ledger = open_ledger("memory")

    def data(name="a", version="1"):
        return vt.PrivateData(
            ROWS,
            UNIT,
            name=name,
            version=version,
            account="shared",
            n_rows_public=40,
            budget=vt.Budget(9, 1e-6),
            ledger=ledger,
        )

    asked = [
        data().ask(vt.BoundedSum(features, 1, 1.0, key="k"), mu=0.5),
        data().ask(vt.BoundedSum(features, 1, 1.0, key="k"), mu=0.4),
        data().ask(vt.BoundedSum(features, 1, 1.0, key="other"), mu=0.5),
        data().ask(vt.BoundedSum(features, 1, 0.9, key="k"), mu=0.5),
        data(version="2").ask(vt.BoundedSum(features, 1, 1.0, key="k"), mu=0.5),
        data(name="b").ask(vt.BoundedSum(features, 1, 1.0, key="k"), mu=0.5),
    ]
    assert not any(release.replayed for release in asked)
    assert data().ask(vt.BoundedSum(features, 1, 1.0, key="k"), mu=0.5).replayed


def test_without_a_key_every_question_is_new_and_its_noise_fresh(question_of):
    data = opened([], n_rows_public=10**6)
    releases = [data.ask(question_of(), mu=0.3) for _ in range(4)]
    assert not any(release.replayed for release in releases)
    if releases[0].sigma is not None:
        assert len({release.value.tobytes() for release in releases}) == 4


@pytest.mark.parametrize("question_class", [vt.BoundedSum, vt.GramSum, vt.GroupedSum, vt.Select, vt.ProductSum])
def test_no_question_takes_a_seed(question_class):
    import inspect

    taken = inspect.signature(question_class).parameters
    assert not [name for name in taken if "seed" in name or "random" in name or "rng" in name]
    assert not [name for name in inspect.signature(vt.PrivateData.ask).parameters if "seed" in name or "random" in name]


@pytest.mark.parametrize("mu", [0, -1, float("nan"), float("inf"), 101, True, "1"])
def test_a_price_outside_its_range_is_refused_before_anything_is_charged(mu, question_of):
    data = opened([])
    with pytest.raises(InvalidInput):
        data.ask(question_of(), mu=mu)
    assert data.budget.spent.pico_mu_squared == 0


@pytest.mark.parametrize("mu", [1e-5, 1e-12, 1e-300])
def test_a_tiny_price_is_answered_or_refused_but_never_charged_for_nothing(mu, question_of):
    data = opened([])
    try:
        release = data.ask(question_of(), mu=mu)
    except InvalidInput:
        release = None
    if release is None:
        assert mu < 1e-6
        assert data.budget.spent.pico_mu_squared == 0
    else:
        assert np.isfinite(release.value).all()


def test_a_price_is_epsilon_or_mu():
    data = opened([])
    question = vt.BoundedSum(features, 1, 1.0)
    for price in (
        {},
        {"epsilon": 1.0, "mu": 1.0},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": "1"},
    ):
        with pytest.raises(InvalidInput):
            data.ask(question, **price)
    with pytest.raises(InvalidInput, match="a question is a"):
        data.ask(lambda block: block.features, mu=1.0)
    assert data.budget.spent.pico_mu_squared == 0
