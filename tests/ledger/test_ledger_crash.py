"""Kill -9 in every window, and eight processes at once: nothing lost, nothing overspent.

Children are plain scripts that use the ledger as anybody would. Those that must die inside a transaction replace a method
of the book *in their own process* by one that kills it; the library has no hook for it.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from vitrail.accounting import GaussianSum
from vitrail.errors import BudgetExceeded
from vitrail.guarantee import Budget
from vitrail.ledger import Replay, SqlLedger, open_ledger

EVENT = GaussianSum(1.0, 64.0)
COMMON = """
import os, signal, sys
from vitrail.accounting import GaussianSum
from vitrail.errors import BudgetExceeded
from vitrail.ledger import open_ledger

EVENT = GaussianSum(1.0, 64.0)
ledger = open_ledger(sys.argv[1])

def charge(key=None):
    return ledger.charge("adult", analyst="alice", event=EVENT, question={"kind": "sum"}, key=key)

def tell(*words):
    print(*words, flush=True)

def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = open_ledger(path)
    ledger.open_account("adult", Budget(5.0, 1e-6), "add-remove")
    ledger.close()
    return path


def start(path, script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", COMMON + script, str(path), *arguments], stdout=subprocess.PIPE, text=True
    )


def told(output, word):
    """The numbers of the *complete* lines that start with ``word``: what the child was promised before it died."""
    lines = output.rpartition("\n")[0].splitlines()
    return [int(line.split()[1]) for line in lines if line.split()[0] == word]


def check(path, output):
    """Whatever happened: the chain verifies, and every promise the child was given is kept. Returns the statement."""
    ledger = SqlLedger(path, must_exist=True)
    verification = ledger.verify()
    assert verification.ok, verification.problems
    statement = ledger.statement("adult")
    charged = {entry.seq for entry in statement.entries if entry.kind == "charged"}
    released = {entry.body["of"] for entry in statement.entries if entry.kind == "released"}
    assert set(told(output, "charged")) <= charged
    assert set(told(output, "stored")) <= released <= charged
    ledger.close()
    return statement


WINDOWS = {  # where it dies: (script, charges on the bill, releases stored)
    "before the charge": ("die()", 0, 0),
    "between charge and computation": ("tell('charged', charge('ab' * 32).seq); die()", 1, 0),
    "between computation and store": ("c = charge('ab' * 32); tell('charged', c.seq); release = b'x' * 1000; die()", 1, 0),
    "after the store": (
        "c = charge('ab' * 32); tell('charged', c.seq); ledger.store(c, b'x'); tell('stored', c.seq); die()",
        1,
        1,
    ),
}
INSIDE = {  # the method of the book that kills, before and after it has done its work
    "charge": ["account", "entry", "analyst", "put_analyst", "append", "put_account"],
    "store": ["account", "entry", "has_release", "append", "put_account", "put_release", "put_sighting"],
}


@pytest.mark.parametrize(("script", "charges", "releases"), WINDOWS.values(), ids=WINDOWS)
def test_killed_between_the_steps(path, script, charges, releases):
    child = start(path, script)
    output, _ = child.communicate()
    assert child.returncode == -signal.SIGKILL
    statement = check(path, output)
    assert statement.n_questions == charges
    assert sum(entry.kind == "released" for entry in statement.entries) == releases
    ledger = open_ledger(path)
    again = ledger.charge("adult", analyst="alice", event=EVENT, question={}, key="ab" * 32)
    assert isinstance(again, Replay) == bool(releases)  # what was not stored is paid for again, never refunded
    assert ledger.statement("adult").n_questions == (charges if releases else charges + 1)
    assert ledger.verify().ok
    ledger.close()


