"""What the tests of reservations share: an account, a recipe, its steps and their prices."""

from vitrail.accounting import Cost, GaussianSum
from vitrail.accounting.guarantee import Budget
from vitrail.ledger import Part, Replay
from vitrail.ledger.entries import digest_of

BUDGET = Budget(1.0, 1e-6, training=(0.4, 4e-7))
CAPACITY = BUDGET.capacity().pico_mu_squared // 10**6  # in millionths of mu squared
RECIPE, OTHER = "ab" * 32, "cd" * 32
THIRDS = "ef" * 32


def third(index):
    return Part(THIRDS, "thirds", index, 3)


def units(number):
    return Cost(number * 10**6)


def event(number):
    """A sum that costs so many millionths of mu squared."""
    made = GaussianSum(1.0, (10**6 / number) ** 0.5 * (1 + 1e-13))
    assert 0 <= units(number).pico_mu_squared - made.cost().pico_mu_squared < 10**4
    return made


def key(step, recipe=RECIPE):
    return digest_of(f"{recipe} {step}")


def opened(ledger):
    """The ledger with the account that the tests ask."""
    ledger.open_account("adult", BUDGET, "add-remove")
    return ledger


def reserve(ledger, price=3000, analyst="alice", recipe=RECIPE, part=None):
    cost = price if isinstance(price, Cost) else units(price)
    return ledger.reserve("adult", analyst=analyst, cost=cost, recipe=recipe, question={"label": "a report"}, part=part)


def step(ledger, reservation, number=0, price=1000, **more):
    """Ask for a step of the recipe, and store its answer if it is new."""
    asked = {"analyst": "alice", "part": None, **more}
    if reservation is not None:
        asked = {**asked, "analyst": reservation.analyst, "part": reservation.part, "reservation": reservation}
    answer = ledger.charge("adult", event=event(price), question={}, key=key(number), **asked)
    return answer if isinstance(answer, Replay) else (answer, ledger.store(answer, f"answer {number}".encode()))


def spent(ledger, analyst=None):
    statement = ledger.statement("adult")
    return statement.spent if analyst is None else statement.of_analyst(analyst).spent


def exhaust(ledger):
    """Spend what is left of the account."""
    left = ledger.statement("adult").remaining.pico_mu_squared
    sigma = (10**12 / left) ** 0.5 * (1 + 1e-12)
    ledger.charge("adult", analyst="eve", event=GaussianSum(1.0, sigma), question={}, key=None)
    assert ledger.statement("adult").remaining.pico_mu_squared < 10**4
