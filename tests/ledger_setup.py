"""What tests of ledgers ask with, and how they look at a ledger that somebody changed."""

import sqlite3

from vitrail.accounting import FixedBlock, GaussianSum, mu_of
from vitrail.accounting.guarantee import Budget
from vitrail.ledger import SqlLedger

BUDGET = Budget(1.0, 1e-6, training=(0.4, 4e-7))
KEY, OTHER_KEY = "ab" * 32, "cd" * 32


def event_of(epsilon):
    """A sum that costs at most ``epsilon`` at the account's delta."""
    return GaussianSum(1.0, 1 / mu_of(epsilon, BUDGET.question_delta) * (1 + 1e-9))


def block(epsilon, delta):
    return FixedBlock(epsilon, delta, noise_multiplier=1.0, sampling_rate=0.01, steps=100)


def ask(ledger, epsilon=0.1, analyst="alice", key=None, account="adult", event=None):
    return ledger.charge(
        account, analyst=analyst, event=event or event_of(epsilon), question={"kind": "sum", "size": 3}, key=key
    )


def problems_after(path, *statements):
    """What ``verify`` finds in a file after these statements were run on it."""
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    ledger = SqlLedger(path, must_exist=True)
    try:
        return "\n".join(ledger.verify().problems)
    finally:
        ledger.close()