EACH_WINDOW = """
from vitrail.ledger.book import Book

def kill_in(name, after):
    original = getattr(Book, name)
    def deadly(*arguments, **options):
        if after:
            original(*arguments, **options)
        die()
    setattr(Book, name, deadly)

for name in sys.argv[3:]:
    for after in (False, True):
        child = os.fork()
        if child == 0:
            first = charge()
            tell("charged", first.seq)
            kill_in(name, after)
            if sys.argv[2] == "charge":
                tell("charged", charge().seq)
            else:
                ledger.store(first, b"x")
                tell("stored", first.seq)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        tell("died", os.waitstatus_to_exitcode(status))
        tell("sound", int(ledger.verify().ok))
        tell("questions", ledger.statement("adult").n_questions)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("step", "methods"), INSIDE.items(), ids=INSIDE)
def test_killed_inside_a_transaction_leaves_no_half_of_it(path, step, methods):
    """A child dies in each window in turn; all use the same ledger, so each also recovers from the one before."""
    child = start(path, EACH_WINDOW, step, *methods)
    output, _ = child.communicate()
    assert child.returncode == 0
    windows = 2 * len(methods)
    assert told(output, "died") == [-signal.SIGKILL] * windows
    assert told(output, "sound") == [1] * windows
    assert told(output, "questions") == list(range(1, windows + 1))
    statement = check(path, output)
    assert all(entry.kind != "released" for entry in statement.entries)


def test_killed_at_the_commit_is_all_or_nothing(path):
    script = """
tell("charged", charge().seq)
commit = ledger._engine.dialect.do_commit
def deadly(connection):
    if sys.argv[2] == "after":
        commit(connection)
    die()
ledger._engine.dialect.do_commit = deadly
tell("charged", charge().seq)
"""
    for moment, expected in (("before", 1), ("after", 3)):
        child = start(path, script, moment)
        output, _ = child.communicate()
        assert child.returncode == -signal.SIGKILL
        assert check(path, output).n_questions == expected


def test_killed_at_random_moments(path):
    script = """
tell("ready 0")
while True:
    c = charge()
    tell("charged", c.seq)
    ledger.store(c, b"x" * 100)
    tell("stored", c.seq)
"""
    chance, promised = random.Random(20260101), 0
    for _ in range(5):
        children = [start(path, script) for _ in range(2)]
        for child in children:
            assert child.stdout.readline() == "ready 0\n"
        time.sleep(chance.uniform(0.05, 0.4))
        for child in children:
            child.kill()
        for child in children:
            output, _ = child.communicate()
            promised += len(told(output, "charged"))
            statement = check(path, output)
        assert statement.n_questions >= promised
    assert promised > 0


def test_eight_processes_grant_exactly_the_cap(tmp_path):
    granted_in_all, processes, attempts_each = 1000, 8, 250
    # sigma is chosen so that the capacity holds exactly this many charges, with room for less than one more
    capacity = Budget(1.0, 1e-6).capacity().pico_mu_squared
    sigma = (10**12 * granted_in_all / capacity) ** 0.5 * (1 + 1e-9)
    cost = GaussianSum(1.0, sigma).cost().pico_mu_squared
    assert capacity // cost == granted_in_all
    path = tmp_path / "ledger.db"
    script = f"""
from vitrail.guarantee import Budget
ledger.open_account("adult", Budget(1.0, 1e-6), "add-remove")
EVENT = GaussianSum(1.0, {sigma!r})
for _ in range({attempts_each}):
    try:
        tell("charged", charge().seq)
    except BudgetExceeded:
        tell("refused", 0)
"""
    children = [start(path, script) for _ in range(processes)]  # they race for the creation of the ledger as well
    outputs = [child.communicate()[0] for child in children]
    assert [child.returncode for child in children] == [0] * processes
    granted = [seq for output in outputs for seq in told(output, "charged")]
    refused = sum(len(told(output, "refused")) for output in outputs)
    assert len(granted) == len(set(granted)) == granted_in_all
    assert len(granted) + refused == processes * attempts_each
    statement = check(path, "".join(outputs))
    assert statement.n_questions == granted_in_all
    ledger = SqlLedger(path, must_exist=True)
    with pytest.raises(BudgetExceeded):
        ledger.charge("adult", analyst="alice", event=GaussianSum(1.0, sigma), question={}, key=None)
    ledger.close()
