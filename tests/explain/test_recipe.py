"""The rules of a conversation (explain/recipe.py), attacked with small recipes: prices, crashes, racers, caps, parts."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.accounting import Cost, epsilon_of, rounded_up
from vitrail.errors import BudgetExceeded, InvalidInput, LedgerError, ModelError
from vitrail.explain.marginals import marginals_question
from vitrail.explain.recipe import Ask, Conversation, GlobalExplainer, Recipe, Split, Terms, cost_of, mu_of_units, scaled
from vitrail.ledger import open_ledger
from vitrail.ledger.sql import SqlLedger
from vitrail.vault import PublicRows
from vitrail.vault.setting import Setting

N_ROWS = 60
SCHEMA = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
ROWS = {"age": np.linspace(20, 80, N_ROWS), "smoker": np.repeat(["no", "yes"], N_ROWS // 2)}
MU = 0.5
PRICE = Cost.of_mu(MU)
SHARES = (0.2, 0.3, 0.5)


def private(where: object = "memory", *, mu: float = MU, **options: Any) -> vt.PrivateData:
    """Rows behind a budget that pays for one conversation and no more, if not said otherwise."""
    budget = vt.Budget(epsilon_of(mu, 1e-6) * (1 + 1e-6), 1e-6)
    rows = {name: column.copy() for name, column in ROWS.items()}
    return vt.PrivateData(rows, SCHEMA, name="people", n_rows_public=N_ROWS, budget=budget, ledger=where, **options)


@dataclass(frozen=True)
class Answers:
    """What the small recipes return."""

    releases: tuple[vt.Release, ...]
    cost: Cost
    guarantee: vt.Guarantee

    @property
    def numbers(self) -> list[list[float]]:
        return [release.value.tolist() for release in self.releases]


@dataclass
class Steps:
    """A recipe of several sums, each planned from the answer before it.

    ``last_bits`` moves the bound of every question by so many floats; ``heard`` collects what was delivered by the vault.
    """

    shares: tuple[float, ...] = SHARES
    last_bits: int = 0
    heard: list[vt.Release] = field(default_factory=list)

    def __call__(self, terms: Terms) -> Recipe[Answers]:
        releases: list[vt.Release] = []
        weight = 1.0
        for number, share in enumerate(self.shares):
            release = yield Ask(self.question(weight), share, f"sum {number}")
            releases.append(release)
            if is_real(terms):
                self.heard.append(release)
            weight = 1 / (1 + abs(math.tanh(release.value[0])))
        return Answers(tuple(releases), cost_of(releases), terms.promise(*releases))

    def question(self, weight: float) -> vt.BoundedSum:
        bound = 1.5
        for _ in range(self.last_bits):
            bound = math.nextafter(bound, 2)
        return vt.BoundedSum(lambda block: weight * block.features, 3, bound)


def is_real(terms: Terms) -> bool:
    """Whether this is not the rehearsal."""
    return terms.public_rows > 1000


def talk(data: vt.PrivateData, recipe: Callable[[Terms], Recipe[Any]] | None = None, **options: Any) -> Conversation[Any]:
    return Conversation(data, recipe or Steps(), "a test", **{"identity": {"kind": "steps"}, **options})


def kinds(data: vt.PrivateData) -> list[str]:
    return [entry.kind for entry in data.budget.entries]


def check_ledger(where: str) -> None:
    """The chain is whole, and its totals are those of its entries."""
    ledger = open_ledger(where)
    assert ledger.verify().n_entries > 0
    ledger.close()


# --- prices ----------------------------------------------------------------------------------------------------------


@given(units=st.integers(1, 10**16), parts=st.lists(st.integers(1, 50), min_size=1, max_size=12), spare=st.integers(0, 50))
def test_whole_units_add_up_exactly(units: int, parts: list[int], spare: int) -> None:
    split, total = Split(units), sum(parts) + spare
    if units < 100 * total:
        units = 100 * total
        split = Split(units)
    given_out = [split.next(part / total) for part in parts]
    assert all(one >= 1 for one in given_out)
    if spare == 0:
        assert sum(given_out) == units
    else:
        assert units * sum(parts) / total - 1 - 1e-3 * units <= sum(given_out) <= units
    for part, one in zip(parts, given_out, strict=True):
        assert abs(one - units * part / total) <= 1 + 2e-9 * units


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan, math.inf])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InvalidInput, match="the share of a question"):
        Split(1000).next(share)


@pytest.mark.parametrize("shares", [(0.5, 0.6), (1.0, 1e-6), (0.3,) * 4, (1 / 3, 1 / 3, 1 / 3, 1e-8)])
def test_shares_over_one_are_refused(shares: tuple[float, ...]) -> None:
    split = Split(10**12)
    for share in shares[:-1]:
        split.next(share)
    with pytest.raises(InvalidInput, match="add up to"):
        split.next(shares[-1])


def test_a_price_that_cannot_be_split_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too small to split"):
        Split(3).next(0.1)
    data = private()
    with pytest.raises(InvalidInput, match="too small"):
        talk(data).explain(mu=1e-7)
    with pytest.raises(InvalidInput, match="too small to split"):
        talk(data).explain(mu=1.5e-6)
    assert kinds(data) == ["opened"]


SETTING = Setting(SCHEMA, None, N_ROWS, "add-remove", 64)


QUESTIONS: dict[str, Callable[[float], Any]] = {
    "bounded sum": lambda bound: vt.BoundedSum(lambda block: block.features, 3, bound),
    "sampled sum": lambda bound: vt.SampledSum(lambda block: block.features, 3, bound, rate=0.3),
    "gram sum": lambda bound: vt.GramSum(lambda block: block.features, 3, bound, row_norm=math.sqrt(bound)),
    "product sum": lambda bound: vt.ProductSum(lambda block: (block.features,) * 2, (3,), (3,), (bound,)),
    "selection": lambda bound: vt.Select(lambda block: block.features, 3, bound),
    "curve of groups": lambda bound: vt.GroupedSum(lambda block: [0.0], 1, low=0.0, high=bound, groups=5),
    "ranking of groups": lambda bound: vt.GroupedSum(lambda block: [0.0] * 3, 3, groups=5, places=[2 * bound, bound, 0]),
    "histograms": lambda bound: marginals_question(SCHEMA),
}


@settings(max_examples=200)
@given(units=st.integers(1, 10**16), bound=st.floats(1e-3, 1e3), kind=st.sampled_from(sorted(QUESTIONS)))
def test_no_question_costs_more_than_its_units(units: int, bound: float, kind: str) -> None:
    cost = QUESTIONS[kind](bound).plan(mu_of_units(units), SETTING).event.cost()
    assert cost <= Cost(units)
    assert cost.pico_mu_squared >= units - 1 - 1e-11 * units  # and nothing to speak of is left


def test_a_recipe_that_asks_for_too_much_is_found_in_the_rehearsal() -> None:
    data = private()
    with pytest.raises(InvalidInput, match="add up to"):
        talk(data, Steps((0.5, 0.6))).explain(mu=MU)
    assert kinds(data) == ["opened"]


@pytest.mark.parametrize("identity", [{"kind": "greedy"}, None])
def test_too_much_on_one_path_is_refused_before_its_charge(identity: Any) -> None:
    """A path that the rehearsal did not take: what was booked stays booked, and the question too many is not."""
    data = private()

    def greedy(terms: Terms) -> Recipe[None]:
        yield Ask(Steps().question(1.0), 0.6)
        yield Ask(Steps().question(1.0), 0.6 if is_real(terms) else 0.4)
        return None

    with pytest.raises(InvalidInput, match="add up to"):
        talk(data, greedy, identity=identity).explain(mu=MU)
    assert kinds(data).count("charged") == 1
    (booked,) = (entry.cost for entry in data.budget.entries if entry.kind == "charged")
    assert booked.pico_mu_squared <= 0.6 * PRICE.pico_mu_squared + 1
    assert data.budget.spent == (PRICE if identity else booked)  # one that can be resumed keeps its reservation


def test_the_price_is_paid_exactly_and_nothing_is_left_over() -> None:
    data = private()
    result = talk(data).explain(mu=MU)
    assert data.budget.spent == result.cost <= PRICE
    assert PRICE.pico_mu_squared - result.cost.pico_mu_squared <= len(SHARES)
    assert result.guarantee.mu == pytest.approx(result.cost.mu, rel=1e-9)
    assert result.guarantee.basis.cost == result.cost
    assert data.budget.reservations == ()
    for release, share in zip(result.releases, SHARES, strict=True):
        assert release.cost.pico_mu_squared == pytest.approx(share * PRICE.pico_mu_squared, abs=2)


def test_epsilon_and_mu_are_the_same_price() -> None:
    by_mu, by_epsilon = private(mu=1.0), private(mu=1.0)
    talk(by_mu).explain(mu=MU)
    talk(by_epsilon).explain(epsilon=epsilon_of(MU, by_epsilon.delta))
    units = [data.budget.spent.pico_mu_squared for data in (by_mu, by_epsilon)]
    assert units[0] == pytest.approx(units[1], rel=1e-6)


def test_nested_recipes_take_their_share_of_the_outer_one() -> None:
    data = private()
    planned: list[float] = []

    def inner(terms: Terms) -> Recipe[Answers]:
        planned.append(terms.mu)
        return (yield from Steps((0.25, 0.75))(terms))

    def middle(terms: Terms) -> Recipe[list[Answers]]:
        first = yield from scaled(inner(terms.scaled(0.5)), 0.5)
        second = yield from scaled(inner(terms.scaled(0.5)), 0.5)
        return [first, second]

    def outer(terms: Terms) -> Recipe[list[Answers]]:
        made = yield from scaled(middle(terms.scaled(0.4)), 0.4)
        return [*made, (yield from scaled(inner(terms.scaled(0.6)), 0.6))]

    results = talk(data, outer).explain(mu=MU)
    paid = [release.cost.pico_mu_squared / PRICE.pico_mu_squared for result in results for release in result.releases]
    assert paid == pytest.approx([0.05, 0.15, 0.05, 0.15, 0.15, 0.45], rel=1e-9)
    # What a recipe plans with is what it gets.
    real = planned[3:]
    assert [result.cost.mu for result in results] == pytest.approx(real, rel=1e-9)
    assert data.budget.spent == sum((result.cost for result in results), Cost()) <= PRICE


def test_a_nested_recipe_cannot_take_more_than_its_share() -> None:
    data = private()

    def outer(terms: Terms) -> Recipe[None]:
        yield from scaled(Steps((1.0, 0.5))(terms.scaled(0.5)), 0.5)
        yield Ask(Steps().question(1.0), 0.5)
        return None

    with pytest.raises(InvalidInput, match="add up to"):
        talk(data, outer).explain(mu=MU)
    assert kinds(data) == ["opened"]


def test_a_given_release_answers_its_ask_and_joins_the_promise() -> None:
    data = private(mu=2.0)

    def recipe_with(marginals: vt.Marginals | None) -> Callable[[Terms], Recipe[Answers]]:
        def recipe(terms: Terms) -> Recipe[Answers]:
            used: list[Any] = [] if marginals is None else [marginals]
            asked: list[vt.Release] = []
            if marginals is None:
                asked.append((yield Ask(marginals_question(terms.schema), 0.4)))
            asked.append((yield Ask(Steps().question(1.0), 0.6)))
            return Answers(tuple(asked), cost_of(asked), terms.promise(*used, *asked))

        return recipe

    bought = vt.marginals(data, mu=1.0)
    before = data.budget.spent
    result = talk(data, recipe_with(bought)).explain(mu=MU)
    assert data.budget.spent == before + result.cost
    assert result.cost.pico_mu_squared == pytest.approx(0.6 * PRICE.pico_mu_squared, rel=1e-6)  # not scaled up
    assert result.guarantee.basis.cost == bought.cost + result.cost
    whole = talk(data, recipe_with(None), identity={"kind": "whole"}).explain(mu=MU)
    assert whole.cost.pico_mu_squared == pytest.approx(PRICE.pico_mu_squared, rel=1e-6)
    assert whole.guarantee.basis.cost == whole.cost


def test_what_a_finished_recipe_did_not_book_is_given_back() -> None:
    data = private()
    result = talk(data, Steps((0.1, 0.2))).explain(mu=MU)
    assert result.cost.pico_mu_squared == pytest.approx(0.3 * PRICE.pico_mu_squared, rel=1e-6)
    assert data.budget.spent == result.cost
    data.ask(Steps().question(1.0), mu=math.sqrt(0.69) * MU)  # it can be spent on something else


# --- asking again ----------------------------------------------------------------------------------------------------


def test_asking_again_is_free_when_the_budget_is_gone() -> None:
    data = private()
    first = talk(data).explain(mu=MU)
    with pytest.raises(BudgetExceeded):
        data.ask(Steps().question(1.0), mu=0.01)
    spent = data.budget.spent
    again = talk(data).explain(mu=MU)
    assert again.numbers == first.numbers
    assert all(release.replayed for release in again.releases)
    assert (again.cost, again.guarantee) == (first.cost, first.guarantee)
    assert data.budget.spent == spent
    assert data.budget.reservations == ()


def test_another_price_or_identity_is_another_conversation() -> None:
    data = private(mu=3.0)
    first = talk(data).explain(mu=MU)
    for other in (
        talk(data).explain(mu=0.6),
        talk(data, identity={"kind": "steps", "seed": 1}).explain(mu=MU),
        talk(data, identity=None).explain(mu=MU),
        talk(data, identity=None).explain(mu=MU),
    ):
        assert not any(release.replayed for release in other.releases)
        assert other.numbers != first.numbers
    charged = [entry.cost for entry in data.budget.entries if entry.kind == "charged"]
    assert len(charged) == 5 * len(SHARES)
    assert data.budget.spent == sum(charged, Cost())


def test_a_question_with_a_key_is_shared_by_recipes_at_the_same_price() -> None:
    data = private(mu=2.0)

    def recipe(terms: Terms) -> Recipe[Answers]:
        histograms = yield Ask(marginals_question(terms.schema), 0.5)
        sums = yield Ask(Steps().question(1.0), 0.5)
        return Answers((histograms, sums), cost_of([histograms, sums]), terms.promise(histograms, sums))

    one = talk(data, recipe, identity={"kind": "one"}).explain(mu=MU)
    two = talk(data, recipe, identity={"kind": "two"}).explain(mu=MU)
    assert two.releases[0].replayed
    assert not two.releases[1].replayed
    assert one.numbers[0] == two.numbers[0]
    assert data.budget.spent == one.cost + two.releases[1].cost
    assert (one.guarantee.behind | two.guarantee.behind).cost == data.budget.spent
    direct = data.ask(marginals_question(SCHEMA), mu=mu_of_units(PRICE.pico_mu_squared // 2))
    assert direct.replayed


def test_a_shared_question_that_one_recipe_died_on_is_computed_by_the_next(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    data = private(where, mu=2.0)

    def recipe(terms: Terms) -> Recipe[Answers]:
        histograms = yield Ask(marginals_question(terms.schema), 1.0)
        return Answers((histograms,), histograms.cost, terms.promise(histograms))

    with ending_after("charge", 1, die), pytest.raises(Killed):
        talk(data, recipe, identity={"kind": "one"}).explain(mu=MU)
    two = talk(data, recipe, identity={"kind": "two"}).explain(mu=MU)
    one = talk(data, recipe, identity={"kind": "one"}).explain(mu=MU)
    assert one.numbers == two.numbers
    assert data.budget.spent == one.cost <= PRICE
    assert kinds(data).count("charged") == 1
    assert data.budget.reservations == ()
    check_ledger(where)


def test_a_finished_recipe_that_asks_for_more_is_refused_and_pays_nothing() -> None:
    data = private(mu=2.0)
    talk(data, Steps((0.2, 0.3))).explain(mu=MU)
    spent, charged = data.budget.spent, kinds(data).count("charged")
    with pytest.raises(LedgerError, match="asked for more than its price"):
        talk(data, Steps((0.2, 0.3, 0.5))).explain(mu=MU)
    assert data.budget.spent == spent
    assert kinds(data).count("charged") == charged


@pytest.mark.parametrize("last_bits", [1, 2, 7])
def test_questions_whose_last_bits_differ_replay_the_stored_answer(last_bits: int) -> None:
    """Another BLAS, another machine: the stored question is authoritative."""
    data = private()
    first = talk(data, Steps()).explain(mu=MU)
    spent = data.budget.spent
    again = talk(data, Steps(last_bits=last_bits)).explain(mu=MU)
    assert again.numbers == first.numbers
    assert data.budget.spent == spent
    assert Steps().question(1.0).describe() != Steps(last_bits=last_bits).question(1.0).describe()


# --- crashes ---------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for a process that ends."""


