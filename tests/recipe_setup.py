"""Small recipes, the ways a run of them can end, and processes of their own: for test_recipe and test_recipe_crashes."""

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
from unittest import mock

import numpy as np

import vitrail as vt
from vitrail.accounting import Cost, epsilon_of
from vitrail.explain.recipe import Ask, Conversation, GlobalExplainer, Recipe, Terms, cost_of
from vitrail.ledger import open_ledger
from vitrail.ledger.sql import SqlLedger

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


class Small(GlobalExplainer[Answers]):
    """The small recipe as an explainer."""

    def __init__(self, data: vt.PrivateData) -> None:
        self._data = data

    def conversation(self) -> Conversation[Answers]:
        return talk(self._data)


def kinds(data: vt.PrivateData) -> list[str]:
    return [entry.kind for entry in data.budget.entries]


def check_ledger(where: str) -> None:
    """The chain is whole, and its totals are those of its entries."""
    ledger = open_ledger(where)
    verdict = ledger.verify()
    assert verdict.ok, verdict.problems
    assert verdict.accounts[0].n_entries > 0
    ledger.close()


# --- how a run ends ----------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for a process that ends."""


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

    with mock.patch.object(SqlLedger, what, counted):
        yield


def die() -> None:
    raise Killed


# --- processes ----------------------------------------------------------------------------------------------------


PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import recipe_setup as r; getattr(r, sys.argv[2])(*sys.argv[3:])"


def start(function: str, *words: object) -> subprocess.Popen[str]:
    """A function of this file in a process of its own."""
    here = str(Path(__file__).parent)
    command = [sys.executable, "-W", "error", "-c", PROGRAM, here, function, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_and_be_killed(where: str, what: str, nth: str, told: str) -> None:
    """For ``start``: what was delivered is written down; then the process is killed, without a chance to clean up."""
    recipe = Steps()

    def kill() -> None:
        Path(told).write_text(json.dumps([release.value.tolist() for release in recipe.heard]))
        os.kill(os.getpid(), signal.SIGKILL)

    with ending_after(what, int(nth), kill):
        talk(private(where), recipe).explain(mu=MU)


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
