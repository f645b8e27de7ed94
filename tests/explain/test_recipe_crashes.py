"""What a recipe pays when it breaks off, races or is asked by others: kills, racers, caps, parts. See test_recipe.py."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

import vitrail as vt
from recipe_setup import (
    MU,
    PRICE,
    SHARES,
    Killed,
    Small,
    Steps,
    check_ledger,
    die,
    ending_after,
    kinds,
    private,
    start,
    talk,
)
from vitrail.accounting import Cost, epsilon_of
from vitrail.errors import BudgetExceeded
from vitrail.ledger import open_ledger
from vitrail.ledger.sql import SqlLedger

# --- crashes ---------------------------------------------------------------------------------------------------------


POINTS = [("reserve", 1)] + [(what, n) for n in (1, 2, 3) for what in ("charge", "store")] + [("finish", 1)]
KILLS = pytest.mark.parametrize(("what", "nth"), POINTS, ids=[f"after {what} {n}" for what, n in POINTS])


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


@pytest.mark.parametrize("mu", [25.0, 60.0])
@pytest.mark.parametrize("last_bits", [1, 2, 5])
def test_a_dear_step_that_was_booked_and_not_stored_is_resumed_with_other_last_bits(mu: float, last_bits: int) -> None:
    """Here a whole unit of the ledger is finer than the last bit of an event's price: a step is booked at its units."""
    for nth in (1, 2, 3):
        data = private(mu=mu)
        with ending_after("charge", nth, die), pytest.raises(Killed):
            talk(data).explain(mu=mu)
        result = talk(data, Steps(last_bits=last_bits)).explain(mu=mu)
        assert data.budget.spent == result.cost == Cost(int(mu**2) * 10**12)


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