POINTS = [("reserve", 1)] + [(what, n) for n in (1, 2, 3) for what in ("charge", "store")] + [("finish", 1)]
KILLS = pytest.mark.parametrize(("what", "nth"), POINTS, ids=[f"after {what} {n}" for what, n in POINTS])


@contextlib.contextmanager
def ending_after(what: str, nth: int, end: Callable[[], None]) -> Iterator[None]:
    """Let the ledger do its work, and call ``end`` when it has done ``what`` for the ``nth`` time."""
    real, calls = getattr(SqlLedger, what), 0

    def counted(self: SqlLedger, *given: Any, **named: Any) -> Any:
        nonlocal calls
        done = real(self, *given, **named)
        calls += 1
        if calls == nth:
            end()
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqlLedger, what, counted)
        yield


def die() -> None:
    raise Killed


def check_resumed(where: str, heard: list[list[float]], recipe: Steps | None = None) -> None:
    """Ask again in what may be another process: it goes on for free, pays at most its price, and then replays."""
    data = private(where)
    result = talk(data, recipe or Steps()).explain(mu=MU)
    assert result.numbers[: len(heard)] == heard  # what was delivered before is delivered again
    assert data.budget.spent == result.cost <= PRICE
    assert kinds(data).count("charged") == len(SHARES)
    assert kinds(data).count("released") == len(SHARES)
    assert data.budget.reservations == ()
    again = talk(private(where), recipe or Steps()).explain(mu=MU)
    assert again.numbers == result.numbers
    assert again.guarantee == result.guarantee
    assert data.budget.spent == result.cost
    check_ledger(where)


