"""Kill -9 in every window, and eight processes at once: nothing lost, nothing overspent.

Children are plain scripts that use the ledger as anybody would. Those that must die inside a transaction count statements
*in their own process* and die before or after one of them; the library has no hook for it.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from vitrail.accounting import Cost, GaussianSum
from vitrail.accounting.guarantee import Budget
from vitrail.errors import BudgetExceeded
from vitrail.ledger import Replay, SqlLedger, open_ledger

EVENT = GaussianSum(1.0, 64.0)
COMMON = """
import os, signal, sys
from vitrail.accounting import Cost, GaussianSum
from vitrail.errors import BudgetExceeded, LedgerError
from vitrail.ledger import Part, Replay, open_ledger

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
    assert isinstance(again, Replay) == bool(releases)
    assert ledger.statement("adult").n_questions == 1  # what was not stored is computed again, and paid for once
    assert ledger.verify().ok
    ledger.close()


EACH_STATEMENT = """
from vitrail.ledger.book import Book

PART = Part("ab" * 32, "thirds", 1, 3)

def reserve(recipe="ef" * 32):
    return ledger.reserve("adult", analyst="alice", cost=EVENT.cost() + EVENT.cost(), recipe=recipe, question={}, part=PART)

def book(reservation, key=None):
    return ledger.charge("adult", analyst="alice", event=EVENT, question={}, key=key, part=PART, reservation=reservation)

STEPS = {  # what is done before, and the one transaction that a child dies in
    "charge": (lambda: None, lambda _: charge("cd" * 32)),
    "charge a part": (lambda: None, lambda _: ledger.charge(
        "adult", analyst="alice", event=EVENT, question={}, key=None, part=PART)),
    "join": (lambda: charge("ab" * 32), lambda _: ledger.charge(
        "adult", analyst="bob", event=EVENT, question={}, key="ab" * 32)),
    "store": (lambda: charge("ab" * 32), lambda charged: ledger.store(charged, b"x")),
    "replay": (lambda: ledger.store(charge("ab" * 32), b"x"), lambda _: ledger.charge(
        "adult", analyst="bob", event=EVENT, question={}, key="ab" * 32)),
    "keep": (lambda: None, lambda _: ledger.keep("adult", analyst="alice", name="notes", content=b"new")),
    "reserve": (lambda: None, lambda _: reserve()),
    "book": (reserve, lambda reservation: book(reservation, "cd" * 32)),
    "finish": (reserve, ledger.finish),
    "free": (reserve, lambda reservation: ledger.free("adult", reservation.seq)),
}
before, step = STEPS[sys.argv[2]]
given = before()
state = lambda: ledger.statement("adult")
untouched = state()

def die_at(number, after):
    execute, seen = Book._execute, iter(range(10**6))
    def deadly(*arguments, **options):
        if next(seen) != number:
            return execute(*arguments, **options)
        if after:
            execute(*arguments, **options)
        die()
    Book._execute = deadly

windows = 0
while True:
    child = os.fork()
    if child == 0:
        die_at(windows // 2, windows % 2)
        step(given)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        break
    tell("died", status, ledger.verify().ok, state() == untouched)
    windows += 1
tell("done", ledger.verify().ok, len(state().entries) - len(untouched.entries))
"""
STEPS = ["charge", "charge a part", "join", "store", "replay", "keep", "reserve", "book", "finish", "free"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("step", STEPS)
def test_killed_inside_a_transaction_leaves_no_half_of_it(path, step):
    """A child dies before and after every statement in turn; the last one lives, and all is written."""
    child = start(path, EACH_STATEMENT, step)
    output, _ = child.communicate()
    assert child.returncode == 0
    *died, done = output.splitlines()
    assert len(died) >= 8
    assert set(died) == {f"died {-signal.SIGKILL} True True"}
    assert done == "done True 1"
    check(path, "")


def test_killed_at_the_commit_is_all_or_nothing(path):
    script = """
tell("charged", charge().seq)
commit = ledger._database.engine.dialect.do_commit
def deadly(connection):
    if sys.argv[2] == "after":
        commit(connection)
    die()
ledger._database.engine.dialect.do_commit = deadly
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
    granted_in_all, processes, attempts_each = 400, 8, 100
    # sigma is chosen so that the capacity holds exactly this many charges, with room for less than one more
    capacity = Budget(1.0, 1e-6).capacity().pico_mu_squared
    sigma = (10**12 * granted_in_all / capacity) ** 0.5 * (1 + 1e-9)
    cost = GaussianSum(1.0, sigma).cost().pico_mu_squared
    assert capacity // cost == granted_in_all
    path = tmp_path / "ledger.db"
    script = f"""
from vitrail.accounting.guarantee import Budget
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


# A recipe of three steps: killed anywhere, resumed, raced, freed

RECIPE = """
PRICE = Cost(4 * EVENT.cost().pico_mu_squared)
moments = iter(range(100))
analyst = sys.argv[3] if len(sys.argv) > 3 else "alice"

def perhaps_die():
    if next(moments) == int(sys.argv[2]):
        die()

def run():
    perhaps_die()
    reservation = ledger.reserve("adult", analyst=analyst, cost=PRICE, recipe="ef" * 32, question={"label": "recipe"})
    perhaps_die()
    for number in range(3):
        asked = {"analyst": analyst, "event": EVENT, "question": {}, "key": f"{number}a" * 32, "reservation": reservation}
        answer = ledger.charge("adult", **asked)
        perhaps_die()
        if isinstance(answer, Replay):
            delivered = answer.release
        else:
            delivered = ledger.store(answer, f"{os.getpid()} computed {number}".encode())
        perhaps_die()
        print("delivered", number, delivered.decode(), flush=True)
    perhaps_die()
    ledger.finish(reservation)
    perhaps_die()
    print("finished", 0, flush=True)
"""
MOMENTS = ["before", "reserved", *(f"{what} {number}" for number in range(3) for what in ("charged", "stored"))]
MOMENTS += ["delivered", "finished"]


def after_the_recipe(path, *analysts):
    """Whatever happened: three questions were paid for, once, and nothing else is spent."""
    statement = check(path, "")
    three = sum([EVENT.cost()] * 3, Cost())
    assert (statement.n_questions, statement.spent, statement.reservations) == (3, three, ())
    assert sum(entry.kind == "released" for entry in statement.entries) == 3
    assert {line.analyst: line.spent for line in statement.analysts} == dict.fromkeys(analysts, three)
    return statement


@pytest.mark.parametrize("moment", range(len(MOMENTS)), ids=MOMENTS)
def test_a_recipe_that_was_killed_goes_on_where_it_stopped(path, moment):
    child = start(path, RECIPE + "run()", str(moment))
    before, _ = child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert check(path, "").spent <= Cost(4 * EVENT.cost().pico_mu_squared)
    child = start(path, RECIPE + "run()", "-1")
    after, _ = child.communicate()
    assert child.returncode == 0
    delivered = [line for line in after.splitlines() if line.startswith("delivered")]
    told_before = [line for line in before.splitlines() if line.startswith("delivered")]
    assert len(delivered) == 3
    assert delivered[: len(told_before)] == told_before  # what was delivered is delivered again
    after_the_recipe(path, "alice")


@pytest.mark.parametrize("others", ["alice", "bob"], ids=["one analyst", "two analysts"])
def test_processes_that_race_through_one_recipe_deliver_the_same(path, others):
    script = RECIPE + "print('ready', flush=True); sys.stdin.readline(); run()"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", COMMON + script, str(path), "-1", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("alice", others, "alice", others)
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    outputs = [child.communicate()[0] for child in children]
    assert [child.returncode for child in children] == [0] * 4
    assert len(set(outputs)) == 1
    assert outputs[0].count("delivered") == 3
    after_the_recipe(path, *{"alice", others})


def test_processes_that_race_for_one_step_hold_one_charge(path):
    script = """
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    charged = charge(f"{number:02d}" * 32)
    given = charged.release if isinstance(charged, Replay) else ledger.store(charged, f"{os.getpid()}".encode())
    print(number, charged.seq, given.decode(), flush=True)
"""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", COMMON + script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    outputs = [child.communicate()[0] for child in children]
    assert len(set(outputs)) == 1
    statement = check(path, "")
    assert statement.n_questions == 20
    assert statement.spent == Cost(20 * EVENT.cost().pico_mu_squared)


def test_freed_while_another_process_books(path):
    script = """
reservation = ledger.reserve("adult", analyst="alice", cost=Cost(10**11), recipe=None, question={})
tell("reserved", reservation.seq)
while True:
    try:
        asked = {"analyst": "alice", "event": EVENT, "question": {}, "key": None}
        tell("charged", ledger.charge("adult", reservation=reservation, **asked).seq)
    except LedgerError as error:
        print(error, flush=True)
        break
"""
    child = start(path, script)
    seq = int(child.stdout.readline().split()[1])
    promised = [child.stdout.readline() for _ in range(3)]
    owner = open_ledger(path)
    given_back = owner.free("adult", seq)
    owner.close()
    output, _ = child.communicate()
    assert child.returncode == 0
    *charged, last = output.splitlines()
    assert f"reservation {seq} of account 'adult' was freed, and holds nothing any more" in last
    assert last.endswith("Reserve again and go on from there. Nothing was charged.")
    statement = check(path, "".join(promised) + "".join(f"{line}\n" for line in charged))
    booked = Cost(statement.n_questions * EVENT.cost().pico_mu_squared)
    assert statement.n_questions == len(promised) + len(charged)
    assert statement.spent == booked
    assert given_back == booked.left_of(Cost(10**11))