@KILLS
@pytest.mark.parametrize("last_bits", [0, 3])
def test_a_recipe_that_breaks_off_is_resumed_for_free(tmp_path: Path, what: str, nth: int, last_bits: int) -> None:
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    data, recipe = private(where), Steps()
    with ending_after(what, nth, die), pytest.raises(Killed):
        talk(data, recipe).explain(mu=MU)
    booked = sum((entry.cost for entry in data.budget.entries if entry.kind == "charged"), Cost())
    assert data.budget.spent == (booked if what == "finish" else PRICE)
    assert len(data.budget.reservations) == (what != "finish")
    if what != "finish":  # nobody else can have what is set aside
        with pytest.raises(BudgetExceeded):
            data.ask(Steps().question(1.0), mu=0.01)
    heard = [release.value.tolist() for release in recipe.heard]
    check_resumed(where, heard, Steps(last_bits=last_bits))


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_two_deaths_at_one_step_pay_once(tmp_path: Path, nth: int) -> None:
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    for _ in range(3):
        with ending_after("charge", nth, die), pytest.raises(Killed):
            talk(private(where)).explain(mu=MU)
    check_resumed(where, [])


def test_a_step_that_was_booked_and_not_stored_gets_fresh_noise(tmp_path: Path) -> None:
    """Nothing of it had left the vault. Were the noise the same, it would have to be kept somewhere before the charge."""
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    lost: list[bytes] = []

    def lose(self: SqlLedger, charge: Any, release: bytes) -> bytes:
        lost.append(release)
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqlLedger, "store", lose)
        with pytest.raises(Killed):
            talk(private(where)).explain(mu=MU)
    result = talk(private(where)).explain(mu=MU)
    assert vt.Release.from_bytes(lost[0]).value.tolist() != result.numbers[0]
    assert result.cost <= PRICE


def test_what_died_and_is_freed_by_the_owner_can_be_asked_again(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    data = private(where)
    with ending_after("store", 2, die), pytest.raises(Killed):
        talk(data).explain(mu=MU)
    (line,) = data.budget.reservations
    ledger = open_ledger(where)
    given_back = ledger.free("people", line.seq)
    ledger.close()
    assert data.budget.spent == line.booked
    assert given_back + line.booked == PRICE
    spent = data.budget.spent
    result = talk(data).explain(mu=MU)  # the first two steps are replayed, the rest is reserved again
    assert [release.replayed for release in result.releases] == [True, True, False]
    assert spent != data.budget.spent == result.cost <= PRICE
    check_ledger(where)


PROGRAM = "import sys; sys.path[:0] = sys.argv[1:3]; import test_recipe; getattr(test_recipe, sys.argv[3])(*sys.argv[4:])"


def start(function: str, *words: object) -> subprocess.Popen[str]:
    """A function of this file in a process of its own."""
    here = Path(__file__).parent
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(here.parent), str(here), function, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_and_be_killed(where: str, what: str, nth: str, told: str) -> None:
    """For ``start``: what was delivered is written down; then the process is killed, without a chance to clean up."""
    recipe = Steps()

    def kill() -> None:
        Path(told).write_text(json.dumps([release.value.tolist() for release in recipe.heard]))
        os.kill(os.getpid(), signal.SIGKILL)

    with ending_after(what, int(nth), kill):
        talk(private(where), recipe).explain(mu=MU)


@KILLS
def test_a_process_that_is_killed_is_resumed_for_free(tmp_path: Path, what: str, nth: int) -> None:
    where, told = f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "told.json"
    process = start("run_and_be_killed", where, what, nth, told)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, errors
    heard = json.loads(told.read_text())
    delivered = {"reserve": 0, "charge": nth - 1, "store": nth - 1, "finish": 3}[what]
    assert len(heard) == delivered
    assert private(where).budget.spent <= PRICE
    check_resumed(where, heard)


# --- racers ----------------------------------------------------------------------------------------------------------


def run_a_race(where: str, folder: str, me: str, other: str) -> None:
    """For ``start``: nobody stores an answer before both have computed one of their own."""
    real = SqlLedger.store
    computed: list[str] = []

    def store(self: SqlLedger, charge: Any, release: bytes) -> bytes:
        computed.append(release.hex())
        Path(folder, f"{charge.seq}.{me}").touch()
        while not Path(folder, f"{charge.seq}.{other}").exists():
            time.sleep(0.01)
        return real(self, charge, release)

    SqlLedger.store = store  # type: ignore[method-assign]
    result = talk(private(where)).explain(mu=MU)
    print(
        json.dumps({"computed": computed, "numbers": result.numbers, "basis": sorted(map(str, result.guarantee.basis.paid))})
    )


def test_two_racers_deliver_the_same_answers_and_pay_once(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    private(where)
    racers = [start("run_a_race", where, tmp_path, me, other) for me, other in (("a", "b"), ("b", "a"))]
    try:
        told = [racer.communicate(timeout=120) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
    assert [racer.returncode for racer in racers] == [0, 0], told
    one, two = (json.loads(output) for output, _ in told)
    assert one["numbers"] == two["numbers"]
    assert one["basis"] == two["basis"]
    assert len(one["computed"]) == len(two["computed"]) == len(SHARES)
    assert not set(one["computed"]) & set(two["computed"])  # each drew its own noise, and one of the two was delivered
    data = private(where)
    assert kinds(data).count("charged") == len(SHARES)
    assert (
        data.budget.spent == sum((entry.cost for entry in data.budget.entries if entry.kind == "charged"), Cost()) <= PRICE
    )
    assert data.budget.reservations == ()
    check_resumed(where, one["numbers"])


# --- analysts, caps and parts ----------------------------------------------------------------------------------------


def spent_by(data: vt.PrivateData, analyst: str) -> Cost:
    return next((line.spent for line in data.budget.analysts if line.analyst == analyst), Cost())


def capped(where: str, most: float, **options: Any) -> vt.PrivateData:
    """The same rows, for an analyst who may learn so much, as mu."""
    private(where, **options).cap("eve", vt.Budget(epsilon_of(most, 1e-6) * (1 + 1e-6), 1e-6))
    return private(where, analyst="eve", **options)


def test_a_cap_refuses_the_whole_price_before_anything_is_booked(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    eve = capped(where, 0.9 * MU)
    before = kinds(eve)
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        talk(eve).explain(mu=MU)  # its first question alone would fit
    assert kinds(eve) == before
    assert eve.budget.spent == spent_by(eve, "eve") == Cost()
    assert not eve.quote(Small(eve), mu=MU).fits
    result = talk(eve).explain(mu=0.9 * MU)
    assert spent_by(eve, "eve") == result.cost <= Cost.of_mu(0.9 * MU)


def test_a_replay_counts_against_the_cap_of_another_analyst(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    eve = capped(where, MU)
    first = talk(private(where)).explain(mu=MU)
    spent = eve.budget.spent
    assert spent_by(eve, "eve") == Cost()
    again = talk(eve).explain(mu=MU)
    assert again.numbers == first.numbers
    assert all(release.replayed for release in again.releases)
    assert eve.budget.spent == spent  # the account has paid for it
    assert spent_by(eve, "eve") == first.cost  # to this analyst it is new
    talk(eve).explain(mu=MU)
    assert spent_by(eve, "eve") == first.cost  # and now it is not
    with pytest.raises(BudgetExceeded):
        eve.ask(Steps().question(1.0), mu=0.1)
    check_ledger(where)


def test_a_replay_that_a_cap_does_not_allow_is_refused_whole(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    eve = capped(where, 0.9 * MU)
    talk(private(where)).explain(mu=MU)
    before = kinds(eve)
    with pytest.raises(BudgetExceeded):
        talk(eve).explain(mu=MU)
    assert kinds(eve) == before
    assert spent_by(eve, "eve") == Cost()


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_another_analyst_finishes_what_one_left_unfinished(tmp_path: Path, nth: int) -> None:
    """The steps that were answered are the same for both; the account pays for each step once."""
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    eve, first = capped(where, MU, mu=2.0), Steps()
    with ending_after("store", nth, die), pytest.raises(Killed):
        talk(private(where, mu=2.0), first).explain(mu=MU)
    result = talk(eve).explain(mu=MU)
    assert [release.replayed for release in result.releases] == [True] * nth + [False] * (3 - nth)
    assert spent_by(eve, "eve") == result.cost
    own = talk(private(where, mu=2.0)).explain(mu=MU)
    assert own.numbers == result.numbers
    assert eve.budget.spent == result.cost <= PRICE
    assert kinds(eve).count("charged") == len(SHARES)
    assert eve.budget.reservations == ()
    check_ledger(where)


def test_parts_reserve_by_the_parallel_rule(tmp_path: Path) -> None:
    """What two disjoint parts have set aside costs the account as much as the dearer of the two."""
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    data = private(where)
    left, right = data.parts(2, name="halves")
    with ending_after("charge", 2, die), pytest.raises(Killed):
        talk(left).explain(mu=MU)
    assert data.budget.spent == PRICE  # still set aside for the left part
    result = talk(right).explain(mu=MU)  # and yet the right one can have as much
    assert data.budget.spent == PRICE
    with pytest.raises(BudgetExceeded):
        talk(data).explain(mu=0.1)  # the whole reads rows of both
    resumed = talk(left).explain(mu=MU)
    assert resumed.numbers != result.numbers  # one recipe, two parts: two conversations
    assert data.budget.spent == max(result.cost, resumed.cost, key=lambda cost: cost.pico_mu_squared)
    assert kinds(data).count("charged") == 2 * len(SHARES)
    check_ledger(where)


# --- the rehearsal and the other sides -------------------------------------------------------------------------------


class Small(GlobalExplainer[Answers]):
    """The small recipe as an explainer."""

    def __init__(self, data: vt.PrivateData) -> None:
        self._data = data

    def conversation(self) -> Conversation[Answers]:
        return talk(self._data)


def outputs(features: Any) -> Any:
    return features[:, 0]


def failing(features: Any) -> Any:
    if (features[:, 0] == 1).any():
        raise KeyError("no such age")
    return outputs(features)


def of_model(model: vt.Model, ask_after: bool = False) -> Callable[[Terms], Recipe[Answers]]:
    """A recipe that asks a model about rows, and perhaps about public ones after its first charge."""

    def recipe(terms: Terms) -> Recipe[Answers]:
        first = yield Ask(vt.BoundedSum(lambda block: block.predictions(model)[:, None], 1, 1.0), 0.5)
        if ask_after:
            model.predict_points(terms.schema, terms.schema.probe_rows(5))
        second = yield Ask(Steps().question(1.0), 0.5)
        return Answers((first, second), cost_of([first, second]), terms.promise(first, second))

    return recipe


@pytest.mark.parametrize("how", ["raises", "no number", "out of range"])
def test_a_failing_model_is_found_before_any_charge(how: str) -> None:
    functions = {
        "raises": failing,
        "no number": lambda x: np.where(x[:, 0] == 1, np.nan, outputs(x)),
        "out of range": lambda x: 7 * outputs(x),
    }
    data, model = private(), vt.Model(functions[how], range=(0, 1), name="fragile")
    with pytest.raises(ModelError, match="fragile"):
        talk(data, of_model(model), models=(model,)).explain(mu=MU)
    assert kinds(data) == ["opened"]


@pytest.mark.parametrize("how", ["raises", "raises in a quote"])
def test_a_model_that_fails_where_it_was_not_tried_is_told_in_a_sentence(how: str) -> None:
    """On rows that a recipe makes for itself, in the rehearsal: whatever the model raises becomes a sentence about it."""
    data, fragile = private(), vt.Model(lambda x: gap(x), range=(0, 1), name="fragile")

    def gap(features: Any) -> Any:
        if (features[:, 0] == 0.625).any():
            raise KeyError("no such age")
        return outputs(features)

    def recipe(terms: Terms) -> Recipe[Answers]:
        release = yield Ask(Steps().question(1.0), 1.0)
        fragile.predict_points(terms.schema, np.array([[62.5, 0.0]]))
        return Answers((release,), release.cost, terms.promise(release))

    conversation = talk(data, recipe, models=(fragile,))
    ask = conversation.explain if how == "raises" else conversation.quote
    with pytest.raises(ModelError, match="fragile fails on public rows: KeyError"):
        ask(mu=MU)
    assert kinds(data) == ["opened"]


def test_post_processing_that_fails_is_found_before_any_charge() -> None:
    data = private()

    def recipe(terms: Terms) -> Recipe[None]:
        release = yield Ask(Steps().question(1.0), 1.0)
        raise InvalidInput(f"nothing can be made of {len(release.value)} numbers")

    with pytest.raises(InvalidInput, match="nothing can be made of 3 numbers"):
        talk(data, recipe).explain(mu=MU)
    assert kinds(data) == ["opened"]


def test_the_rehearsal_may_be_about_less() -> None:
    data, seen = private(), []

    def recipe(points: int) -> Callable[[Terms], Recipe[int]]:
        def asks(terms: Terms) -> Recipe[int]:
            seen.append((points, is_real(terms)))
            yield Ask(Steps().question(1.0), 1.0)
            return points

        return asks

    assert talk(data, recipe(1000), rehearsal=talk(data, recipe(2))).explain(mu=MU) == 1000
    assert seen == [(2, False), (1000, True)]


def test_what_was_begun_is_not_rehearsed_again() -> None:
    data, rehearsed = private(), []

    def recipe(terms: Terms) -> Recipe[Answers]:
        rehearsed.append(not is_real(terms))
        return (yield from Steps()(terms))

    for _ in range(2):
        talk(data, recipe).explain(mu=MU)
    assert rehearsed == [True, False, False]


@pytest.mark.parametrize("identity", [{"kind": "model"}, None])
def test_a_model_that_fails_later_says_what_was_charged(identity: Any) -> None:
    data, calls = private(), []

    def moody(features: Any) -> Any:
        if calls:
            raise ValueError("not today")
        return outputs(features)

    model = vt.Model(moody, range=(0, 1), name="moody")

    def recipe(terms: Terms) -> Recipe[Answers]:
        first = yield Ask(Steps().question(1.0), 0.5)
        if is_real(terms):
            calls.append(1)
        model.predict_points(terms.schema, terms.schema.probe_rows(5))
        second = yield Ask(Steps().question(1.0), 0.5)
        return Answers((first, second), cost_of([first, second]), terms.promise(first, second))

    with pytest.raises(ModelError, match="moody") as told:
        talk(data, recipe, models=(model,), identity=identity).explain(mu=MU)
    (first,) = (entry.cost for entry in data.budget.entries if entry.kind == "charged")
    assert f"Epsilon {rounded_up(epsilon_of(first.mu, data.delta))} was charged before that, and stays charged" in str(
        told.value
    )
    assert ("asking again at the same price goes on from there" in str(told.value)) == (identity is not None)
    assert data.budget.spent == (first if identity is None else PRICE)
    if identity is not None:
        calls.clear()
        mended = vt.Model(outputs, range=(0, 1), name="mended")
        result = talk(data, of_steps(mended), models=(mended,), identity=identity).explain(mu=MU)
        assert [release.replayed for release in result.releases] == [True, False]
        assert data.budget.spent == result.cost <= PRICE


def of_steps(model: vt.Model) -> Callable[[Terms], Recipe[Answers]]:
    def recipe(terms: Terms) -> Recipe[Answers]:
        first = yield Ask(Steps().question(1.0), 0.5)
        model.predict_points(terms.schema, terms.schema.probe_rows(5))
        second = yield Ask(Steps().question(1.0), 0.5)
        return Answers((first, second), cost_of([first, second]), terms.promise(first, second))

    return recipe


@pytest.mark.parametrize("what", ["reserve", "charge", "store", "finish"])
def test_a_recipe_without_a_name_frees_its_rest_when_it_fails(what: str) -> None:
    """It cannot be resumed, so nobody could ever book it."""
    data = private()
    with ending_after(what, 1, die), pytest.raises(Killed):
        talk(data, identity=None).explain(mu=MU)
    booked = sum((entry.cost for entry in data.budget.entries if entry.kind == "charged"), Cost())
    if what == "reserve":  # it had no receipt yet: the owner can see it and free it
        (line,) = data.budget.reservations
        assert (line.recipe, line.booked) == (None, Cost())
        return
    assert data.budget.spent == booked
    assert data.budget.reservations == ()


def test_a_quote_is_free_and_exact_about_the_price() -> None:
    data = private()
    quote = data.quote(Small(data), mu=MU)
    assert kinds(data) == ["opened"]
    assert quote.fits
    assert quote.price.cost == PRICE
    assert [one.cost for one in quote.result.releases] == [one.cost for one in talk(data).explain(mu=MU).releases]
    assert not data.quote(Small(data), mu=MU).fits
    with pytest.raises(InvalidInput, match="and not both"):
        data.quote(Small(data), mu=MU, half_width=0.1)


def test_on_an_auditors_rows_there_is_no_ledger() -> None:
    data = private()
    rows = PublicRows({"age": [50.0], "smoker": ["yes"]}, SCHEMA, 1)
    result, releases = talk(data).on(rows, mu=MU)
    assert list(result.releases) == list(releases)
    assert cost_of(releases) <= PRICE
    assert kinds(data) == ["opened"]


@pytest.mark.parametrize("price", [{}, {"epsilon": 1.0, "mu": 1.0}, {"mu": -1.0}, {"mu": math.nan}, {"epsilon": 0.0}])
def test_a_bad_price_is_refused(price: dict[str, float]) -> None:
    data = private()
    with pytest.raises(InvalidInput):
        talk(data).explain(**price)
    assert kinds(data) == ["opened"]
